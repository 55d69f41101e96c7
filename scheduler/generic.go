package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/scheduler/reconcile"
	"github.com/nomadlite/nomadlite/structs"
)

// Descriptions of evaluations, as the public API shows them.
const (
	blockedPlacements = "created to place remaining allocations"
	blockedConflicts  = "created due to placement conflicts"
)

// generic schedules all types of jobs. Service and batch jobs are a number of allocations, each on the node that suits
// it best; system and sysbatch jobs one on each node that is meant for it.
type generic struct {
	cfg      Config
	batch    bool // its allocations end by themselves
	system   bool
	attempts int

	// What follows belongs to one evaluation.
	state    State
	eval     *structs.Evaluation
	job      *structs.Job
	result   *reconcile.Result
	plan     *structs.Plan
	failed   map[string]*structs.AllocationMetric
	queued   map[string]int
	feasible map[*structs.TaskGroup]*feasible.Group
	fleet    *feasible.Fleet
	usages   []*structs.NodeUsage // by place in the fleet; nil when the state does not keep them so
	scope    *feasible.Scope      // system jobs
	waiting  map[string]bool      // system jobs: the nodes that had no room
	evicted  map[string]bool      // by this plan
	sharing  []sharing
}

// Process decides one evaluation.
func (s *generic) Process(ctx context.Context, eval *structs.Evaluation) error {
	s.eval, s.state = eval.Copy(), s.cfg.State
	for tries := 0; tries < s.attempts; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("process evaluation %s: %w", eval.ID, err)
		}
		done, progress, err := s.attempt(ctx)
		if err != nil {
			return fmt.Errorf("process evaluation %s: %w", eval.ID, err)
		}
		if done {
			return s.finish(ctx)
		}
		tries++
		if progress {
			tries = 0
		}
	}
	return s.giveUp(ctx)
}

// attempt plans against one state. It is done when nothing is left that a newer state could change; progress says
// that something of the plan was committed.
func (s *generic) attempt(ctx context.Context) (done, progress bool, err error) {
	s.failed, s.queued = map[string]*structs.AllocationMetric{}, map[string]int{}
	s.feasible = map[*structs.TaskGroup]*feasible.Group{}
	s.evicted, s.sharing = map[string]bool{}, nil
	s.fleet, s.usages = nil, nil
	s.job = s.state.Job(s.eval.Namespace, s.eval.JobID)
	s.result = s.reconcile()
	s.newPlan()
	s.planStops()
	if s.system {
		s.planSystem()
	} else {
		s.planPlacements()
	}
	if t, ok := s.state.(TentativeState); ok && s.wantsRoom() {
		if s.state, err = t.Settled(ctx); err != nil {
			return false, false, fmt.Errorf("wait for other plans: %w", err)
		}
		return s.attempt(ctx)
	}
	for _, e := range s.result.Follow {
		if err := s.cfg.Planner.CreateEval(ctx, e); err != nil {
			return false, false, fmt.Errorf("create follow-up evaluation: %w", err)
		}
	}
	s.annotate()
	if s.plan.IsEmpty() && !s.eval.AnnotatePlan {
		return true, false, nil
	}
	result, newer, err := s.cfg.Planner.SubmitPlan(ctx, s.plan)
	if err != nil {
		return false, false, fmt.Errorf("submit plan: %w", err)
	}
	full, expected, actual := result.FullCommit(s.plan)
	progress = actual > 0 || len(result.Stops) > 0 || result.Deployment != nil
	if newer != nil {
		s.cfg.Logger.Debug("plan did not fit, trying again with a newer state",
			"eval_id", s.eval.ID, "expected", expected, "committed", actual)
		s.state = newer
		return full, progress, nil
	}
	if !full {
		return false, progress, structs.Errorf(structs.CodeInternal,
			"plan was committed in part (%d of %d) and no newer state was given", actual, expected)
	}
	return true, progress, nil
}

// wantsRoom says whether the plan could be another one if there were more room.
func (s *generic) wantsRoom() bool {
	for _, metric := range s.failed {
		if metric.NodesExhausted > 0 {
			return true
		}
	}
	return len(s.plan.Preemptions) > 0
}

