package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// feedBuffer is how many changes may wait before everything is read again.
const feedBuffer = 4096

// Raft is how the broker records what it decided about evaluations.
type Raft interface {
	Apply(ctx context.Context, kind fsm.Kind, req any) (resp any, index uint64, err error)
}

// Broker drives Queue and Blocked on the leader.
type Broker struct {
	log   hclog.Logger
	newID func() string
	// FollowUpWait is how long the follow-up of an undeliverable evaluation waits; up to twice as long by chance.
	followUpWait time.Duration
	// retryWait is how long an evaluation waits whose plans kept meeting others; up to twice as long by chance.
	retryWait time.Duration
	random    func(n int64) int64 // in [0,n)

	mu         sync.Mutex
	queue      *Queue
	blocked    *Blocked
	store      *state.Store // nil when this server does not lead
	leading    bool
	paused     bool
	delivered  uint64                // evaluations handed out since the process started, each time
	changed    chan struct{}         // closed when something may have become ready
	superseded []*structs.Evaluation // to be stored as cancelled
	timer      chan struct{}         // a token when the next due time may have changed
	chores     chan struct{}         // a token when there is something to record
}

// New makes a broker that hands out nothing until Run.
func New(cfg Config, log hclog.Logger, newID func() string) *Broker {
	random := cfg.Random
	if random == nil {
		random = rand.Int64N
	}
	return &Broker{log: log, newID: newID, followUpWait: time.Minute, retryWait: 5 * time.Second, random: random,
		queue: NewQueue(cfg), blocked: NewBlocked(0),
		changed: make(chan struct{}), timer: make(chan struct{}, 1), chores: make(chan struct{}, 1)}
}

// Dequeue waits for an evaluation of one of the scheduler types. The token must be shown to end the delivery.
func (b *Broker) Dequeue(ctx context.Context, types []string) (eval *structs.Evaluation, token string, err error) {
	token = b.newID()
	for {
		eval, changed := b.take(types, token)
		if eval != nil {
			return eval, token, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, "", ctx.Err()
		}
	}
}

// take dequeues without waiting; changed is closed when there may be more.
func (b *Broker) take(types []string, token string) (eval *structs.Evaluation, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.leading || b.paused {
		return nil, b.changed
	}
	if eval = b.queue.Dequeue(time.Now(), types, token); eval != nil {
		b.delivered++
		notify(b.timer)
	}
	return eval, b.changed
}

// Ack ends a delivery: the evaluation's outcome is stored.
func (b *Broker) Ack(evalID, token string) error {
	return b.end(evalID, func(now time.Time) error { return b.queue.Ack(now, evalID, token) })
}

// Nack gives a delivery back, to be tried again later.
func (b *Broker) Nack(evalID, token string) error {
	return b.end(evalID, func(now time.Time) error { return b.queue.Nack(now, evalID, token) })
}

// Renew moves the deadline of a delivery that takes long.
func (b *Broker) Renew(evalID, token string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.Renew(time.Now(), evalID, token)
}

// Shorten makes a delivery's deadline at most lease from now, and from each renewal.
func (b *Broker) Shorten(evalID, token string, lease time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.queue.Shorten(time.Now(), evalID, token, lease)
	notify(b.timer)
	return err
}

// NackTimeout is how long a delivery may take without being renewed.
func (b *Broker) NackTimeout() time.Duration { return b.queue.cfg.NackTimeout }

// Token gives the token under which an evaluation is in flight, empty when it is not.
func (b *Broker) Token(evalID string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.Token(evalID)
}

// Stats are the figures of both cores.
func (b *Broker) Stats() map[string]any {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.queue.Stats()
	total, escaped := b.blocked.Len()
	return map[string]any{
		"total_ready": s.Ready, "total_pending": s.Behind, "total_waiting": s.Delayed, "total_unacked": s.InFlight,
		"failed": s.Failed, "by_scheduler": s.ByType, "total_blocked": total, "total_escaped": escaped,
		"enabled": b.leading, "paused": b.paused, "total_delivered": b.delivered,
	}
}

