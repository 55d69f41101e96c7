package periodic

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
	batchSize  = 256         // launches that are written side by side at most
	retryAfter = time.Second // a write that failed would at once fail again
	// lookAgain bounds how long the duty sleeps: somebody may set the clock meanwhile.
	lookAgain = time.Minute
)

// Raft is how the duty writes. Propose puts a command into the log at once; wait gives its outcome.
type Raft interface {
	Propose(kind fsm.Kind, req any) (wait func(ctx context.Context) (resp any, index uint64, err error))
}

// Config is what a Duty works with.
type Config struct {
	Logger hclog.Logger
	Store  *state.Store
	Raft   Raft
	NewID  func() string
}

// Duty drives Schedules on the leader.
type Duty struct {
	cfg  Config
	wake chan struct{}

	mu   sync.Mutex
	core *Schedules
}

// New makes a duty that does nothing until Run.
func New(cfg Config) *Duty {
	return &Duty{cfg: cfg, wake: make(chan struct{}, 1), core: NewSchedules()}
}

// Run does the leader's duty until ctx ends. It reads the whole state first, subscribed to its feed, calls ready, and
// then follows the feed.
func (d *Duty) Run(ctx context.Context, ready func()) error {
	return d.cfg.Store.Follow(ctx, state.Follower{
		Load: d.load, Change: d.follow, Act: d.write,
		Lagged: func() { d.cfg.Logger.Warn("the periodic duty lagged behind the state and reads it again") },
	}, ready)
}

// load reads all periodic jobs.
func (d *Duty) load() (index uint64) {
	snap, now := d.cfg.Store.Snapshot(), time.Now()
	core := NewSchedules()
	for job := range snap.Jobs(nil, structs.AllNamespaces) {
		if job.IsPeriodicActive() {
			core.Load(job, snap.Launch(nil, structs.Val(job.Namespace), structs.Val(job.ID)), now)
		}
	}
	d.mu.Lock()
	d.core = core
	d.mu.Unlock()
	d.signal()
	return snap.Index()
}

// follow takes one change of the state in.
func (d *Duty) follow(change state.Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := false
	for _, item := range change.Items {
		switch {
		case item.Table == state.TableJobs && item.After != nil:
			changed = d.core.Job(item.After.(*structs.Job)) || changed
		case item.Table == state.TableJobs:
			changed = d.core.RemoveJob(idOf(item.Before.(*structs.Job))) || changed
		case item.Table == state.TableLaunches && item.After != nil:
			changed = d.core.Launch(item.After.(*state.Launch)) || changed
		}
	}
	if changed {
		d.signal()
	}
}

func (d *Duty) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// write launches what is due until ctx ends or this server leads no more.
func (d *Duty) write(ctx context.Context) error {
	alarm := time.NewTimer(lookAgain)
	defer alarm.Stop()
	for {
		due, next := d.due(time.Now())
		if len(due) > 0 {
			if err := d.launch(ctx, due); err != nil {
				return err
			}
			continue
		}
		alarm.Reset(min(time.Until(next), lookAgain))
		select {
		case <-alarm.C:
		case <-d.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d *Duty) due(now time.Time) ([]Due, time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	due := d.core.Due(now, batchSize)
	next, ok := d.core.Next()
	if !ok {
		next = now.Add(lookAgain)
	}
	return due, next
}

// launch writes launches side by side and waits for all of them. It fails when this server does not lead any more.
func (d *Duty) launch(ctx context.Context, due []Due) error {
	waits := make([]func(context.Context) (any, uint64, error), len(due))
	for i, l := range due {
		waits[i] = d.cfg.Raft.Propose(fsm.KindPeriodicLaunch, &fsm.PeriodicLaunch{Namespace: l.Namespace, JobID: l.ID,
			Time: l.Time.UnixNano(), EvalID: d.cfg.NewID(), Now: time.Now().UnixNano()})
	}
	var lost error
	for i, l := range due {
		resp, _, err := waits[i](ctx)
		if err = d.outcome(ctx, l, resp, err); err != nil {
			lost = err
		}
	}
	return lost
}

// outcome tells what became of one launch. What failed is tried again, unless it will never do.
func (d *Duty) outcome(ctx context.Context, l Due, resp any, err error) error {
	log := d.cfg.Logger.With("namespace", l.Namespace, "job_id", l.ID, "launch", l.Time)
	switch {
	case err == nil:
		if result, ok := resp.(fsm.LaunchResult); ok && result.Child == nil {
			log.Debug("launch is left out: an earlier one has not ended, and the job prohibits overlap")
		} else if ok {
			log.Debug("periodic job launched", "child", structs.Val(result.Child.ID))
		}
		return nil
	case ctx.Err() != nil || errors.Is(err, structs.ErrNoLeader):
		return fmt.Errorf("launch periodic job: %w", err)
	}
	switch structs.ErrorCode(err) {
	case structs.CodeConflict, structs.CodeNotFound, structs.CodeInvalid:
		log.Debug("launch is not made", "reason", err)
		return nil
	case structs.CodeValidation: // its node pool or namespace is gone
		log.Warn("periodic job cannot be launched", "error", err)
		return nil
	}
	log.Error("periodic job could not be launched", "error", err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.core.Retry(l, time.Now().Add(retryAfter))
	return nil
}
