package nomadlite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

// rollout drives deployments of one job on a running server. The test stands for the node.
type rollout struct {
	*testing.T
	s *testServer
}

func (r rollout) apply(kind fsm.Kind, req any) {
	r.Helper()
	if _, _, err := r.s.lead.Apply(context.Background(), kind, req); err != nil {
		r.Fatal(err)
	}
}

// register stores a new version of the job web: three allocations, updated one by one.
func (r rollout) register(version string) {
	r.Helper()
	j := job("web")
	tg := j.TaskGroups[0]
	tg.Count = structs.Ptr(3)
	tg.Update.MaxParallel, tg.Update.ProgressDeadline = structs.Ptr(1), structs.Ptr(time.Duration(0))
	tg.Tasks[0].Driver, tg.Tasks[0].Config = "mock_driver", map[string]any{"version": version}
	r.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: j, Now: time.Now().UnixNano(), Eval: &structs.Evaluation{
		ID: "eval-" + version, Namespace: "default", JobID: "web", Type: structs.JobTypeService, Priority: 50,
		TriggeredBy: structs.EvalTriggerJobRegister, Status: structs.EvalStatusPending}})
}

// unjudged gives the live allocations of the newest version of which no health is known; too tells that others run too.
func (r rollout) unjudged() (out []*structs.Allocation, others int) {
	version := r.s.store.Job(nil, "default", "web").Version
	for _, a := range r.s.store.AllocsByJob(nil, "default", "web") {
		switch {
		case a.TerminalStatus():
		case a.JobVersion == version && a.DeploymentStatus == nil:
			out = append(out, a)
		default:
			others++
		}
	}
	return out, others
}

// judge waits until n allocations have been placed, and reports their health one by one.
func (r rollout) judge(n int, healthy bool) {
	r.Helper()
	until(r.T, r.s.store, fmt.Sprintf("%d new allocations", n), func() bool { a, _ := r.unjudged(); return len(a) == n })
	placed, others := r.unjudged()
	if len(placed)+others != 3 {
		r.Errorf("%d allocations of 3 are wanted", len(placed)+others)
	}
	for _, a := range placed {
		r.apply(fsm.KindAllocObserve, &fsm.AllocObserve{Now: time.Now().UnixNano(), Observations: []*structs.AllocObservation{
			{AllocID: a.ID, ObservedStatus: structs.AllocClientStatusRunning,
				DeploymentStatus: &structs.AllocDeploymentStatus{Healthy: &healthy, Timestamp: time.Now()}}}})
	}
}

// ends waits for the end of the newest version's deployment.
func (r rollout) ends(status, description string) {
	r.Helper()
	version := r.s.store.Job(nil, "default", "web").Version
	latest := func() *structs.Deployment { return r.s.store.LatestDeployment(nil, "default", "web") }
	until(r.T, r.s.store, "end of the deployment", func() bool {
		d := latest()
		return d != nil && d.JobVersion == version && !d.Active()
	})
	if d := latest(); d.Status != status || d.StatusDescription != description {
		r.Errorf("deployment of version %d is %s (%s), want %s (%s)", version, d.Status, d.StatusDescription, status, description)
	}
}

func TestDeploymentsMoveOn(t *testing.T) {
	s := start(t, Config{Name: "dev", DevMode: true})
	await(t, "start", s.Ready())
	r := rollout{t, s}
	node := schedtest.Node("n1")
	r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: node, Now: 1})
	r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1,
		Updates: []fsm.NodeStatusUpdate{{NodeID: node.ID, Status: structs.NodeStatusReady}}})

	r.register("a") // the first version is placed at once
	r.judge(3, true)
	r.ends(structs.DeploymentStatusSuccessful, "Deployment completed successfully")
	if v := s.store.JobVersion(nil, "default", "web", 0); !v.Stable {
		t.Error("a version that was rolled out is not stable")
	}

	r.register("b") // the second one by one
	for range 3 {
		r.judge(1, true)
	}
	r.ends(structs.DeploymentStatusSuccessful, "Deployment completed successfully")

	r.register("c") // the third fails with its first allocation and leaves the others alone
	r.judge(1, false)
	r.ends(structs.DeploymentStatusFailed, "Failed due to unhealthy allocations")
	failed := s.store.LatestDeployment(nil, "default", "web")
	with := false
	for _, e := range s.store.EvalsByJob(nil, "default", "web") {
		if e.DeploymentID != failed.ID || e.TriggeredBy != structs.EvalTriggerDeploymentWatcher {
			continue
		}
		with = with || e.CreateIndex == failed.ModifyIndex
		until(t, s.store, "evaluation", func() bool { return s.store.Eval(nil, e.ID).TerminalStatus() })
	}
	if unjudged, others := r.unjudged(); !with || len(unjudged) != 0 || others != 3 {
		t.Errorf("evaluation with the failure: %v; %d allocations placed after it, %d others", with, len(unjudged), others)
	}

	r.register("d") // overtaken before it is judged
	until(t, s.store, "placement", func() bool { a, _ := r.unjudged(); return len(a) == 1 })
	overtaken := s.store.LatestDeployment(nil, "default", "web").ID
	r.register("e")
	until(t, s.store, "cancellation", func() bool { return !s.store.Deployment(nil, overtaken).Active() })
	if d := s.store.Deployment(nil, overtaken); d.StatusDescription != "Cancelled due to newer version of job" {
		t.Errorf("overtaken deployment is %s (%s)", d.Status, d.StatusDescription)
	}
	until(t, s.store, "placement", func() bool { a, _ := r.unjudged(); return len(a) == 1 })

	r.apply(fsm.KindJobDeregister, &fsm.JobDeregister{Namespace: "default", JobID: "web", Now: time.Now().UnixNano(),
		Eval: &structs.Evaluation{ID: "eval-stop", Namespace: "default", JobID: "web", Type: structs.JobTypeService, Priority: 50,
			TriggeredBy: structs.EvalTriggerJobDeregister, Status: structs.EvalStatusPending}})
	last := s.store.LatestDeployment(nil, "default", "web").ID
	until(t, s.store, "cancellation", func() bool { return !s.store.Deployment(nil, last).Active() })
	if d := s.store.Deployment(nil, last); d.StatusDescription != "Cancelled because job is stopped" {
		t.Errorf("deployment of a stopped job is %s (%s)", d.Status, d.StatusDescription)
	}
}
