package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/nomadlite/nomadlite/internal/boottime"
)

// leasedTask is what the agent needs to kill a leased task by itself.
type leasedTask struct {
	info  TaskInfo
	until boottime.Deadline // as its supervisor has last acknowledged
	owner *conn
}

// Renew moves the leases of tasks. A task whose supervisor has acknowledged it lives until then at the latest; of one
// that has ended, or whose lease has run out, there is nothing to renew, and that is no error.
func (c *Client) Renew(ctx context.Context, until map[string]boottime.Deadline) error {
	conns, _, err := c.current() // those that are gone have taken their leased tasks with them
	if err != nil {
		return err
	}
	var faults []error
	for _, conn := range conns {
		if conn.hello.Version < leaseVersion {
			continue
		}
		resp, err := conn.call(ctx, request{Op: opRenew, Leases: until})
		if err != nil {
			faults = append(faults, callError(err))
			continue
		}
		for _, info := range resp.Tasks {
			c.noteLease(conn, info, until[info.ID])
		}
	}
	return errors.Join(faults...)
}

func (c *Client) noteLease(conn *conn, info TaskInfo, until boottime.Deadline) {
	c.mu.Lock()
	c.leased[info.ID] = leasedTask{info, until, conn}
	c.mu.Unlock()
	c.tellLeases()
}

// tellLeases wakes KeepLeases.
func (c *Client) tellLeases() {
	select {
	case c.leaseNews <- struct{}{}:
	default:
	}
}

// KeepLeases kills leased tasks itself when their supervisor is gone, or does not do so in time, until ctx is done.
func (c *Client) KeepLeases(ctx context.Context) {
	alarm := boottime.NewAlarm(boottime.System())
	defer alarm.Close()
	for {
		lost, next := c.overdue()
		for _, t := range lost {
			c.logger.Warn("killing a leased task whose supervisor cannot", "task", t.info.ID, "pid", t.info.PID)
			if err := t.info.kill(); err != nil {
				c.logger.Error("leased task is not killed", "task", t.info.ID, "error", err)
			}
		}
		if next >= 0 {
			alarm.Set(next)
		}
		select {
		case <-ctx.Done():
			return
		case <-alarm.C:
		case <-c.leaseNews:
		}
	}
}

// overdue takes out the tasks that nobody else kills, and says when to look again on the boot-time clock; negative for
// never.
func (c *Client) overdue() (lost []leasedTask, next time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next = -1
	clock := boottime.System()
	for id, t := range c.leased {
		switch {
		case c.closed:
		case !t.owner.alive(), t.until.Remaining(clock) <= -overdueGrace:
			lost = append(lost, t)
			delete(c.leased, id)
		case next < 0 || t.until.At+overdueGrace < next:
			next = t.until.At + overdueGrace
		}
	}
	return lost, next
}

// overdueGrace is how long after the end of a lease the supervisor may take to kill, before the agent does so too.
const overdueGrace = 250 * time.Millisecond

// kill kills every process of the task.
func (i *TaskInfo) kill() error {
	if i.Cgroup != "" {
		return killCgroup(i.Cgroup)
	}
	return tree{leader: i.PID, tick: i.StartTick, marks: i.Marks}.kill()
}
