package heartbeat

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// fleet adds ready nodes that each run one allocation of the same job.
func (r *rig) fleet(n int) {
	r.Helper()
	job := &structs.Job{ID: structs.Ptr("wide"), Namespace: structs.Ptr("default"), Type: structs.Ptr(structs.JobTypeService),
		Priority: structs.Ptr(50), TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g")}}}
	r.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: job, Now: 1})
	plan := &structs.Plan{Namespace: "default", JobID: "wide",
		JobModifyIndex: r.log.Store.Job(nil, "default", "wide").JobModifyIndex, Places: map[string][]*structs.Allocation{}}
	ready := &fsm.NodeStatus{Now: 1}
	observed := &fsm.AllocObserve{Now: 1}
	for i := range n {
		id := fmt.Sprintf("f%05d", i)
		node := &structs.Node{ID: id, Name: id, SecretID: id}
		node.Canonicalize()
		r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: node, Now: 1})
		ready.Updates = append(ready.Updates, fsm.NodeStatusUpdate{NodeID: id, Status: structs.NodeStatusReady})
		plan.Places[id] = []*structs.Allocation{{ID: "a" + id, Namespace: "default", JobID: "wide", NodeID: id, TaskGroup: "g",
			Name: fmt.Sprintf("wide.g[%d]", i), DesiredStatus: structs.AllocDesiredStatusRun, ClientStatus: structs.AllocClientStatusPending}}
		observed.Observations = append(observed.Observations, &structs.AllocObservation{AllocID: "a" + id, ObservedStatus: structs.AllocClientStatusRunning})
	}
	r.apply(fsm.KindNodeStatus, ready)
	r.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: 1, Plans: []*structs.Plan{plan}})
	r.apply(fsm.KindAllocObserve, observed)
}

// TestNodesThatFallSilentTogetherShareEntries: their heartbeats were due within seconds, not at one moment.
func TestNodesThatFallSilentTogetherShareEntries(t *testing.T) {
	const nodes, rate = 2000, 400 // the heartbeats of five seconds
	withRig(t, nil, func(r *rig) {
		r.fleet(nodes)
		for i := range nodes { // all are known, so that each then gets the interval of all
			r.beat(fmt.Sprintf("f%05d", i), true)
		}
		for i := range nodes {
			if i%(rate/100) == 0 {
				r.pass(10 * time.Millisecond)
			}
			r.beat(fmt.Sprintf("f%05d", i), true)
		}
		before := r.log.Store.Index()
		r.pass(2 * time.Minute)
		entries := r.log.Store.Index() - before
		down := 0
		for node := range r.log.Store.Nodes(nil) {
			if node.Down() {
				down++
			}
		}
		if down < nodes {
			t.Errorf("%d nodes are down, want %d", down, nodes)
		}
		// They spread over the fifth of the interval that keeps nodes from moving in step, and over the five seconds.
		// At some 150 nodes a second an entry gets to 75 of them.
		if limit := uint64((8+5)*time.Second/(gather+75*gatherEach)) + 5; entries > limit {
			t.Errorf("%d raft entries, want at most %d", entries, limit)
		}
		if n := r.evals("wide")[structs.EvalTriggerNodeUpdate]; n > int(entries) {
			t.Errorf("%d evaluations of one job in %d entries", n, entries)
		}
	})
}

// TestAnEntryIsBounded: nodes with many allocations fill it before they are many.
func TestAnEntryIsBounded(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		job := &structs.Job{ID: structs.Ptr("many"), Namespace: structs.Ptr("default"), Type: structs.Ptr(structs.JobTypeService),
			Priority: structs.Ptr(50), TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g")}}}
		r.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: job, Now: 1})
		plan := &structs.Plan{Namespace: "default", JobID: "many",
			JobModifyIndex: r.log.Store.Job(nil, "default", "many").JobModifyIndex, Places: map[string][]*structs.Allocation{}}
		const nodes, each = 3, silentAlloc / 2
		for i := range nodes {
			id := fmt.Sprintf("f%05d", i)
			node := &structs.Node{ID: id, Name: id, SecretID: id}
			node.Canonicalize()
			r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: node, Now: 1})
			for k := range each {
				plan.Places[id] = append(plan.Places[id], &structs.Allocation{ID: fmt.Sprint("a", id, k), Namespace: "default",
					JobID: "many", NodeID: id, TaskGroup: "g", Name: fmt.Sprintf("many.g[%d]", i*each+k), DesiredStatus: structs.AllocDesiredStatusRun})
			}
		}
		r.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: 1, Plans: []*structs.Plan{plan}})
		r.duty.mu.Lock()
		defer r.duty.mu.Unlock()
		now := time.Now()
		for i := range nodes {
			r.duty.timers.Set(Key{NodeID: fmt.Sprintf("f%05d", i), Kind: Missed}, now)
		}
		for _, want := range []int{2, 1} {
			keys, full := r.duty.takeDue(now)
			if len(keys) != want || full != (want == 2) {
				t.Errorf("%d nodes, full: %v; want %d", len(keys), full, want)
			}
		}
	})
}

// TestOneSilentNodeIsWrittenAtOnce: nothing is gathered when there is nothing to gather.
func TestOneSilentNodeIsWrittenAtOnce(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.duty.cfg.Random = func(int64) int64 { return 0 } // else n2 may be missed a moment before n1
		r.pass(3 * time.Minute)
		ttl := r.beat("n1", true)
		r.beat("n2", true)
		r.pass(ttl + r.duty.cfg.Grace - time.Millisecond)
		r.beat("n2", true)
		r.expect("n1", r.node("n1"), structs.NodeStatusReady)
		r.pass(2 * time.Millisecond)
		r.expect("n1", r.node("n1"), structs.NodeStatusDown)
	})
}

// BenchmarkMissed judges one silent node with 20 allocations.
func BenchmarkMissed(b *testing.B) {
	node := &structs.Node{ID: "n"}
	job := &structs.Job{ID: structs.Ptr("j"), Type: structs.Ptr(structs.JobTypeService), Priority: structs.Ptr(50),
		TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{LostAfter: structs.Ptr(time.Hour)}}}}
	var allocs []*structs.Allocation
	for i := range 20 {
		allocs = append(allocs, &structs.Allocation{ID: fmt.Sprint("a", i), JobID: fmt.Sprint("j", i), Job: job, TaskGroup: "g",
			NodeID: "n", DesiredStatus: structs.AllocDesiredStatusRun, ObservedStatus: structs.AllocClientStatusRunning})
	}
	now := time.Now()
	judge := Judge{NewID: func() string { return "id" }, Now: now}
	b.ReportAllocs()
	for b.Loop() {
		judge.Missed(node, allocs, now)
	}
}
