package state

import (
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// TestLeavingGivesBackWhatWasThere in all orders in which an operator, the drainer and another agent may come.
func TestLeavingGivesBackWhatWasThere(t *testing.T) {
	hour := &structs.DrainStrategy{DrainSpec: structs.DrainSpec{Deadline: time.Hour}}
	operators := &structs.DrainStrategy{DrainSpec: structs.DrainSpec{IgnoreSystemJobs: true}}
	type step func(*Txn) error
	leave := func(agent string, drain *structs.DrainStrategy) step {
		return func(tx *Txn) error { return tx.SetNodeLeaving("n1", agent, drain, nil, 1) }
	}
	end := func(agent string) step { return func(tx *Txn) error { return tx.EndNodeLeaving("n1", agent, 2) } }
	eligibility := func(e string) step { return func(tx *Txn) error { return tx.SetNodeEligibility("n1", e, nil, 3) } }
	drain := func(s *structs.DrainStrategy, complete bool) step {
		return func(tx *Txn) error {
			return tx.SetNodeDrain(NodeDrainChange{NodeID: "n1", Strategy: s, Complete: complete, Now: 4})
		}
	}
	register := func(tx *Txn) error {
		return tx.RegisterNode(&structs.Node{ID: "n1", Name: "n1", SecretID: "s", Datacenter: "dc2"}, 5)
	}
	const yes, no = structs.NodeEligible, structs.NodeIneligible
	for _, c := range []struct {
		name     string
		steps    []step
		eligible string
		strategy *structs.DrainStrategy
		last     string // status of the last drain
		leaving  bool
	}{
		{name: "left", steps: []step{leave("a", nil), end("")}, eligible: yes},
		{name: "left by a drain", steps: []step{leave("a", hour), end("")}, eligible: yes, last: "complete"},
		{name: "back", steps: []step{leave("a", nil), end("b")}, eligible: yes},
		{name: "back from a drain", steps: []step{leave("a", hour), end("b")}, eligible: yes, last: "canceled"},
		{name: "still leaving", steps: []step{leave("a", nil), end("a"), register}, eligible: no, leaving: true},
		{name: "said twice", steps: []step{leave("a", nil), leave("a", nil), end("b")}, eligible: yes},
		{name: "the next agent leaves at once", steps: []step{leave("a", nil), leave("b", nil), end("b")}, eligible: no, leaving: true},
		{name: "and is killed too", steps: []step{leave("a", hour), leave("b", nil), end("c")}, eligible: yes, last: "canceled"},
		{name: "was ineligible", steps: []step{eligibility(no), leave("a", nil), end("b")}, eligible: no},
		{name: "was drained", steps: []step{drain(operators, false), leave("a", nil), end("b")}, eligible: no, strategy: operators,
			last: "draining"},
		{name: "was drained on other terms", steps: []step{drain(operators, false), leave("a", hour), end("b")}, eligible: no,
			strategy: operators, last: "draining"},
		{name: "that drain is over", steps: []step{drain(operators, false), leave("a", hour), drain(nil, true), end("b")}, eligible: no,
			last: "complete"},
		{name: "its drain is over", steps: []step{leave("a", hour), drain(nil, true), end("b")}, eligible: yes, last: "complete"},
		{name: "an operator makes it eligible", steps: []step{leave("a", nil), eligibility(yes), end("b")}, eligible: yes},
		{name: "an operator makes it ineligible", steps: []step{leave("a", nil), eligibility(no), end("b")}, eligible: no},
		{name: "an operator drains it", steps: []step{leave("a", nil), drain(operators, false), end("b")}, eligible: no,
			strategy: operators, last: "draining"},
		{name: "an operator ends its drain", steps: []step{leave("a", hour), drain(nil, false), end("")}, eligible: no, last: "canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.must(func(tx *Txn) error {
				return tx.RegisterNode(&structs.Node{ID: "n1", Name: "n1", SecretID: "s", Status: structs.NodeStatusReady}, 0)
			})
			for _, s := range c.steps {
				w.must(s)
			}
			n := w.store.Node(nil, "n1")
			if n.SchedulingEligibility != c.eligible || (n.Leaving != nil) != c.leaving || n.Drain != (c.strategy != nil) {
				t.Errorf("node is %s, leaving %+v, drain %v", n.SchedulingEligibility, n.Leaving, n.Drain)
			}
			if got := n.DrainStrategy; (got != nil) != (c.strategy != nil) || got != nil && got.DrainSpec != c.strategy.DrainSpec {
				t.Errorf("drain %+v", got)
			}
			if c.last == "" && n.LastDrain != nil || c.last != "" && (n.LastDrain == nil || n.LastDrain.Status != c.last) {
				t.Errorf("last drain %+v", n.LastDrain)
			}
		})
	}
}
