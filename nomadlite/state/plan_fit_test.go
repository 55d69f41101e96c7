package state

import (
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// TestPlanIsFittedToWhatCameBetween: each row is an entry that comes between a plan's verification and its own entry. The
// plan stops a (on n1), places b in its stead and c beside it, on n2.
func TestPlanIsFittedToWhatCameBetween(t *testing.T) {
	node := func(id, status string) func(*Txn, int64) error {
		return func(tx *Txn, now int64) error { return tx.SetNodeStatus(id, status, nil, nil, now) }
	}
	for name, c := range map[string]struct {
		between  func(tx *Txn, now int64) error
		rejected string // why n2 rejects its part
		stale    string
		whole    bool // nothing is left out
	}{
		"nothing":           {between: func(*Txn, int64) error { return nil }, whole: true},
		"another node down": {between: node("n3", structs.NodeStatusDown), whole: true},
		"node down":         {between: node("n2", structs.NodeStatusDown), rejected: "the node takes no new allocations"},
		"node disconnected": {between: node("n2", structs.NodeStatusDisconnected), rejected: "the node takes no new allocations"},
		"node comes back":   {between: node("n2", structs.NodeStatusInit), rejected: "the node takes no new allocations"},
		"node gone": {between: func(tx *Txn, now int64) error { tx.DeregisterNode("n2", "purged", now); return nil },
			rejected: "the node is gone"},
		"node ineligible": {between: func(tx *Txn, now int64) error {
			return tx.SetNodeEligibility("n2", structs.NodeIneligible, nil, now)
		}, rejected: "the node takes no new allocations"},
		"node drains": {between: func(tx *Txn, now int64) error {
			return tx.SetNodeDrain(NodeDrainChange{NodeID: "n2", Strategy: &structs.DrainStrategy{}, Now: now})
		}, rejected: "the node takes no new allocations"},
		"node's maintenance is announced": {between: func(tx *Txn, now int64) error {
			return tx.SetNodeMaintenance("n2", &structs.NodeMaintenance{Until: unixTime(now + 1e12)}, nil, now)
		}, rejected: "the node takes no new allocations"},
		"job stopped": {between: func(tx *Txn, now int64) error {
			tx.StopJob(JobStop{Namespace: "default", JobID: "web", Now: now})
			return nil
		}, stale: "the job was stopped"},
		"job purged": {between: func(tx *Txn, now int64) error {
			tx.StopJob(JobStop{Namespace: "default", JobID: "web", Purge: true, Now: now})
			return nil
		}, stale: "the job is gone"},
		"a newer version": {between: func(tx *Txn, now int64) error {
			job := testJob("web", "service", "g")
			job.Meta = map[string]string{"new": "yes"}
			_, err := tx.RegisterJob(JobRegistration{Job: job, Now: now})
			return err
		}, stale: "the job has a newer version"},
	} {
		t.Run(name, func(t *testing.T) {
			w := awaitsWorld(t)
			plan := w.plan("web")
			plan.SnapshotIndex = w.index
			d, e := testAlloc("d", "g", "n2", 20001), testAlloc("e", "g", "n2", 20002)
			d.PreviousAllocation = "a"
			plan.Places["n2"] = []*structs.Allocation{d, e}
			plan.Stops["n1"] = []*structs.AllocStop{{ID: "a", DesiredStatus: "stop"}}
			w.must(func(tx *Txn) error { return c.between(tx, w.now()) })
			var v *structs.PlanVerdict
			w.must(func(tx *Txn) error { v = tx.FitPlan(plan); return nil })
			if c.whole {
				if v != nil {
					t.Fatalf("left out: %+v", v)
				}
				return
			}
			if v == nil || v.Rejected["n2"] != c.rejected || v.Stale != c.stale || len(v.Plan.Places) != 0 || len(v.Plan.Stops) != 0 {
				t.Fatalf("%+v", v)
			}
		})
	}
}

// TestAPlanThatFitsInPart keeps what goes to other nodes, and what is changed in place where nothing new may come.
func TestAPlanThatFitsInPart(t *testing.T) {
	w := awaitsWorld(t)
	plan := w.plan("web")
	plan.SnapshotIndex = w.index
	plan.Places["n1"] = []*structs.Allocation{testAlloc("a", "g", "n1", 20000)}
	plan.Places["n2"] = []*structs.Allocation{testAlloc("d", "g", "n2", 20001)}
	plan.Places["n3"] = []*structs.Allocation{testAlloc("e", "g", "n3", 20001)}
	for _, id := range []string{"n1", "n2"} {
		w.must(func(tx *Txn) error { return tx.SetNodeEligibility(id, structs.NodeIneligible, nil, w.now()) })
	}
	w.must(func(tx *Txn) error {
		v := tx.FitPlan(plan)
		if v == nil || len(v.Rejected) != 1 || v.Rejected["n2"] == "" || len(v.Plan.Places) != 2 {
			t.Errorf("%+v", v)
		}
		plan.AllAtOnce = true
		if v := tx.FitPlan(plan); v == nil || len(v.Plan.Places) != 0 {
			t.Errorf("all at once: %+v", v)
		}
		return nil
	})
}

// TestANodeThatWasHeardSinceIsNotGivenUp: the scheduler saw it silent, and would have its allocation lost for good.
func TestANodeThatWasHeardSinceIsNotGivenUp(t *testing.T) {
	w := awaitsWorld(t)
	status := func(s string) {
		w.must(func(tx *Txn) error { return tx.SetNodeStatus("n1", s, nil, nil, w.now()) })
	}
	status(structs.NodeStatusDown)
	plan := w.plan("web")
	plan.SnapshotIndex = w.index
	plan.Stops["n1"] = []*structs.AllocStop{{ID: "a", DesiredStatus: "stop", Condition: &structs.Condition{Status: structs.ConditionLost}}}
	fit := func() (v *structs.PlanVerdict) {
		w.must(func(tx *Txn) error { v = tx.FitPlan(plan); return nil })
		return v
	}
	if v := fit(); v != nil {
		t.Fatalf("the node is down still: %+v", v)
	}
	status(structs.NodeStatusInit)
	v := fit()
	if v == nil || !v.Full() || len(v.Plan.Stops["n1"]) != 1 || v.Plan.Stops["n1"][0].Condition != nil || plan.Stops["n1"][0].Condition == nil {
		t.Fatalf("%+v", v)
	}
}
