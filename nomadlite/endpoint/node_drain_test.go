package endpoint

import (
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func TestDrainBeginsChangesAndEnds(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	path := "/v1/node/" + node.ID + "/drain"
	stored := func() *structs.Node { return s.backend.Store.Node(nil, node.ID) }
	drain := func(query string, req structs.NodeUpdateDrainRequest) {
		t.Helper()
		var out structs.NodeDrainUpdateResponse
		s.call("PUT", path+query, req).want(200, &out)
		if out.NodeModifyIndex != stored().ModifyIndex {
			t.Errorf("answered index %d, the node's is %d", out.NodeModifyIndex, stored().ModifyIndex)
		}
	}
	before := time.Now()
	drain("", structs.NodeUpdateDrainRequest{NodeID: node.ID, DrainSpec: &structs.DrainSpec{Deadline: time.Minute}, MarkEligible: true,
		Meta: map[string]string{"message": "new disk"}})
	n := stored()
	at := n.DrainStrategy.ForceDeadline
	if at.Before(before.Add(time.Minute)) || at.After(time.Now().Add(time.Minute)) || n.DrainStrategy.StartedAt.IsZero() ||
		n.SchedulingEligibility != structs.NodeIneligible || !n.Drain || n.DrainStrategy.NoShutdownDelay {
		t.Errorf("strategy %+v, node %s", n.DrainStrategy, n.SchedulingEligibility)
	}
	if d := n.LastDrain; d.Status != "draining" || d.Meta["message"] != "new disk" {
		t.Errorf("last drain %+v", d)
	}
	started := n.DrainStrategy.StartedAt

	drain("?no_shutdown_delay&kill_timeout=3s", structs.NodeUpdateDrainRequest{DrainSpec: &structs.DrainSpec{Deadline: -1, IgnoreSystemJobs: true}})
	n = stored()
	if d := n.DrainStrategy; !d.NoShutdownDelay || *d.KillTimeout != 3*time.Second || !d.ForceDeadline.IsZero() || !d.IgnoreSystemJobs ||
		!d.StartedAt.Equal(started) {
		t.Errorf("strategy %+v", d)
	}
	var shown map[string]any
	s.get("/v1/node/"+node.ID).want(200, &shown)
	if d := shown["DrainStrategy"].(map[string]any); d["Deadline"] != -1.0 || d["NoShutdownDelay"] != true || d["KillTimeout"] != 3e9 {
		t.Errorf("shown %v", d)
	}

	drain("", structs.NodeUpdateDrainRequest{MarkEligible: true})
	n = stored()
	if n.DrainStrategy != nil || n.SchedulingEligibility != structs.NodeEligible || n.LastDrain.Status != "canceled" {
		t.Errorf("node after the end of its drain: %+v, %+v", n.DrainStrategy, n.LastDrain)
	}
	var messages []string
	for _, e := range n.Events {
		if e.Subsystem == "Drain" {
			messages = append(messages, e.Message)
		}
	}
	if len(messages) != 3 || messages[0] != "Node drain strategy set" || messages[2] != "Node drain strategy unset" {
		t.Errorf("events %q", messages)
	}
	drain("", structs.NodeUpdateDrainRequest{}) // there is none to end: no event
	if len(stored().Events) != len(n.Events) {
		t.Error("the end of no drain is an event")
	}
}

func TestEligibleAgainMeansSystemJobsAreEvaluated(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	s.register(job("agent", func(j *structs.Job) { j.Type = structs.Ptr(structs.JobTypeSystem) }))
	path := "/v1/node/" + node.ID + "/drain"
	var out structs.NodeDrainUpdateResponse
	s.call("PUT", path, structs.NodeUpdateDrainRequest{DrainSpec: &structs.DrainSpec{}}).want(200, &out)
	s.call("PUT", path, structs.NodeUpdateDrainRequest{MarkEligible: true}).want(200, &out)
	if len(out.EvalIDs) != 1 || out.EvalCreateIndex != out.NodeModifyIndex {
		t.Errorf("answered %+v", out)
	}
}

// TestIneligibleByAnOperatorOutlastsLeaving: of a node that leaves and is ineligible for that, the word of an operator counts.
func TestIneligibleByAnOperatorOutlastsLeaving(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	s.apply(fsm.KindNodeLeave, &fsm.NodeLeave{NodeID: node.ID, Agent: "a", Now: 1})
	s.call("PUT", "/v1/node/"+node.ID+"/eligibility", structs.NodeUpdateEligibilityRequest{Eligibility: structs.NodeIneligible}).want(200, nil)
	s.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Updates: []fsm.NodeStatusUpdate{{NodeID: node.ID, EndLeaving: true, Agent: "b"}}, Now: 2})
	if n := s.backend.Store.Node(nil, node.ID); n.SchedulingEligibility != structs.NodeIneligible {
		t.Errorf("it is %s", n.SchedulingEligibility)
	}
}

func TestBadDrainsChangeNothing(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	path := "/v1/node/" + node.ID + "/drain"
	spec := structs.NodeUpdateDrainRequest{DrainSpec: &structs.DrainSpec{Deadline: time.Minute}}
	s.call("PUT", path, "").says(400, "request body is empty")
	s.call("PUT", path, `{"DrainSpec": {"Deadline": "1h"}}`).says(400, "DrainSpec.Deadline")
	s.call("PUT", path, structs.NodeUpdateDrainRequest{NodeID: "other"}).says(400, "does not match")
	s.call("PUT", path+"?kill_timeout=-1s", spec).says(400, "kill_timeout")
	s.call("PUT", path+"?kill_timeout=soon", spec).says(400, "kill_timeout")
	s.call("PUT", path+"?no_shutdown_delay=perhaps", spec).says(400, "no_shutdown_delay")
	s.call("PUT", path+"?no_shutdown_delay", structs.NodeUpdateDrainRequest{}).says(400, "options of a drain that begins")
	s.call("PUT", path, structs.NodeUpdateDrainRequest{DrainSpec: &structs.DrainSpec{KillTimeout: structs.Ptr(-time.Second)}}).says(400, "KillTimeout")
	s.call("PUT", "/v1/node/00000000-0000-0000-0000-000000000000/drain", spec).says(404, "node not found")
	if n := s.backend.Store.Node(nil, node.ID); n.DrainStrategy != nil || n.LastDrain != nil {
		t.Errorf("drain %+v, last %+v", n.DrainStrategy, n.LastDrain)
	}
}