func (s *generic) reconcile() *reconcile.Result {
	in := reconcile.Input{
		Namespace: s.eval.Namespace, JobID: s.eval.JobID, Job: s.job, Batch: s.batch,
		Allocs:     s.state.AllocsByJob(s.eval.Namespace, s.eval.JobID),
		Node:       s.state.Node,
		Deployment: s.state.LatestDeployment(s.eval.Namespace, s.eval.JobID),
		Eval:       s.eval, Now: s.cfg.Now, NewID: s.cfg.NewID,
	}
	if st, ok := s.state.(EvalState); ok {
		in.Pending = func(id string) bool {
			e := st.Eval(id)
			return e != nil && !e.TerminalStatus()
		}
	}
	if s.job != nil && !s.job.HasOwnAllocations() {
		// A template for other jobs runs nothing itself.
		template := *s.job
		template.TaskGroups = nil
		in.Job = &template
	}
	var result *reconcile.Result
	if s.system {
		result = s.reconcileSystem(in)
	} else {
		result = reconcile.Run(in)
	}
	if s.cfg.Logger.IsTrace() {
		for _, d := range result.Decisions {
			s.cfg.Logger.Trace("allocation classified", "eval_id", s.eval.ID, "alloc_id", d.Alloc.ID,
				"alloc", d.Alloc.Name, "bucket", d.Bucket, "rule", d.Rule, "reason", d.Reason)
		}
		for _, h := range result.Held {
			s.cfg.Logger.Trace("update held", "eval_id", s.eval.ID, "group", h.Group, "waiting", h.Waiting, "brake", h.Brake,
				"reason", h.Reason)
		}
	}
	return result
}

func (s *generic) newPlan() {
	s.plan = &structs.Plan{
		EvalID: s.eval.ID, Priority: s.eval.Priority, SnapshotIndex: s.state.Index(),
		Namespace: s.eval.Namespace, JobID: s.eval.JobID,
		Stops: map[string][]*structs.AllocStop{}, Places: map[string][]*structs.Allocation{},
		Preemptions: map[string][]*structs.AllocStop{},
		Deployment:  s.result.Deployment, DeploymentUpdates: s.result.DeploymentUpdates,
	}
	if s.job == nil {
		return
	}
	s.plan.JobModifyIndex, s.plan.AllAtOnce = s.job.JobModifyIndex, structs.Val(s.job.AllAtOnce)
	for _, tg := range s.job.TaskGroups {
		s.queued[structs.Val(tg.Name)] = 0
	}
}

func (s *generic) planStops() {
	for i := range s.result.Stops {
		s.planStop(&s.result.Stops[i])
	}
}

func (s *generic) planStop(stop *reconcile.Stop) {
	planned := &structs.AllocStop{
		ID: stop.Alloc.ID, DesiredStatus: stop.Desired, DesiredDescription: stop.Description,
		Condition: stop.Condition, FollowupEvalID: stop.FollowupEval,
	}
	if stop.Desired != "" { // only what is stopped here carries options, never what keeps running
		planned.NoShutdownDelay, planned.KillTimeout = s.stopOptions(stop.Alloc)
	}
	s.plan.Stops[stop.Alloc.NodeID] = append(s.plan.Stops[stop.Alloc.NodeID], planned)
}

// stopOptions gives the options with which an allocation is stopped: those of the evaluation, and for one that leaves a
// draining node those of the drain.
func (s *generic) stopOptions(a *structs.Allocation) (noShutdownDelay bool, killTimeout *time.Duration) {
	noShutdownDelay, killTimeout = s.eval.NoShutdownDelay, s.eval.KillTimeout
	node := s.state.Node(a.NodeID)
	if node == nil || node.DrainStrategy == nil || !a.DesiredTransition.ShouldMigrate() {
		return noShutdownDelay, killTimeout
	}
	if t := node.DrainStrategy.KillTimeout; t != nil && (killTimeout == nil || *t < *killTimeout) {
		killTimeout = t
	}
	return noShutdownDelay || node.DrainStrategy.NoShutdownDelay, killTimeout
}

func (s *generic) annotate() {
	if s.eval.AnnotatePlan {
		s.plan.Annotations = &structs.PlanAnnotations{DesiredTGUpdates: s.result.Desired, PreemptedAllocs: s.evictedStubs(),
			Reasons: s.result.Reasons}
	}
}

