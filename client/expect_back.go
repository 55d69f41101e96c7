package client

import (
	"context"
	"time"
)

// awayLimit bounds the announcement of an absence: an agent ends in time, whether the servers can be reached or not.
const awayLimit = 2 * time.Second

// ExpectBack tells the servers, in the agent's last moment, that the node will be silent and is expected back in time:
// what runs here runs on, and nothing of it is replaced before. No heartbeat follows, since one would belong to an agent
// that is back. Without such an expectation it does nothing.
func (c *Client) ExpectBack(ctx context.Context) {
	d := c.cfg.ExpectBack
	c.mu.Lock()
	endBeats := c.dutyEnds
	c.mu.Unlock()
	if d <= 0 || endBeats == nil || !c.registered.isOpen() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, awayLimit)
	defer cancel()
	endBeats()
	select {
	case <-c.dutyDone:
	case <-ctx.Done():
	}
	if err := c.conn.Away(ctx, d); err != nil {
		c.log.Warn("servers do not know when this node is expected back", "error", err)
		return
	}
	c.log.Info("servers know when this node is expected back", "within", d)
}
