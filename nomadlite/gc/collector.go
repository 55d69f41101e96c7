package gc

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
)

// rowsPerEntry bounds a raft entry; one unit is never split.
const rowsPerEntry = 2048

// Raft is how the collector writes.
type Raft interface {
	Apply(ctx context.Context, kind fsm.Kind, req any) (resp any, index uint64, err error)
}

// Config is what a Collector works with.
type Config struct {
	Logger     hclog.Logger
	Snapshot   func() State
	Raft       Raft
	Thresholds Thresholds
	Interval   time.Duration // between two passes; default 5 min
}

// Collector reaps garbage on the leader.
type Collector struct{ cfg Config }

// New makes a collector.
func New(cfg Config) *Collector {
	if cfg.Interval == 0 {
		cfg.Interval = 5 * time.Minute
	}
	return &Collector{cfg: cfg}
}

// Run collects at intervals until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	tick := time.NewTicker(c.cfg.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := c.collect(ctx, c.cfg.Thresholds, time.Now()); err != nil && ctx.Err() == nil {
				c.cfg.Logger.Error("garbage collection failed", "error", err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Force collects at once whatever has ended, thresholds ignored.
func (c *Collector) Force(ctx context.Context) error {
	return c.collect(ctx, Thresholds{}, time.Now())
}

func (c *Collector) collect(ctx context.Context, limits Thresholds, now time.Time) error {
	g := Find(c.cfg.Snapshot(), limits, now)
	for _, part := range []struct {
		units  []Unit
		reason string
	}{
		{g.Jobs, "job garbage collection"},
		{g.Evals, "evaluation garbage collection"},
		{g.Deployments, "deployment garbage collection"},
		{g.Nodes, "node garbage collection"},
	} {
		for _, req := range partition(part.units, part.reason, now) {
			if _, _, err := c.cfg.Raft.Apply(ctx, fsm.KindReap, req); err != nil {
				return fmt.Errorf("reap (%s): %w", part.reason, err)
			}
			c.cfg.Logger.Debug("reaped", "reason", part.reason, "jobs", len(req.Jobs), "evals", len(req.Evals),
				"allocs", len(req.Allocs), "deployments", len(req.Deployments), "nodes", len(req.Nodes))
		}
	}
	return nil
}

// partition folds units into commands of bounded size.
func partition(units []Unit, reason string, now time.Time) []*fsm.Reap {
	var out []*fsm.Reap
	rows := 0
	for _, u := range units {
		size := len(u.Evals) + len(u.Allocs) + len(u.Deployments) + len(u.Nodes) + len(u.Jobs)
		if len(out) == 0 || rows+size > rowsPerEntry {
			out = append(out, &fsm.Reap{Reason: reason, Now: now.UnixNano()})
			rows = 0
		}
		rows += size
		last := out[len(out)-1]
		last.Evals = append(last.Evals, u.Evals...)
		last.Allocs = append(last.Allocs, u.Allocs...)
		last.Deployments = append(last.Deployments, u.Deployments...)
		last.Nodes = append(last.Nodes, u.Nodes...)
		last.Jobs = append(last.Jobs, u.Jobs...)
	}
	return out
}
