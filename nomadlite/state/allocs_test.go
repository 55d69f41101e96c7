package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func oneAlloc(t *testing.T) *world {
	w := newWorld(t)
	w.must(func(tx *Txn) error { return tx.RegisterNode(testNode("n1"), w.now()) })
	w.register(testJob("web", "service", "g"), nil)
	w.place("web", testAlloc("a1", "g", "n1", 20000))
	return w
}

func (w *world) condition(id, status string) {
	w.must(func(tx *Txn) error {
		return tx.SetNodeStatus("n1", "", nil, map[string]structs.Condition{id: {Status: status, Reason: "test"}}, w.now())
	})
}

// A report of a node whose row says that it is silent is no word about the node: until its return is written the scheduler
// would take an allocation that is well there for one to give up.
func TestAReportEndsNoSilenceBeforeTheNodesReturn(t *testing.T) {
	for _, c := range []string{structs.ConditionAway, structs.ConditionUnknown} {
		w := oneAlloc(t)
		w.observe("a1", "running")
		status := func(status, condition string) {
			w.must(func(tx *Txn) error {
				return tx.SetNodeStatus("n1", status, nil, map[string]structs.Condition{"a1": {Status: condition}}, w.now())
			})
		}
		status(structs.NodeStatusDisconnected, c)
		w.observe("a1", "running")
		if a := w.alloc("a1"); a.Condition.Status != c {
			t.Errorf("%s became %s by a report", c, a.Condition.Status)
		}
		status(structs.NodeStatusReady, structs.ConditionOK)
		if a := w.alloc("a1"); a.Condition.Status != structs.ConditionOK || a.ClientStatus != structs.AllocClientStatusRunning {
			t.Errorf("%s: after the return it is %s, %s", c, a.Condition.Status, a.ClientStatus)
		}
		// On a node that is heard a report does end it.
		w.condition("a1", c)
		w.observe("a1", "running")
		if a := w.alloc("a1"); a.Condition.Status != structs.ConditionOK {
			t.Errorf("%s stays on a node that is heard", a.Condition.Status)
		}
	}
}

// TestObservedAndConditionMakeTheClientStatus walks histories; "c:" sets a condition, the rest is observed.
func TestObservedAndConditionMakeTheClientStatus(t *testing.T) {
	for _, tc := range []struct {
		name    string
		history []string
		want    string
		refused uint64
	}{
		{"new", nil, "pending", 0},
		{"running", []string{"running"}, "running", 0},
		{"ended at once", []string{"complete"}, "complete", 0},
		{"away counts as observed", []string{"running", "c:away"}, "running", 0},
		{"unknown", []string{"running", "c:unknown"}, "unknown", 0},
		{"heard again", []string{"running", "c:unknown", "running"}, "running", 0},
		{"came back ended", []string{"running", "c:unknown", "failed"}, "failed", 0},
		{"lost stays lost", []string{"running", "c:lost", "running", "c:ok"}, "lost", 0},
		{"lost, then observed to end", []string{"running", "c:lost", "complete"}, "complete", 0},
		{"lost after the end says nothing", []string{"running", "complete", "c:lost"}, "complete", 0},
		{"back to running", []string{"complete", "running"}, "complete", 1},
		{"back to pending", []string{"running", "pending"}, "running", 1},
		{"failed is final", []string{"failed", "complete"}, "failed", 1},
		{"nonsense", []string{"sleeping", "lost", ""}, "pending", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := oneAlloc(t)
			for _, h := range tc.history {
				if condition, ok := cutPrefix(h, "c:"); ok {
					w.condition("a1", condition)
				} else {
					w.observe("a1", h)
				}
			}
			if got := w.alloc("a1").ClientStatus; got != tc.want {
				t.Errorf("client status is %s, want %s", got, tc.want)
			}
			if got := w.store.Stats().RefusedObservations; got != tc.refused {
				t.Errorf("%d reports were refused, want %d", got, tc.refused)
			}
		})
	}
}

func cutPrefix(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || s[:len(prefix)] != prefix {
		return s, false
	}
	return s[len(prefix):], true
}

func TestAReportDoesNotWakeItsOwnNode(t *testing.T) {
	w := oneAlloc(t)
	before := w.alloc("a1")
	w.observe("a1", "running")
	after := w.alloc("a1")
	if after.AllocModifyIndex != before.AllocModifyIndex || after.ModifyIndex != w.index || before.ObservedStatus != "pending" {
		t.Errorf("before %d/%d, after %d/%d", before.AllocModifyIndex, before.ModifyIndex, after.AllocModifyIndex, after.ModifyIndex)
	}
	w.observe("gone", "running")
	if got := w.store.Stats().UnknownObservations; got != 1 {
		t.Errorf("%d unknown reports", got)
	}
}

