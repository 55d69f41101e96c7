package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a duty over a real store with one node, in virtual time.
type rig struct {
	*testing.T
	log  *clustertest.Log
	fail atomic.Pointer[error] // of the next write
	ids  int
	done chan error
	end  context.CancelFunc
}

func withRig(t *testing.T, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, log: clustertest.New()}
		n := &structs.Node{ID: "n1", Name: "n1", SecretID: "n1"}
		n.Canonicalize()
		r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: n, Now: 1})
		r.lead()
		test(r)
		r.end()
		<-r.done
	})
}

// Apply is the duty's log: it refuses once when fail is set.
func (r *rig) Apply(ctx context.Context, kind fsm.Kind, req any) (any, uint64, error) {
	if err := r.fail.Swap(nil); err != nil {
		return nil, 0, *err
	}
	return r.log.Apply(ctx, kind, req)
}

func (r *rig) apply(kind fsm.Kind, req any) {
	r.Helper()
	if _, _, err := r.log.Apply(context.Background(), kind, req); err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
}

// lead begins a term; a duty that runs already is stopped before.
func (r *rig) lead() {
	if r.end != nil {
		r.end()
		<-r.done
	}
	ctx, cancel := context.WithCancel(context.Background())
	duty := New(Config{Logger: hclog.NewNullLogger(), Store: r.log.Store, Raft: r,
		NewID: func() string { r.ids++; return fmt.Sprint("own", r.ids) }})
	done := make(chan error, 2)
	go func() { done <- duty.Run(ctx, func() {}); close(done) }()
	r.done, r.end = done, cancel
	synctest.Wait()
}

func (r *rig) pass(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

// job registers a job, the argument makes it a new version.
func (r *rig) job(id string, version int) *structs.Job {
	r.Helper()
	j := &structs.Job{ID: &id, Namespace: structs.Ptr("default"), Type: structs.Ptr(structs.JobTypeService),
		Priority: structs.Ptr(70), Meta: map[string]string{"v": fmt.Sprint(version)},
		TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"), Count: structs.Ptr(1)}}}
	r.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: j, Now: time.Now().UnixNano()})
	return r.log.Store.Job(nil, "default", id)
}

// rollOut stores a deployment of the job's newest version with placed allocations "<id>-0" and so on.
func (r *rig) rollOut(id, job string, placed int, group structs.DeploymentState) {
	r.Helper()
	now := time.Now()
	j := r.log.Store.Job(nil, "default", job)
	if group.ProgressDeadline > 0 {
		group.RequireProgressBy = now.Add(group.ProgressDeadline)
	}
	plan := &structs.Plan{Namespace: "default", JobID: job, JobModifyIndex: j.JobModifyIndex,
		Places: map[string][]*structs.Allocation{}, Deployment: &structs.Deployment{ID: id, Namespace: "default", JobID: job,
			JobVersion: j.Version, JobCreateIndex: j.CreateIndex, JobSpecModifyIndex: j.JobModifyIndex,
			Status: structs.DeploymentStatusRunning, TaskGroups: map[string]*structs.DeploymentState{"g": &group}}}
	for i := range placed {
		plan.Places["n1"] = append(plan.Places["n1"], &structs.Allocation{ID: fmt.Sprint(id, "-", i), Namespace: "default",
			JobID: job, NodeID: "n1", TaskGroup: "g", Name: structs.AllocName(job, "g", i), DeploymentID: id,
			DesiredStatus: structs.AllocDesiredStatusRun, ClientStatus: structs.AllocClientStatusPending})
	}
	r.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: now.UnixNano(), Plans: []*structs.Plan{plan}})
}

func (r *rig) report(alloc string, healthy bool) {
	r.Helper()
	r.apply(fsm.KindAllocObserve, &fsm.AllocObserve{Now: time.Now().UnixNano(), Observations: []*structs.AllocObservation{
		{AllocID: alloc, ObservedStatus: structs.AllocClientStatusRunning,
			DeploymentStatus: &structs.AllocDeploymentStatus{Healthy: &healthy, Timestamp: time.Now()}}}})
}

