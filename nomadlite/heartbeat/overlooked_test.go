package heartbeat

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// between lets something be written before the next change of nodes' statuses.
type between struct {
	*clustertest.Log
	write atomic.Pointer[func()]
}

func (b *between) Apply(ctx context.Context, kind fsm.Kind, req any) (any, uint64, error) {
	if kind == fsm.KindNodeStatus {
		if write := b.write.Swap(nil); write != nil {
			(*write)()
		}
	}
	return b.Log.Apply(ctx, kind, req)
}

// TestPlacedWhileItsNodeWasJudged: nobody had said of the late allocation that its node is silent.
func TestPlacedWhileItsNodeWasJudged(t *testing.T) {
	patient := &structs.TaskGroup{Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{LostAfter: structs.Ptr(time.Hour)}}
	withRig(t, nil, func(r *rig) {
		b := &between{Log: r.log}
		r.end()
		r.duty.cfg.Raft = b
		r.lead()
		wait := r.beat("n1", true)
		write := func() {
			r.run("late", "late", &structs.TaskGroup{Name: structs.Ptr("g")})
			r.run("later", "later", patient)
		}
		b.write.Store(&write)
		r.pass(wait + 11*time.Second)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusLost)
		r.expect("late", r.alloc("late"), structs.AllocClientStatusLost)
		r.expect("later", r.alloc("later"), structs.AllocClientStatusUnknown)
		r.expect("n1", r.node("n1"), structs.NodeStatusDisconnected)
		if n := r.evals("late")[structs.EvalTriggerNodeUpdate] + r.evals("late")[structs.EvalTriggerMaxDisconnect]; n == 0 {
			t.Error("nobody looks for another place for what was late")
		}
		r.pass(time.Hour + time.Second)
		r.expect("later", r.alloc("later"), structs.AllocClientStatusLost)
		r.expect("n1", r.node("n1"), structs.NodeStatusDown)
	})
}

// TestALeaderRepairsWhatAnEarlierOneOverlooked, from its full read: on a node that is down for ever nothing is ok, and
// nobody waits for it.
func TestALeaderRepairsWhatAnEarlierOneOverlooked(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.end()
		r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1, Updates: []fsm.NodeStatusUpdate{{NodeID: "n1", Status: structs.NodeStatusDown}}})
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusRunning)
		r.lead()
		r.pass(time.Second)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusLost)
		r.expect("n1", r.node("n1"), structs.NodeStatusDown)
		before := r.log.Store.Index()
		r.end()
		r.lead()
		r.pass(time.Hour)
		if n2 := r.node("n2"); n2 != structs.NodeStatusDown || r.log.Store.Index() > before+1 {
			t.Errorf("the next leader writes it once more: index %d, was %d", r.log.Store.Index(), before)
		}
	})
}

// TestADrainEndsAMaintenanceOfAnAbsentNode: what is away is judged at the end that was announced all the same.
func TestADrainEndsAMaintenanceOfAnAbsentNode(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		wait := r.beat("n1", true)
		r.announce(20 * time.Minute)
		r.pass(wait + 11*time.Second)
		r.expect("a1", r.condition("a1").Status, structs.ConditionAway)
		r.apply(fsm.KindNodeDrain, &fsm.NodeDrain{NodeID: "n1", Strategy: &structs.DrainStrategy{}, Now: time.Now().UnixNano()})
		r.pass(20 * time.Minute)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusLost)
		r.expect("n1", r.node("n1"), structs.NodeStatusDown)
	})
}

// TestAnAgentEndsItsMaintenanceAndIsNotHeardAgain: it registered, which ended its maintenance, and was gone before its
// first heartbeat counted.
func TestAnAgentEndsItsMaintenanceAndIsNotHeardAgain(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		wait := r.beat("n1", true)
		r.announce(20 * time.Minute)
		r.pass(wait + 11*time.Second)
		r.expect("a1", r.condition("a1").Status, structs.ConditionAway)
		r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: time.Now().UnixNano(),
			Updates: []fsm.NodeStatusUpdate{{NodeID: "n1", EndMaintenance: true}}})
		r.duty.Reconsider("n1")
		r.pass(20 * time.Minute)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusLost)
		r.expect("n1", r.node("n1"), structs.NodeStatusDown)
	})
}

// TestAChangeOfLeaderHidesNothing: a node with a lease is judged before the others are, and what has none there goes on to
// be found.
func TestAChangeOfLeaderHidesNothing(t *testing.T) {
	leased := &structs.TaskGroup{Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{StopOnClientAfter: structs.Ptr(30 * time.Second)}}
	withRig(t, leased, func(r *rig) {
		r.apply(fsm.KindServiceUpsert, &fsm.ServiceUpsert{Services: []*structs.ServiceRegistration{
			{ID: "_nomad-task-a1-web", ServiceName: "web", Namespace: "default", AllocID: "a1", NodeID: "n1"},
			{ID: "_nomad-task-a2-db", ServiceName: "db", Namespace: "default", AllocID: "a2", NodeID: "n1"}}})
		shown := func(name string) (n int) {
			for range r.log.Store.ServicesByName(nil, "default", name) {
				n++
			}
			return n
		}
		r.end()
		r.lead()
		r.pass(40 * time.Second)
		r.expect("n1", r.node("n1"), structs.NodeStatusDisconnected)
		r.expect("a1", r.condition("a1").Status, structs.ConditionAway)
		if shown("web") != 1 || shown("db") != 0 {
			t.Errorf("shown are %d without a lease, %d with one", shown("web"), shown("db"))
		}
		r.pass(5 * time.Minute)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusLost)
		if shown("web") != 0 {
			t.Error("what is lost is shown")
		}
	})
}
