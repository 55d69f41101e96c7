package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Allocations are the calls about allocations.
type Allocations struct{ client *Client }

// Allocations gives the calls about allocations.
func (c *Client) Allocations() *Allocations { return &Allocations{client: c} }

// StopOptions say how an allocation is stopped.
type StopOptions struct {
	NoShutdownDelay bool
	Reschedule      bool           // place the replacement by the reschedule policy, on another node
	KillTimeout     *time.Duration // shortens the wait before SIGKILL for this stop alone
}

// RestartOptions say which tasks of an allocation are restarted, and how.
type RestartOptions struct {
	Task            string // empty: all that run
	AllTasks        bool   // also those that have ended
	NoShutdownDelay bool
	KillTimeout     *time.Duration
}

// List gives the stubs of allocations.
func (a *Allocations) List(ctx context.Context, q *QueryOptions) ([]*structs.AllocationListStub, *QueryMeta, error) {
	var out []*structs.AllocationListStub
	meta, err := a.client.get(ctx, "/v1/allocations", q, &out)
	return out, meta, err
}

// Info gives one allocation with its job.
func (a *Allocations) Info(ctx context.Context, id string, q *QueryOptions) (*structs.Allocation, *QueryMeta, error) {
	var out structs.Allocation
	meta, err := a.client.get(ctx, "/v1/allocation/"+url.PathEscape(id), q, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Stop stops an allocation; the evaluation replaces it. A nil opts means none.
func (a *Allocations) Stop(ctx context.Context, id string, opts *StopOptions, w *WriteOptions) (
	*structs.AllocStopResponse, *WriteMeta, error,
) {
	params := map[string]string{}
	if opts != nil {
		setTrue(params, "no_shutdown_delay", opts.NoShutdownDelay)
		setTrue(params, "reschedule", opts.Reschedule)
		if opts.KillTimeout != nil {
			params["kill_timeout"] = opts.KillTimeout.String()
		}
	}
	var out structs.AllocStopResponse
	path := "/v1/allocation/" + url.PathEscape(id) + "/stop"
	meta, err := a.client.write(ctx, http.MethodPut, path, w.with(params), nil, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Checks gives the newest results of the health checks of an allocation, from its node.
func (a *Allocations) Checks(ctx context.Context, id string, q *QueryOptions) (structs.AllocCheckStatuses, error) {
	var out structs.AllocCheckStatuses
	_, err := a.client.get(ctx, "/v1/client/allocation/"+url.PathEscape(id)+"/checks", q, &out)
	return out, err
}

// Restart restarts tasks of an allocation where it runs.
func (a *Allocations) Restart(ctx context.Context, id string, opts RestartOptions, w *WriteOptions) error {
	params := map[string]string{}
	setTrue(params, "no_shutdown_delay", opts.NoShutdownDelay)
	if opts.KillTimeout != nil {
		params["kill_timeout"] = opts.KillTimeout.String()
	}
	req := structs.AllocationRestartRequest{TaskName: opts.Task, AllTasks: opts.AllTasks}
	path := "/v1/client/allocation/" + url.PathEscape(id) + "/restart"
	_, err := a.client.write(ctx, http.MethodPut, path, w.with(params), req, nil)
	return err
}

// Signal sends a signal to one task of an allocation, or to all of them when task is empty.
func (a *Allocations) Signal(ctx context.Context, id, task, signal string, w *WriteOptions) error {
	req := structs.AllocSignalRequest{Task: task, Signal: signal}
	path := "/v1/client/allocation/" + url.PathEscape(id) + "/signal"
	_, err := a.client.write(ctx, http.MethodPut, path, w, req, nil)
	return err
}

// Stats gives what an allocation uses now.
func (a *Allocations) Stats(ctx context.Context, id string, q *QueryOptions) (*structs.AllocResourceUsage, error) {
	var out structs.AllocResourceUsage
	path := "/v1/client/allocation/" + url.PathEscape(id) + "/stats"
	if _, err := a.client.get(ctx, path, q, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// GC removes what a stopped allocation left on its node.
func (a *Allocations) GC(ctx context.Context, id string, q *QueryOptions) error {
	_, err := a.client.get(ctx, "/v1/client/allocation/"+url.PathEscape(id)+"/gc", q, nil)
	return err
}