func TestTaskStatesAreMerged(t *testing.T) {
	w := oneAlloc(t)
	report := func(states map[string]*structs.TaskState) {
		w.must(func(tx *Txn) error {
			tx.ObserveAlloc(&structs.AllocObservation{AllocID: "a1", ObservedStatus: "running", TaskStates: states}, w.now())
			return nil
		})
	}
	report(map[string]*structs.TaskState{"main": {State: "running"}, "init": {State: "dead"}})
	report(map[string]*structs.TaskState{"main": {State: "dead"}})
	report(nil)
	states := w.alloc("a1").TaskStates
	if len(states) != 2 || states["main"].State != "dead" || states["init"].State != "dead" {
		t.Errorf("states are %+v", states)
	}
}

// TestAStoppingAllocationHoldsItsResources until its node has reported the end, or it is given up.
func TestAStoppingAllocationHoldsItsResources(t *testing.T) {
	for _, end := range []string{"complete", "c:lost"} {
		w := oneAlloc(t)
		w.observe("a1", "running")
		w.must(func(tx *Txn) error {
			return tx.ApplyPlan(&structs.Plan{Stops: map[string][]*structs.AllocStop{"n1": {{ID: "a1", DesiredStatus: "stop",
				DesiredDescription: "why", FollowupEvalID: "f", NoShutdownDelay: true, KillTimeout: structs.Ptr(time.Second)}}}}, w.now())
		})
		alloc := w.alloc("a1")
		if alloc.AllocModifyIndex != w.index || alloc.DesiredDescription != "why" || alloc.FollowupEvalID != "f" ||
			!*alloc.DesiredTransition.NoShutdownDelay || *alloc.DesiredTransition.KillTimeout != time.Second {
			t.Errorf("the stop is %+v", alloc)
		}
		if u := w.store.NodeUsage("n1"); u.CPU != 100 || !u.HasPort(20000) {
			t.Errorf("while it stops the node's usage is %+v", u)
		}
		if condition, ok := cutPrefix(end, "c:"); ok {
			w.condition("a1", condition)
		} else {
			w.observe("a1", end)
		}
		if u := w.store.NodeUsage("n1"); u.CPU != 0 || u.Allocs != 0 || u.HasPort(20000) {
			t.Errorf("after %s the node's usage is %+v", end, u)
		}
	}
}

func TestPlanLinksAndUpdatesInPlace(t *testing.T) {
	w := oneAlloc(t)
	w.observe("a1", "running")
	next := testAlloc("a2", "g", "n1", 20001)
	next.PreviousAllocation = "a1"
	w.place("web", next)
	if old := w.alloc("a1"); old.NextAllocation != "a2" || old.AllocModifyIndex == w.index {
		t.Errorf("the replaced one is %+v", old)
	}
	changed := testJob("web", "service", "g")
	changed.Meta = map[string]string{"v": "2"}
	w.register(changed, nil)
	update := testAlloc("a1", "g", "n1", 20005)
	update.EvalID = "another"
	w.place("web", update)
	got := w.alloc("a1")
	if got.ObservedStatus != "running" || got.ClientStatus != "running" || got.NextAllocation != "a2" || got.CreateIndex == w.index {
		t.Errorf("an update in place lost what was known: %+v", got)
	}
	if got.JobVersion != 1 || got.Job.Meta["v"] != "2" || got.AllocModifyIndex != w.index || !w.store.NodeUsage("n1").HasPort(20005) {
		t.Errorf("an update in place did not take: %+v", got)
	}
	if n := len(w.store.AllocsByEval(nil, "another")); n != 1 || len(w.store.AllocsByEval(nil, "eval-n1")) != 1 {
		t.Errorf("%d allocations of the new evaluation", n)
	}
}