func (b *Broker) end(evalID string, how func(now time.Time) error) error {
	b.mu.Lock()
	now := time.Now()
	err := how(now)
	if err == nil {
		b.blocked.Done(evalID)
		b.unblockLocked(now)
	}
	b.wakeLocked()
	b.mu.Unlock()
	return err
}

// wakeLocked lets every waiting Dequeue look again, and the timers too.
func (b *Broker) wakeLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
	notify(b.timer)
	if b.queue.ready[QueueFailed] != nil && b.queue.ready[QueueFailed].Len() > 0 || len(b.superseded) > 0 {
		notify(b.chores)
	}
}

func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Run hands evaluations out until ctx ends (leadership is lost). It reads the whole state first, subscribed to its
// feed, calls ready, and then follows the feed.
func (b *Broker) Run(ctx context.Context, store *state.Store, raft Raft, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() {
		cancel()
		wg.Wait()
		b.stop()
	}()
	sub := store.Subscribe(feedBuffer)
	defer sub.Close()
	from := b.load(store)
	ready()
	wg.Go(func() { b.runTimers(ctx) })
	wg.Go(func() { b.runChores(ctx, raft) })
	for {
		change, err := sub.Next(ctx)
		switch {
		case errors.Is(err, structs.ErrLagged):
			b.log.Warn("the broker lagged behind the state and reads it again")
			from = b.load(store)
		case err != nil:
			return err
		case change.Index > from:
			b.follow(store, change)
		}
	}
}

func (b *Broker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leading = false
	b.queue.Flush()
	b.blocked, b.store = NewBlocked(0), nil
	b.superseded = nil
	b.wakeLocked()
}

// load reads the whole state. Deliveries under way go on when this server was leading already. What was blocked is
// looked at once more in the background, since nobody knows what could have helped it meanwhile.
func (b *Broker) load(store *state.Store) (index uint64) {
	snap := store.Snapshot()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.blocked, b.store = NewBlocked(snap.Index()), store
	b.paused = snap.SchedulerConfig(nil).PauseEvalBroker
	for eval := range snap.Evals(nil, structs.AllNamespaces) {
		switch {
		case eval.ShouldEnqueue():
			b.enqueueLocked(now, eval)
		case eval.ShouldBlock():
			b.blockLocked(now, eval, true)
		default:
			b.queue.Remove(eval.ID)
		}
	}
	b.leading = true
	b.wakeLocked()
	return snap.Index()
}

// Why evaluations are cancelled.
const (
	byNewer  = "superseded by a newer evaluation of the same job"
	byOthers = "an earlier evaluation of the same job, which had not begun, looks at the same"
)

func (b *Broker) cancelLocked(why string, evals ...*structs.Evaluation) {
	for _, eval := range evals {
		cancelled := eval.Copy()
		cancelled.Status, cancelled.StatusDescription = structs.EvalStatusCancelled, why
		b.superseded = append(b.superseded, cancelled)
	}
}

// enqueueLocked takes a pending evaluation in, or cancels it when another one does its work.
func (b *Broker) enqueueLocked(now time.Time, eval *structs.Evaluation) {
	if b.queue.Redundant(eval) {
		b.cancelLocked(byOthers, eval)
		return
	}
	b.queue.Enqueue(now, eval, false)
}

func (b *Broker) blockLocked(now time.Time, eval *structs.Evaluation, background bool) {
	wake, superseded := b.blocked.Block(eval, asksOf(b.store, eval))
	if superseded != nil {
		b.cancelLocked(byNewer, superseded)
	}
	if !wake && Contended(eval) {
		b.blocked.RetryAt(eval.ID, now.Add(b.retryWait+time.Duration(b.random(int64(b.retryWait)))))
	}
	if wake && background {
		b.queue.Enqueue(now, eval, true)
	} else if wake {
		b.queue.Requeue(now, eval)
	}
}

// nextLocked is when the queue or a blocked evaluation has something to do by itself.
func (b *Broker) nextLocked() (time.Time, bool) {
	next, ok := b.queue.Next()
	if retry, waits := b.blocked.Next(); waits && (!ok || retry.Before(next)) {
		next, ok = retry, true
	}
	return next, ok
}

