package client

import (
	"context"
	"slices"
	"time"

	"maps"

	"github.com/nomadlite/nomadlite/client/servers"
)

// pollWait is how long the servers may park the long poll for assignments.
const pollWait = 5 * time.Minute

// follow keeps to what the servers assign. It begins with the complete set; from then on each answer is a delta, and
// one that does not fit leads back to the complete set.
func (c *Client) follow(ctx context.Context) {
	select {
	case <-c.registered.ch:
	case <-ctx.Done():
		return
	}
	var assigned servers.Assigned
	c.mu.Lock()
	assigned.Restore("", 0, slices.Collect(maps.Keys(c.held)))
	c.mu.Unlock()
	backoff, misfits, first := minBackoff, 0, true
	for ctx.Err() == nil {
		res, err := c.conn.Assignments(ctx, assigned.Request(pollWait))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.log.Warn("servers did not tell the assignments", "error", err, "retry", backoff)
			pause(ctx, jitter(backoff), nil)
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		backoff = minBackoff
		upsert, remove, ok := assigned.Apply(res)
		if !ok {
			// Once is the ordinary way back; again and again is a fault somewhere, and must not become a tight loop.
			if misfits++; misfits > 1 {
				c.log.Warn("assignments do not fit what this node holds, asking for all of them", "times", misfits)
				pause(ctx, jitter(min(minBackoff<<min(misfits, 6), maxBackoff)), nil)
			}
			continue
		}
		misfits = 0
		c.take(upsert, remove)
		if first {
			c.sweep()
			first = false
		}
		c.synced.open()
	}
}
