package deploy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

const (
	batchSize  = 256         // evaluations in one entry at most
	retryAfter = time.Second // a write that failed would at once fail again
)

// Raft is how the duty writes.
type Raft interface {
	Apply(ctx context.Context, kind fsm.Kind, req any) (resp any, index uint64, err error)
}

// Config is what a Duty works with.
type Config struct {
	Logger hclog.Logger
	Store  *state.Store
	Raft   Raft
	NewID  func() string
	// Grace is how long a new leader waits for reports of progress before a deadline counts that passed while nobody
	// led; default 10 s.
	Grace time.Duration
}

// Duty drives Rollouts on the leader.
type Duty struct {
	cfg  Config
	wake chan struct{}

	mu   sync.Mutex
	core *Rollouts
}

// New makes a duty that does nothing until Run.
func New(cfg Config) *Duty {
	if cfg.Grace == 0 {
		cfg.Grace = 10 * time.Second
	}
	return &Duty{cfg: cfg, wake: make(chan struct{}, 1), core: NewRollouts(cfg.NewID)}
}

// Run does the leader's duty until ctx ends. It reads the whole state first, subscribed to its feed, calls ready, and
// then follows the feed.
func (d *Duty) Run(ctx context.Context, ready func()) error {
	spare := time.Now().Add(d.cfg.Grace)
	return d.cfg.Store.Follow(ctx, state.Follower{
		Load: func() uint64 {
			index := d.load(spare)
			spare = time.Time{} // only for what passed while nobody led
			return index
		},
		Change: d.follow, Act: d.write,
		Lagged: func() { d.cfg.Logger.Warn("the deployment duty lagged behind the state and reads it again") },
	}, ready)
}

// load reads what the state says of the deployments that go on.
func (d *Duty) load(spare time.Time) (index uint64) {
	snap := d.cfg.Store.Snapshot()
	core := NewRollouts(d.cfg.NewID)
	for deployment := range snap.Deployments(nil, structs.AllNamespaces) {
		if !deployment.Active() {
			continue
		}
		core.Deployment(deployment)
		if d.autoPromotes(deployment) {
			core.AutoPromote(deployment.ID)
		}
		for _, a := range snap.AllocsByDeployment(nil, deployment.ID) {
			core.Alloc(nil, a)
		}
		for _, eval := range snap.EvalsByJob(nil, deployment.Namespace, deployment.JobID) {
			switch {
			case eval.Status == structs.EvalStatusComplete:
				core.Seen(deployment.ID, eval.SnapshotIndex)
			case eval.Status == structs.EvalStatusPending && ours(eval) && eval.DeploymentID == deployment.ID:
				core.EvalStarted(deployment.ID, eval.ID, eval.CreateIndex)
			}
		}
	}
	if !spare.IsZero() {
		core.Spare(spare)
	}
	d.mu.Lock()
	d.core = core
	d.mu.Unlock()
	d.signal()
	return snap.Index()
}

// autoPromotes says that every group of a deployment which has canaries wants them promoted without asking.
func (d *Duty) autoPromotes(deployment *structs.Deployment) bool {
	spec := d.cfg.Store.JobSpec(deployment.Namespace, deployment.JobID, deployment.JobSpecModifyIndex)
	for name, s := range deployment.TaskGroups {
		if s.DesiredCanaries == 0 {
			continue
		}
		tg := spec.LookupTaskGroup(name)
		if tg == nil || tg.Update == nil || !structs.Val(tg.Update.AutoPromote) {
			return false
		}
	}
	return true
}

func ours(eval *structs.Evaluation) bool {
	return eval.TriggeredBy == structs.EvalTriggerDeploymentWatcher
}

// follow takes one change of the state in: deployments first, for the allocations that join them.
func (d *Duty) follow(change state.Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	concerned := false
	for _, item := range change.Items {
		if item.Table == state.TableDeployments {
			concerned = true
			if after, _ := item.After.(*structs.Deployment); after != nil {
				d.core.Deployment(after)
				if item.Before == nil && d.autoPromotes(after) {
					d.core.AutoPromote(after.ID)
				}
			} else if before, _ := item.Before.(*structs.Deployment); before != nil {
				d.core.RemoveDeployment(before.ID)
			}
		}
	}
	for _, item := range change.Items {
		switch item.Table {
		case state.TableAllocs:
			before, _ := item.Before.(*structs.Allocation)
			after, _ := item.After.(*structs.Allocation)
			d.core.Alloc(before, after)
			concerned = true
		case state.TableEvals:
			before, _ := item.Before.(*structs.Evaluation)
			after, _ := item.After.(*structs.Evaluation)
			switch {
			case after == nil && before != nil:
				d.core.EvalEnded(before.ID, 0)
			case after != nil && after.TerminalStatus():
				d.core.EvalEnded(after.ID, after.SnapshotIndex)
			}
			concerned = true
		}
	}
	if concerned {
		d.signal()
	}
}

