package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/scheduler/rank"
	"github.com/nomadlite/nomadlite/structs"
)

// nackWait bounds how long a worker tries to give a delivery back; after it the broker takes it by its deadline.
const nackWait = 500 * time.Millisecond

// Broker gives out evaluations. Index is one which a snapshot must have reached to be new enough for the evaluation.
type Broker interface {
	Dequeue(ctx context.Context, types []string) (d Delivery, err error)
	Ack(ctx context.Context, evalID, token string) error
	Nack(ctx context.Context, evalID, token string) error
	Renew(ctx context.Context, evalID, token string) error
}

// Delivery is an evaluation to work on.
type Delivery struct {
	Eval  *structs.Evaluation
	Token string
	Index uint64        // a snapshot must be at least this new
	Lease time.Duration // the delivery ends unless it is acknowledged or renewed within
}

// Leader takes what workers decided.
type Leader interface {
	// SubmitPlan hands a plan to the applier.
	SubmitPlan(ctx context.Context, plan *structs.Plan) (*structs.PlanResult, error)
	// UpdateEvals stores evaluations; it is refused when token is not that of a delivery of evalID in flight.
	UpdateEvals(ctx context.Context, evalID, token string, evals []*structs.Evaluation) (index uint64, err error)
}

// Factory makes the scheduler for a type of evaluation.
type Factory func(evalType string, cfg scheduler.Config) (scheduler.Scheduler, error)

// Config is what a Pool works with.
type Config struct {
	Logger  hclog.Logger
	Store   *state.Store
	Broker  Broker
	Leader  Leader
	Factory Factory
	Types   []string // scheduler types to dequeue, until Set
	Count   int      // workers, until Set
	NewID   func() string
}

// Pool is the scheduling workers of a server.
type Pool struct {
	cfg     Config
	ledger  ledger
	buffers rank.Buffers
	mu      sync.Mutex
	crew    *crew
}

// New makes a pool.
func New(cfg Config) *Pool {
	p := &Pool{cfg: cfg}
	p.crew = p.newCrew(cfg.Types, cfg.Count)
	return p
}

// Deliver works on one delivery and ends it, as each worker does: for those who take deliveries by themselves.
func (p *Pool) Deliver(ctx context.Context, d Delivery) {
	p.deliver(ctx, d, &desk{decided: func() {}, deciding: newWindow(1, 1, 1), flights: newWindow(1, 1, 1)})
}

// deliver works on one delivery and ends it.
func (p *Pool) deliver(ctx context.Context, d Delivery, at *desk) {
	defer at.leave()
	log := p.cfg.Logger.With("eval_id", d.Eval.ID, "job_id", d.Eval.JobID, "namespace", d.Eval.Namespace)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { p.renew(ctx, cancel, d, log) })
	err := p.process(ctx, d, at, log)
	if err == nil {
		if err = p.cfg.Broker.Ack(ctx, d.Eval.ID, d.Token); err != nil && ctx.Err() == nil {
			log.Warn("evaluation could not be acknowledged", "error", err)
		}
		return
	}
	if ctx.Err() == nil && !errors.Is(err, structs.ErrNoLeader) && !errors.Is(err, structs.ErrStaleToken) {
		log.Warn("evaluation failed and will be tried again", "error", err)
	}
	// Also a server that stops gives back what it has, but it does not wait for a leader to be elected.
	back, done := context.WithTimeout(context.WithoutCancel(ctx), nackWait)
	defer done()
	if nerr := p.cfg.Broker.Nack(back, d.Eval.ID, d.Token); nerr != nil {
		log.Debug("evaluation could not be given back", "error", nerr)
	}
}

