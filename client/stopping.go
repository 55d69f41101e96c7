package client

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/taskrunner"
)

// stopNotice tells the agent's log that an allocation begins to go down.
type stopNotice struct{ log hclog.Logger }

var _ hook.AllocPrestopper = (*stopNotice)(nil)

func (*stopNotice) Name() string { return "stop_notice" }

func (h *stopNotice) Prestop(_ context.Context, r *hook.AllocRequest, _ *hook.AllocResponse) error {
	h.log.Info("allocation goes down", "alloc", r.Alloc.ID, "job", r.Alloc.JobID, "desired", r.Alloc.DesiredStatus,
		"no_shutdown_delay", r.NoShutdownDelay)
	return nil
}

// taskStopNotice opens the events of a task's end, before anything of it has happened.
type taskStopNotice struct{}

var _ hook.TaskPrestopper = (*taskStopNotice)(nil)

func (*taskStopNotice) Name() string { return "stop_notice" }

func (*taskStopNotice) Prestop(_ context.Context, _ *hook.TaskRequest, resp *hook.TaskResponse) error {
	resp.Events = append(resp.Events, taskrunner.EventGoingDown())
	return nil
}
