package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/internal/pause"
)

// restore takes over what an earlier agent left: a running process through its driver, and what a start that was under
// way has brought about. It does nothing for a fresh runner.
func (r *Runner) restore(ctx context.Context) {
	r.mu.Lock()
	phase, handle, exit, id := r.local.Phase, r.local.Handle, r.local.Exit, r.taskID()
	r.mu.Unlock()
	switch {
	case phase == Prestart || phase == Starting:
		r.resumeStart(ctx, id)
	case !phase.hasProcess() || exit != nil:
	case r.cfg.Driver == nil || handle == nil:
		r.lost(fmt.Errorf("this node has no driver %q any more", r.cfg.Task.Driver))
	default:
		r.recover(ctx, handle, id)
	}
}

// resumeStart goes on with an attempt of which nobody knows whether the driver got as far as a process: only that it is
// on disk. A process is taken over, since an attempt is run once. A driver that cannot tell is to make sure that there
// is none.
func (r *Runner) resumeStart(ctx context.Context, id string) {
	handle := r.find(ctx, id)
	if ctx.Err() != nil {
		return // the next agent asks again
	}
	if _, ok := r.cfg.Driver.(driver.Finder); !ok {
		r.undoStart(ctx, id)
	}
	if handle == nil {
		r.change(func(l *Local) { l.Phase = Prestart })
		return
	}
	at := r.cfg.Clock.Now()
	if s, err := r.cfg.Driver.Inspect(ctx, id); err == nil && !s.StartedAt.IsZero() {
		at = s.StartedAt
	}
	r.begun(handle, at)
	r.reattached(ctx, id)
}

// find asks for the process of an attempt; nil when there is none, the driver cannot tell, or the agent ends.
func (r *Runner) find(ctx context.Context, id string) *driver.Handle {
	finder, ok := r.cfg.Driver.(driver.Finder)
	if !ok {
		return nil
	}
	var handle *driver.Handle
	err := r.insist(ctx, "find what became of a start that was interrupted", id, func() (err error) {
		handle, err = finder.Find(ctx, id)
		return err
	})
	if err != nil {
		return nil
	}
	return handle
}

func (r *Runner) undoStart(ctx context.Context, id string) {
	if r.cfg.Driver == nil {
		return
	}
	_ = r.insist(ctx, "undo a start that was interrupted", id, func() error { return r.cfg.Driver.Destroy(ctx, id, true) })
}

func (r *Runner) recover(ctx context.Context, handle *driver.Handle, id string) {
	err := r.insist(ctx, "take the task over", id, func() error { return r.cfg.Driver.Recover(ctx, handle) })
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.lost(err)
	default:
		r.reattached(ctx, id)
	}
}

func (r *Runner) reattached(ctx context.Context, id string) {
	r.cfg.Logger.Debug("task was taken over", "task", id)
	r.change(nil, eventReattached())
	if err := r.hooks(ctx, hook.Reattach); err != nil && ctx.Err() == nil {
		r.change(nil, eventHookFailed(err))
	}
	if s, err := r.cfg.Driver.Inspect(ctx, id); err == nil && !s.Running {
		r.awaitExit(ctx, id) // it ended meanwhile, which is known at once and settles what became of it
		return
	}
	r.watch(ctx, id)
}

// insist asks the driver until it has an answer: nil, or ErrTaskNotFound. While it cannot tell (its supervisor does not
// start, say) the task may well run, and a second one beside it would be worse than waiting.
func (r *Runner) insist(ctx context.Context, what, id string, ask func() error) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := ask()
		if err == nil || errors.Is(err, driver.ErrTaskNotFound) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.cfg.Logger.Warn("cannot "+what+", trying again", "task", id, "error", err)
		if !pause.For(ctx, wait) {
			return ctx.Err()
		}
	}
}

// lost says that the process cannot be found; its exit code is unknown, which is never success.
func (r *Runner) lost(err error) {
	r.cfg.Logger.Warn("task cannot be taken over", "task", r.cfg.Task.Name, "error", err)
	r.change(func(l *Local) {
		l.Exit = &Exit{Message: fmt.Sprintf("task was lost while the agent was away: %v", err), At: r.cfg.Clock.Now()}
	}, eventRestoreFailed(err))
}
