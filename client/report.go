package client

import (
	"context"
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// reportChunk is the most observations in one call.
const reportChunk = 512

// observed notes that there is something to report. It is called by runners and must not block.
func (c *Client) observed(id string) {
	c.mu.Lock()
	c.dirty[id] = struct{}{}
	c.mu.Unlock()
	nudge(c.wakeReport)
}

// report sends what changed, at once; what changes while a call is under way goes with the next one.
func (c *Client) report(ctx context.Context) {
	select {
	case <-c.registered.ch:
	case <-ctx.Done():
		return
	}
	backoff := minBackoff
	for ctx.Err() == nil {
		batch, session, settled := c.takeDirty()
		if err := c.send(ctx, batch); err != nil {
			if ctx.Err() != nil {
				return
			}
			c.log.Warn("servers did not take the report, trying again", "error", err, "retry", backoff)
			c.mu.Lock()
			for _, o := range batch {
				c.dirty[o.AllocID] = struct{}{}
			}
			c.mu.Unlock()
			nudge(c.wakeDuty) // maybe they do not know this node any more: a heartbeat finds out
			pause(ctx, jitter(backoff), nil)
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		backoff = minBackoff
		c.acknowledge(batch, session, settled)
		select {
		case <-c.wakeReport:
		case <-ctx.Done():
		}
	}
}

// takeDirty collects observations that differ from what was reported. settled says that they hold for this agent, and
// not only for an earlier one.
func (c *Client) takeDirty() (batch []*structs.AllocObservation, session uint64, settled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.dirty {
		h := c.held[id]
		if h == nil {
			continue
		}
		if o := h.observation(c.nowNanos()); o != nil && !same(o, h.reported) {
			if h.runner != nil {
				o.NetworkStatus = networkOf(h.alloc, c.node.Load())
			}
			batch = append(batch, o)
		}
	}
	c.dirty = map[string]struct{}{}
	return batch, c.session, c.settled.isOpen()
}

func (c *Client) nowNanos() int64 { return c.clock.Now().UnixNano() }

// same compares by identity: states behind the pointers never change.
func same(a, b *structs.AllocObservation) bool {
	return b != nil && a.ObservedStatus == b.ObservedStatus && a.DeploymentStatus == b.DeploymentStatus &&
		maps.Equal(a.TaskStates, b.TaskStates)
}

func (c *Client) send(ctx context.Context, batch []*structs.AllocObservation) error {
	for chunk := range slices.Chunk(batch, reportChunk) {
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		err := c.conn.UpdateAllocs(ctx, chunk)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// acknowledge notes what the servers have now. After the first complete report of a session, one that does not go back to
// an earlier agent, the servers are told that the node's word is fresh.
func (c *Client) acknowledge(batch []*structs.AllocObservation, session uint64, settled bool) {
	c.mu.Lock()
	became := settled && c.session == session && c.fresh != session
	for _, o := range batch {
		if h := c.held[o.AllocID]; h != nil && c.session == session {
			h.reported = o
		}
	}
	if became {
		c.fresh = session
	}
	c.mu.Unlock()
	if became {
		nudge(c.wakeDuty)
	}
}
