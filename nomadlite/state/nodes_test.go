package state

import (
	"errors"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func TestRegisterKeepsWhatTheServersOwn(t *testing.T) {
	w := newWorld(t)
	w.must(func(tx *Txn) error { return tx.RegisterNode(testNode("n1"), w.now()) })
	node := w.store.Node(nil, "n1")
	if node.Status != structs.NodeStatusReady || node.SchedulingEligibility != structs.NodeEligible || node.ComputedClass == "" {
		t.Errorf("a new node is %+v", node)
	}
	if len(node.Events) != 1 || node.Events[0].Message != "Node registered" || node.Events[0].CreateIndex != w.index {
		t.Errorf("its events are %+v", node.Events)
	}
	w.must(func(tx *Txn) error {
		return tx.SetNodeDrain(NodeDrainChange{NodeID: "n1", Strategy: &structs.DrainStrategy{}, Meta: map[string]string{"by": "me"}, Now: w.now()})
	})
	w.must(func(tx *Txn) error { return tx.SetNodeStatus("n1", structs.NodeStatusDown, nil, nil, w.now()) })
	again := testNode("n1")
	again.SchedulingEligibility, again.Attributes = structs.NodeEligible, map[string]string{"cpu.arch": "arm64"}
	w.must(func(tx *Txn) error { return tx.RegisterNode(again, w.now()) })
	got := w.store.Node(nil, "n1")
	if got.Status != structs.NodeStatusDown || !got.Drain || got.DrainStrategy == nil || got.SchedulingEligibility != structs.NodeIneligible {
		t.Errorf("the servers' fields are %+v", got)
	}
	if got.Attributes["cpu.arch"] != "arm64" || got.CreateIndex != node.CreateIndex || got.Events[1].Message != "Node re-registered" {
		t.Errorf("the node is %+v", got)
	}
	if w.store.NodeBySecretID("secret-n1") != got || w.store.NodeBySecretID("secret-n") != nil || w.store.NodeBySecretID("") != nil {
		t.Error("the secret finds the wrong node")
	}
	thief := testNode("n1")
	thief.SecretID = "other"
	if err := w.write(func(tx *Txn) error { return tx.RegisterNode(thief, w.now()) }); structs.ErrorCode(err) != structs.CodePermission {
		t.Errorf("another secret: %v", err)
	}
}

func TestRegisterMakesTheNodesPool(t *testing.T) {
	w := newWorld(t)
	node := testNode("n1")
	node.NodePool = "gpu"
	w.must(func(tx *Txn) error { return tx.RegisterNode(node, w.now()) })
	if w.store.NodePool(nil, "gpu") == nil {
		t.Error("there is no pool")
	}
	err := w.write(func(tx *Txn) error { return tx.DeleteNodePool("gpu") })
	if structs.ErrorCode(err) != structs.CodeValidation {
		t.Errorf("a pool with nodes was deleted: %v", err)
	}
}

func TestNodeEventsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.must(func(tx *Txn) error { return tx.RegisterNode(testNode("n1"), w.now()) })
	for range 30 {
		w.must(func(tx *Txn) error {
			return tx.AddNodeEvents("n1", []*structs.NodeEvent{{Message: "m"}}, w.now())
		})
	}
	events := w.store.Node(nil, "n1").Events
	if len(events) != keptNodeEvents || events[len(events)-1].CreateIndex != w.index {
		t.Errorf("%d events are kept", len(events))
	}
}

func TestDrainLeavesItsTrace(t *testing.T) {
	w := oneAlloc(t)
	drain := func(c NodeDrainChange) *structs.Node {
		c.NodeID, c.Now = "n1", w.now()
		w.must(func(tx *Txn) error { return tx.SetNodeDrain(c) })
		return w.store.Node(nil, "n1")
	}
	strategy := &structs.DrainStrategy{DrainSpec: structs.DrainSpec{Deadline: time.Hour}}
	node := drain(NodeDrainChange{Strategy: strategy})
	started := node.LastDrain.StartedAt
	if node.LastDrain.Status != "draining" || started.IsZero() || node.DrainStrategy.StartedAt != started {
		t.Errorf("drain is %+v %+v", node.LastDrain, node.DrainStrategy)
	}
	if err := w.write(func(tx *Txn) error { return tx.SetNodeEligibility("n1", structs.NodeEligible, nil, w.now()) }); structs.ErrorCode(err) != structs.CodeValidation {
		t.Errorf("a draining node became eligible: %v", err)
	}
	w.must(func(tx *Txn) error {
		tx.TransitionAlloc("a1", &structs.DesiredTransition{Migrate: structs.Ptr(true), NoShutdownDelay: structs.Ptr(true)}, w.now())
		return nil
	})
	node = drain(NodeDrainChange{MarkEligible: true})
	if node.LastDrain.Status != "canceled" || node.LastDrain.StartedAt != started || node.Drain || !node.Ready() {
		t.Errorf("drain is %+v", node.LastDrain)
	}
	if tr := w.alloc("a1").DesiredTransition; tr.NoShutdownDelay != nil || tr.Migrate == nil {
		t.Errorf("an allocation that runs on has %+v", tr)
	}
	drain(NodeDrainChange{Strategy: strategy})
	if node = drain(NodeDrainChange{Complete: true}); node.LastDrain.Status != "complete" || node.SchedulingEligibility != structs.NodeIneligible {
		t.Errorf("drain is %+v, node %s", node.LastDrain, node.SchedulingEligibility)
	}
}

