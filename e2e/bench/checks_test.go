package bench

import (
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/e2e/proc"
	"github.com/nomadlite/nomadlite/structs"
)

// BenchmarkChecks is what 500 allocations on one node cost that do nothing, without a check and with one of HTTP each,
// asked every 10 s: the processor time of the agent, its server included, as a part of one core.
func BenchmarkChecks(b *testing.B) {
	const allocs, asked = 500, 20 * time.Second
	for b.Loop() {
		for _, figure := range []string{"quiet", "checks"} {
			var answers atomic.Int64
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				answers.Add(1)
			})}
			go func() { _ = server.Serve(l) }()
			a := proc.New(b, nil)
			a.OwnBinary()
			a.Start()
			awaitNode(b, a.Client)
			job := sleepers(figure, allocs)
			if figure == "checks" {
				_, port, _ := net.SplitHostPort(l.Addr().String())
				job.TaskGroups[0].Services = []*structs.Service{{Name: "web", Provider: "nomad", PortLabel: port, Address: "127.0.0.1",
					Checks: []structs.ServiceCheck{{Type: "http", Path: "/", Interval: 10 * time.Second, Timeout: time.Second}}}}
			}
			register(b, a.Client, job)
			<-time.After(15 * time.Second) // until all deployments are over
			before, used := answers.Load(), a.CPUTime()
			<-time.After(asked)
			share := 100 * (a.CPUTime() - used).Seconds() / asked.Seconds()
			note(b, figure, share, figure+"-%core")
			note(b, figure+"/mem", mebibytes(a.Memory()), figure+"-MiB")
			if n := answers.Load() - before; figure == "checks" && n < 900 {
				b.Errorf("only %d questions in %s", n, asked)
			}
			stop(b, a.Client, job)
			_ = server.Close()
			if err := a.Stop(); err != nil {
				b.Error(err)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}
