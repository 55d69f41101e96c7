package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/service"
	"github.com/nomadlite/nomadlite/client/service/check"
	"github.com/nomadlite/nomadlite/client/state"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/structs"
)

// checkTasks are the tasks of all allocations as their checks reach them.
type checkTasks struct{ client *Client }

var (
	_ check.Execer    = checkTasks{}
	_ check.Restarter = checkTasks{}
	_ check.Store     = store{}
)

func (t checkTasks) Exec(ctx context.Context, allocID, task string, command []string) (int, string, error) {
	r, err := t.client.runner(allocID)
	if err != nil {
		return 0, "", check.ErrGone
	}
	var out check.Head
	code, err := r.Exec(ctx, task, &driver.ExecRequest{Command: command, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
	if errors.Is(err, taskrunner.ErrNotRunning) {
		err = check.ErrGone
	}
	return code, out.String(), err
}

func (t checkTasks) Restart(allocID, task, reason string) error {
	r, err := t.client.runner(allocID)
	if err != nil {
		return err
	}
	return r.RestartUnhealthy(task, reason)
}

// SaveChecks keeps the results of an allocation's checks.
func (s store) SaveChecks(allocID string, list []structs.AllocCheckStatus) {
	if len(list) == 0 {
		s.db.Delete(state.Checks, allocID)
		return
	}
	s.db.Put(state.Checks, allocID, list, nil)
}

func (c *Client) newChecks() *check.Board {
	tasks := checkTasks{c}
	return check.New(check.Config{
		Prober: check.Probes{Tasks: tasks}, Restarter: tasks, Store: store{c.db}, Random: rand.Float64,
		Changed: func(allocID string) {
			if r, err := c.runner(allocID); err == nil {
				r.Look()
			}
		},
	})
}

// restoreChecks takes over what an earlier agent knew. It runs after restore.
func (c *Client) restoreChecks() error {
	bad := func(key string, err error) { c.log.Error("damaged record in client state", "key", key, "error", err) }
	err := state.Each(c.db, state.Checks, func(id string, list *[]structs.AllocCheckStatus) {
		if h := c.held[id]; list == nil || h == nil || h.runner == nil {
			c.db.Delete(state.Checks, id)
			return
		}
		c.checks.Restore(id, *list)
	}, bad)
	if err != nil {
		return err
	}
	for id, h := range c.held {
		if h.runner == nil || h.runner.Terminal() {
			continue
		}
		if err := c.serviceContext().Restore(h.alloc, h.runner.HookData(service.HookName)); err != nil {
			c.log.Error("checks of an earlier agent are not asked", "alloc", id, "error", err)
		}
	}
	return nil
}

// Checks are the newest results of the allocation's checks.
func (d durable) Checks() structs.AllocCheckStatuses { return d.client.checks.Statuses(d.ID()) }