func TestDeregisteredNodeLosesWhatRanThere(t *testing.T) {
	w := oneAlloc(t)
	w.place("web", testAlloc("done", "g", "n1", 1))
	w.observe("done", "complete")
	w.observe("a1", "running")
	w.must(func(tx *Txn) error {
		if !tx.DeregisterNode("n1", "left", w.now()) || tx.DeregisterNode("n1", "left", w.now()) {
			t.Error("a node is deregistered once")
		}
		return nil
	})
	got := w.alloc("a1")
	if got.ClientStatus != "lost" || got.ObservedStatus != "running" || got.Condition.Reason != "left" || w.alloc("done").ClientStatus != "complete" {
		t.Errorf("got %+v", got)
	}
	if s := w.store.JobSummary(nil, "default", "web").Summary["g"]; s.Lost != 1 || s.Complete != 1 {
		t.Errorf("summary is %+v", s)
	}
}

func TestReapNodeTakesItsOrphans(t *testing.T) {
	w := oneAlloc(t)
	w.place("web", testAlloc("done", "g", "n1", 1))
	w.observe("done", "complete")
	reap := func() (did bool) {
		w.must(func(tx *Txn) error { did = tx.ReapNode("n1", "gc", w.now()); return nil })
		return did
	}
	if reap() {
		t.Error("a ready node was reaped")
	}
	w.must(func(tx *Txn) error { return tx.SetNodeStatus("n1", structs.NodeStatusDown, nil, nil, w.now()) })
	if reap() {
		t.Error("a node was reaped on which an allocation is not given up")
	}
	w.condition("a1", structs.ConditionLost)
	if !reap() || w.store.Node(nil, "n1") != nil || w.store.Alloc(nil, "a1") != nil || w.store.Alloc(nil, "done") == nil {
		t.Error("the node and its orphans should be gone, what ended should stay")
	}
}

func TestUnknownNodes(t *testing.T) {
	w := newWorld(t)
	for name, fn := range map[string]func(tx *Txn) error{
		"status":      func(tx *Txn) error { return tx.SetNodeStatus("x", "down", nil, nil, 1) },
		"eligibility": func(tx *Txn) error { return tx.SetNodeEligibility("x", "eligible", nil, 1) },
		"drain":       func(tx *Txn) error { return tx.SetNodeDrain(NodeDrainChange{NodeID: "x"}) },
		"events":      func(tx *Txn) error { return tx.AddNodeEvents("x", nil, 1) },
	} {
		if err := w.write(fn); !errors.Is(err, structs.ErrNodeNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A drain ends a maintenance; on a node that is silent as of now, so that the leader judges what is away there.
func TestDrainOverridesMaintenance(t *testing.T) {
	for _, status := range []string{structs.NodeStatusReady, structs.NodeStatusDisconnected} {
		w := newWorld(t)
		w.must(func(tx *Txn) error { return tx.RegisterNode(testNode("n1"), w.now()) })
		now := w.now()
		w.must(func(tx *Txn) error { return tx.SetNodeStatus("n1", status, nil, nil, now) })
		hour := &structs.NodeMaintenance{Until: unixTime(now).Add(time.Hour)}
		w.must(func(tx *Txn) error { return tx.SetNodeMaintenance("n1", hour, nil, now) })
		w.must(func(tx *Txn) error {
			return tx.SetNodeDrain(NodeDrainChange{NodeID: "n1", Strategy: &structs.DrainStrategy{}, Now: now})
		})
		m := w.store.Node(nil, "n1").Maintenance
		if status == structs.NodeStatusReady && m != nil || status != structs.NodeStatusReady && (m == nil || m.Until.After(unixTime(now))) {
			t.Errorf("%s: the maintenance is %+v", status, m)
		}
	}
}

// TestWhatIsNotReplacedStopsWhenItsNodeIsRemoved: a node that lives hears of it when it has registered anew. What is replaced
// the scheduler's plan stops.
func TestWhatIsNotReplacedStopsWhenItsNodeIsRemoved(t *testing.T) {
	for replace, desired := range map[bool]string{true: structs.AllocDesiredStatusRun, false: structs.AllocDesiredStatusStop} {
		w := newWorld(t)
		w.must(func(tx *Txn) error { return tx.RegisterNode(testNode("n1"), w.now()) })
		job := testJob("web", "service", "g")
		job.TaskGroups[0].Disconnect = &structs.DisconnectStrategy{Replace: structs.Ptr(replace)}
		w.register(job, nil)
		w.place("web", testAlloc("a", "g", "n1", 20000))
		w.observe("a", "running")
		w.must(func(tx *Txn) error { tx.DeregisterNode("n1", "purged", w.now()); return nil })
		a := w.alloc("a")
		if a.DesiredStatus != desired || a.ClientStatus != structs.AllocClientStatusLost || !a.Orphaned() {
			t.Errorf("replace %t: desired %s, %s", replace, a.DesiredStatus, a.ClientStatus)
		}
		if told := a.AllocModifyIndex == w.index; told == replace {
			t.Errorf("replace %t: its node is told at %d of %d", replace, a.AllocModifyIndex, w.index)
		}
		requireSameState(t, w.store, w.restored())
	}
}
