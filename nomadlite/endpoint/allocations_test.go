package endpoint

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func TestAllocationLists(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	var allocs []*structs.Allocation
	for _, id := range []string{"a", "b", "c"} {
		allocs = append(allocs, s.place(id, s.register(job(id)).EvalID, node))
	}
	s.observe(allocs[0], structs.AllocClientStatusRunning)

	var got []*structs.AllocationListStub
	list := func(path string) string {
		t.Helper()
		got = nil
		s.get(path).want(200, &got)
		var ids []string
		for _, stub := range got {
			ids = append(ids, stub.JobID)
		}
		return strings.Join(ids, " ")
	}
	for path, want := range map[string]string{
		"/v1/allocations":                                     "a b c",
		"/v1/allocations?reverse":                             "c b a",
		"/v1/allocations?per_page=2":                          "a b",
		"/v1/allocations?prefix=" + allocs[1].ID[:8]:          "b",
		"/v1/allocations?namespace=other":                     "",
		"/v1/allocations?namespace=*":                         "a b c",
		"/v1/job/b/allocations":                               "b",
		"/v1/evaluation/" + allocs[2].EvalID + "/allocations": "c",
		"/v1/node/" + node.ID + "/allocations?filter=" + url.QueryEscape(`JobID == "a"`):                                 "a",
		"/v1/allocations?filter=" + url.QueryEscape(`ClientStatus == "running"`):                                         "a",
		"/v1/allocations?filter=" + url.QueryEscape(`ClientStatus == "running" and TaskStates.task.Events is not empty`): "a",
	} {
		if ids := list(path); ids != want {
			t.Errorf("%s gave %q, want %q", path, ids, want)
		}
	}

	list("/v1/allocations")
	if ts := got[0].TaskStates["task"]; ts == nil || len(ts.Events) != 1 || ts.Events[0].Type != "Started" || ts.Events[0].Time != 7 {
		t.Errorf("task is %+v", ts)
	}
	if got[0].AllocatedResources != nil || got[0].ClientStatus != "running" || got[0].JobType != "service" {
		t.Errorf("stub is %+v", got[0])
	}
	list("/v1/allocations?task_states=false&resources=true")
	if got[0].TaskStates != nil || got[0].AllocatedResources == nil {
		t.Errorf("stub is %+v", got[0])
	}

	var whole map[string]any
	s.get("/v1/allocation/"+allocs[0].ID).want(200, &whole)
	if whole["Job"].(map[string]any)["ID"] != "a" || whole["NodeName"] != "node-1" {
		t.Errorf("allocation is %v", whole)
	}
	if a := s.get("/v1/allocation/"+allocs[0].ID+"/services").want(200, nil); a.body != "[]" {
		t.Errorf("services are %s", a.body)
	}
}

func TestStopAllocation(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	alloc := s.place("web", s.register(job("web")).EvalID, node)
	before := len(s.raft.entries)
	var out struct {
		EvalID string
		Index  uint64
	}
	a := s.call("PUT", "/v1/allocation/"+alloc.ID+"/stop?no_shutdown_delay=true&reschedule=true&kill_timeout=3s", nil).want(200, &out)
	if len(s.raft.entries) != before+1 || out.EvalID == "" || a.header.Get("X-Nomad-Index") == "" || out.Index == 0 {
		t.Fatalf("answered %s with entries %v", a.body, s.raft.entries[before:])
	}
	got := s.backend.Store.Alloc(nil, alloc.ID).DesiredTransition
	if !got.ShouldMigrate() || !got.ShouldReschedule() || !structs.Val(got.NoShutdownDelay) || structs.Val(got.KillTimeout) != 3*time.Second {
		t.Errorf("transition is %+v", got)
	}
	eval := s.backend.Store.Eval(nil, out.EvalID)
	if eval == nil || eval.TriggeredBy != "alloc-stop" || eval.JobID != "web" || eval.Type != "service" {
		t.Errorf("evaluation is %+v", eval)
	}
	s.call("PUT", "/v1/allocation/"+alloc.ID+"/stop?kill_timeout=soon", nil).says(400, "kill_timeout")
	s.call("PUT", "/v1/allocation/"+alloc.ID+"/stop?reschedule=soon", nil).says(400, "reschedule")
}

