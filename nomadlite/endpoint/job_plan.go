package endpoint

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

func jobPlanRoutes(b *Backend) []route.Route {
	return []route.Route{
		b.limited(write("/v1/job/{job_id}/plan", b.handler(b.planJob))),
		write("/v1/job/{job_id}/revert", b.handler(b.revertJob)),
	}
}

// planJob tells what registering a job would do: the very scheduler decides on a snapshot in which the job is
// registered, and nothing is written.
func (b *Backend) planJob(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.JobPlanRequest
	if err := decodeJob(r, &req, func() *structs.Job { return req.Job }); err != nil {
		return err
	}
	if id := r.Param("job_id"); structs.Val(req.Job.ID) != id {
		return structs.Errorf(structs.CodeInvalid, "job ID %q does not match the path's %q", structs.Val(req.Job.ID), id)
	}
	if err := b.prepareJob(req.Job, q); err != nil {
		return err
	}
	if err := b.admit(req.Job); err != nil {
		return err
	}
	snap, now := b.Store.Snapshot(), b.now()
	old := snap.Job(nil, structs.Val(req.Job.Namespace), structs.Val(req.Job.ID))
	planned, err := b.Store.DryRegister(snap, state.JobRegistration{Job: req.Job, SameKind: true, Now: now.UnixNano()})
	if err != nil {
		return fmt.Errorf("plan job: %w", err)
	}
	out := structs.JobPlanResponse{
		Annotations:        &structs.PlanAnnotations{DesiredTGUpdates: map[string]*structs.DesiredUpdates{}},
		NextPeriodicLaunch: planned.NextLaunch(now),
		Warnings:           warningText(append(req.Job.Warnings(), req.Job.Unsupported()...)),
	}
	if old != nil {
		out.JobModifyIndex = old.JobModifyIndex
	}
	if planned.HasOwnAllocations() {
		dry := &dryRun{State: snap.Scheduler(), job: planned}
		if err := dry.run(r.Context(), b.Logger, jobEval(planned, structs.EvalTriggerJobRegister, now.UnixNano()), now); err != nil {
			return err
		}
		out.CreatedEvals, out.FailedTGAllocs = dry.created, dry.decided.FailedTGAllocs
		out.FailedReasons = failedReasons(dry.decided)
		if dry.decided.PlanAnnotations != nil {
			out.Annotations = dry.decided.PlanAnnotations
		}
	}
	if req.Diff {
		if out.Diff, err = structs.DiffJobs(old, req.Job, true); err != nil {
			return err
		}
		if planned.HasOwnAllocations() { // a template for other jobs forces nothing
			scheduler.AnnotateDiff(out.Diff, out.Annotations.DesiredTGUpdates, old, req.Job)
		}
	}
	return answerWrite(w, q, snap.Index(), out)
}

// dryRun is a snapshot in which one job is another, and a planner which keeps what the scheduler decides.
type dryRun struct {
	scheduler.State
	job     *structs.Job
	plans   []*structs.Plan
	created []*structs.Evaluation
	decided *structs.Evaluation
}

var (
	_ scheduler.Planner    = (*dryRun)(nil)
	_ scheduler.State      = (*dryRun)(nil)
	_ scheduler.UsageState = (*dryRun)(nil)
	_ scheduler.EvalState  = (*dryRun)(nil)
	_ scheduler.PoolState  = (*dryRun)(nil)
)

func (d *dryRun) run(ctx context.Context, logger hclog.Logger, eval *structs.Evaluation, now time.Time) error {
	eval.AnnotatePlan = true
	decider, err := scheduler.New(eval.Type, scheduler.Config{Logger: logger, State: d, Planner: d, Now: now, NewID: uuid.New})
	if err != nil {
		return fmt.Errorf("plan job: %w", err)
	}
	if err := decider.Process(ctx, eval); err != nil {
		return fmt.Errorf("plan job: %w", err)
	}
	if d.decided == nil {
		return structs.Errorf(structs.CodeInternal, "plan job: the scheduler decided nothing")
	}
	return nil
}

// Job gives the planned job in place of the stored one.
func (d *dryRun) Job(namespace, id string) *structs.Job {
	if namespace == structs.Val(d.job.Namespace) && id == structs.Val(d.job.ID) {
		return d.job
	}
	return d.State.Job(namespace, id)
}

// NodeUsage is that of the snapshot.
func (d *dryRun) NodeUsage(nodeID string) *structs.NodeUsage {
	return d.State.(scheduler.UsageState).NodeUsage(nodeID)
}

// Eval is that of the snapshot.
func (d *dryRun) Eval(id string) *structs.Evaluation { return d.State.(scheduler.EvalState).Eval(id) }

// NodePool is that of the snapshot.
func (d *dryRun) NodePool(name string) *structs.NodePool {
	return d.State.(scheduler.PoolState).NodePool(name)
}

// SubmitPlan takes all of a plan: it was made of the very state that it would be verified against.
func (d *dryRun) SubmitPlan(_ context.Context, plan *structs.Plan) (*structs.PlanResult, scheduler.State, error) {
	d.plans = append(d.plans, plan)
	return &structs.PlanResult{
		Stops: plan.Stops, Places: plan.Places, Preemptions: plan.Preemptions,
		Deployment: plan.Deployment, DeploymentUpdates: plan.DeploymentUpdates,
	}, nil, nil
}

// UpdateEval keeps how the evaluation ended.
func (d *dryRun) UpdateEval(_ context.Context, eval *structs.Evaluation) error {
	d.decided = eval
	return nil
}

// CreateEval keeps an evaluation that would be made.
func (d *dryRun) CreateEval(_ context.Context, eval *structs.Evaluation) error {
	d.created = append(d.created, eval)
	return nil
}

// ReblockEval is for evaluations that were blocked, which this one never is.
func (d *dryRun) ReblockEval(context.Context, *structs.Evaluation) error {
	return structs.Errorf(structs.CodeInternal, "plan job: a new evaluation cannot be blocked again")
}