// runTimers lets the queue do what is due.
func (b *Broker) runTimers(ctx context.Context) {
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	for {
		next, ok := b.tick()
		wait := time.Hour
		if ok {
			wait = time.Until(next)
		}
		alarm.Reset(wait)
		select {
		case <-alarm.C:
		case <-b.timer:
		case <-ctx.Done():
			return
		}
	}
}

// tick lets the queue do what is due and says when it has something to do next.
func (b *Broker) tick() (next time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	next, ok = b.nextLocked()
	if ok && !next.After(now) {
		b.queue.Tick(now)
		b.sweepLocked()
		b.requeueLocked(now, b.blocked.Due(now))
		b.unblockLocked(now)
		b.wakeLocked()
		next, ok = b.nextLocked()
	}
	return next, ok
}

// choreWait is when a write of runChores that failed is tried again.
const choreWait = time.Second

// runChores records in the state what only the broker knows: superseded evaluations are cancelled, those which no
// worker could process are failed and followed up.
func (b *Broker) runChores(ctx context.Context, raft Raft) {
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		more, err := b.record(ctx, raft)
		chores := b.chores
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			b.log.Error("evaluations could not be cancelled or failed, trying again", "error", err)
			retry.Reset(choreWait)
			chores = nil // at once it would fail again
		case more:
			continue
		}
		select {
		case <-chores:
		case <-retry.C:
		case <-ctx.Done():
			return
		}
	}
}

// record writes what chore gives; more is false when there was nothing. What could not be written is there again for the
// next call.
func (b *Broker) record(ctx context.Context, raft Raft) (more bool, err error) {
	req, failed := b.chore()
	if len(req.Evals) == 0 {
		return false, nil
	}
	end := b.Ack
	if _, _, err = raft.Apply(ctx, fsm.KindEvalUpdate, req); err != nil {
		err, end = fmt.Errorf("write evaluations: %w", err), b.Nack
		b.mu.Lock()
		for _, eval := range req.Evals {
			if eval.Status == structs.EvalStatusCancelled {
				b.superseded = append(b.superseded, eval)
			}
		}
		b.mu.Unlock()
	}
	for id, token := range failed {
		if err := end(id, token); err != nil {
			b.log.Debug("failed evaluation was taken away", "eval_id", id, "error", err)
		}
	}
	return err == nil, err
}

func (b *Broker) chore() (*fsm.EvalUpdate, map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	req := &fsm.EvalUpdate{Now: now.UnixNano()}
	req.Evals = append(req.Evals, b.superseded...)
	b.superseded = nil
	failed := map[string]string{}
	for len(failed) < 64 {
		token := b.newID()
		eval := b.queue.Dequeue(now, []string{QueueFailed}, token)
		if eval == nil {
			break
		}
		failed[eval.ID] = token
		next := b.followUp(eval, now)
		ended := eval.Copy()
		ended.Status = structs.EvalStatusFailed
		ended.StatusDescription = fmt.Sprintf("evaluation reached delivery limit (%d)", b.queue.cfg.DeliveryLimit)
		ended.NextEval = next.ID
		req.Evals = append(req.Evals, ended, next)
	}
	return req, failed
}

func (b *Broker) followUp(eval *structs.Evaluation, now time.Time) *structs.Evaluation {
	wait := b.followUpWait + time.Duration(b.random(int64(b.followUpWait)))
	return &structs.Evaluation{
		ID: b.newID(), Namespace: eval.Namespace, JobID: eval.JobID, JobModifyIndex: eval.JobModifyIndex,
		Type: eval.Type, Priority: eval.Priority, TriggeredBy: structs.EvalTriggerFailedFollowUp,
		NodeID: eval.NodeID, DeploymentID: eval.DeploymentID, PreviousEval: eval.ID,
		NoShutdownDelay: eval.NoShutdownDelay, KillTimeout: eval.KillTimeout,
		Status: structs.EvalStatusPending, Wait: wait, WaitUntil: now.Add(wait).UTC(),
	}
}
