package plan

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// MaxPerEntry is how many plans one raft entry holds at most.
const MaxPerEntry = 64

// Raft is how the applier commits. Propose puts a command into the log at once, in the order of the calls; wait
// gives its outcome once this server's state holds it.
type Raft interface {
	Propose(kind fsm.Kind, req any) (wait func(ctx context.Context) (resp any, index uint64, err error))
}

// Config is what an Applier works with.
type Config struct {
	Logger hclog.Logger
	Queue  *Queue
	Raft   Raft
	// Snapshot gives the newest state.
	Snapshot func() State
	// Token gives the token under which an evaluation is in flight; plans under another one are refused.
	Token func(evalID string) string
	// Alloc finds an allocation that is preempted, for the evaluation of its job.
	Alloc func(id string) *structs.Allocation
	NewID func() string
	Now   func() time.Time
	// Pipeline is how many raft entries may be in flight while the next is verified; default 1.
	Pipeline int
}

// Applier is the one writer of plans.
type Applier struct {
	cfg Config
}

// NewApplier makes an applier.
func NewApplier(cfg Config) *Applier {
	if cfg.Pipeline < 1 {
		cfg.Pipeline = 1
	}
	return &Applier{cfg: cfg}
}

// batch is one raft entry under way.
type batch struct {
	pending  []*pending
	verdicts []*Verdict
	plans    []*structs.Plan // what was proposed, without the empty ones
	wait     func(ctx context.Context) (any, uint64, error)
	done     chan struct{} // closed when answered
}

// Run opens the queue, calls ready and applies plans until ctx ends (leadership is lost). What waits then gets
// ErrNoLeader.
func (a *Applier) Run(ctx context.Context, ready func()) error {
	a.cfg.Queue.setOpen(true)
	ready()
	var flight []*batch
	defer func() {
		a.cfg.Queue.setOpen(false)
		for _, b := range flight {
			<-b.done
		}
	}()
	for {
		waiting, err := a.cfg.Queue.take(ctx, MaxPerEntry)
		if err != nil {
			return err
		}
		flight = landed(flight)
		b := a.verify(waiting, flight)
		// Answers go out in order: a refresh index must be one at which the plans before are visible.
		var previous chan struct{}
		if len(flight) > 0 {
			previous = flight[len(flight)-1].done
		}
		if len(b.plans) > 0 {
			b.wait = a.cfg.Raft.Propose(fsm.KindPlanApply, &fsm.PlanApply{
				Plans: b.plans, Evals: a.preemptionEvals(b.plans), Now: a.cfg.Now().UnixNano(), Fit: true})
		}
		flight = append(flight, b)
		go a.answer(ctx, b, previous)
		for len(flight) > a.cfg.Pipeline {
			<-flight[0].done
			flight = flight[1:]
		}
	}
}

// landed drops the batches that are done.
func landed(flight []*batch) []*batch {
	for len(flight) > 0 {
		select {
		case <-flight[0].done:
			flight = flight[1:]
		default:
			return flight
		}
	}
	return flight
}

// verify decides plan after plan, each on top of what is in flight and what the batch already holds.
func (a *Applier) verify(waiting []*pending, flight []*batch) *batch {
	b := &batch{done: make(chan struct{})}
	overlay := &Overlay{}
	for _, f := range flight {
		for _, p := range f.plans {
			overlay.Add(p)
		}
	}
	state := a.cfg.Snapshot() // taken after the overlay's batches were listed: none falls between
	for _, p := range waiting {
		if token := a.cfg.Token(p.plan.EvalID); token == "" || token != p.plan.EvalToken {
			p.done <- outcome{err: structs.ErrStaleToken}
			continue
		}
		v := Verify(state, overlay, p.plan)
		for nodeID, reason := range v.Rejected {
			a.cfg.Logger.Debug("plan for node rejected", "node_id", nodeID, "reason", reason, "eval_id", p.plan.EvalID)
		}
		if v.Stale != "" {
			a.cfg.Logger.Debug("plan is stale", "reason", v.Stale, "eval_id", p.plan.EvalID)
		}
		b.pending, b.verdicts = append(b.pending, p), append(b.verdicts, v)
		if !v.Plan.IsEmpty() {
			b.plans = append(b.plans, v.Plan)
			overlay.Add(v.Plan)
		}
	}
	return b
}