func TestNodeOfAllocationAndParameter(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	alloc := s.place("web", s.register(job("web")).EvalID, node)
	request := func(id, query string) *route.Request {
		r := &route.Request{Params: map[string]string{"alloc_id": id}}
		r.Request = newRequest(t, "/v1/client/stats?"+query)
		return r
	}
	if id, err := s.backend.NodeOfAlloc(request(alloc.ID, "")); id != node.ID || err != nil {
		t.Errorf("found %q, %v", id, err)
	}
	_, err := s.backend.NodeOfAlloc(request("nope", ""))
	if err == nil || err.Error() != `Unknown allocation "nope"` || structs.ErrorCode(err) != structs.CodeNotFound {
		t.Errorf("unknown allocation: %v", err)
	}
	for _, c := range []struct {
		query, local, want string
		code               structs.Code
	}{
		{"node_id=" + node.ID, "", node.ID, 0},
		{"", node.ID, node.ID, 0},
		{"", "", "", structs.CodeInvalid},
		{"node_id=nope", node.ID, "", structs.CodeNotFound},
	} {
		s.backend.LocalNode = func() string { return c.local }
		id, err := s.backend.NodeOfParam(request("", c.query))
		if id != c.want || (err != nil) != (c.code != 0) || (err != nil && structs.ErrorCode(err) != c.code) {
			t.Errorf("%+v: found %q, %v", c, id, err)
		}
	}
}

func TestEvaluations(t *testing.T) {
	s := newServer(t)
	first := s.register(job("a"))
	second := s.register(job("b"))
	follow := &structs.Evaluation{ID: "0a0a0a0a-0000-4000-8000-000000000000", Namespace: "default", JobID: "b", Type: "service",
		Status: "blocked", PreviousEval: second.EvalID, TriggeredBy: "queued-allocs", Priority: 50}
	done := s.backend.Store.Eval(nil, second.EvalID).Copy()
	done.Status, done.BlockedEval = structs.EvalStatusComplete, follow.ID
	s.apply(fsm.KindEvalUpdate, &fsm.EvalUpdate{Evals: []*structs.Evaluation{done, follow}, Now: 1})

	for path, want := range map[string]string{
		"/v1/evaluations":                 "a b b",
		"/v1/evaluations?reverse":         "b b a",
		"/v1/evaluations?job=a":           "a",
		"/v1/evaluations?status=blocked":  "b",
		"/v1/evaluations?prefix=0a0a0a0a": "b",
		"/v1/evaluations?filter=" + url.QueryEscape(`TriggeredBy == "job-register"`): "a b",
		"/v1/job/b/evaluations": "b b",
	} {
		var got []*structs.Evaluation
		s.get(path).want(200, &got)
		var ids []string
		for _, eval := range got {
			ids = append(ids, eval.JobID)
		}
		if ids := strings.Join(ids, " "); ids != want {
			t.Errorf("%s gave %q, want %q", path, ids, want)
		}
	}
	var count structs.EvalCountResponse
	s.get("/v1/evaluations/count?job=b").want(200, &count)
	if count.Count != 2 {
		t.Errorf("counted %d", count.Count)
	}
	var eval structs.Evaluation
	s.get("/v1/evaluation/"+second.EvalID+"?related=true").want(200, &eval)
	if len(eval.RelatedEvals) != 1 || eval.RelatedEvals[0].ID != follow.ID {
		t.Errorf("related are %+v", eval.RelatedEvals)
	}

	// Pages end where the next one begins, in both directions.
	var page []*structs.Evaluation
	a := s.get("/v1/evaluations?per_page=2&reverse").want(200, &page)
	var rest []*structs.Evaluation
	s.get("/v1/evaluations?per_page=2&reverse&next_token="+a.header.Get("X-Nomad-NextToken")).want(200, &rest)
	if len(page) != 2 || len(rest) != 1 || rest[0].ID != first.EvalID {
		t.Errorf("pages are %d and %d", len(page), len(rest))
	}

	ids := structs.EvalDeleteRequest{EvalIDs: []string{first.EvalID}}
	s.call("DELETE", "/v1/evaluations", ids).says(400, "eval broker is enabled; eval broker must be paused")
	s.call("PUT", "/v1/operator/scheduler/configuration", structs.SchedulerConfiguration{PauseEvalBroker: true}).want(200, nil)
	s.call("DELETE", "/v1/evaluations", structs.EvalDeleteRequest{EvalIDs: []string{"nope"}}).says(404, "eval not found")
	s.call("DELETE", "/v1/evaluations", structs.EvalDeleteRequest{}).says(400, "either EvalIDs or Filter")
	s.call("DELETE", "/v1/evaluations", structs.EvalDeleteRequest{Filter: "nonsense"}).says(400, "filter expression")
	s.call("DELETE", "/v1/evaluations", structs.EvalDeleteRequest{Filter: `JobID == "b"`}).want(200, &count)
	if count.Count != 2 || s.backend.Store.Eval(nil, follow.ID) != nil || s.backend.Store.Eval(nil, first.EvalID) == nil {
		t.Errorf("deleted %d", count.Count)
	}

	node := s.addNode()
	s.place("a", first.EvalID, node)
	s.call("DELETE", "/v1/evaluations", ids).says(400, "cannot be deleted: its allocation")
}