func (d *Duty) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// write carries out what is due until ctx ends or this server leads no more. What becomes due while an entry is being
// written goes into the next one.
func (d *Duty) write(ctx context.Context) error {
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	for {
		more, next, err := d.turn(ctx)
		if err != nil {
			return err
		}
		if more {
			continue
		}
		alarm.Reset(time.Until(next))
		select {
		case <-alarm.C:
		case <-d.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// turn carries out what is due; more says that there was something.
func (d *Duty) turn(ctx context.Context) (more bool, next time.Time, err error) {
	due, next := d.due(time.Now())
	if len(due) == 0 {
		return false, next, nil
	}
	return true, next, d.carryOut(ctx, due)
}

func (d *Duty) due(now time.Time) ([]Action, time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	due := d.core.Due(now, batchSize)
	next, ok := d.core.Next()
	if !ok {
		next = now.Add(time.Hour)
	}
	return due, next
}

// carryOut writes all evaluations in one entry, and each failure in one of its own together with its evaluation.
func (d *Duty) carryOut(ctx context.Context, due []Action) error {
	now := time.Now()
	evals := &fsm.EvalUpdate{Now: now.UnixNano()}
	var evaluate []Action
	for _, a := range due {
		eval := d.eval(a, now)
		switch {
		case a.Fail != "":
			if err := d.apply(ctx, fsm.KindDeploymentStatus, d.failure(a, eval, now), a); err != nil {
				return err
			}
		case a.Promote:
			req := &fsm.DeploymentPromote{DeploymentID: a.Deployment.ID, Eval: eval, Now: now.UnixNano()}
			if err := d.apply(ctx, fsm.KindDeploymentPromote, req, a); err != nil {
				return err
			}
		case eval != nil:
			evals.Evals = append(evals.Evals, eval)
			evaluate = append(evaluate, a)
		default:
			d.mu.Lock()
			d.core.EvalEnded(a.EvalID, 0) // its job was purged: that evaluation ends the deployment
			d.mu.Unlock()
		}
	}
	if len(evaluate) == 0 {
		return nil
	}
	return d.apply(ctx, fsm.KindEvalUpdate, evals, evaluate...)
}

// apply writes one entry. It fails when this server does not lead any more; other failures are tried again later.
func (d *Duty) apply(ctx context.Context, kind fsm.Kind, req any, actions ...Action) error {
	_, _, err := d.cfg.Raft.Apply(ctx, kind, req)
	code := structs.ErrorCode(err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || errors.Is(err, structs.ErrNoLeader):
		return fmt.Errorf("write deployments: %w", err)
	case kind == fsm.KindDeploymentStatus && (code == structs.CodeInvalid || code == structs.CodeNotFound):
		d.cfg.Logger.Debug("deployment ended before it could fail", "deployment_id", actions[0].Deployment.ID, "error", err)
		return nil
	}
	if kind == fsm.KindDeploymentPromote && (code == structs.CodeInvalid || code == structs.CodeNotFound) {
		d.cfg.Logger.Debug("deployment changed before it was promoted", "deployment_id", actions[0].Deployment.ID, "error", err)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.core.EvalEnded(actions[0].EvalID, 0)
		return nil
	}
	d.cfg.Logger.Error("deployments could not be written", "deployments", len(actions), "error", err)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range actions {
		d.core.Retry(a, time.Now().Add(retryAfter))
	}
	return nil
}

// eval makes an action's evaluation; nil when the job was purged.
func (d *Duty) eval(a Action, now time.Time) *structs.Evaluation {
	job := d.cfg.Store.Job(nil, a.Deployment.Namespace, a.Deployment.JobID)
	if job == nil {
		return nil
	}
	return &structs.Evaluation{
		ID: a.EvalID, Namespace: a.Deployment.Namespace, JobID: a.Deployment.JobID, DeploymentID: a.Deployment.ID,
		Type: structs.Val(job.Type), Priority: structs.Val(job.Priority), JobModifyIndex: job.JobModifyIndex,
		TriggeredBy: structs.EvalTriggerDeploymentWatcher, Status: structs.EvalStatusPending,
		CreateTime: now.UnixNano(), ModifyTime: now.UnixNano(),
	}
}

// failure is the entry in which a deployment fails; its job goes back to the last stable version when a group that
// failed asks for it.
func (d *Duty) failure(a Action, eval *structs.Evaluation, now time.Time) *fsm.DeploymentStatus {
	req := &fsm.DeploymentStatus{Now: now.UnixNano(), Eval: eval, Update: &structs.DeploymentStatusUpdate{
		DeploymentID: a.Deployment.ID, Status: structs.DeploymentStatusFailed, StatusDescription: a.Fail}}
	if a.AutoRevert {
		req.Revert, req.Update.StatusDescription = Rollback(d.cfg.Store.Snapshot(), a.Deployment, a.Fail)
	}
	return req
}

// Rollback prepares the return of a deployment's job to its last stable version, in the entry in which the deployment
// fails because of why. It gives the description of the failure; nil when there is nothing to go back to.
func Rollback(snap *state.Snapshot, d *structs.Deployment, why string) (*fsm.JobRevert, string) {
	current := snap.Job(nil, d.Namespace, d.JobID)
	target, description := structs.RollbackOf(d, current, snap.JobVersions(nil, d.Namespace, d.JobID), why)
	if target == nil {
		return nil, description
	}
	job := target.Copy()
	job.VersionTag = nil
	return &fsm.JobRevert{Job: job, Submission: snap.JobSubmission(nil, d.Namespace, d.JobID, target.Version),
		JobModifyIndex: current.JobModifyIndex, Otherwise: why}, description
}
