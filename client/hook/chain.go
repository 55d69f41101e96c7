package hook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Error is a fault of one hook; its text names the hook.
type Error struct {
	Hook  string
	Point Point
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("%s hook %q failed: %v", e.Point, e.Hook, e.Err) }

// Unwrap gives the hook's own error.
func (e *Error) Unwrap() error { return e.Err }

// Chain is an ordered list of hooks with the journal of what they did.
type Chain struct {
	Hooks   []Hook
	Journal Journal
	Logger  hclog.Logger
	// Limit bounds one call of a hook at a point; nil means the default limits.
	Limit func(Point) time.Duration
}

// defaultLimit gives starting hooks the time that large downloads need, and stopping hooks little enough that a stop
// cannot hang.
func defaultLimit(p Point) time.Duration {
	switch p {
	case Prerun, Prestart:
		return time.Hour
	case Destroy, Postrun:
		return 5 * time.Minute
	default:
		return time.Minute
	}
}

// stopsAtError says that later hooks of the point depend on earlier ones.
func stopsAtError(p Point) bool { return p == Prerun || p == Prestart }

// Alloc runs point for all hooks that have it.
func (c *Chain) Alloc(ctx context.Context, point Point, req AllocRequest) error {
	return c.each(ctx, point, 1, func(ctx context.Context, h Hook, rec *Record) (bool, error) {
		call := allocCall(h, point)
		if call == nil {
			return false, nil
		}
		r, resp := req, AllocResponse{}
		r.Data = rec.Data
		err := call(ctx, &r, &resp)
		if resp.Data != nil {
			rec.Data = resp.Data
		}
		return true, err
	})
}

// Task runs point for all hooks that have it. What they ask for besides success is handed to emit, which may be nil.
func (c *Chain) Task(ctx context.Context, point Point, req TaskRequest, emit func(*TaskResponse)) error {
	return c.each(ctx, point, req.Attempt, func(ctx context.Context, h Hook, rec *Record) (bool, error) {
		call := taskCall(h, point)
		if call == nil {
			return false, nil
		}
		r, resp := req, TaskResponse{}
		r.Data = rec.Data
		err := call(ctx, &r, &resp)
		if resp.Data != nil {
			rec.Data = resp.Data
		}
		if resp.Env != nil {
			rec.Env = resp.Env
		}
		if resp.Once && err == nil {
			*rec = rec.finish(point, forever)
		}
		if emit != nil && len(resp.Events) > 0 {
			emit(&resp)
		}
		return true, err
	})
}

// Env is what the prestart hooks add to the task's environment.
func (c *Chain) Env() map[string]string {
	var env map[string]string
	for _, h := range c.Hooks {
		for k, v := range c.Journal.Record(h.Name()).Env {
			if env == nil {
				env = make(map[string]string)
			}
			env[k] = v
		}
	}
	return env
}

type call func(ctx context.Context, h Hook, rec *Record) (ran bool, err error)

func (c *Chain) each(ctx context.Context, point Point, attempt uint64, do call) error {
	var faults []error
	for _, h := range c.Hooks {
		rec := c.Journal.Record(h.Name())
		if repeats := point == Update || point == Shutdown; !repeats && rec.finished(point, attempt) {
			continue
		}
		ran, err := c.one(ctx, point, h, &rec, do)
		if !ran {
			continue
		}
		if err != nil && ctx.Err() != nil {
			// The runner was interrupted, not the hook: it is called again when the runner goes on.
			return &Error{Hook: h.Name(), Point: point, Err: err}
		}
		if err != nil {
			err = &Error{Hook: h.Name(), Point: point, Err: err}
			if stopsAtError(point) {
				return err
			}
			faults = append(faults, err)
		}
		// A stopping hook that failed is not tried again either: its runner goes on, and so must its successor.
		if !rec.finished(point, attempt) {
			rec = rec.finish(point, attempt)
		}
		c.Journal.SetRecord(h.Name(), rec)
	}
	return errors.Join(faults...)
}

func (c *Chain) one(ctx context.Context, point Point, h Hook, rec *Record, do call) (bool, error) {
	limit := defaultLimit(point)
	if c.Limit != nil {
		limit = c.Limit(point)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begin := time.Now()
	ran, err := do(ctx, h, rec)
	if ran && c.Logger.IsDebug() {
		c.Logger.Debug("hook ran", "hook", h.Name(), "point", string(point), "took", time.Since(begin), "error", err)
	}
	return ran, err
}

func allocCall(h Hook, point Point) func(context.Context, *AllocRequest, *AllocResponse) error {
	switch point {
	case Prerun:
		if x, ok := h.(AllocPrerunner); ok {
			return x.Prerun
		}
	case Update:
		if x, ok := h.(AllocUpdater); ok {
			return x.Update
		}
	case Prestop:
		if x, ok := h.(AllocPrestopper); ok {
			return x.Prestop
		}
	case PreKill:
		if x, ok := h.(AllocPreKiller); ok {
			return x.PreKill
		}
	case Postrun:
		if x, ok := h.(AllocPostrunner); ok {
			return x.Postrun
		}
	case Destroy:
		if x, ok := h.(AllocDestroyer); ok {
			return x.Destroy
		}
	case Shutdown:
		if x, ok := h.(AllocShutdowner); ok {
			return x.Shutdown
		}
	}
	return nil
}

func taskCall(h Hook, point Point) func(context.Context, *TaskRequest, *TaskResponse) error {
	switch point {
	case Prestart:
		if x, ok := h.(TaskPrestarter); ok {
			return x.Prestart
		}
	case Poststart:
		if x, ok := h.(TaskPoststarter); ok {
			return x.Poststart
		}
	case Prestop:
		if x, ok := h.(TaskPrestopper); ok {
			return x.Prestop
		}
	case PreKill:
		if x, ok := h.(TaskPreKiller); ok {
			return x.PreKill
		}
	case Exited:
		if x, ok := h.(TaskExiter); ok {
			return x.Exited
		}
	case Stop:
		if x, ok := h.(TaskStopper); ok {
			return x.Stop
		}
	case Update:
		if x, ok := h.(TaskUpdater); ok {
			return x.Update
		}
	}
	return nil
}
