package heartbeat

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
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

// TestANewLeaderWaitsForALeaseNoLongerThanItLasts: it gives all nodes time to find it, but what has a lease has ended
// by itself long before, and is replaced then. What has none keeps that time.
func TestANewLeaderWaitsForALeaseNoLongerThanItLasts(t *testing.T) {
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{StopOnClientAfter: structs.Ptr(30 * time.Second)}}
	const fence = 30*time.Second*102/100 + 2*time.Second
	withRig(t, group, func(r *rig) {
		r.beat("n1", true)
		r.end()
		r.lead()
		r.pass(fence - time.Millisecond)
		r.expect("n1", r.node("n1"), structs.NodeStatusReady)
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusRunning)
		r.pass(2 * time.Millisecond)
		r.expect("n1", r.node("n1"), structs.NodeStatusDisconnected)
		r.expect("a2 after its fence", r.alloc("a2"), structs.AllocClientStatusLost)
		r.expect("a1, which has no lease,", r.alloc("a1"), structs.AllocClientStatusRunning)
		r.pass(5*time.Minute - fence - 5*time.Millisecond)
		r.expect("a1 within the grace", r.alloc("a1"), structs.AllocClientStatusRunning)
		r.expect("n2, which has nothing,", r.node("n2"), structs.NodeStatusReady)
		r.pass(10 * time.Millisecond)
		r.expect("a1 after the grace", r.alloc("a1"), structs.AllocClientStatusLost)
		r.expect("n1 after the grace", r.node("n1"), structs.NodeStatusDown)
		r.expect("n2 after the grace", r.node("n2"), structs.NodeStatusDown)
	})
}

// TestSparedAcrossLeaders: what waits for its node under one new leader goes on under the next, and is as it was when
// the node is heard.
func TestSparedAcrossLeaders(t *testing.T) {
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{StopOnClientAfter: structs.Ptr(30 * time.Second)}}
	for _, back := range []bool{true, false} {
		withRig(t, group, func(r *rig) {
			r.end()
			r.lead()
			r.pass(time.Minute)
			r.expect("a2", r.alloc("a2"), structs.AllocClientStatusLost)
			r.end()
			r.lead()
			if back {
				r.beat("n1", true)
				r.expect("n1", r.node("n1"), structs.NodeStatusReady)
				if c := r.log.Store.Alloc(nil, "a1").Condition.Status; c != structs.ConditionOK {
					t.Errorf("a1 is %s on a node that is heard", c)
				}
				return
			}
			r.pass(4*time.Minute - time.Second)
			r.expect("a1 within the grace", r.alloc("a1"), structs.AllocClientStatusRunning)
			r.pass(2 * time.Second)
			r.expect("a1 after the grace", r.alloc("a1"), structs.AllocClientStatusLost)
			r.expect("n1 after the grace", r.node("n1"), structs.NodeStatusDown)
		})
	}
}

// asked counts questions about leadership, and answers them.
type asked struct {
	*clustertest.Log
	n      int
	answer error
	during func()
}

func (a *asked) VerifyLeader(context.Context) error {
	a.n++
	if a.during != nil {
		a.during()
	}
	return a.answer
}

// TestLeadershipIsVerifiedForLeasesOnly: a heartbeat of a node with a live leased allocation is confirmed only when
// leadership was verified after it came; others ask nobody.
func TestLeadershipIsVerifiedForLeasesOnly(t *testing.T) {
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{StopOnClientAfter: structs.Ptr(30 * time.Second)}}
	withRig(t, group, func(r *rig) {
		raft := &asked{Log: r.log}
		r.duty.cfg.Raft = raft
		r.beat("n2", true)
		if raft.n != 0 {
			t.Errorf("%d questions for a node without leases", raft.n)
		}
		received := time.Now()
		raft.during = func() { r.pass(3 * time.Second) }
		r.beat("n1", true)
		if raft.n != 1 || time.Since(received) != 3*time.Second {
			t.Errorf("%d questions, answered after %s", raft.n, time.Since(received))
		}
		raft.answer, raft.during = structs.ErrNoLeader, nil
		if _, err := r.duty.Beat(r.Context(), "n1", true); !errors.Is(err, structs.ErrNoLeader) {
			t.Errorf("a heartbeat was confirmed by a server that leads no more: %v", err)
		}
		r.apply(fsm.KindAllocObserve, &fsm.AllocObserve{Now: 1, Observations: []*structs.AllocObservation{
			{AllocID: "a2", ObservedStatus: structs.AllocClientStatusComplete}}})
		raft.n = 0
		r.beat("n1", true)
		if raft.n != 0 {
			t.Errorf("%d questions for a node whose leased allocation has ended", raft.n)
		}
	})
}
