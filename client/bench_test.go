package client

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// BenchmarkTasks starts and stops many raw_exec tasks on one node, from assignment to report, with everything synced
// to disk and as a dev agent does it. It prints the times for all of them together.
func BenchmarkTasks(b *testing.B) {
	for _, n := range []int{1, 300} {
		b.Run(fmt.Sprintf("synced/%d", n), func(b *testing.B) { benchmarkTasks(b, n, false) })
		b.Run(fmt.Sprintf("dev/%d", n), func(b *testing.B) { benchmarkTasks(b, n, true) })
	}
}

func benchmarkTasks(b *testing.B, n int, dev bool) {

	var up, down time.Duration
	for round := range b.N {
		u, d := tasksRound(b, round, n, dev)
		up, down = up+u, down+d
	}
	b.ReportMetric(float64(up.Microseconds())/1000/float64(b.N), "ms-running")
	b.ReportMetric(float64(down.Microseconds())/1000/float64(b.N), "ms-stopped")
}

func tasksRound(b *testing.B, round, n int, dev bool) (up, down time.Duration) {
	b.Helper()
	a := newAgent(b)
	a.cfg.DevMode, a.cfg.NoCgroups = dev, false
	a.start()
	a.servers.until("fresh", func() bool { return len(a.servers.beats) > 1 })
	all := func(status string) func() bool {
		return func() bool {
			for i := range n {
				if o := a.servers.seen[fmt.Sprintf("a%d-%d", round, i)]; o == nil || o.ObservedStatus != status {
					return false
				}
			}
			return true
		}
	}
	job := jobOf("j", "service", shell("exec sleep 1000"))
	begin := time.Now()
	a.servers.mu.Lock()
	for i := range n {
		a.servers.assignLocked(fmt.Sprintf("a%d-%d", round, i), job, nil)
	}
	a.servers.bump()
	a.servers.mu.Unlock()
	a.servers.until("all running", all("running"))
	up = time.Since(begin)
	begin = time.Now()
	a.servers.mu.Lock()
	for i := range n {
		a.servers.changeLocked(fmt.Sprintf("a%d-%d", round, i), func(al *structs.Allocation) { al.DesiredStatus = "stop" })
	}
	a.servers.bump()
	a.servers.mu.Unlock()
	a.servers.until("all complete", all("complete"))
	return up, time.Since(begin)
}