// renew keeps the delivery for as long as the evaluation runs; when it was taken away, the work on it ends.
func (p *Pool) renew(ctx context.Context, cancel context.CancelFunc, d Delivery, log hclog.Logger) {
	if d.Lease <= 0 {
		return
	}
	tick := time.NewTicker(d.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			err := p.cfg.Broker.Renew(ctx, d.Eval.ID, d.Token)
			if errors.Is(err, structs.ErrStaleToken) {
				log.Warn("evaluation was taken away from this worker")
				cancel()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// process runs the evaluation's scheduler. A panic of it is an error of the evaluation.
func (p *Pool) process(ctx context.Context, d Delivery, at *desk, log hclog.Logger) (err error) {
	defer func() {
		if r := recover(); r != nil {
			log.Error("scheduler panicked", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("process evaluation: scheduler panicked: %v", r)
		}
	}()
	if err := p.cfg.Store.WaitIndex(ctx, d.Index); err != nil {
		return fmt.Errorf("process evaluation: %w", err)
	}
	if err := at.back(ctx); err != nil {
		return fmt.Errorf("process evaluation: %w", err)
	}
	s := &session{pool: p, delivery: d, desk: at}
	sched, err := p.cfg.Factory(d.Eval.Type, scheduler.Config{
		Logger: log, State: s.look(), Planner: s, Now: time.Now(), NewID: p.cfg.NewID, Clock: time.Now,
		Buffers: &p.buffers,
	})
	if err != nil {
		return fmt.Errorf("process evaluation: %w", err)
	}
	if err := sched.Process(ctx, d.Eval); err != nil {
		return err
	}
	return s.flush(ctx, "store evaluations")
}

// session is one evaluation under way.
type session struct {
	pool     *Pool
	delivery Delivery
	desk     *desk
	snapshot uint64 // index of the state which the scheduler looks at now
	// created are evaluations that go into the same raft entry as what the scheduler does next.
	created []*structs.Evaluation
}

var _ scheduler.Planner = (*session)(nil)

// SubmitPlan stamps the plan with the delivery and the snapshot and waits for its result, while the worker goes on with
// another evaluation. Evaluations which the plan may name are stored before.
func (s *session) SubmitPlan(ctx context.Context, plan *structs.Plan) (*structs.PlanResult, scheduler.State, error) {
	if err := s.flush(ctx, "store evaluations"); err != nil {
		return nil, nil, err
	}
	plan.EvalID, plan.EvalToken, plan.SnapshotIndex = s.delivery.Eval.ID, s.delivery.Token, s.snapshot
	entry := s.pool.ledger.enter(plan) // before the next one looks
	s.desk.leave()
	result, err := s.pool.cfg.Leader.SubmitPlan(ctx, plan)
	s.pool.ledger.settle(entry, result)
	if err != nil {
		return nil, nil, fmt.Errorf("submit plan: %w", err)
	}
	if result.RefreshIndex == 0 {
		s.desk.flights.fitted()
		s.desk.deciding.fitted()
		return result, nil, nil
	}
	s.desk.flights.met()
	s.desk.deciding.met()
	if err := s.pool.cfg.Store.WaitIndex(ctx, max(result.RefreshIndex, result.AllocIndex)); err != nil {
		return nil, nil, fmt.Errorf("submit plan: %w", err)
	}
	if err := s.desk.back(ctx); err != nil {
		return nil, nil, err
	}
	return result, s.look(), nil
}

// UpdateEval stores the evaluation's new status, with the evaluations that were created for it in the same entry.
func (s *session) UpdateEval(ctx context.Context, eval *structs.Evaluation) error {
	s.add(eval)
	return s.flush(ctx, "update evaluation")
}

// CreateEval stores a new evaluation together with what comes next: a plan, or the status of this evaluation.
func (s *session) CreateEval(_ context.Context, eval *structs.Evaluation) error {
	s.add(eval)
	return nil
}

// ReblockEval puts an evaluation that was blocked before back among the blocked ones.
func (s *session) ReblockEval(ctx context.Context, eval *structs.Evaluation) error {
	s.add(eval)
	return s.flush(ctx, "block evaluation again")
}

// add takes an evaluation with the index of the state that it was decided on: a blocked one is compared by it with
// what happened since.
func (s *session) add(eval *structs.Evaluation) {
	row := eval.Copy()
	row.SnapshotIndex = s.snapshot
	s.created = append(s.created, row)
}

func (s *session) flush(ctx context.Context, what string) error {
	if len(s.created) == 0 {
		return nil
	}
	s.desk.leave()
	if _, err := s.pool.cfg.Leader.UpdateEvals(ctx, s.delivery.Eval.ID, s.delivery.Token, s.created); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.created = nil
	return nil
}
