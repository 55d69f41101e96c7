package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/e2e/nodesim/sim"
	"github.com/nomadlite/nomadlite/e2e/proc"
	"github.com/nomadlite/nomadlite/structs"
)

// startFleet runs simulated nodes on a server until the benchmark ends or end is called; all are ready.
func startFleet(b *testing.B, server *proc.Agent, cfg sim.Config) (fleet *sim.Sim, end func()) {
	b.Helper()
	cfg.Servers = []string{fmt.Sprintf("127.0.0.1:%d", server.RPC)}
	fleet, err := sim.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- fleet.Run(context.Background()) }()
	end = sync.OnceFunc(func() {
		if err := errors.Join(fleet.Close(), <-ran); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(end)
	awaitFleet(b, fleet, func(st sim.Stats) bool { return st.Ready == cfg.Nodes })
	return fleet, end
}

func awaitFleet(b *testing.B, fleet *sim.Sim, done func(sim.Stats) bool) sim.Stats {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*proc.Limit)
	defer cancel()
	stats, err := fleet.Await(ctx, done)
	if err != nil {
		b.Fatalf("%v; last seen: %+v", err, stats)
	}
	return stats
}

func serverOnly(change func(server map[string]any)) func(map[string]any) {
	return func(c map[string]any) {
		c["client"] = map[string]any{"enabled": false}
		c["enable_debug"] = true // for profile
		if change != nil {
			change(c["server"].(map[string]any))
		}
	}
}

func getJSON(b *testing.B, ctx context.Context, url string, out any) {
	b.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		b.Fatalf("read %s: %v", url, err)
	}
}

// profile takes a processor profile of a server, which goes into the folder that BENCH_PROFILES names; without one it
// does nothing. What it returns waits for the end.
func profile(b *testing.B, server *proc.Agent, name string, length time.Duration) (wait func()) {
	b.Helper()
	dir := os.Getenv("BENCH_PROFILES")
	if dir == "" {
		return func() {}
	}
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			res, err := http.Get(fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", server.Addr(), int(length.Seconds())))
			if err != nil {
				return err
			}
			defer res.Body.Close()
			raw, err := io.ReadAll(res.Body)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, name+".pprof"), raw, 0o600)
		}()
	}()
	return func() {
		if err := <-done; err != nil {
			b.Errorf("profile %s: %v", name, err)
		}
	}
}

// many registers jobs over so many connections at once.
func many(b *testing.B, c *api.Client, jobs []*structs.Job, connections int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*proc.Limit)
	defer cancel()
	queue := make(chan *structs.Job)
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			for job := range queue {
				if _, _, err := c.Jobs().Register(ctx, job, nil, nil); err != nil {
					b.Errorf("register job: %v", err)
				}
			}
		})
	}
	for _, job := range jobs {
		queue <- job
	}
	close(queue)
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// awaitTotals waits until the summaries of all jobs together satisfy done.
func awaitTotals(b *testing.B, server *proc.Agent, what string, done func(sum func(status string) int) bool) {
	b.Helper()
	awaitMetrics(b, server, what, func(values map[string]float64) bool {
		return done(func(status string) int { return int(values["nomad.nomad.job_summary."+status]) })
	})
}

// awaitMetrics looks at the figures of a server until they satisfy done. It has to ask again and again: nothing tells
// when a figure changes.
func awaitMetrics(b *testing.B, server *proc.Agent, what string, done func(map[string]float64) bool) map[string]float64 {
	b.Helper()
	end := time.After(8 * proc.Limit)
	for {
		began := time.Now()
		values := metrics(b, server)
		if done(values) {
			return values
		}
		select {
		case <-time.After(max(50*time.Millisecond, 20*time.Since(began))): // asking is not what is measured
		case <-end:
			b.Fatalf("wait until %s; last seen: %v", what, values)
		}
	}
}

// patient is a server that hears of all nodes so often that, when they fall silent together, it misses them within seconds
// of each other, but that waits long before: none is to be missed because a busy machine needs long to set a fleet up.
func patient(server map[string]any) {
	server["min_heartbeat_ttl"], server["heartbeat_grace"], server["max_heartbeats_per_second"] = "5s", "90s", 5000
}

// idle says that nothing is left to evaluate.
func idle(broker map[string]float64) bool {
	return broker["total_ready"]+broker["total_unacked"]+broker["total_pending"] == 0
}

