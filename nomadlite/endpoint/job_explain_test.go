package endpoint

import (
	"testing"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func TestExplainJob(t *testing.T) {
	s := newServer(t)
	s.call("GET", "/v1/job/nope/explain", nil).says(404, "job not found")
	s.register(job("web"))
	first := s.backend.Store.EvalsByJob(nil, "default", "web")[0].Copy()
	first.Status, first.BlockedEval, first.QueuedAllocations = structs.EvalStatusComplete, "blocked", map[string]int{"group": 1}
	first.FailedTGAllocs = map[string]*structs.AllocationMetric{"web": {NodesEvaluated: 2, DimensionExhausted: map[string]int{"memory": 2},
		Missing: map[string]int64{"memory": 120}}}
	blocked := &structs.Evaluation{ID: "blocked", Namespace: "default", JobID: "web", Type: "service", Status: structs.EvalStatusBlocked,
		PreviousEval: first.ID, TriggeredBy: structs.EvalTriggerQueuedAllocs, QueuedAllocations: first.QueuedAllocations,
		ClassEligibility: map[string]bool{"v1:1": true, "v1:2": false}}
	s.apply(fsm.KindEvalUpdate, &fsm.EvalUpdate{Evals: []*structs.Evaluation{first, blocked}})
	var out structs.JobExplanation
	s.get("/v1/job/web/explain").want(200, &out)
	if len(out.Evaluations) != 1 || len(out.Evaluations[0].Next) != 1 || out.Evaluations[0].Next[0].ID != "blocked" {
		t.Fatalf("evaluations %+v", out.Evaluations)
	}
	if r := out.Evaluations[0].Failed["web"]; len(r) != 1 || r[0].Text != "needs at least 120 MiB more memory on 2 of 2 nodes" || r[0].Remedy == "" {
		t.Errorf("reasons %+v", r)
	}
	if woken := out.Evaluations[0].Next[0].WokenBy; len(woken) != 1 {
		t.Errorf("woken by %v", woken)
	}
	if len(out.Groups) != 1 || out.Groups[0].Queued != 1 || out.Groups[0].Open > out.Groups[0].Nodes || out.Deployment != nil {
		t.Errorf("groups %+v, deployment %+v", out.Groups[0], out.Deployment)
	}
}
