package endpoint

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func scaling(count int64, change ...func(*structs.ScalingRequest)) structs.ScalingRequest {
	req := structs.ScalingRequest{Count: &count, Target: map[string]string{"Job": "web", "Group": "group"}, Message: "load"}
	for _, f := range change {
		f(&req)
	}
	return req
}

func bounded(j *structs.Job) {
	j.TaskGroups[0].Count = structs.Ptr(2)
	j.TaskGroups[0].Scaling = &structs.ScalingPolicy{Min: structs.Ptr[int64](1), Max: structs.Ptr[int64](5)}
}

func TestScaleAJob(t *testing.T) {
	s := newServer(t)
	before := s.register(job("web", bounded))
	var out structs.JobRegisterResponse
	s.call("POST", "/v1/job/web/scale?no_shutdown_delay&kill_timeout=2s", scaling(3, func(r *structs.ScalingRequest) {
		r.Meta = map[string]any{"by": "hand"}
	})).want(200, &out)
	stored := s.backend.Store.Job(nil, "default", "web")
	if *stored.TaskGroups[0].Count != 3 || stored.Version != 1 || out.JobModifyIndex != stored.JobModifyIndex || out.JobModifyIndex <= before.JobModifyIndex {
		t.Errorf("answered %+v, stored version %d with count %d", out, stored.Version, *stored.TaskGroups[0].Count)
	}
	eval := s.backend.Store.Eval(nil, out.EvalID)
	if eval.TriggeredBy != "job-scaling" || eval.JobModifyIndex != stored.JobModifyIndex || !eval.NoShutdownDelay || *eval.KillTimeout != 2*time.Second ||
		eval.CreateIndex != stored.JobModifyIndex {
		t.Errorf("evaluation %+v", eval)
	}
	// Only a word, and one about a failure: nothing changes.
	s.call("PUT", "/v1/job/web/scale", structs.ScalingRequest{Target: map[string]string{"Group": "group"}, Message: "as it is"}).want(200, &out)
	if out.EvalID != "" || out.EvalCreateIndex != 0 || out.JobModifyIndex != stored.JobModifyIndex {
		t.Errorf("answered %+v", out)
	}
	s.call("PUT", "/v1/job/web/scale", structs.ScalingRequest{Target: map[string]string{"Group": "group"}, Message: "no metrics", Error: true}).want(200, &out)
	var status structs.JobScaleStatusResponse
	s.get("/v1/job/web/scale").want(200, &status)
	g := status.TaskGroups["group"]
	if g.Desired != 3 || len(g.Events) != 3 || !g.Events[0].Error || g.Events[1].Message != "as it is" || g.Events[1].PreviousCount != 3 {
		t.Fatalf("status %+v", g)
	}
	if e := g.Events[2]; *e.Count != 3 || e.PreviousCount != 2 || *e.EvalID != eval.ID || e.Meta["by"] != "hand" || e.Time == 0 {
		t.Errorf("event %+v", e)
	}
}

func TestBadScalingChangesNothing(t *testing.T) {
	s := newServer(t)
	s.register(job("web", bounded))
	s.register(job("each", func(j *structs.Job) { j.Type = structs.Ptr(structs.JobTypeSystem) }))
	entries := len(s.raft.entries)
	path := "/v1/job/web/scale"
	s.call("PUT", path, "").says(400, "request body is empty")
	s.call("PUT", path, scaling(1, func(r *structs.ScalingRequest) { r.Target = nil })).says(400, "missing task group name")
	s.call("PUT", path, scaling(1, func(r *structs.ScalingRequest) { r.Target["Job"] = "other" })).says(400, "does not match")
	s.call("PUT", path, scaling(1, func(r *structs.ScalingRequest) { r.Target["Group"] = "other" })).says(400, "does not exist in job")
	s.call("PUT", path, scaling(1, func(r *structs.ScalingRequest) { r.Error = true })).says(400, "should not contain count")
	s.call("PUT", path, scaling(-1)).says(400, "can't be negative")
	s.call("PUT", path, scaling(0)).says(400, "less than scaling policy minimum: 0 < 1")
	s.call("PUT", path, scaling(6)).says(400, "greater than scaling policy maximum: 6 > 5")
	s.call("PUT", path, scaling(3, func(r *structs.ScalingRequest) { r.JobModifyIndex = 77 })).says(500, "conflicting job modify index")
	s.call("PUT", path+"?kill_timeout=-1s", scaling(3)).says(400, "kill_timeout")
	s.call("PUT", path, `{"Count": "many"}`).says(400, "field Count")
	s.call("PUT", "/v1/job/nope/scale", scaling(1, func(r *structs.ScalingRequest) { r.Target["Job"] = "" })).says(404, "job not found")
	s.call("PUT", "/v1/job/each/scale", scaling(2, func(r *structs.ScalingRequest) { r.Target["Job"] = "" })).says(400, "count must be 0 or 1")
	if len(s.raft.entries) != entries {
		t.Errorf("entries %v were written", s.raft.entries[entries:])
	}
	s.call("DELETE", "/v1/job/web", nil).want(200, nil)
	s.call("PUT", path, scaling(3)).says(400, "is stopped")
}

