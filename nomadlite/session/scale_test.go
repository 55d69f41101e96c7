package session

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// idle connects n nodes, each with a parked poll, and gives what both ends of one need.
func (c *cluster) idle(n int) (nodes []*node, answers []<-chan *structs.AssignmentsResponse, goroutines, bytes float64) {
	t, m := c.t, c.ports[0]
	measure := func() (int, uint64) {
		runtime.GC()
		runtime.GC()
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		return runtime.NumGoroutine(), ms.HeapAlloc + ms.StackInuse
	}
	g0, m0 := measure()
	var helds []*held
	for i := range n {
		nd := connect(t, m, fmt.Sprintf("n%d", i), nil)
		h := &held{}
		h.apply(t, <-nd.poll(h))
		nodes, helds = append(nodes, nd), append(helds, h)
	}
	for i, nd := range nodes {
		answers = append(answers, nd.poll(helds[i]))
	}
	want := m.polls.Waiting
	for want() < n {
		runtime.Gosched()
	}
	g1, m1 := measure()
	return nodes, answers, float64(g1-g0) / float64(n), float64(m1-m0) / float64(n)
}

// BenchmarkIdleNodes is what an idle node costs in state, session and parked poll, both ends together (the server's
// is about half), and how long one raft entry takes to reach all nodes.
func BenchmarkIdleNodes(b *testing.B) {
	const n = 500
	for b.Loop() {
		b.StopTimer()
		c := newCluster(b, 1)
		nodes, answers, goroutines, bytes := c.idle(n)
		b.ReportMetric(goroutines, "goroutines/node")
		b.ReportMetric(bytes/1024, "KiB/node")
		job := c.job("web", "service")
		plan := &structs.Plan{Namespace: "default", JobID: "web", JobModifyIndex: job.JobModifyIndex,
			Places: map[string][]*structs.Allocation{}}
		for _, nd := range nodes {
			plan.Places[nd.id] = []*structs.Allocation{{ID: "a" + nd.id, Namespace: "default", JobID: "web", NodeID: nd.id,
				TaskGroup: "g", Name: "web.g[0]", DesiredStatus: "run", JobModifyIndex: job.JobModifyIndex}}
		}
		b.StartTimer()
		c.apply(fsm.KindPlanApply, &fsm.PlanApply{Plans: []*structs.Plan{plan}, Now: 2})
		for _, answer := range answers {
			if res := <-answer; res == nil || len(res.Upsert) != 1 {
				b.Fatalf("%+v", res)
			}
		}
		b.StopTimer()
		for _, nd := range nodes {
			nd.leave()
		}
		c.ports[0].stop()
		b.StartTimer()
	}
}
