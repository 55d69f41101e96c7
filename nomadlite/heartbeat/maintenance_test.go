package heartbeat

import (
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// announce announces a maintenance of n1 for d, as the endpoint does.
func (r *rig) announce(d time.Duration) {
	r.Helper()
	r.apply(fsm.KindNodeMaintenance, &fsm.NodeMaintenance{NodeID: "n1", Now: time.Now().UnixNano(),
		Maintenance: &structs.NodeMaintenance{Since: time.Now(), Until: time.Now().Add(d), Reason: "new disk"}})
	r.duty.Reconsider("n1")
}

func (r *rig) condition(id string) structs.Condition { return r.log.Store.Alloc(nil, id).Condition }

// TestAwayAndBack: an announced downtime costs nothing.
func TestAwayAndBack(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.beat("n1", true)
		r.announce(20 * time.Minute)
		if r.log.Store.Node(nil, "n1").Ready() || r.log.Store.Node(nil, "n1").SchedulingEligibility != structs.NodeEligible {
			t.Error("eligibility is not masked, or was changed")
		}
		r.pass(r.beat("n1", true) + 11*time.Second)
		r.expect("n1", r.node("n1"), structs.NodeStatusDisconnected)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusRunning)
		c := r.condition("a1")
		r.expect("condition", c.Status, structs.ConditionAway)
		r.expect("reason", c.Reason, "new disk")
		r.pass(10 * time.Minute)
		r.end()
		r.lead() // a new leader knows it too
		r.pass(time.Minute)
		r.expect("a1", r.condition("a1").Status, structs.ConditionAway)
		r.beat("n1", true)
		r.expect("n1", r.node("n1"), structs.NodeStatusReady)
		r.expect("condition", r.condition("a1").Status, structs.ConditionOK)
		for range 150 { // it stays until the maintenance is over
			r.pass(r.beat("n1", true) / 2)
		}
		if node := r.log.Store.Node(nil, "n1"); node.Maintenance != nil || !node.Ready() {
			t.Errorf("maintenance %+v, status %s", node.Maintenance, node.Status)
		}
	})
}

// TestAwayTooLong: at the announced end an absent node has missed its heartbeat.
func TestAwayTooLong(t *testing.T) {
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{LostAfter: structs.Ptr(time.Hour)}}
	withRig(t, group, func(r *rig) {
		r.beat("n1", true)
		r.announce(20 * time.Minute)
		r.pass(19 * time.Minute)
		r.expect("a1", r.condition("a1").Status, structs.ConditionAway)
		r.pass(time.Minute)
		r.expect("n1", r.node("n1"), structs.NodeStatusDisconnected)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusLost)
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusUnknown)
		if r.log.Store.Node(nil, "n1").Maintenance != nil {
			t.Error("the maintenance is not over")
		}
		r.pass(time.Hour)
		r.expect("n1", r.node("n1"), structs.NodeStatusDown)
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusLost)
	})
}

// TestLeaseInAMaintenance: what is fenced before the node is back is replaced, what is not is not.
func TestLeaseInAMaintenance(t *testing.T) {
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{StopOnClientAfter: structs.Ptr(time.Minute)}}
	for d, want := range map[time.Duration]string{20 * time.Minute: structs.AllocClientStatusLost, 40 * time.Second: structs.AllocClientStatusUnknown} {
		withRig(t, group, func(r *rig) {
			r.beat("n1", true)
			r.announce(d)
			r.pass(d - time.Second)
			r.expect("a1", r.condition("a1").Status, structs.ConditionAway)
			if d == 40*time.Second {
				r.expect("a2", r.condition("a2").Status, structs.ConditionAway)
				r.pass(2 * time.Second)
			}
			r.expect("a2", r.alloc("a2"), want)
			r.expect("n1", r.node("n1"), map[string]string{structs.AllocClientStatusLost: structs.NodeStatusDisconnected,
				structs.AllocClientStatusUnknown: structs.NodeStatusDown}[want])
			r.pass(time.Minute)
			r.expect("a2", r.alloc("a2"), structs.AllocClientStatusLost)
		})
	}
}

// TestEndlessWaitsAreLookedAtAfterAMaintenance: what waits without end is looked at again after a while when the maintenance
// of its silent node is over, as before it, and hides no time that runs out earlier.
func TestEndlessWaitsAreLookedAtAfterAMaintenance(t *testing.T) {
	now := time.Unix(1_000_000, 0).UTC()
	j := Judge{NewID: func() string { return "e" }, Now: now}
	node := &structs.Node{ID: "n1", Status: structs.NodeStatusDisconnected}
	unknown := func(id string, until time.Time) *structs.Allocation {
		return &structs.Allocation{ID: id, DesiredStatus: structs.AllocDesiredStatusRun, ObservedStatus: structs.AllocClientStatusRunning,
			Condition: structs.Condition{Status: structs.ConditionUnknown, Until: until}}
	}
	endless, soon, late := unknown("a", time.Time{}), unknown("b", now.Add(time.Second)), unknown("c", now.Add(time.Hour))
	for _, tt := range []struct {
		allocs []*structs.Allocation
		want   time.Duration
	}{
		{[]*structs.Allocation{endless}, lookAgain},
		{[]*structs.Allocation{endless, soon}, time.Second},
		{[]*structs.Allocation{soon, endless}, time.Second},
		{[]*structs.Allocation{endless, late}, lookAgain},
		{[]*structs.Allocation{late, endless}, lookAgain},
	} {
		if o := j.Announced(node, tt.allocs, now); !o.Until.Equal(now.Add(tt.want)) || len(o.Update.Conditions) > 0 {
			t.Errorf("%d allocations: looked at again after %s, want %s; conditions %v", len(tt.allocs), o.Until.Sub(now), tt.want, o.Update.Conditions)
		}
	}
}
