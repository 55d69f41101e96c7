package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/broker"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/plan"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// Raft is how the leader stores what workers decided.
type Raft interface {
	Apply(ctx context.Context, kind fsm.Kind, req any) (resp any, index uint64, err error)
}

// Local is the broker and the plan queue of this very server, while it leads.
type Local struct {
	Evals *broker.Broker
	Plans *plan.Queue
	Raft  Raft
	Store *state.Store
}

var (
	_ Broker = (*Local)(nil)
	_ Leader = (*Local)(nil)
)

// Dequeue waits for an evaluation. The leader's own state is as new as anything that was decided before.
func (l *Local) Dequeue(ctx context.Context, types []string) (Delivery, error) {
	eval, token, err := l.Evals.Dequeue(ctx, types)
	if err != nil {
		return Delivery{}, err
	}
	return Delivery{Eval: eval, Token: token, Lease: l.Evals.NackTimeout(),
		Index: max(eval.ModifyIndex, l.Store.Index())}, nil
}

// Ack ends a delivery.
func (l *Local) Ack(_ context.Context, evalID, token string) error { return l.Evals.Ack(evalID, token) }

// Nack gives a delivery back.
func (l *Local) Nack(_ context.Context, evalID, token string) error {
	return l.Evals.Nack(evalID, token)
}

// Renew moves the deadline of a delivery.
func (l *Local) Renew(_ context.Context, evalID, token string) error {
	return l.Evals.Renew(evalID, token)
}

// SubmitPlan hands a plan to the applier.
func (l *Local) SubmitPlan(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	return l.Plans.Submit(ctx, p)
}

// UpdateEvals stores evaluations, unless the delivery was taken away.
func (l *Local) UpdateEvals(ctx context.Context, evalID, token string, evals []*structs.Evaluation) (uint64, error) {
	if current := l.Evals.Token(evalID); current == "" || current != token {
		return 0, fmt.Errorf("update evaluations: %w", structs.ErrStaleToken)
	}
	_, index, err := l.Raft.Apply(ctx, fsm.KindEvalUpdate, &fsm.EvalUpdate{Evals: evals, Now: time.Now().UnixNano()})
	return index, err
}