// BenchmarkContactLost lets 5,000 nodes fall silent at once, each with 20 allocations of 1,000 jobs, half of which
// tolerate that for some time: the time from the first heartbeat that is missed until every allocation has its
// condition, and what that costs the server.
func BenchmarkContactLost(b *testing.B) {
	const nodes, jobs, count = 5000, 1000, 100
	for b.Loop() {
		server := proc.New(b, serverOnly(patient))
		server.OwnBinary()
		server.Start()
		profiled := profile(b, server, "registrations", 10*time.Second)
		fleet, end := startFleet(b, server, sim.Config{Nodes: nodes})
		b.Logf("all nodes are ready after %d ms; processor time of the server: %v", fleet.Stats().RegDoneMS, server.CPUTime())
		profiled()
		list := make([]*structs.Job, jobs)
		for i := range list {
			job := sleepers(fmt.Sprintf("job-%04d", i), count)
			job.Datacenters = []string{"*"}
			res := job.TaskGroups[0].Tasks[0].Resources
			res.CPU, res.MemoryMB = structs.Ptr(650), structs.Ptr(1500) // 21 fit on a node
			if i%2 == 0 {
				job.TaskGroups[0].Disconnect = &structs.DisconnectStrategy{LostAfter: structs.Ptr(time.Hour)}
			}
			list[i] = job
		}
		many(b, server.Client, list, 16)
		awaitFleet(b, fleet, func(st sim.Stats) bool { return st.Running == jobs*count })
		b.Logf("all allocations run; processor time of the server: %v; %+v", server.CPUTime(), fleet.Stats())
		note(b, "lost/memory", mebibytes(server.Memory()), "MiB")
		before, cpu := metrics(b, server), server.CPUTime()
		missed := server.Logs("node missed its heartbeat")
		end()
		select {
		case <-missed:
		case <-time.After(8 * proc.Limit):
			b.Fatal("no node is missed")
		}
		began := time.Now()
		cpuMissed := server.CPUTime()
		profiled = profile(b, server, "lost", 20*time.Second)
		awaitTotals(b, server, "all conditions are set", func(sum func(string) int) bool {
			b.Logf("after %v and %v of processor time: %d unknown, %d lost, %d running, %d starting", time.Since(began).Round(time.Millisecond),
				server.CPUTime()-cpuMissed, sum("unknown"), sum("lost"), sum("running"), sum("starting"))
			return sum("unknown") >= jobs*count/2 && sum("running")+sum("starting") == 0
		})
		note(b, "lost", time.Since(began).Seconds(), "lost-s")
		after := metrics(b, server)
		note(b, "lost/cpu", (server.CPUTime() - cpuMissed).Seconds(), "lost-cpu-s")
		note(b, "lost/entries", after["nomad.raft.applied.node-status"]-before["nomad.raft.applied.node-status"], "entries")
		note(b, "lost/peak", mebibytes(server.Memory()), "peak-MiB")
		profiled()
		b.Logf("processor time since the cut: %v; entries: %v", server.CPUTime()-cpu, grown(before, after))
	}
	b.ReportMetric(0, "ns/op")
}

// grown is what raft entries were written between.
func grown(before, after map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for name, value := range after {
		if command, ok := strings.CutPrefix(name, "nomad.raft.applied."); ok && value > before[name] {
			out[command] = value - before[name]
		}
	}
	return out
}

// BenchmarkBlocked lets 3,000 jobs wait for room and brings a node that has room for ten, and then one that has room for
// all: how many evaluations the first costs, and at which rate the jobs get placed on the second.
func BenchmarkBlocked(b *testing.B) {
	const jobs = 3000
	for b.Loop() {
		server := proc.New(b, serverOnly(nil))
		server.Start()
		list := make([]*structs.Job, jobs)
		for i := range list {
			list[i] = sleepers(fmt.Sprintf("job-%04d", i), 1)
			list[i].Datacenters = []string{"*"}
			res := list[i].TaskGroups[0].Tasks[0].Resources
			res.CPU, res.MemoryMB = structs.Ptr(4), structs.Ptr(10)
		}
		many(b, server.Client, list, 16)
		awaitBroker(b, server, "evaluations are done", func(m map[string]float64) bool { return m["total_blocked"] == jobs && m["total_unacked"] == 0 })
		filler := sleepers("filler", 1)
		filler.Type, filler.Priority = structs.Ptr("service"), structs.Ptr(90)
		filler.Datacenters = []string{"*"}
		filler.TaskGroups[0].Tasks[0].Resources.MemoryMB = structs.Ptr(32_000 - 105)
		if _, _, err := server.Client.Jobs().Register(limited(b), filler, nil, nil); err != nil {
			b.Fatal(err)
		}
		before := awaitBroker(b, server, "evaluations are done", func(m map[string]float64) bool { return m["total_blocked"] == jobs+1 && m["total_unacked"] == 0 })
		small, _ := startFleet(b, server, sim.Config{Nodes: 1, Seed: "small"})
		awaitFleet(b, small, func(st sim.Stats) bool { return st.Running == 11 })
		after := awaitBroker(b, server, "evaluations are done", idle)
		note(b, "blocked/few", after["total_delivered"]-before["total_delivered"], "few-evals")
		began := time.Now()
		cpu := server.CPUTime()
		profiled := profile(b, server, "blocked", 10*time.Second)
		large, _ := startFleet(b, server, sim.Config{Nodes: 1, Seed: "large"})
		awaitFleet(b, large, func(st sim.Stats) bool { return st.Running == jobs-10 })
		took := time.Since(began)
		note(b, "blocked/time", took.Seconds(), "drain-s")
		note(b, "blocked/cpu", (server.CPUTime() - cpu).Seconds(), "drain-cpu-s")
		profiled()
		b.ReportMetric(float64(jobs-10)/took.Seconds(), "jobs/s")
		note(b, "blocked/all", awaitBroker(b, server, "evaluations are done", func(map[string]float64) bool { return true })["total_delivered"]-after["total_delivered"], "evals")
	}
	b.ReportMetric(0, "ns/op")
}

// awaitBroker waits until the broker's figures satisfy done.
func awaitBroker(b *testing.B, server *proc.Agent, what string, done func(map[string]float64) bool) map[string]float64 {
	b.Helper()
	figures := func(values map[string]float64) map[string]float64 {
		out := map[string]float64{}
		for name, value := range values {
			if figure, ok := strings.CutPrefix(name, "nomad.nomad.broker."); ok {
				out[figure] = value
			}
		}
		return out
	}
	return figures(awaitMetrics(b, server, what, func(values map[string]float64) bool { return done(figures(values)) }))
}
