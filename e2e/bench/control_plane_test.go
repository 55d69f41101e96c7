package bench

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/e2e/nodesim/sim"
	"github.com/nomadlite/nomadlite/e2e/proc"
	"github.com/nomadlite/nomadlite/structs"
)

// controlPlane is a server with data on disk and simulated nodes, which all are ready.
func controlPlane(b *testing.B, nodes int) (*proc.Agent, *sim.Sim) {
	b.Helper()
	server := proc.New(b, serverOnly(nil))
	server.OwnBinary()
	server.Start()
	fleet, _ := startFleet(b, server, sim.Config{Nodes: nodes})
	return server, fleet
}

func groupOf(id string, count, mhz, mb int) *structs.Job {
	job := sleepers(id, count)
	job.Datacenters = []string{"*"}
	res := job.TaskGroups[0].Tasks[0].Resources
	res.CPU, res.MemoryMB = &mhz, &mb
	return job
}

// BenchmarkControlPlane registers one job with many allocations: the time until all of them exist and until all are
// reported running, and what that costs the server.
func BenchmarkControlPlane(b *testing.B) {
	for _, row := range []struct {
		key, kind    string
		nodes, count int
		spread       bool
	}{
		{"place", "service", 1000, 5000, false},
		{"spread", "service", 1000, 5000, true},
		{"batch", "batch", 5000, 20_000, false},
	} {
		b.Run(row.key, func(b *testing.B) {
			proc.Binary(b)
			for b.Loop() {
				server, fleet := controlPlane(b, row.nodes)
				job := groupOf("many", row.count, 10, 10)
				job.Type = structs.Ptr(row.kind)
				if row.spread {
					job.Spreads = []*structs.Spread{{Attribute: "${meta.rack}", Weight: structs.Ptr(int8(100))}}
				}
				cpu, began := server.CPUTime(), time.Now()
				if _, _, err := server.Client.Jobs().Register(limited(b), job, nil, nil); err != nil {
					b.Fatal(err)
				}
				awaitSummary(b, server.Client, "many", "all exist", func(s structs.TaskGroupSummary) bool {
					return s.Starting+s.Running == row.count
				})
				note(b, row.key+"/exist", time.Since(began).Seconds(), "exist-s")
				awaitSummary(b, server.Client, "many", "all run", func(s structs.TaskGroupSummary) bool { return s.Running == row.count })
				note(b, row.key+"/running", time.Since(began).Seconds(), "running-s")
				note(b, row.key+"/cpu", (server.CPUTime() - cpu).Seconds(), "cpu-s")
				note(b, row.key+"/memory", mebibytes(server.Memory()), "MiB")
				if st := awaitFleet(b, fleet, func(st sim.Stats) bool { return st.Running == row.count }); st.RPCErrs > 0 {
					b.Errorf("%d messages of nodes failed", st.RPCErrs)
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkManyJobs registers 1,000 jobs of 20 allocations over 64 connections: allocations a second from the first
// registration until the last one runs, and whether the last tenth came as fast as the first.
func BenchmarkManyJobs(b *testing.B) {
	const nodes, jobs, count = 5000, 1000, 20
	for _, row := range []struct {
		key     string
		mhz, mb int
	}{{"large", 2800, 6000}, {"small", 100, 100}} {
		b.Run(row.key, func(b *testing.B) {
			proc.Binary(b)
			for b.Loop() {
				server, fleet := controlPlane(b, nodes)
				list := make([]*structs.Job, jobs)
				for i := range list {
					list[i] = groupOf(fmt.Sprintf("job-%04d", i), count, row.mhz, row.mb)
					list[i].Constraints = []*structs.Constraint{{LTarget: "${attr.kernel.name}", RTarget: "linux", Operand: "="}}
				}
				client := keepsConnections(b, server, 64)
				ctx := limited(b)
				profiled := profile(b, server, "jobs-"+row.key, 4*time.Second)
				cpu, began := server.CPUTime(), time.Now()
				var tenth [11]time.Duration // until so many tenths run
				counted := make(chan error, 1)
				go func() {
					var err error
					for i := 1; i <= 10 && err == nil; i++ {
						_, err = fleet.Await(ctx, func(st sim.Stats) bool { return st.Running >= jobs*count*i/10 })
						tenth[i] = time.Since(began)
					}
					counted <- err
				}()
				many(b, client, list, 64)
				b.Logf("all registered after %v", time.Since(began))
				if err := <-counted; err != nil {
					b.Fatal(err)
				}
				note(b, row.key+"/rate", jobs*count/tenth[10].Seconds(), "allocs/s")
				note(b, row.key+"/first", tenth[1].Seconds(), "first-tenth-s")
				note(b, row.key+"/last", (tenth[10] - tenth[9]).Seconds(), "last-tenth-s")
				note(b, row.key+"/cpu", (server.CPUTime() - cpu).Seconds(), "cpu-s")
				note(b, row.key+"/memory", mebibytes(server.Memory()), "MiB")
				b.Logf("tenths: %v", tenth[1:])
				profiled()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// keepsConnections is a client that uses so many connections, each again and again.
func keepsConnections(b *testing.B, server *proc.Agent, connections int) *api.Client {
	b.Helper()
	client, err := api.NewClient(api.Config{Address: server.Addr(),
		HTTPClient: &http.Client{Transport: &http.Transport{MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	return client
}

// BenchmarkIdle looks at a server with 1,000 nodes that have nothing to do, for as long as it takes until each of them has
// sent about one heartbeat.
func BenchmarkIdle(b *testing.B) {
	const nodes = 1000
	proc.Binary(b)
	for b.Loop() {
		server, fleet := controlPlane(b, nodes)
		heard := awaitFleet(b, fleet, func(sim.Stats) bool { return true }).Heartbeats
		profiled := profile(b, server, "idle", 15*time.Second)
		cpu, began := server.CPUTime(), time.Now()
		awaitFleet(b, fleet, func(st sim.Stats) bool { return st.Heartbeats >= heard+nodes })
		note(b, "idle/cpu", 100*(server.CPUTime()-cpu).Seconds()/time.Since(began).Seconds(), "%")
		note(b, "idle/nodes", mebibytes(server.Memory()), "MiB")
		profiled()
	}
	b.ReportMetric(0, "ns/op")
}