// finish stores the outcome: complete, with a blocked evaluation for what could not be placed; an evaluation that was
// blocked itself goes back among the blocked.
func (s *generic) finish(ctx context.Context) error {
	s.outcome()
	if s.system {
		if err := s.blockNodes(ctx); err != nil {
			return err
		}
		return s.store(ctx, structs.EvalStatusComplete, "")
	}
	if len(s.failed) > 0 && s.eval.Status == structs.EvalStatusBlocked {
		s.block(s.eval)
		s.eval.StatusDescription = blockedPlacements
		if err := s.cfg.Planner.ReblockEval(ctx, s.eval); err != nil {
			return fmt.Errorf("block evaluation %s again: %w", s.eval.ID, err)
		}
		return nil
	}
	if len(s.failed) > 0 {
		if err := s.createBlocked(ctx, s.blockedEval(structs.EvalTriggerQueuedAllocs, blockedPlacements)); err != nil {
			return err
		}
	}
	return s.store(ctx, structs.EvalStatusComplete, "")
}

// giveUp ends an evaluation whose plans kept meeting others: what is left waits for a change.
func (s *generic) giveUp(ctx context.Context) error {
	s.outcome()
	if s.eval.Status == structs.EvalStatusBlocked {
		s.block(s.eval)
		s.eval.EscapedComputedClass = true
		s.eval.TriggeredBy, s.eval.StatusDescription = structs.EvalTriggerMaxPlans, blockedConflicts
		if err := s.cfg.Planner.ReblockEval(ctx, s.eval); err != nil {
			return fmt.Errorf("block evaluation %s again: %w", s.eval.ID, err)
		}
		return nil
	}
	b := s.blockedEval(structs.EvalTriggerMaxPlans, blockedConflicts)
	b.NodeID = s.eval.NodeID
	b.EscapedComputedClass = true // it did not fail for want of room: any change may help
	if err := s.createBlocked(ctx, b); err != nil {
		return err
	}
	return s.store(ctx, structs.EvalStatusFailed, fmt.Sprintf("maximum attempts reached (%d)", s.attempts))
}

// outcome writes what the evaluation found into it.
func (s *generic) outcome() {
	s.eval.QueuedAllocations = s.queued
	s.eval.FailedTGAllocs = nil
	if len(s.failed) > 0 {
		s.eval.FailedTGAllocs = s.failed
	}
	s.eval.SnapshotIndex = s.state.Index()
	s.eval.ModifyTime = s.cfg.Now.UnixNano()
	s.eval.PlanAnnotations = s.plan.Annotations
	if s.result.ActiveDeployment != "" {
		s.eval.DeploymentID = s.result.ActiveDeployment
	}
}

// blockedEval is a new evaluation of what could not be placed.
func (s *generic) blockedEval(trigger, description string) *structs.Evaluation {
	b := &structs.Evaluation{
		ID: s.cfg.NewID(), Namespace: s.eval.Namespace, Priority: s.eval.Priority, Type: s.eval.Type,
		TriggeredBy: trigger, JobID: s.eval.JobID, JobModifyIndex: s.eval.JobModifyIndex,
		Status: structs.EvalStatusBlocked, StatusDescription: description, PreviousEval: s.eval.ID,
		FailedTGAllocs: s.eval.FailedTGAllocs, QueuedAllocations: s.queued,
		SnapshotIndex: s.state.Index(),
		CreateTime:    s.cfg.Now.UnixNano(), ModifyTime: s.cfg.Now.UnixNano(),
	}
	s.block(b)
	return b
}

func (s *generic) createBlocked(ctx context.Context, b *structs.Evaluation) error {
	if err := s.cfg.Planner.CreateEval(ctx, b); err != nil {
		return fmt.Errorf("create blocked evaluation: %w", err)
	}
	s.eval.BlockedEval = b.ID
	return nil
}

// block says which changes could help: those of a class that one of the failed groups may run on, or any change when
// a class does not settle that.
func (s *generic) block(e *structs.Evaluation) {
	e.ClassEligibility, e.EscapedComputedClass = nil, false
	for tg, group := range s.feasible {
		if s.failed[structs.Val(tg.Name)] == nil {
			continue
		}
		e.EscapedComputedClass = e.EscapedComputedClass || group.Escaped()
		for class, ok := range group.Classes() {
			if e.ClassEligibility == nil {
				e.ClassEligibility = map[string]bool{}
			}
			e.ClassEligibility[class] = e.ClassEligibility[class] || ok
		}
	}
}

func (s *generic) store(ctx context.Context, status, description string) error {
	s.eval.Status, s.eval.StatusDescription = status, description
	if err := s.cfg.Planner.UpdateEval(ctx, s.eval); err != nil {
		return fmt.Errorf("store evaluation %s: %w", s.eval.ID, err)
	}
	return nil
}
