package broker

import (
	"testing"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func TestFreeOfANode(t *testing.T) {
	node := &structs.Node{NodeMaxAllocs: 5, NodeResources: &structs.NodeResources{}, ReservedResources: &structs.NodeReservedResources{}}
	node.NodeResources.Cpu.CpuShares, node.NodeResources.Memory.MemoryMB, node.NodeResources.Disk.DiskMB = 1000, 2000, 3000
	node.ReservedResources.Cpu.CpuShares, node.ReservedResources.Memory.MemoryMB, node.ReservedResources.Disk.DiskMB = 100, 200, 300
	used := &structs.NodeUsage{Allocs: 2}
	used.CPU, used.MemoryMB, used.DiskMB = 10, 20, 30
	if got, want := freeOf(node, used), (Size{CPU: 890, MemoryMB: 1780, DiskMB: 2670, Allocs: 3}); got != want {
		t.Errorf("free are %+v, want %+v", got, want)
	}
}

// TestAnAllocationOfTheJobItselfEnds: the class of its node helps nobody, but what the job may not do twice it may do now.
func TestAnAllocationOfTheJobItselfEnds(t *testing.T) {
	withRig(t, func(r *rig) {
		r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: r.node("n1", "bad"), Now: 1})
		r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1, Updates: []fsm.NodeStatusUpdate{{NodeID: "n1", Status: structs.NodeStatusReady}}})
		r.apply(fsm.KindJobRegister, &fsm.JobRegister{Now: 1, Job: &structs.Job{ID: structs.Ptr("j1"), Namespace: structs.Ptr("default"),
			Type: structs.Ptr(structs.JobTypeService), TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g")}}}})
		job := r.log.Store.Job(nil, "default", "j1")
		r.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: 1, Plans: []*structs.Plan{{Namespace: "default", JobID: "j1",
			JobModifyIndex: job.JobModifyIndex, Places: map[string][]*structs.Allocation{"n1": {{ID: "a1", Namespace: "default",
				JobID: "j1", NodeID: "n1", TaskGroup: "g", Name: "j1.g[0]", DesiredStatus: structs.AllocDesiredStatusRun}}}}}})
	}, func(r *rig) {
		eval := r.eval("blocked", "j1", structs.EvalStatusBlocked)
		eval.ClassEligibility = map[string]bool{r.node("", "bad").ComputedClass: false}
		r.put(eval)
		r.expect("")
		r.apply(fsm.KindAllocObserve, &fsm.AllocObserve{Now: 1, Observations: []*structs.AllocObservation{
			{AllocID: "a1", ObservedStatus: structs.AllocClientStatusComplete}}})
		r.expect("blocked")
	})
}

// TestBlockedIsCancelledWhenItsJobIsSettled: another evaluation of the job placed everything.
func TestBlockedIsCancelledWhenItsJobIsSettled(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.put(r.eval("blocked", "j1", structs.EvalStatusBlocked))
		r.put(r.eval("settled", "j1", structs.EvalStatusComplete))
		if got := r.log.Store.Eval(nil, "blocked"); got.Status != structs.EvalStatusCancelled || got.StatusDescription != byNewer {
			t.Errorf("it is %s: %s", got.Status, got.StatusDescription)
		}
	})
}