// answer waits for the batch's entry and for the batch before it, then gives each worker its result.
func (a *Applier) answer(ctx context.Context, b *batch, previous <-chan struct{}) {
	defer close(b.done)
	var index uint64
	var err error
	var refused []error // by plan, in the order of b.plans
	var fitted []*structs.PlanVerdict
	if b.wait != nil {
		var resp any
		resp, index, err = b.wait(ctx)
		if r, ok := resp.(fsm.PlanApplyResult); ok {
			refused, fitted = r.Errors, r.Fitted
		}
	}
	if previous != nil {
		<-previous
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		a.cfg.Logger.Error("plans could not be committed", "plans", len(b.plans), "error", err)
	}
	newest := max(index, a.cfg.Snapshot().Index())
	n := 0
	for i, p := range b.pending {
		own, v := err, b.verdicts[i]
		if b.verdicts[i].Plan.IsEmpty() {
			own = nil
		} else {
			if n < len(refused) && own == nil {
				own = refused[n]
			}
			if n < len(fitted) && fitted[n] != nil {
				v = a.overtaken(v, fitted[n], p.plan)
			}
			n++
		}
		if own != nil {
			p.done <- outcome{err: own}
			continue
		}
		p.done <- outcome{result: result(v, index, newest)}
	}
}

// overtaken puts together why parts of a plan were left out when it was verified, and when it was applied.
func (a *Applier) overtaken(verified, applied *Verdict, plan *structs.Plan) *Verdict {
	a.cfg.Logger.Debug("plan was overtaken", "eval_id", plan.EvalID, "rejected", applied.Rejected, "stale", applied.Stale)
	out := &Verdict{Plan: applied.Plan, Rejected: maps.Clone(verified.Rejected), Stale: cmp.Or(applied.Stale, verified.Stale)}
	maps.Copy(out.Rejected, applied.Rejected)
	return out
}

func result(v *Verdict, index, newest uint64) *structs.PlanResult {
	r := &structs.PlanResult{
		Stops: v.Plan.Stops, Places: v.Plan.Places, Preemptions: v.Plan.Preemptions,
		Deployment: v.Plan.Deployment, DeploymentUpdates: v.Plan.DeploymentUpdates,
	}
	if !v.Plan.IsEmpty() {
		r.AllocIndex = index
	}
	for nodeID := range v.Rejected {
		r.RejectedNodes = append(r.RejectedNodes, nodeID)
	}
	if !v.Full() {
		r.RefreshIndex = newest
	}
	return r
}

// preemptionEvals makes an evaluation for each job that loses allocations to another.
func (a *Applier) preemptionEvals(plans []*structs.Plan) []*structs.Evaluation {
	var evals []*structs.Evaluation
	seen := map[structs.NamespacedID]bool{}
	for _, p := range plans {
		for _, list := range p.Preemptions {
			for _, s := range list {
				alloc := a.cfg.Alloc(s.ID)
				if alloc == nil || alloc.Job == nil {
					continue
				}
				id := structs.NamespacedID{Namespace: alloc.Namespace, ID: alloc.JobID}
				if seen[id] {
					continue
				}
				seen[id] = true
				evals = append(evals, &structs.Evaluation{
					ID: a.cfg.NewID(), Namespace: alloc.Namespace, JobID: alloc.JobID,
					Priority: structs.Val(alloc.Job.Priority), Type: structs.Val(alloc.Job.Type),
					TriggeredBy: structs.EvalTriggerPreemption, Status: structs.EvalStatusPending,
				})
			}
		}
	}
	return evals
}