func TestNodes(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	var stubs []*structs.NodeListStub
	s.get("/v1/nodes").want(200, &stubs)
	if len(stubs) != 1 || stubs[0].ID != node.ID || stubs[0].NodeResources != nil || stubs[0].Attributes != nil || stubs[0].Version != structs.CompatVersion {
		t.Fatalf("nodes are %+v", stubs)
	}
	s.get("/v1/nodes?resources=true&os=true&prefix="+node.ID[:4]).want(200, &stubs)
	if len(stubs) != 1 || stubs[0].NodeResources == nil || stubs[0].ReservedResources == nil || stubs[0].Attributes["os.name"] != "debian" {
		t.Errorf("nodes are %+v", stubs[0])
	}
	s.get("/v1/nodes?filter="+url.QueryEscape(`Attributes["os.name"] == "debian"`)).want(200, &stubs)
	if len(stubs) != 1 {
		t.Error("the filter found nothing")
	}
	a := s.get("/v1/node/"+node.ID).want(200, nil)
	var whole map[string]json.RawMessage
	a.want(200, &whole)
	if string(whole["SecretID"]) != `""` || strings.Contains(a.body, node.SecretID) {
		t.Errorf("the secret is shown: %s", whole["SecretID"])
	}

	// Eligibility, in one entry, with the evaluations of what waits for the node.
	var out structs.NodeEligibilityUpdateResponse
	s.call("PUT", "/v1/node/"+node.ID+"/eligibility", structs.NodeUpdateEligibilityRequest{Eligibility: "ineligible"}).want(200, &out)
	if got := s.backend.Store.Node(nil, node.ID); got.SchedulingEligibility != "ineligible" || out.NodeModifyIndex == 0 {
		t.Errorf("node is %s", got.SchedulingEligibility)
	}
	s.call("PUT", "/v1/node/"+node.ID+"/eligibility", structs.NodeUpdateEligibilityRequest{Eligibility: "perhaps"}).says(400, "invalid scheduling eligibility")
	s.call("POST", "/v1/node/"+node.ID+"/eligibility", structs.NodeUpdateEligibilityRequest{Eligibility: "eligible"}).want(200, &out)

	alloc := s.place("web", s.register(job("web")).EvalID, node)
	var forced structs.NodePurgeResponse
	s.call("PUT", "/v1/node/"+node.ID+"/evaluate", nil).want(200, &forced)
	if len(forced.EvalIDs) != 1 || s.backend.Store.Eval(nil, forced.EvalIDs[0]).TriggeredBy != "node-update" {
		t.Errorf("evaluated %+v", forced)
	}

	var purged structs.NodePurgeResponse
	s.call("PUT", "/v1/node/"+node.ID+"/purge", nil).want(200, &purged)
	if s.backend.Store.Node(nil, node.ID) != nil || len(purged.EvalIDs) != 1 || len(s.beats.forgotten) != 1 {
		t.Errorf("purged %+v", purged)
	}
	if got := s.backend.Store.Alloc(nil, alloc.ID); got.ClientStatus != structs.AllocClientStatusLost {
		t.Errorf("the allocation of a purged node is %s", got.ClientStatus)
	}
}