// evals gives a job's evaluations which the duty made.
func (r *rig) evals(job string) []*structs.Evaluation {
	var out []*structs.Evaluation
	for _, e := range r.log.Store.EvalsByJob(nil, "default", job) {
		if e.TriggeredBy == structs.EvalTriggerDeploymentWatcher {
			out = append(out, e)
		}
	}
	return out
}

// decide completes the job's open evaluations, having seen the state as it is.
func (r *rig) decide(job string) {
	r.Helper()
	seen := r.log.Store.Snapshot().Index()
	for _, e := range r.evals(job) {
		if !e.TerminalStatus() {
			e = e.Copy()
			e.Status, e.SnapshotIndex = structs.EvalStatusComplete, seen
			r.apply(fsm.KindEvalUpdate, &fsm.EvalUpdate{Evals: []*structs.Evaluation{e}, Now: time.Now().UnixNano()})
		}
	}
}

func (r *rig) expectEvals(job string, want int) {
	r.Helper()
	if got := r.evals(job); len(got) != want {
		r.Errorf("the duty made %d evaluations, want %d", len(got), want)
	}
}

// expectStatus checks a deployment; one that failed must have its evaluation in the same entry.
func (r *rig) expectStatus(id, status, description string) {
	r.Helper()
	d := r.log.Store.Deployment(nil, id)
	if d.Status != status || d.StatusDescription != description {
		r.Errorf("deployment is %s (%s), want %s (%s)", d.Status, d.StatusDescription, status, description)
	}
	if status != structs.DeploymentStatusFailed {
		return
	}
	for _, e := range r.evals(d.JobID) {
		if e.CreateIndex == d.ModifyIndex && e.DeploymentID == id {
			return
		}
	}
	r.Errorf("no evaluation came with the failure")
}

func TestEvaluatesAtOnceThenInBatches(t *testing.T) {
	withRig(t, func(r *rig) {
		job := r.job("web", 0)
		r.rollOut("d", "web", 300, structs.DeploymentState{DesiredTotal: 600, ProgressDeadline: time.Minute})
		r.report("d-0", true)
		r.expectEvals("web", 1)
		e := r.evals("web")[0]
		if e.DeploymentID != "d" || e.Priority != 70 || e.Type != structs.JobTypeService ||
			e.JobModifyIndex != job.JobModifyIndex || e.Status != structs.EvalStatusPending {
			t.Errorf("evaluation %+v", e)
		}
		for i := 1; i < 300; i++ {
			r.report(fmt.Sprint("d-", i), true)
			if i%100 == 0 {
				r.decide("web") // having seen all that was reported
			}
		}
		r.expectEvals("web", 3)
		r.decide("web")
		r.expectEvals("web", 3)
	})
}

func TestManyReportsOfAFullGroupMakeOneEvaluation(t *testing.T) {
	withRig(t, func(r *rig) {
		r.job("web", 0)
		r.rollOut("d", "web", 300, structs.DeploymentState{DesiredTotal: 300, ProgressDeadline: time.Minute})
		for i := range 299 {
			r.report(fmt.Sprint("d-", i), true)
		}
		r.expectEvals("web", 0)
		r.report("d-299", true)
		r.expectEvals("web", 1)
		r.pass(time.Hour) // a finished group has no deadline, though its evaluation was not decided
		r.expectStatus("d", structs.DeploymentStatusRunning, "")
	})
}

