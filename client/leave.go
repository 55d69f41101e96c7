package client

import (
	"context"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/client/allocrunner"
	"github.com/nomadlite/nomadlite/structs"
)

// defaultLeaveDeadline is how long leaving may take unless configured.
const defaultLeaveDeadline = time.Minute

// reportLimit bounds each word with the servers about leaving.
const reportLimit = 10 * time.Second

// Depart takes the node out of the cluster for good, while the client runs on and heartbeats: nothing new is placed
// here; all that runs is drained, or stopped in its ordinary order; what has not ended by the deadline is stopped at
// once; the ends are reported; the node is down. Servers that cannot be reached do not keep it from stopping.
func (c *Client) Depart(ctx context.Context) {
	deadline := c.cfg.LeaveDeadline
	if deadline <= 0 {
		deadline = defaultLeaveDeadline
	}
	c.log.Info("node is leaving", "deadline", deadline, "drain", c.cfg.DrainOnShutdown != nil)
	err := c.beginLeave(ctx)
	switch {
	case err != nil:
		c.log.Warn("servers do not know that this node is leaving", "error", err)
	case c.cfg.DrainOnShutdown != nil:
		c.awaitDrained(ctx, deadline)
	}
	c.departAll(ctx, deadline)
	if err == nil {
		err = c.endLeave(ctx)
	}
	if err != nil {
		c.log.Warn("servers do not know that this node has left", "error", err)
		return
	}
	c.log.Info("node has left")
}

func (c *Client) beginLeave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reportLimit)
	defer cancel()
	return c.conn.Depart(ctx, structs.NodeLeaveRequest{Drain: c.cfg.DrainOnShutdown})
}

// endLeave reports what all came to; then the node is down.
func (c *Client) endLeave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reportLimit)
	defer cancel()
	if err := c.reportAll(ctx); err != nil {
		return err
	}
	return c.conn.Depart(ctx, structs.NodeLeaveRequest{Final: true})
}

// awaitDrained waits until the servers have stopped all that a drain moves, at most until the drain's own deadline; one
// that is forced has the deadline of leaving.
func (c *Client) awaitDrained(ctx context.Context, deadline time.Duration) {
	spec := c.cfg.DrainOnShutdown
	if spec.Deadline > 0 {
		deadline = spec.Deadline
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for _, r := range c.runners() {
		if kind := structs.Val(r.Alloc().Job.Type); spec.IgnoreSystemJobs && kind == structs.JobTypeSystem {
			continue
		}
		if !over(ctx, r) {
			return
		}
	}
}

// departAll ends what is left in its ordinary order, and at once what has not ended by the deadline.
func (c *Client) departAll(ctx context.Context, deadline time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	c.mu.Lock()
	c.departing = true // what was placed here just before the node left, and arrives now, ends before it begins
	c.mu.Unlock()
	runners := c.runners()
	for _, r := range runners {
		r.Depart()
	}
	for left := runners; len(left) > 0 && ctx.Err() == nil; left = c.unfinished() {
		for _, r := range left {
			if !over(ctx, r) {
				break
			}
		}
	}
	if ctx.Err() == nil {
		return
	}
	runners = c.unfinished()
	late, cancelLate := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancelLate()
	for _, r := range runners {
		r.Leave()
	}
	for _, r := range runners {
		if !over(late, r) {
			c.log.Error("allocation did not end in time", "alloc", r.ID())
		}
	}
}

// unfinished lists the runners that have not ended.
func (c *Client) unfinished() []*allocrunner.Runner {
	return slices.DeleteFunc(c.runners(), func(r *allocrunner.Runner) bool { return r.Terminal() })
}

func over(ctx context.Context, r *allocrunner.Runner) bool {
	select {
	case <-r.Over():
		return true
	case <-ctx.Done():
		return false
	}
}

// reportAll sends what each allocation came to; to report the same twice does no harm.
func (c *Client) reportAll(ctx context.Context) error {
	c.mu.Lock()
	var batch []*structs.AllocObservation
	for _, h := range c.held {
		if o := h.observation(c.nowNanos()); o != nil {
			batch = append(batch, o)
		}
	}
	c.mu.Unlock()
	return c.send(ctx, batch)
}
