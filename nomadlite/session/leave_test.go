package session

import (
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// TestLeave takes a node out in two steps; what it left behind is lost, and its eligibility comes back with it.
func TestLeave(t *testing.T) {
	c := newCluster(t, 1)
	n := connect(t, c.ports[0], "n1", nil)
	job := &structs.Job{ID: structs.Ptr("j"), Name: structs.Ptr("j"), Namespace: structs.Ptr("default"), Type: structs.Ptr("service"),
		Priority: structs.Ptr(50), TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g")}}}
	c.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: job, Now: 1})
	c.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: 2, Plans: []*structs.Plan{{Namespace: "default", JobID: "j",
		JobModifyIndex: c.store.Job(nil, "default", "j").JobModifyIndex,
		Places: map[string][]*structs.Allocation{"n1": {{ID: "a1", Namespace: "default", JobID: "j", NodeID: "n1", TaskGroup: "g",
			Name: "j.g[0]", DesiredStatus: structs.AllocDesiredStatusRun}}}}}})
	if code := n.call("leave", &structs.NodeLeaveRequest{NodeID: "n1", SecretID: "guessed"}, nil); code != 403 {
		t.Errorf("with another secret: %d", code)
	}
	for range 2 { // an agent that is not sure may say it again
		if code := n.call("leave", &structs.NodeLeaveRequest{NodeID: "n1", SecretID: n.secret}, nil); code != 200 {
			t.Fatalf("%d", code)
		}
		if row := c.store.Node(nil, "n1"); row.SchedulingEligibility != structs.NodeIneligible || row.Status == structs.NodeStatusDown {
			t.Errorf("it is %s and %s", row.SchedulingEligibility, row.Status)
		}
	}
	if a := c.store.Alloc(nil, "a1"); a.TerminalStatus() { // that is the node's to do
		t.Errorf("desired %s, status %s", a.DesiredStatus, a.ClientStatus)
	}
	final := &structs.NodeLeaveRequest{NodeID: "n1", SecretID: n.secret, Final: true}
	if code := n.call("leave", final, nil); code != 200 {
		t.Fatalf("%d", code)
	}
	row := c.store.Node(nil, "n1")
	if row.Status != structs.NodeStatusDown || row.SchedulingEligibility != structs.NodeEligible {
		t.Errorf("it is %s and %s", row.SchedulingEligibility, row.Status)
	}
	if a := c.store.Alloc(nil, "a1"); a.ClientStatus != structs.AllocClientStatusLost || a.Condition.Reason != "left" || !a.Orphaned() {
		t.Errorf("what it left behind: %s, %+v", a.ClientStatus, a.Condition)
	}
	if evals := c.store.EvalsByJob(nil, "default", "j"); len(evals) != 1 || evals[0].NodeID != "n1" {
		t.Errorf("evaluations %+v", evals)
	}
}

// TestLeaveByADrain is over with its second step, whether all was moved or not.
func TestLeaveByADrain(t *testing.T) {
	c := newCluster(t, 1)
	n := connect(t, c.ports[0], "n1", nil)
	first := &structs.NodeLeaveRequest{NodeID: "n1", SecretID: n.secret, Drain: &structs.DrainSpec{Deadline: time.Hour}}
	if code := n.call("leave", first, nil); code != 200 {
		t.Fatalf("%d", code)
	}
	if row := c.store.Node(nil, "n1"); row.DrainStrategy == nil || row.DrainStrategy.ForceDeadline.IsZero() {
		t.Errorf("drain %+v", row.DrainStrategy)
	}
	last := &structs.NodeLeaveRequest{NodeID: "n1", SecretID: n.secret, Final: true}
	if code := n.call("leave", last, nil); code != 200 {
		t.Fatalf("%d", code)
	}
	if row := c.store.Node(nil, "n1"); row.Status != structs.NodeStatusDown || row.DrainStrategy != nil ||
		row.SchedulingEligibility != structs.NodeEligible {
		t.Errorf("it is %s and %s, drain %+v", row.Status, row.SchedulingEligibility, row.DrainStrategy)
	}
}

// TestBackWithoutHavingLeft: the agent that leaves is killed before its last word. Another process of it gives the node back
// what it had, by its registration or, should that have come too early, by a heartbeat; the process that leaves does not.
func TestBackWithoutHavingLeft(t *testing.T) {
	for name, spec := range map[string]*structs.DrainSpec{"by stops": nil, "by a drain": {Deadline: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1)
			n := connect(t, c.ports[0], "n1", nil)
			for i, by := range []string{"registration", "heartbeat"} {
				old, again := "p"+by, "q"+by
				leave := &structs.NodeLeaveRequest{NodeID: "n1", SecretID: n.secret, Agent: old, Drain: spec}
				if code := n.call("leave", leave, nil); code != 200 {
					t.Fatalf("%d", code)
				}
				say := func(agent string) {
					var req any = &structs.NodeHeartbeatRequest{NodeID: "n1", SecretID: n.secret, Agent: agent}
					what := "heartbeat"
					if i == 0 {
						row := c.store.Node(nil, "n1").Copy()
						row.Leaving = nil // no node knows of it
						what, req = "register", &structs.NodeRegisterRequest{Node: row, Agent: agent}
					}
					if code := n.call(what, req, &structs.NodeHeartbeatResponse{}); code != 200 {
						t.Fatalf("%s: %d", by, code)
					}
				}
				say("") // of a version that does not tell
				say(old)
				row := c.store.Node(nil, "n1")
				if row.Leaving == nil || row.SchedulingEligibility != structs.NodeIneligible || (row.DrainStrategy != nil) != (spec != nil) {
					t.Errorf("%s of the agent that leaves: %s, %+v, drain %+v", by, row.SchedulingEligibility, row.Leaving, row.DrainStrategy)
				}
				say(again)
				row = c.store.Node(nil, "n1")
				if row.Leaving != nil || row.SchedulingEligibility != structs.NodeEligible || row.DrainStrategy != nil {
					t.Errorf("%s of another: %s, %+v, drain %+v", by, row.SchedulingEligibility, row.Leaving, row.DrainStrategy)
				}
			}
		})
	}
}
