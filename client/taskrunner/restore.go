package taskrunner

import (
	"context"
	"errors"
	"fmt"

	"github.com/nomadlite/nomadlite/client/driver"
)

// restore takes over what an earlier agent left: a running process through its driver, a start that was under way by
// undoing it. It does nothing for a fresh runner.
func (r *Runner) restore(ctx context.Context) {
	r.mu.Lock()
	phase, handle, exit, id := r.local.Phase, r.local.Handle, r.local.Exit, r.taskID()
	r.mu.Unlock()
	switch {
	case phase == Prestart || phase == Starting:
		// The attempt is on disk, what came after it may not be. Nobody knows whether the driver got as far as a
		// process: make sure that there is none.
		r.undoStart(ctx, id)
		r.change(func(l *Local) { l.Phase = Prestart })
	case !phase.hasProcess() || exit != nil:
	case r.cfg.Driver == nil || handle == nil:
		r.lost(fmt.Errorf("this node has no driver %q any more", r.cfg.Task.Driver))
	default:
		r.recover(ctx, handle, id)
	}
}

func (r *Runner) undoStart(ctx context.Context, id string) {
	if r.cfg.Driver == nil {
		return
	}
	if err := r.cfg.Driver.Destroy(ctx, id, true); err != nil && !errors.Is(err, driver.ErrTaskNotFound) && ctx.Err() == nil {
		r.cfg.Logger.Warn("cannot undo a start that was interrupted", "task", id, "error", err)
	}
}

func (r *Runner) recover(ctx context.Context, handle *driver.Handle, id string) {
	if err := r.cfg.Driver.Recover(ctx, handle); err != nil {
		if ctx.Err() == nil {
			r.lost(err)
		}
		return
	}
	r.cfg.Logger.Debug("task was taken over", "task", id)
	r.change(nil, eventReattached())
	r.watch(ctx, id)
}

// lost says that the process cannot be found; its exit code is unknown, which is never success.
func (r *Runner) lost(err error) {
	r.cfg.Logger.Warn("task cannot be taken over", "task", r.cfg.Task.Name, "error", err)
	r.change(func(l *Local) {
		l.Exit = &Exit{Message: fmt.Sprintf("task was lost while the agent was away: %v", err), At: r.cfg.Clock.Now()}
	}, eventRestoreFailed(err))
}
