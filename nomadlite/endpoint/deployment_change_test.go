package endpoint

import (
	"testing"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func TestPauseAndFailADeployment(t *testing.T) {
	s := newServer(t)
	s.register(job("web"))
	id := "8d1e1f6a-0000-4000-8000-000000000001"
	s.apply(fsm.KindPlanApply, &fsm.PlanApply{Plans: []*structs.Plan{{EvalID: "e", Namespace: "default", JobID: "web",
		Deployment: &structs.Deployment{ID: id, Namespace: "default", JobID: "web", Status: structs.DeploymentStatusRunning}}}})
	status := func(want string) {
		t.Helper()
		var got structs.Deployment
		s.get("/v1/deployment/"+id).want(200, &got)
		if got.Status != want {
			t.Errorf("status is %q (%s), not %q", got.Status, got.StatusDescription, want)
		}
	}
	var out structs.DeploymentUpdateResponse
	s.call("PUT", "/v1/deployment/pause/"+id, structs.DeploymentPauseRequest{DeploymentID: id, Pause: true}).want(200, &out)
	status("paused")
	if out.EvalID != "" || out.DeploymentModifyIndex == 0 {
		t.Errorf("a pause answers %+v", out)
	}
	s.call("POST", "/v1/deployment/pause/"+id, structs.DeploymentPauseRequest{DeploymentID: id}).want(200, &out)
	status("running")
	if eval := s.backend.Store.Eval(nil, out.EvalID); eval == nil || eval.DeploymentID != id || eval.NoShutdownDelay {
		t.Errorf("going on made the evaluation %+v", eval)
	}
	s.call("PUT", "/v1/deployment/pause/"+id, nil).says(400, "request body is empty")
	s.call("PUT", "/v1/deployment/fail/"+id, structs.DeploymentFailRequest{DeploymentID: "other"}).says(400, "does not match")
	s.call("PUT", "/v1/deployment/fail/"+id+"?no_shutdown_delay=x", nil).says(400, "no_shutdown_delay")
	s.call("PUT", "/v1/deployment/fail/"+id+"?no_shutdown_delay=true", structs.DeploymentFailRequest{DeploymentID: id}).want(200, &out)
	status("failed")
	if eval := s.backend.Store.Eval(nil, out.EvalID); eval == nil || !eval.NoShutdownDelay || out.EvalCreateIndex != eval.CreateIndex {
		t.Errorf("failing made the evaluation %+v", eval)
	}
	s.call("PUT", "/v1/deployment/pause/"+id, structs.DeploymentPauseRequest{Pause: true}).says(400, "can't change terminal deployment")
	s.call("PUT", "/v1/deployment/fail/nope", nil).says(404, "deployment not found")
}

func TestFailADeploymentThatReverts(t *testing.T) {
	s := newServer(t)
	s.register(job("web"))
	s.call("PUT", "/v1/job/web/stable", structs.JobStabilityRequest{JobID: "web", JobVersion: 0, Stable: true}).want(200, nil)
	next := job("web")
	next.Meta = map[string]string{"v": "bad"}
	s.register(next)
	bad := s.backend.Store.Job(nil, "default", "web")
	id := "8d1e1f6a-0000-4000-8000-000000000002"
	s.apply(fsm.KindPlanApply, &fsm.PlanApply{Plans: []*structs.Plan{{EvalID: "e", Namespace: "default", JobID: "web",
		Deployment: &structs.Deployment{ID: id, Namespace: "default", JobID: "web", JobVersion: bad.Version,
			JobCreateIndex: bad.CreateIndex, Status: structs.DeploymentStatusRunning,
			TaskGroups: map[string]*structs.DeploymentState{"web": {AutoRevert: true}}}}}})
	s.call("PUT", "/v1/deployment/unblock/"+id, structs.DeploymentUnblockRequest{DeploymentID: id}).
		says(400, "only deployments of multi-region jobs can be blocked")
	var out structs.DeploymentUpdateResponse
	s.call("PUT", "/v1/deployment/fail/"+id, structs.DeploymentFailRequest{DeploymentID: id}).want(200, &out)
	now, d := s.backend.Store.Job(nil, "default", "web"), s.backend.Store.Deployment(nil, id)
	if out.RevertedJobVersion == nil || *out.RevertedJobVersion != now.Version || now.Version != bad.Version+1 || len(now.Meta) != 0 {
		t.Errorf("answer %+v; the job is at version %d with meta %v", out, now.Version, now.Meta)
	}
	if d.StatusDescription != "Deployment marked as failed - rolling back to job version 0" {
		t.Errorf("description %q", d.StatusDescription)
	}
}