func TestProgressDeadline(t *testing.T) {
	withRig(t, func(r *rig) {
		r.job("web", 0)
		r.rollOut("d", "web", 2, structs.DeploymentState{DesiredTotal: 2, ProgressDeadline: time.Minute})
		r.pass(50 * time.Second)
		r.report("d-0", true)
		r.report("d-1", false) // may be rescheduled until then
		r.pass(59 * time.Second)
		r.expectStatus("d", structs.DeploymentStatusRunning, "")
		r.pass(time.Second)
		r.expectStatus("d", structs.DeploymentStatusFailed, "Failed due to progress deadline")
		r.expectEvals("web", 2)
	})
}

func TestFirstUnhealthyWithoutDeadline(t *testing.T) {
	for _, tc := range []struct {
		name, want     string
		revert, stable bool
	}{
		{"plain", "Failed due to unhealthy allocations", false, false},
		{"to be reverted", "Failed due to unhealthy allocations - rolling back to job version 0", true, true},
		{"nothing to revert to", "Failed due to unhealthy allocations - no stable job version to auto revert to", true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withRig(t, func(r *rig) {
				r.job("web", 0)
				r.apply(fsm.KindJobStability, &fsm.JobStability{Namespace: "default", JobID: "web", Stable: tc.stable})
				r.job("web", 1)
				r.rollOut("d", "web", 3, structs.DeploymentState{DesiredTotal: 3, AutoRevert: tc.revert})
				r.report("d-1", false)
				r.expectStatus("d", structs.DeploymentStatusFailed, tc.want)
				r.expectEvals("web", 1)
				r.report("d-2", false) // changes nothing any more
				r.expectEvals("web", 1)
			})
		})
	}
}

// A failed deployment takes its job back in one entry with its own end and the evaluation; one of the version that came
// back finds nothing better to go back to.
func TestAutoRevert(t *testing.T) {
	withRig(t, func(r *rig) {
		r.job("web", 0)
		r.apply(fsm.KindJobStability, &fsm.JobStability{Namespace: "default", JobID: "web", Stable: true})
		r.job("web", 1)
		r.rollOut("d", "web", 1, structs.DeploymentState{DesiredTotal: 1, AutoRevert: true})
		r.report("d-0", false)
		job, evals := r.log.Store.Job(nil, "default", "web"), r.evals("web")
		if job.Version != 2 || job.Meta["v"] != "0" || job.Stable {
			t.Fatalf("the job is at version %d with meta %v, stable %t", job.Version, job.Meta, job.Stable)
		}
		d := r.log.Store.Deployment(nil, "d")
		if len(evals) != 1 || evals[0].JobModifyIndex != job.JobModifyIndex || d.ModifyIndex != job.JobModifyIndex ||
			evals[0].CreateIndex != job.JobModifyIndex {
			t.Errorf("job at %d, deployment at %d, evaluations %+v", job.JobModifyIndex, d.ModifyIndex, evals)
		}
		r.decide("web")
		r.rollOut("e", "web", 1, structs.DeploymentState{DesiredTotal: 1, AutoRevert: true})
		r.report("e-0", false)
		r.expectStatus("e", structs.DeploymentStatusFailed,
			"Failed due to unhealthy allocations - not rolling back to stable job version 0 as current job has same specification")
		if v := r.log.Store.Job(nil, "default", "web").Version; v != 2 {
			t.Errorf("the job went on to version %d", v)
		}
	})
}

// What cannot be registered any more does not keep the deployment from failing.
func TestRevertIsRefused(t *testing.T) {
	for name, revert := range map[string]func(current *structs.Job) *fsm.JobRevert{
		"x": func(current *structs.Job) *fsm.JobRevert {
			return &fsm.JobRevert{Job: current, JobModifyIndex: 1, Otherwise: "x"} // it was changed since
		},
		"x - not rolling back: ": func(current *structs.Job) *fsm.JobRevert {
			job := current.Copy()
			job.NodePool = structs.Ptr("gone")
			return &fsm.JobRevert{Job: job, JobModifyIndex: current.JobModifyIndex, Otherwise: "x"}
		},
	} {
		withRig(t, func(r *rig) {
			current := r.job("web", 0)
			r.rollOut("d", "web", 1, structs.DeploymentState{DesiredTotal: 1, ProgressDeadline: time.Minute})
			r.apply(fsm.KindDeploymentStatus, &fsm.DeploymentStatus{Now: 1, Revert: revert(current),
				Update: &structs.DeploymentStatusUpdate{DeploymentID: "d", Status: structs.DeploymentStatusFailed, StatusDescription: "y"}})
			d := r.log.Store.Deployment(nil, "d")
			if d.Status != structs.DeploymentStatusFailed || !strings.HasPrefix(d.StatusDescription, name) ||
				r.log.Store.Job(nil, "default", "web").JobModifyIndex != current.JobModifyIndex {
				t.Errorf("deployment is %s: %s", d.Status, d.StatusDescription)
			}
		})
	}
}

