package hook

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// Chain is an ordered list of hooks with the journal of what they did. An update may come from another goroutine while
// a point of the same chain runs; all other points come one after the other.
type Chain struct {
	Hooks   []Hook
	Journal Journal
	Logger  hclog.Logger
	// Limit bounds one call of a hook at a point; nil means the default limits.
	Limit func(Point) time.Duration

	journaling sync.Mutex
}

// defaultLimit gives starting hooks the time that large downloads need, and stopping hooks little enough that a stop
// cannot hang.
func defaultLimit(p Point) time.Duration {
	switch p {
	case Prerun, Resume, Prestart:
		return time.Hour
	case Destroy, Postrun:
		return 5 * time.Minute
	default:
		return time.Minute
	}
}

// stopsAtError says that later hooks of the point depend on earlier ones.
func stopsAtError(p Point) bool { return p == Prerun || p == Resume || p == Prestart }

// Alloc runs point for all hooks that have it.
func (c *Chain) Alloc(ctx context.Context, point Point, req AllocRequest) error {
	return c.each(ctx, point, max(req.Attempt, 1), func(ctx context.Context, h Hook, rec Record) (result, error) {
		call := allocCall(h, point)
		if call == nil {
			return result{}, nil
		}
		r, resp := req, AllocResponse{}
		r.Data = rec.Data
		err := call(ctx, &r, &resp)
		return result{ran: true, data: resp.Data}, err
	})
}

// Task runs point for all hooks that have it. What they ask for besides success is handed to emit, which may be nil.
func (c *Chain) Task(ctx context.Context, point Point, req TaskRequest, emit func(*TaskResponse)) error {
	return c.each(ctx, point, req.Attempt, func(ctx context.Context, h Hook, rec Record) (result, error) {
		call := taskCall(h, point)
		if call == nil {
			return result{}, nil
		}
		r, resp := req, TaskResponse{}
		r.Data = rec.Data
		err := call(ctx, &r, &resp)
		if emit != nil && len(resp.Events) > 0 {
			emit(&resp)
		}
		return result{ran: true, data: resp.Data, env: resp.Env, once: resp.Once && err == nil}, err
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

// result is what one call of a hook gives for its record.
type result struct {
	ran       bool
	data, env map[string]string // nil leaves what is there
	once      bool
}

type call func(ctx context.Context, h Hook, rec Record) (result, error)

func (c *Chain) each(ctx context.Context, point Point, attempt uint64, do call) error {
	var faults []error
	for _, h := range c.Hooks {
		rec := c.Journal.Record(h.Name())
		if !point.repeats() && rec.finished(point, attempt) {
			continue
		}
		res, err := c.one(ctx, point, h, rec, do)
		if !res.ran {
			continue
		}
		if err != nil && ctx.Err() != nil {
			// The runner was interrupted, not the hook: it is called again when the runner goes on.
			c.keep(h.Name(), point, res)
			return &Error{Hook: h.Name(), Point: point, Err: err}
		}
		if err != nil {
			err = &Error{Hook: h.Name(), Point: point, Err: err}
			if stopsAtError(point) {
				c.keep(h.Name(), point, res)
				return err
			}
			faults = append(faults, err)
		}
		// A stopping hook that failed is not tried again either: its runner goes on, and so must its successor.
		c.note(h.Name(), point, attempt, res)
	}
	return errors.Join(faults...)
}

// keep writes down what a hook that did not finish wants to know when it is called again.
func (c *Chain) keep(name string, point Point, res result) {
	if res.data == nil || !stopsAtError(point) {
		return
	}
	c.journaling.Lock()
	defer c.journaling.Unlock()
	rec := c.Journal.Record(name)
	rec.Data = res.data
	c.Journal.SetRecord(name, rec)
}

// note writes down what a hook finished. It changes the record as it is by now: another point may have written to it
// while this one ran.
func (c *Chain) note(name string, point Point, attempt uint64, res result) {
	if point.repeats() && res.data == nil && res.env == nil {
		return
	}
	c.journaling.Lock()
	defer c.journaling.Unlock()
	rec := c.Journal.Record(name)
	if res.data != nil {
		rec.Data = res.data
	}
	if res.env != nil {
		rec.Env = res.env
	}
	switch {
	case point.repeats():
	case res.once:
		rec = rec.finish(point, forever)
	case !rec.finished(point, attempt):
		rec = rec.finish(point, attempt)
	}
	if point == Resume { // there is something again that PreKill takes away
		rec = rec.reopen(PreKill)
	}
	c.Journal.SetRecord(name, rec)
}

// repeats says that a point is run each time, whatever was finished before.
func (p Point) repeats() bool { return p == Update || p == Shutdown || p == Reattach }

func (c *Chain) one(ctx context.Context, point Point, h Hook, rec Record, do call) (result, error) {
	limit := defaultLimit(point)
	if c.Limit != nil {
		limit = c.Limit(point)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begin := time.Now()
	res, err := do(ctx, h, rec)
	if res.ran && c.Logger.IsDebug() {
		c.Logger.Debug("hook ran", "hook", h.Name(), "point", string(point), "took", time.Since(begin), "error", err)
	}
	return res, err
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
	case Resume:
		if x, ok := h.(AllocResumer); ok {
			return x.Resume
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
	case Reattach:
		if x, ok := h.(TaskReattacher); ok {
			return x.Reattach
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