func TestPlanOfAPurgedJobIsRefusedWhole(t *testing.T) {
	w := oneAlloc(t)
	plan := w.plan("web")
	plan.JobModifyIndex = 99
	plan.Places["n1"] = []*structs.Allocation{testAlloc("a2", "g", "n1", 1)}
	plan.Stops["n1"] = []*structs.AllocStop{{ID: "a1", DesiredStatus: "stop"}}
	err := w.write(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
	if structs.ErrorCode(err) != structs.CodeNotFound || w.store.Alloc(nil, "a2") != nil || w.alloc("a1").DesiredStatus != "run" {
		t.Errorf("got %v", err)
	}
}

func TestPreemptionNamesItsCause(t *testing.T) {
	w := oneAlloc(t)
	plan := w.plan("web")
	winner := testAlloc("a2", "g", "n1", 1)
	winner.PreemptedAllocations = []string{"a1"}
	plan.Places["n1"] = []*structs.Allocation{winner}
	plan.Preemptions["n1"] = []*structs.AllocStop{{ID: "a1", DesiredStatus: "evict", PreemptedBy: "a2"}}
	w.must(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
	if got := w.alloc("a1"); got.DesiredStatus != "evict" || got.PreemptedByAllocation != "a2" {
		t.Errorf("got %+v", got)
	}
}

func TestDeploymentCountsPlacementsAndHealth(t *testing.T) {
	w := newWorld(t)
	job := w.register(testJob("web", "service", "g"), nil)
	plan := w.plan("web")
	plan.Deployment = &structs.Deployment{ID: "d", Namespace: "default", JobID: "web", JobVersion: job.Version, JobCreateIndex: job.CreateIndex,
		JobSpecModifyIndex: job.JobModifyIndex, Status: structs.DeploymentStatusRunning,
		TaskGroups: map[string]*structs.DeploymentState{"g": {DesiredTotal: 2, DesiredCanaries: 1, ProgressDeadline: time.Minute}}}
	for i := range 2 {
		alloc := testAlloc(fmt.Sprintf("a%d", i), "g", "n1", i+1)
		alloc.DeploymentID, alloc.DeploymentStatus = "d", &structs.AllocDeploymentStatus{Canary: i == 0}
		plan.Places["n1"] = append(plan.Places["n1"], alloc)
	}
	w.must(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
	group := func() structs.DeploymentState { return *w.store.Deployment(nil, "d").TaskGroups["g"] }
	if g := group(); g.PlacedAllocs != 2 || len(g.PlacedCanaries) != 1 || g.RequireProgressBy != unixTime(w.now()).Add(time.Minute) {
		t.Errorf("group is %+v", g)
	}
	health := func(id string, healthy bool) {
		w.must(func(tx *Txn) error {
			tx.ObserveAlloc(&structs.AllocObservation{AllocID: id, ObservedStatus: "running",
				DeploymentStatus: &structs.AllocDeploymentStatus{Healthy: &healthy}}, w.now())
			return nil
		})
	}
	health("a0", false)
	health("a1", true)
	health("a1", true)
	if g := group(); g.HealthyAllocs != 1 || g.UnhealthyAllocs != 1 || g.PlacedAllocs != 2 {
		t.Errorf("group is %+v", g)
	}
	health("a0", true)
	if g := group(); g.HealthyAllocs != 2 || g.UnhealthyAllocs != 0 {
		t.Errorf("group is %+v", g)
	}
	if !w.alloc("a0").DeploymentStatus.Canary {
		t.Error("a report made the canary forget that it is one")
	}
	w.must(func(tx *Txn) error {
		return tx.UpdateDeploymentStatus(&structs.DeploymentStatusUpdate{DeploymentID: "d", Status: structs.DeploymentStatusSuccessful}, w.now())
	})
	if !w.job("web").Stable || !w.store.JobVersion(nil, "default", "web", 0).Stable {
		t.Error("the version which a deployment proved is not stable")
	}
	err := w.write(func(tx *Txn) error {
		return tx.UpdateDeploymentStatus(&structs.DeploymentStatusUpdate{DeploymentID: "d", Status: structs.DeploymentStatusFailed}, w.now())
	})
	if structs.ErrorCode(err) != structs.CodeInvalid {
		t.Errorf("a deployment ended twice: %v", err)
	}
}

// TestAllocRowsKeepOrder fills one row far beyond a chunk and empties it again.
func TestAllocRowsKeepOrder(t *testing.T) {
	w := newWorld(t)
	w.register(testJob("web", "service", "g"), nil)
	const batches, each = 12, 75
	for b := range batches {
		var allocs []*structs.Allocation
		for i := range each {
			allocs = append(allocs, testAlloc(fmt.Sprintf("%02d-%d", (i*37)%each, b), "g", "n1", 1))
		}
		w.place("web", allocs...)
	}
	before := w.store.AllocsByNode(nil, "n1")
	newest := 0
	for alloc := range w.store.AllocsByCreate(nil, "*", true) {
		if before[len(before)-1-newest] != alloc {
			t.Fatal("newest first is not the reverse of oldest first")
		}
		newest++
	}
	if len(before) != batches*each || newest != len(before) {
		t.Fatalf("%d allocations, %d newest first", len(before), newest)
	}
	for i := range before[1:] {
		if compareAllocs(before[i], before[i+1]) >= 0 {
			t.Fatalf("%s comes before %s", before[i].ID, before[i+1].ID)
		}
	}
	old := w.store.Snapshot()
	for i, alloc := range before {
		w.observe(alloc.ID, "complete")
		w.must(func(tx *Txn) error { tx.ReapAlloc(alloc.ID); return nil })
		if got := len(w.store.AllocsByNode(nil, "n1")); got != len(before)-1-i {
			t.Fatalf("%d allocations are left", got)
		}
	}
	if got := old.AllocsByNode(nil, "n1"); len(got) != len(before) || got[0].ObservedStatus != "pending" {
		t.Error("an old snapshot changed")
	}
}

func TestAStopOptionDoesNothingToAnEndedAllocation(t *testing.T) {
	w := oneAlloc(t)
	w.observe("a1", "failed")
	before := w.alloc("a1")
	transition := func(want *structs.DesiredTransition) {
		w.must(func(tx *Txn) error { tx.TransitionAlloc("a1", want, w.now()); return nil })
	}
	transition(&structs.DesiredTransition{NoShutdownDelay: structs.Ptr(true), KillTimeout: structs.Ptr(time.Second)})
	if w.alloc("a1") != before {
		t.Errorf("got %+v", w.alloc("a1").DesiredTransition)
	}
	transition(&structs.DesiredTransition{Reschedule: structs.Ptr(true)})
	if got := w.alloc("a1"); !got.DesiredTransition.ShouldReschedule() || got.AllocModifyIndex != w.index {
		t.Errorf("got %+v", got.DesiredTransition)
	}
}

// TestKillTimeoutOnlyShortens: a stop that is under way can be made faster, never slower.
func TestKillTimeoutOnlyShortens(t *testing.T) {
	w := oneAlloc(t)
	for _, d := range []time.Duration{10 * time.Second, time.Second, time.Minute} {
		w.must(func(tx *Txn) error {
			tx.TransitionAlloc("a1", &structs.DesiredTransition{KillTimeout: &d}, w.now())
			return nil
		})
	}
	if got := *w.alloc("a1").DesiredTransition.KillTimeout; got != time.Second {
		t.Errorf("kill timeout is %s", got)
	}
}

// TestARepeatedKillTimeoutIsANewRequest: the node hears of it although nothing else has changed; a request without one is
// no such request, and a job that is started again leaves nothing.
func TestARepeatedKillTimeoutIsANewRequest(t *testing.T) {
	w := oneAlloc(t)
	var last uint64
	for i := range 3 {
		w.must(func(tx *Txn) error {
			tx.TransitionAlloc("a1", &structs.DesiredTransition{KillTimeout: structs.Ptr(time.Second)}, w.now())
			return nil
		})
		a := w.alloc("a1")
		if a.DesiredTransition.Urged != w.index || a.AllocModifyIndex != w.index || a.DesiredTransition.Urged <= last {
			t.Errorf("request %d: urged at %d, changed at %d, the index is %d", i, a.DesiredTransition.Urged, a.AllocModifyIndex, w.index)
		}
		last = a.DesiredTransition.Urged
	}
	w.must(func(tx *Txn) error {
		tx.TransitionAlloc("a1", &structs.DesiredTransition{NoShutdownDelay: structs.Ptr(true)}, w.now())
		return nil
	})
	if got := w.alloc("a1").DesiredTransition.Urged; got != last {
		t.Errorf("without a kill timeout it became %d, was %d", got, last)
	}
	w.must(func(tx *Txn) error {
		return tx.ApplyPlan(&structs.Plan{Stops: map[string][]*structs.AllocStop{"n1": {{ID: "a1", DesiredStatus: "stop",
			KillTimeout: structs.Ptr(time.Minute)}}}}, w.now())
	})
	if got := w.alloc("a1").DesiredTransition; got.Urged != w.index || *got.KillTimeout != time.Second {
		t.Errorf("a plan with a kill timeout left %+v", got)
	}
	w.must(func(tx *Txn) error { tx.clearStopOptions([]*structs.Allocation{w.alloc("a1")}, w.now()); return nil })
	if got := w.alloc("a1").DesiredTransition; got.Urged == 0 {
		t.Errorf("an allocation that stops lost %+v", got)
	}
}
