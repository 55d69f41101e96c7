package drain

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

const (
	batchSize  = 512         // marks in one entry, about
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
}

// Duty drives Drains on the leader.
type Duty struct {
	cfg  Config
	wake chan struct{}

	mu   sync.Mutex
	core *Drains
}

// New makes a duty that does nothing until Run.
func New(cfg Config) *Duty {
	return &Duty{cfg: cfg, wake: make(chan struct{}, 1), core: NewDrains()}
}

// Run does the leader's duty until ctx ends. It reads the whole state first, subscribed to its feed, calls ready, and
// then follows the feed.
func (d *Duty) Run(ctx context.Context, ready func()) error {
	return d.cfg.Store.Follow(ctx, state.Follower{
		Load: d.load, Change: d.follow, Act: d.write,
		Lagged: func() { d.cfg.Logger.Warn("the drain duty lagged behind the state and reads it again") },
	}, ready)
}

// load reads which nodes drain.
func (d *Duty) load() (index uint64) {
	snap := d.cfg.Store.Snapshot()
	core := NewDrains()
	for node := range snap.Nodes(nil) {
		core.Node(node)
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
	had := d.core.Len() > 0
	for _, item := range change.Items {
		row := item.After
		if row == nil {
			row = item.Before
		}
		switch row := row.(type) {
		case *structs.Node:
			if item.After == nil {
				d.core.RemoveNode(row.ID)
			} else {
				d.core.Node(row)
			}
		case *structs.Allocation:
			d.core.Alloc(row)
		}
	}
	if had || d.core.Len() > 0 {
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

// turn carries out one round of what is due; more says that there was something.
func (d *Duty) turn(ctx context.Context) (more bool, next time.Time, err error) {
	round, next := d.due(time.Now())
	if round.Empty() {
		return false, next, nil
	}
	return true, next, d.carryOut(ctx, round)
}

func (d *Duty) due(now time.Time) (*Round, time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	round := d.core.Due(now, d.cfg.Store.Snapshot().Scheduler(), batchSize)
	next, ok := d.core.Next()
	if !ok {
		next = now.Add(time.Hour)
	}
	return round, next
}

// carryOut writes all marks in one entry together with their evaluations, and the end of each drain in its own.
func (d *Duty) carryOut(ctx context.Context, round *Round) error {
	now := time.Now()
	if len(round.Marks) > 0 {
		req := &fsm.AllocTransition{Transitions: round.Marks, Now: now.UnixNano()}
		for _, c := range round.Jobs {
			req.Evals = append(req.Evals, d.eval(c, now))
		}
		if err := d.apply(ctx, fsm.KindAllocTransition, req, round.nodes(d.cfg.Store)...); err != nil {
			return err
		}
	}
	for _, n := range round.Over {
		orphans := 0
		for _, a := range d.cfg.Store.AllocsByNode(nil, n.ID) {
			if a.Orphaned() {
				orphans++
			}
		}
		req := &fsm.NodeDrain{NodeID: n.ID, Complete: true, NodeModifyIndex: n.ModifyIndex, Now: now.UnixNano(),
			Event: completeEvent(orphans, now)}
		if err := d.apply(ctx, fsm.KindNodeDrain, req, n.ID); err != nil {
			return err
		}
		d.cfg.Logger.Info("node drain complete", "node_id", n.ID, "orphans", orphans)
	}
	return nil
}

// completeEvent tells that a drain is complete, and of how many allocations there nobody knows whether they have ended.
func completeEvent(orphans int, now time.Time) *structs.NodeEvent {
	e := &structs.NodeEvent{Message: "Node drain complete", Subsystem: "Drain", Timestamp: now.UTC()}
	if orphans > 0 {
		e.Message += "; " + structs.OrphansText(orphans)
		e.Details = map[string]string{"orphans": strconv.Itoa(orphans)}
	}
	return e
}

// nodes are those whose allocations are marked.
func (r *Round) nodes(store *state.Store) []string {
	seen := map[string]bool{}
	var out []string
	for id := range r.Marks {
		if a := store.Alloc(nil, id); a != nil && !seen[a.NodeID] {
			seen[a.NodeID] = true
			out = append(out, a.NodeID)
		}
	}
	return out
}

// apply writes one entry about some nodes. It fails when this server does not lead any more; after other failures the
// nodes are looked at again later.
func (d *Duty) apply(ctx context.Context, kind fsm.Kind, req any, nodes ...string) error {
	_, _, err := d.cfg.Raft.Apply(ctx, kind, req)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || errors.Is(err, structs.ErrNoLeader):
		return fmt.Errorf("write drains: %w", err)
	}
	if structs.ErrorCode(err) == structs.CodeNotFound {
		d.cfg.Logger.Debug("what was to be drained is gone", "nodes", len(nodes), "error", err)
		return nil
	}
	d.cfg.Logger.Error("drains could not be written", "nodes", len(nodes), "error", err)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range nodes {
		d.core.Retry(id, time.Now().Add(retryAfter))
	}
	return nil
}

// eval makes the evaluation which moves what was marked of a job.
func (d *Duty) eval(c Concerned, now time.Time) *structs.Evaluation {
	return &structs.Evaluation{
		ID: d.cfg.NewID(), Namespace: structs.Val(c.Job.Namespace), JobID: structs.Val(c.Job.ID),
		Type: structs.Val(c.Job.Type), Priority: structs.Val(c.Job.Priority), JobModifyIndex: c.Job.JobModifyIndex,
		NodeID: c.Node.ID, NodeModifyIndex: c.Node.ModifyIndex,
		TriggeredBy: structs.EvalTriggerNodeDrain, Status: structs.EvalStatusPending,
		CreateTime: now.UnixNano(), ModifyTime: now.UnixNano(),
	}
}
