package fsm

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func benchEntry(b *testing.B, kind Kind, req any) []byte {
	b.Helper()
	data, err := Encode(kind, req)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// benchPlan places n allocations of the sample job over 100 nodes.
func benchPlan(prefix string, n int) PlanApply {
	plan := &structs.Plan{EvalID: prefix, Namespace: "default", JobID: "web", JobModifyIndex: 2, Places: map[string][]*structs.Allocation{}}
	for i := range n {
		node := fmt.Sprintf("node-%d", i%100)
		plan.Places[node] = append(plan.Places[node], &structs.Allocation{
			ID: fmt.Sprintf("%08x-%s", uint32(i)*2654435761, prefix), Name: fmt.Sprintf("web.g[%d]", i), TaskGroup: "g", NodeID: node, EvalID: prefix,
			AllocatedResources: &structs.AllocatedResources{
				Tasks:  map[string]*structs.AllocatedTaskResources{"t": {Cpu: structs.AllocatedCpuResources{CpuShares: 100}}},
				Shared: structs.AllocatedSharedResources{Ports: []structs.PortMapping{{Label: "http", Value: 20000 + i%12000}}}},
			Metrics: &structs.AllocationMetric{NodesEvaluated: 100}})
	}
	return PlanApply{Plans: []*structs.Plan{plan}, Now: 1}
}

// BenchmarkApplyPlanOf1000 decodes and commits entries that each place 1,000 allocations; the store grows as it runs.
func BenchmarkApplyPlanOf1000(b *testing.B) {
	f := New(state.New(state.Config{}), nil)
	register := samples()[7].req.(JobRegister)
	f.Apply(&raft.Log{Index: 2, Data: benchEntry(b, KindJobRegister, register)})
	entries := make([][]byte, b.N)
	for i := range entries {
		entries[i] = benchEntry(b, KindPlanApply, benchPlan(fmt.Sprintf("eval-%d", i), 1000))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i, data := range entries {
		if resp, ok := f.Apply(&raft.Log{Index: uint64(i) + 3, Data: data}).(PlanApplyResult); !ok || resp.Errors[0] != nil {
			b.Fatalf("got %+v", resp)
		}
	}
	b.ReportMetric(float64(len(entries[0]))/1000, "entry-B/alloc")
}

// BenchmarkApplyJobRegister decodes and commits registrations of new jobs with their evaluations.
func BenchmarkApplyJobRegister(b *testing.B) {
	f := New(state.New(state.Config{}), nil)
	entries := make([][]byte, b.N)
	for i := range entries {
		req := samples()[7].req.(JobRegister)
		req.Job.ID, req.Eval.ID, req.Eval.JobID = structs.Ptr(fmt.Sprintf("job-%d", i)), fmt.Sprintf("eval-%d", i), fmt.Sprintf("job-%d", i)
		entries[i] = benchEntry(b, KindJobRegister, req)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i, data := range entries {
		f.Apply(&raft.Log{Index: uint64(i) + 3, Data: data})
	}
}
