package client

import (
	"context"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

const (
	callLimit  = 30 * time.Second // of one call, waiting for a session included
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
	defaultTTL = 10 * time.Second
)

// connected runs on each new session: everything is reported anew, and a heartbeat goes out at once.
func (c *Client) connected() {
	c.mu.Lock()
	c.session++
	for id, h := range c.held {
		h.reported = nil
		c.dirty[id] = struct{}{}
	}
	c.mu.Unlock()
	c.services.Connected()
	nudge(c.wakeReport)
	nudge(c.wakeDuty)
}

// isFresh says whether everything was reported in the present session. A node that holds nothing has nothing to
// report, and may be ready with its first heartbeat.
func (c *Client) isFresh() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) == 0 {
		c.fresh = c.session
	}
	return c.fresh == c.session && c.session > 0
}

// duty registers the node and keeps it alive by heartbeats. It registers again when the servers do not know the node,
// and when what it says about itself changed.
func (c *Client) duty(ctx context.Context) {
	backoff, known := minBackoff, false
	for ctx.Err() == nil {
		if c.reregister.Swap(false) {
			known = false
		}
		ttl, err := c.beat(ctx, &known)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.log.Warn("servers did not take the heartbeat", "error", err, "retry", backoff)
			pause(ctx, jitter(backoff), c.wakeDuty)
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		backoff = minBackoff
		if known {
			pause(ctx, nextBeat(ttl, jitter(ttl/10), c.leases.Pace()), c.wakeDuty)
		}
	}
}

// nextBeat is how long after one heartbeat the next one goes out. Servers choose the time to live so that the nodes together
// send as many heartbeats a second as they are configured for, so that it is used as far as a hung server leaves time: what
// one does not answer within answerWithin reaches another one in the grace that follows the time to live.
func nextBeat(ttl, jitter, pace time.Duration) time.Duration {
	every := ttl*7/10 + jitter
	if pace > 0 {
		every = min(every, pace)
	}
	return every
}

// Bounds of the time within which a server has to answer a heartbeat. One that waits for a leader to be elected answers
// after 5 s at the latest.
const (
	minAnswer = time.Second
	maxAnswer = 8 * time.Second
)

// leaveIfHung goes to another server when the present one does not answer in time: it may be frozen, or cut off, and its
// connection is found dead only when the node has long been given up. stop is to be called with the answer.
func (c *Client) leaveIfHung() (stop func()) {
	if c.servers == nil || len(c.servers.Servers()) < 2 {
		return func() {}
	}
	c.mu.Lock()
	ttl := c.ttl
	c.mu.Unlock()
	limit := answerWithin(ttl, c.leases.Pace())
	asked := c.servers.Server()
	timer := time.AfterFunc(limit, func() {
		if asked != "" && c.servers.Server() == asked {
			c.log.Warn("a server does not answer, going to another one", "server", asked, "after", limit)
			c.servers.Leave()
		}
	})
	return func() { timer.Stop() }
}

// answerWithin is the time for an answer, by the time until the next heartbeat (0: not known yet, before the first one) and
// by how often leases have to be renewed (0: there are none).
func answerWithin(ttl, pace time.Duration) time.Duration {
	limit := maxAnswer
	if ttl > 0 {
		limit = min(max(ttl*6/10, minAnswer), maxAnswer)
	}
	if pace > 0 {
		limit = min(limit, max(pace, minAnswer/2))
	}
	return limit
}

// beat registers if need be, and sends one heartbeat.
func (c *Client) beat(ctx context.Context, known *bool) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	defer c.leaveIfHung()()
	sent := time.Now()
	sentSinceBoot, _ := c.clock.Boot()
	if !*known {
		node := c.Node().Copy()
		node.Status = structs.NodeStatusInit
		if c.registered.isOpen() {
			node.Status = structs.NodeStatusReady
		}
		if _, err := c.conn.Register(ctx, node); err != nil {
			return 0, err
		}
		*known = true
		if !c.registered.isOpen() {
			c.log.Info("node is registered", "node_id", c.nodeID)
		}
	}
	res, err := c.conn.Heartbeat(ctx, structs.NodeStatusReady, c.isFresh())
	if err != nil {
		return 0, err
	}
	if !res.Known {
		c.log.Warn("servers do not know this node, registering again")
		*known = false
		return 0, nil
	}
	ttl := res.TTL
	if ttl <= 0 {
		ttl = defaultTTL
	}
	c.mu.Lock()
	c.last, c.ttl = sent, ttl // from the moment it was sent: that is when the servers count from at the latest
	c.mu.Unlock()
	c.confirmed(sentSinceBoot)
	c.registered.open()
	return ttl, nil
}