func TestADeploymentBlocksScaling(t *testing.T) {
	s := newServer(t)
	s.register(job("web"))
	s.apply(fsm.KindPlanApply, &fsm.PlanApply{Plans: []*structs.Plan{{EvalID: "e", Namespace: "default", JobID: "web",
		Deployment: &structs.Deployment{ID: "d", Namespace: "default", JobID: "web", Status: structs.DeploymentStatusRunning}}}})
	s.call("PUT", "/v1/job/web/scale", scaling(3)).says(400, "job scaling blocked due to active deployment")
}

func TestPromoteAndSetHealth(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	s.register(job("web"))
	j := s.backend.Store.Job(nil, "default", "web")
	id := "8d1e1f6a-0000-4000-8000-000000000002"
	canary := &structs.Allocation{ID: "8d1e1f6a-0000-4000-8000-00000000000a", NodeID: node.ID, TaskGroup: "group", Name: "web.group[0]",
		DeploymentID: id, DeploymentStatus: &structs.AllocDeploymentStatus{Canary: true}}
	s.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: time.Now().UnixNano(), Plans: []*structs.Plan{{EvalID: "e", Namespace: "default", JobID: "web",
		JobModifyIndex: j.JobModifyIndex, Places: map[string][]*structs.Allocation{node.ID: {canary}},
		Deployment: &structs.Deployment{ID: id, Namespace: "default", JobID: "web", JobSpecModifyIndex: j.JobModifyIndex, JobCreateIndex: j.CreateIndex,
			Status: structs.DeploymentStatusRunning, TaskGroups: map[string]*structs.DeploymentState{"group": {DesiredTotal: 1, DesiredCanaries: 1}}}}}})
	promote, health := "/v1/deployment/promote/"+id, "/v1/deployment/allocation-health/"+id
	s.call("PUT", promote, structs.DeploymentPromoteRequest{}).says(400, "name the groups")
	s.call("PUT", promote, structs.DeploymentPromoteRequest{All: true, Groups: []string{"group"}}).says(400, "cannot be used together")
	s.call("PUT", promote, structs.DeploymentPromoteRequest{All: true}).says(400, "0/1 healthy canaries")
	s.call("PUT", "/v1/deployment/promote/nope", structs.DeploymentPromoteRequest{All: true}).says(404, "deployment not found")
	s.call("PUT", health, structs.DeploymentAllocHealthRequest{}).says(400, "at least one")
	s.call("PUT", health, structs.DeploymentAllocHealthRequest{HealthyAllocationIDs: []string{"x"}, UnhealthyAllocationIDs: []string{"x"}}).says(400, "same allocation")
	s.call("PUT", health, structs.DeploymentAllocHealthRequest{HealthyAllocationIDs: []string{"x"}}).says(400, "is not in deployment")
	var out structs.DeploymentUpdateResponse
	s.call("PUT", health, structs.DeploymentAllocHealthRequest{DeploymentID: id, HealthyAllocationIDs: []string{canary.ID}}).want(200, &out)
	s.call("PUT", promote, structs.DeploymentPromoteRequest{DeploymentID: id, All: true}).want(200, &out)
	eval := s.backend.Store.Eval(nil, out.EvalID)
	if d := s.backend.Store.Deployment(nil, id); !d.TaskGroups["group"].Promoted || d.ModifyIndex != eval.CreateIndex || eval.DeploymentID != id {
		t.Errorf("promoted %+v, evaluation %+v", d, eval)
	}
	if a := s.backend.Store.Alloc(nil, canary.ID); a.DeploymentStatus.Canary {
		t.Error("a promoted allocation is a canary")
	}
	s.call("PUT", health, structs.DeploymentAllocHealthRequest{UnhealthyAllocationIDs: []string{canary.ID}}).want(200, &out)
	if d := s.backend.Store.Deployment(nil, id); d.Status != structs.DeploymentStatusFailed || !strings.Contains(d.StatusDescription, "unhealthy") {
		t.Errorf("deployment is %s (%s)", d.Status, d.StatusDescription)
	}
	s.call("PUT", promote, structs.DeploymentPromoteRequest{All: true}).says(400, "terminal status")
}

func TestScalingIsRejectedWithRegistrations(t *testing.T) {
	s := newServer(t)
	s.register(job("web", bounded))
	s.call("PUT", "/v1/operator/scheduler/configuration", structs.SchedulerConfiguration{RejectJobRegistration: true}).want(200, nil)
	s.call("PUT", "/v1/job/web/scale", scaling(3)).want(403, nil)
	if stored := s.backend.Store.Job(nil, "default", "web"); *stored.TaskGroups[0].Count != 2 {
		t.Errorf("the count is %d", *stored.TaskGroups[0].Count)
	}
}
