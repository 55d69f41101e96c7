package fsm

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// heapNodes is on how many nodes the allocations of BenchmarkHeap are.
const heapNodes = 10_000

func heapNode(i int) string { return fmt.Sprintf("%08x-9c4f-4c17-a9b1-%012x", uint32(i)*2654435761, i) }

// heapPlan places n allocations as a scheduler does: each has the scores of the five best nodes, and the next one mostly
// has the same.
func heapPlan(eval, from, n int) PlanApply {
	plan := &structs.Plan{EvalID: fmt.Sprintf("%08x-11aa-4c17-a9b1-%012x", eval, eval), Namespace: "default", JobID: "web",
		JobModifyIndex: 3, Places: map[string][]*structs.Allocation{}}
	meta := func(k int) *structs.NodeScoreMeta {
		return &structs.NodeScoreMeta{NodeID: heapNode(k % heapNodes), NormScore: 0.5 + float64(k)/1e7,
			Scores: map[string]float64{"binpack": 0.5 + float64(k)/1e7, "job-anti-affinity": 0, "node-reschedule-penalty": 0, "node-affinity": 0}}
	}
	for i := from; i < from+n; i++ {
		node := i % heapNodes
		a := &structs.Allocation{
			ID: fmt.Sprintf("%08x-77bb-4c17-a9b1-%012x", uint32(i)*2654435761, i), Namespace: "default", EvalID: plan.EvalID,
			Name: fmt.Sprintf("web.g[%d]", i), NodeID: heapNode(node), NodeName: fmt.Sprintf("node-%d", node), JobID: "web",
			TaskGroup: "g", JobModifyIndex: 3, DesiredStatus: "run", ObservedStatus: "pending", CreateTime: int64(i), ModifyTime: int64(i),
			AllocatedResources: &structs.AllocatedResources{
				Tasks: map[string]*structs.AllocatedTaskResources{"t": {Cpu: structs.AllocatedCpuResources{CpuShares: 10},
					Memory: structs.AllocatedMemoryResources{MemoryMB: 10}}},
				Shared: structs.AllocatedSharedResources{DiskMB: 10}},
			Metrics: &structs.AllocationMetric{NodesEvaluated: heapNodes, NodesInPool: heapNodes, NodePool: "default",
				NodesAvailable: map[string]int{"dc-1": heapNodes / 2, "dc-2": heapNodes / 2}, AllocationTime: time.Duration(i),
				ScoreMetaData: []*structs.NodeScoreMeta{meta(i), meta(i + 1), meta(i + 2), meta(i + 3), meta(i + 4)}},
		}
		plan.Places[a.NodeID] = append(plan.Places[a.NodeID], a)
	}
	return PlanApply{Plans: []*structs.Plan{plan}, Now: 1}
}

// heapReports says of n allocations that they run, as nodes do.
func heapReports(from, n int) AllocObserve {
	out := AllocObserve{Now: 2}
	for i := from; i < from+n; i++ {
		at := int64(1e18) + int64(i)
		out.Observations = append(out.Observations, &structs.AllocObservation{
			AllocID: fmt.Sprintf("%08x-77bb-4c17-a9b1-%012x", uint32(i)*2654435761, i), ObservedStatus: "running",
			ClientDescription: "Tasks are running",
			TaskStates: map[string]*structs.TaskState{"t": {State: "running", StartedAt: time.Unix(0, at), Events: []*structs.TaskEvent{
				{Type: "Received", DisplayMessage: "Task received by client", Time: at},
				{Type: "Task Setup", DisplayMessage: "Building Task Directory", Time: at + 1},
				{Type: "Started", DisplayMessage: "Task started by client", Time: at + 2},
			}}}})
	}
	return out
}

// BenchmarkHeap is the memory that allocations need which came through the log, each with one task and three events.
func BenchmarkHeap(b *testing.B) {
	for _, allocs := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint("allocs=", allocs), func(b *testing.B) {
			for b.Loop() {
				f := New(state.New(state.Config{}), nil)
				index := uint64(3)
				apply := func(kind Kind, req any) {
					if err, ok := f.Apply(&raft.Log{Index: index, Data: benchEntry(b, kind, req)}).(error); ok {
						b.Fatal(err)
					}
					index++
				}
				register := samples()[7].req.(JobRegister)
				apply(KindJobRegister, register)
				const each = 5000
				for from := 0; from < allocs; from += each {
					apply(KindPlanApply, heapPlan(from/each, from, each))
				}
				for from := 0; from < allocs; from += each {
					apply(KindAllocObserve, heapReports(from, each))
				}
				runtime.GC()
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.HeapAlloc)/float64(allocs), "B/alloc")
				b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB")
				runtime.KeepAlive(f)
			}
		})
	}
}
