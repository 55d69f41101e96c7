package client

import (
	"context"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/lease"
	"github.com/nomadlite/nomadlite/client/state"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// leaseKey is the row of the last confirmed heartbeat, in the node's table.
const leaseKey = "lease"

// renewLimit bounds how long a driver may take to renew leases. One that takes longer has lost its tasks to it: they are
// killed when their leases end.
const renewLimit = 5 * time.Second

// restoreLeases takes over the moment which an earlier agent kept. It comes before the allocations are restored.
func (c *Client) restoreLeases() error {
	var last lease.Moment
	if _, err := c.db.Get(state.Node, leaseKey, &last); err != nil {
		return err
	}
	c.leases = lease.New(c.clock, last)
	return nil
}

// holdLease begins, or changes, the lease of an allocation. It gives a channel that is closed once tasks may be started,
// nil when the allocation has no lease.
func (c *Client) holdLease(alloc *structs.Allocation, restored bool) <-chan struct{} {
	node := structs.Node{Lease: c.cfg.Lease, MaxKillTimeout: c.cfg.MaxKillTimeout}
	if restored {
		// Until this agent has told the servers otherwise, they count as they were told before.
		last := c.leases.Last()
		if last.Lease > 0 && (node.Lease == 0 || last.Lease < node.Lease) {
			node.Lease = last.Lease
		}
		if last.MaxKill > 0 {
			node.MaxKillTimeout = min(node.MaxKillTimeout, last.MaxKill)
		}
	}
	after, kill := alloc.Group().LeaseOn(&node)
	if after <= 0 {
		return nil
	}
	gate := c.leases.Hold(alloc.ID, after, kill, restored)
	nudge(c.wakeDuty) // heartbeats may have to come closer together
	nudge(c.wakeLeases)
	return gate
}

// confirmed notes that the heartbeat sent at that moment since boot was confirmed.
func (c *Client) confirmed(sent time.Duration) {
	_, boot := c.clock.Boot()
	m := lease.Moment{BootID: boot, Sent: sent, Lease: c.cfg.Lease, MaxKill: c.cfg.MaxKillTimeout}
	c.fence(c.leases.Confirm(m))
	c.db.Put(state.Node, leaseKey, m, nil) // until it is on disk an earlier moment is, which only ends leases earlier
	nudge(c.wakeLeases)
	nudge(c.wakeRenew)
}

// fence ends the allocations whose leases have run out.
func (c *Client) fence(over []lease.Over) {
	for _, o := range over {
		c.mu.Lock()
		h := c.held[o.AllocID]
		c.mu.Unlock()
		if h == nil || h.runner == nil {
			continue
		}
		if !h.runner.Terminal() {
			c.log.Warn("lease of an allocation has run out, ending it", "alloc", o.AllocID)
		}
		h.runner.Fence(o.Kill)
	}
}

// keepLeases ends what outlives its lease.
func (c *Client) keepLeases(ctx context.Context) {
	alarm := boottime.NewAlarm(c.clock)
	defer alarm.Close()
	for {
		over, next := c.leases.Expired()
		c.fence(over)
		if next >= 0 {
			alarm.Set(next)
		}
		select {
		case <-alarm.C:
		case <-c.wakeLeases:
		case <-ctx.Done():
			return
		}
	}
}

// renewLeases tells the drivers how long what they run may live, after each confirmed heartbeat.
func (c *Client) renewLeases(ctx context.Context) {
	for {
		byDriver := map[string]map[string]boottime.Deadline{}
		for id, until := range c.leases.Renewals() {
			runner, err := c.runner(id)
			if err != nil {
				continue
			}
			for _, p := range runner.Processes() {
				if byDriver[p.Driver] == nil {
					byDriver[p.Driver] = map[string]boottime.Deadline{}
				}
				byDriver[p.Driver][p.TaskID] = until
			}
		}
		for name, until := range byDriver {
			c.renew(ctx, name, until)
		}
		select {
		case <-c.wakeRenew:
		case <-ctx.Done():
			return
		}
	}
}

func (c *Client) renew(ctx context.Context, name string, until map[string]boottime.Deadline) {
	d, ok := c.drivers.Get(name)
	if !ok {
		return
	}
	l, ok := d.(driver.Leaser)
	if !ok {
		return // what it runs dies with the agent, or is stopped by it
	}
	ctx, cancel := context.WithTimeout(ctx, renewLimit)
	defer cancel()
	if err := l.Renew(ctx, until); err != nil && ctx.Err() == nil {
		c.log.Warn("leases are not renewed", "driver", name, "error", err)
	}
}
