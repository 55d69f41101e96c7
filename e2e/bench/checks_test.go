package bench

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/e2e/proc"
	"github.com/nomadlite/nomadlite/structs"
)

// BenchmarkChecks is what 500 allocations on one node cost that do nothing and have a check of HTTP each, asked every 10 s:
// the processor time of the agent, its server included, as a part of one core.
func BenchmarkChecks(b *testing.B) {
	const allocs = 500
	for b.Loop() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		asked := make(chan struct{}, allocs)
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			asked <- struct{}{}
		})}
		go func() { _ = server.Serve(l) }()
		a := proc.New(b, nil)
		a.OwnBinary()
		a.Start()
		awaitNode(b, a.Client)
		job := sleepers("checks", allocs)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		job.TaskGroups[0].Services = []*structs.Service{{Name: "web", Provider: "nomad", PortLabel: port, Address: "127.0.0.1",
			Checks: []structs.ServiceCheck{{Type: "http", Path: "/", Interval: 10 * time.Second, Timeout: time.Second}}}}
		rounds := func(n int) {
			ctx := limited(b)
			for range n * allocs {
				select {
				case <-asked:
				case <-ctx.Done():
					b.Fatal("the checks are not asked")
				}
			}
		}
		register(b, a.Client, job)
		rounds(3) // until the deployment is over
		began, used := time.Now(), a.CPUTime()
		rounds(2)
		note(b, "checks", 100*(a.CPUTime()-used).Seconds()/time.Since(began).Seconds(), "%core")
		note(b, "checks/mem", mebibytes(a.Memory()), "MiB")
		go func() {
			for range asked { // the last questions are not waited for
			}
		}()
		stop(b, a.Client, job)
		_ = server.Close()
	}
	b.ReportMetric(0, "ns/op")
}
