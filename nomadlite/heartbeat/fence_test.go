package heartbeat

import (
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// leaseNode gives everything on n1 a lease of a minute, and kills on it 10 s at most.
func (r *rig) leaseNode() {
	n := r.log.Store.Node(nil, "n1").Copy()
	n.Lease, n.MaxKillTimeout = time.Minute, 10*time.Second
	r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: n, Now: 2})
}

// TestLeaseOfANode: what runs there is given up only when it has surely ended, whatever its group tolerates.
func TestLeaseOfANode(t *testing.T) {
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{LostAfter: structs.Ptr(time.Hour)},
		Tasks: []*structs.Task{{Name: "t", KillTimeout: structs.Ptr(20 * time.Second)}, {Name: "u", KillTimeout: structs.Ptr(time.Second)}}}
	const fence = 70*time.Second*102/100 + 2*time.Second // 60 s and the 10 s of the node, 2 % and 2 s
	withRig(t, group, func(r *rig) {
		r.leaseNode()
		sent := time.Now()
		r.pass(r.beat("n1", true) + 11*time.Second)
		r.expect("n1", r.node("n1"), structs.NodeStatusDown)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusUnknown) // without tasks it needs less time
		r.pass(time.Until(sent.Add(fence - time.Millisecond)))
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusLost)
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusUnknown)
		r.pass(2 * time.Millisecond)
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusLost)
		if n := r.evals("patient"); n[structs.EvalTriggerMaxDisconnect] != 1 {
			t.Errorf("evaluations %v", n)
		}
	})
}

// TestANewLeaderCountsFromItsElection: its predecessor may have confirmed heartbeats of which nobody else knows.
func TestANewLeaderCountsFromItsElection(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.leaseNode()
		r.pass(r.beat("n1", true) + 11*time.Second)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusUnknown)
		r.pass(30 * time.Second)
		r.end()
		r.lead()
		const fence = time.Minute*102/100 + 2*time.Second
		r.pass(fence - time.Millisecond)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusUnknown)
		r.pass(2 * time.Millisecond)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusLost)
	})
}

// TestConfirmedIsInTheState: a heartbeat of a node that was given up is confirmed only when the state says so.
func TestConfirmedIsInTheState(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.leaseNode()
		r.pass(r.beat("n1", true) + 11*time.Second)
		r.expect("n1", r.node("n1"), structs.NodeStatusDown)
		if _, err := r.duty.Beat(r.Context(), "n1", true); err != nil {
			t.Fatal(err)
		}
		r.expect("n1 at once", r.node("n1"), structs.NodeStatusReady)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusRunning)
		r.pass(time.Second)
	})
}
