package worker

import (
	"context"

	"github.com/nomadlite/nomadlite/structs"
)

// Leadership tells where the leader is.
type Leadership interface {
	// IsLeader says whether this server leads and has caught up.
	IsLeader() bool
	// LeaderChanged gives a channel which is closed when the leader changes next.
	LeaderChanged() <-chan struct{}
}

// Switch uses this server's own broker and plan queue while it leads, else the leader's.
type Switch struct {
	Leadership Leadership
	Local      *Local
	Remote     *Remote
}

var (
	_ Broker = (*Switch)(nil)
	_ Leader = (*Switch)(nil)
)

// side is both of what a worker needs.
type side interface {
	Broker
	Leader
}

func (s *Switch) side() side {
	if s.Leadership.IsLeader() {
		return s.Local
	}
	return s.Remote
}

// Dequeue waits at whoever leads, and moves on when that changes.
func (s *Switch) Dequeue(ctx context.Context, types []string) (Delivery, error) {
	for {
		changed := s.Leadership.LeaderChanged()
		term, cancel := context.WithCancel(ctx)
		moved := make(chan struct{})
		go func() {
			defer close(moved)
			select {
			case <-changed:
				cancel()
			case <-term.Done():
			}
		}()
		d, err := s.side().Dequeue(term, types)
		cancel()
		<-moved
		if err == nil {
			return d, nil
		}
		select {
		case <-changed:
			if ctx.Err() == nil {
				continue
			}
		default:
		}
		return Delivery{}, err
	}
}

// Ack ends a delivery.
func (s *Switch) Ack(ctx context.Context, evalID, token string) error {
	return s.side().Ack(ctx, evalID, token)
}

// Nack gives a delivery back.
func (s *Switch) Nack(ctx context.Context, evalID, token string) error {
	return s.side().Nack(ctx, evalID, token)
}

// Renew moves the deadline of a delivery.
func (s *Switch) Renew(ctx context.Context, evalID, token string) error {
	return s.side().Renew(ctx, evalID, token)
}

// SubmitPlan hands a plan to the leader's applier.
func (s *Switch) SubmitPlan(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	return s.side().SubmitPlan(ctx, p)
}

// UpdateEvals stores evaluations.
func (s *Switch) UpdateEvals(ctx context.Context, evalID, token string, evals []*structs.Evaluation) (uint64, error) {
	return s.side().UpdateEvals(ctx, evalID, token, evals)
}