func TestNewTermGoesOn(t *testing.T) {
	withRig(t, func(r *rig) {
		r.job("web", 0)
		r.job("api", 0)
		r.rollOut("d", "web", 2, structs.DeploymentState{DesiredTotal: 3, ProgressDeadline: time.Minute})
		r.report("d-0", true)
		r.lead() // the evaluation is still under way, and not made again
		r.expectEvals("web", 1)
		r.decide("web")
		r.lead() // nor once it has been decided
		r.expectEvals("web", 1)

		// Nobody leads for a while.
		r.end()
		<-r.done
		r.report("d-1", true)
		r.rollOut("e", "api", 1, structs.DeploymentState{DesiredTotal: 1, ProgressDeadline: time.Minute})
		r.pass(5 * time.Minute)
		r.lead()
		r.expectEvals("web", 2)
		r.expectStatus("e", structs.DeploymentStatusRunning, "") // its node may not have reached the leader yet
		r.pass(9 * time.Second)
		r.report("e-0", true)
		r.pass(time.Second)
		r.expectStatus("e", structs.DeploymentStatusRunning, "")
		r.expectEvals("api", 1)
		r.expectStatus("d", structs.DeploymentStatusFailed, "Failed due to progress deadline")
	})
}

func TestReadsTheStateAgainAfterARestore(t *testing.T) {
	withRig(t, func(r *rig) {
		r.job("web", 0)
		r.rollOut("d", "web", 1, structs.DeploymentState{DesiredTotal: 1, ProgressDeadline: time.Minute})
		var snapshot bytes.Buffer
		if err := r.log.Store.Snapshot().Persist(&snapshot); err != nil {
			t.Fatal(err)
		}
		if err := r.log.Store.Restore(&snapshot); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.report("d-0", true)
		r.expectEvals("web", 1)
	})
}

func TestPurgedJobIsLeftToItsOwnEvaluation(t *testing.T) {
	withRig(t, func(r *rig) {
		r.job("web", 0)
		r.rollOut("d", "web", 1, structs.DeploymentState{DesiredTotal: 2, ProgressDeadline: time.Minute})
		r.apply(fsm.KindJobDeregister, &fsm.JobDeregister{Namespace: "default", JobID: "web", Purge: true, Now: 1})
		r.report("d-0", true)
		r.expectEvals("web", 0)
	})
}

func TestWriteIsRefused(t *testing.T) {
	withRig(t, func(r *rig) {
		r.job("web", 0)
		r.rollOut("d", "web", 1, structs.DeploymentState{DesiredTotal: 2, ProgressDeadline: time.Minute})
		r.fail.Store(structs.Ptr(errors.New("log is full")))
		r.report("d-0", true)
		r.expectEvals("web", 0)
		r.pass(time.Second)
		r.expectEvals("web", 1)
		r.decide("web")
		r.fail.Store(structs.Ptr[error](structs.ErrNoLeader))
		r.pass(time.Minute)
		if err := <-r.done; !errors.Is(err, structs.ErrNoLeader) {
			t.Errorf("Run: %v", err)
		}
	})
}

var _ Raft = (*rig)(nil)
