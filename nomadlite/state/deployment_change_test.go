package state

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// rollOut is a world with a deployment of two groups; a has one canary.
func rollOut(t *testing.T) *world {
	w := newWorld(t)
	w.must(func(tx *Txn) error { return tx.RegisterNode(testNode("n1"), w.now()) })
	w.register(testJob("web", "service", "a", "b"), nil)
	job := w.job("web")
	plan := w.plan("web")
	for id, group := range map[string]string{"c1": "a", "b1": "b"} {
		alloc := testAlloc(id, group, "n1", 20000)
		alloc.AllocatedResources, alloc.DeploymentID = nil, "d1"
		if group == "a" {
			alloc.DeploymentStatus = &structs.AllocDeploymentStatus{Canary: true}
		}
		plan.Places["n1"] = append(plan.Places["n1"], alloc)
	}
	plan.Deployment = &structs.Deployment{ID: "d1", Namespace: "default", JobID: "web", JobSpecModifyIndex: job.JobModifyIndex,
		JobCreateIndex: job.CreateIndex, Status: structs.DeploymentStatusRunning, StatusDescription: "waits for its promotion",
		TaskGroups: map[string]*structs.DeploymentState{"a": {DesiredTotal: 1, DesiredCanaries: 1, ProgressDeadline: time.Minute},
			"b": {DesiredTotal: 1, ProgressDeadline: time.Minute}}}
	w.must(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
	return w
}

func (w *world) refuse(what string, fn func(*Txn) error) {
	w.t.Helper()
	before := w.store.Deployment(nil, "d1")
	err := w.write(fn)
	if structs.ErrorCode(err) != structs.CodeInvalid || !strings.Contains(err.Error(), what) {
		w.t.Errorf("got %v, want %q", err, what)
	}
	if w.store.Deployment(nil, "d1") != before {
		w.t.Error("what was refused has changed the deployment")
	}
}

func TestPromotion(t *testing.T) {
	w := rollOut(t)
	promote := func(groups ...string) func(*Txn) error {
		return func(tx *Txn) error { return tx.PromoteDeployment("d1", groups, w.now()) }
	}
	w.refuse(`"a" has 0/1 healthy`, promote())
	w.refuse(`"b" has no canaries`, promote("b"))
	w.must(func(tx *Txn) error { return tx.SetDeploymentHealth("d1", []string{"c1"}, nil, w.now()) })
	w.refuse(`"zzz" has no canaries`, promote("a", "zzz"))
	w.must(promote("a"))
	d, canary := w.store.Deployment(nil, "d1"), w.alloc("c1")
	if g := d.TaskGroups["a"]; !g.Promoted || g.HealthyAllocs != 1 || g.RequireProgressBy.Before(unixTime(d.ModifyTime).Add(time.Minute)) ||
		d.StatusDescription != deploymentRunning || d.TaskGroups["b"].Promoted {
		t.Errorf("deployment %+v, group %+v", d, g)
	}
	if s := canary.DeploymentStatus; s.Canary || !*s.Healthy || canary.AllocModifyIndex != d.ModifyIndex {
		t.Errorf("canary after its promotion: %+v, told to its node at %d of %d", s, canary.AllocModifyIndex, d.ModifyIndex)
	}
	w.refuse("no canaries to promote", promote())
}

func TestHealthByHand(t *testing.T) {
	w := rollOut(t)
	w.place("web", testAlloc("x1", "b", "n1", 20001))
	w.refuse(`"x1" is not in deployment`, func(tx *Txn) error { return tx.SetDeploymentHealth("d1", []string{"b1"}, []string{"x1"}, w.now()) })
	w.must(func(tx *Txn) error { return tx.SetDeploymentHealth("d1", []string{"b1"}, []string{"c1"}, w.now()) })
	w.must(func(tx *Txn) error { return tx.SetDeploymentHealth("d1", []string{"b1"}, []string{"c1"}, w.now()) }) // once more
	d := w.store.Deployment(nil, "d1")
	if d.TaskGroups["b"].HealthyAllocs != 1 || d.TaskGroups["a"].UnhealthyAllocs != 1 || !w.alloc("c1").DeploymentStatus.Canary {
		t.Errorf("groups %+v %+v", d.TaskGroups["a"], d.TaskGroups["b"])
	}
	status := func(s string) {
		w.must(func(tx *Txn) error {
			return tx.UpdateDeploymentStatus(&structs.DeploymentStatusUpdate{DeploymentID: "d1", Status: s}, w.now())
		})
	}
	status(structs.DeploymentStatusPaused)
	status(structs.DeploymentStatusRunning)
	d = w.store.Deployment(nil, "d1")
	if by := d.TaskGroups["b"].RequireProgressBy; !by.Equal(unixTime(d.ModifyTime).Add(time.Minute)) {
		t.Errorf("after a pause progress is required by %s, the deployment went on at %s", by, unixTime(d.ModifyTime))
	}
	status(structs.DeploymentStatusFailed)
	w.refuse("terminal status", func(tx *Txn) error { return tx.PromoteDeployment("d1", nil, w.now()) })
	w.refuse("terminal status", func(tx *Txn) error { return tx.SetDeploymentHealth("d1", nil, nil, w.now()) })
}

// A node's report of health counts also for allocations in no deployment: drains wait for it.
func TestHealthWithoutADeploymentIsKept(t *testing.T) {
	w := oneAlloc(t)
	w.must(func(tx *Txn) error {
		tx.ObserveAlloc(&structs.AllocObservation{AllocID: "a1", ObservedStatus: structs.AllocClientStatusRunning,
			DeploymentStatus: &structs.AllocDeploymentStatus{Healthy: structs.Ptr(true)}}, w.now())
		return nil
	})
	if s := w.alloc("a1").DeploymentStatus; s == nil || !*s.Healthy {
		t.Errorf("health %+v", s)
	}
}
