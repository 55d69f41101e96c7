package taskrunner

import (
	"context"
	"errors"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// ErrNotRunning answers requests that need a running task.
//
//lint:ignore ST1005 the text is the public interface's
var ErrNotRunning = errors.New("Task not running")

// Release lets the task start, or start again after Park.
func (r *Runner) Release() {
	r.mu.Lock()
	r.released = true
	if r.local.Parked {
		r.changeLocked(func(l *Local) { l.Parked = false })
	}
	r.mu.Unlock()
	r.nudge()
}

// Prestop runs the task's prestop hooks if it has a process; it is the first part of a stop.
func (r *Runner) Prestop(ctx context.Context) error {
	if !r.View().Phase.hasProcess() {
		return nil
	}
	err := r.hooks(ctx, hook.Prestop)
	if err != nil && ctx.Err() == nil {
		r.change(nil, eventHookFailed(err))
	}
	return err
}

// Restart ends the running process and starts the task again; the restart policy neither limits nor delays that.
// ErrNotRunning when there is nothing to restart. The channel is closed once the request is durable.
func (r *Runner) Restart(o Order) (<-chan struct{}, error) {
	r.mu.Lock()
	if r.local.State.State != structs.TaskStateRunning || r.local.Stop != nil {
		r.mu.Unlock()
		return nil, ErrNotRunning
	}
	var events []*structs.TaskEvent
	if r.local.Restart == nil {
		events = append(events, eventRestartSignal(o.Reason))
	}
	o.Reason = ""
	durable := r.changeLocked(func(l *Local) { l.Restart = l.Restart.hasten(o) }, events...)
	r.mu.Unlock()
	r.nudge()
	r.cfg.Changed()
	return durable, nil
}

// RestartAsked shows that a restart of the whole allocation was asked for, if the task is not over.
func (r *Runner) RestartAsked(reason string) {
	if r.View().Phase != Dead {
		r.change(nil, eventRestartSignal(reason))
	}
}

// Park brings the task down for a restart of the whole allocation, whatever it is doing: it then waits to be released.
// Later calls may only make the terms stricter, as with Kill. A task that is over or is to end stays as it is.
func (r *Runner) Park(o Order) {
	o.Park, o.Reason = true, ""
	r.mu.Lock()
	restart := r.local.Restart.hasten(o)
	restart.Park = true
	down := r.local.Phase == Dead || r.local.Phase == Waiting || r.local.Parked || r.local.Stop != nil
	if down || r.local.parking() && r.local.Restart.sameTerms(restart) {
		r.mu.Unlock()
		return
	}
	r.changeLocked(func(l *Local) { l.Restart = restart })
	if r.interrupt != nil {
		r.interrupt()
	}
	r.mu.Unlock()
	r.nudge()
	r.cfg.Changed()
}

// Reset makes a dead task ready for another life; Run must be called again. It is how all tasks of an allocation,
// those that have ended included, are restarted in their order.
func (r *Runner) Reset(reason string) bool {
	r.mu.Lock()
	if r.local.Phase != Dead {
		r.mu.Unlock()
		return false
	}
	r.released, r.dead = false, make(chan struct{})
	r.changeLocked(func(l *Local) {
		l.Phase, l.Stop, l.Restart, l.Exit, l.Handle, l.Parked = Waiting, nil, nil, nil, nil, false
		l.Until = boottime.Deadline{}
		s := *l.State
		s.State, s.Failed = structs.TaskStatePending, false
		s.Restarts, s.LastRestart = s.Restarts+1, r.cfg.Clock.Now().UTC()
		s.FinishedAt = time.Time{}
		l.State = &s
	}, eventRestartSignal(reason))
	r.mu.Unlock()
	r.cfg.Changed()
	return true
}

// Signal sends a signal to the running process.
func (r *Runner) Signal(ctx context.Context, signal, reason string) error {
	r.mu.Lock()
	running, id := r.local.State.State == structs.TaskStateRunning && r.local.Handle != nil, r.taskID()
	r.mu.Unlock()
	if !running {
		return ErrNotRunning
	}
	if !r.cfg.Driver.Capabilities().SendSignals {
		return structs.Errorf(structs.CodeInvalid, "driver %q does not support signals", r.cfg.Task.Driver)
	}
	if _, err := driver.ParseSignal(signal); err != nil {
		return err
	}
	r.change(nil, eventSignaling(signal, reason))
	return r.cfg.Driver.Signal(ctx, id, signal)
}

// Stats asks the driver for what the running process uses; nil when there is none.
func (r *Runner) Stats(ctx context.Context) (*structs.TaskResourceUsage, error) {
	r.mu.Lock()
	running, id := r.local.Phase.hasProcess() && r.local.Exit == nil, r.taskID()
	r.mu.Unlock()
	if !running || r.cfg.Driver == nil {
		return nil, nil
	}
	usage, err := r.cfg.Driver.Stats(ctx, id)
	if errors.Is(err, driver.ErrTaskNotFound) {
		return nil, nil // it has just ended
	}
	return usage, err
}

// Emit adds events to the task's list.
func (r *Runner) Emit(events ...*structs.TaskEvent) { r.change(nil, events...) }

// Update hands in a new specification after an in-place update. What runs goes on; the new one counts from the next
// start, restart decision or stop.
func (r *Runner) Update(ctx context.Context, alloc *structs.Allocation, task *structs.Task) error {
	r.mu.Lock()
	r.alloc, r.task = alloc, task
	alive := r.local.Phase != Waiting && r.local.Phase != Dead
	r.mu.Unlock()
	if !alive {
		return nil
	}
	return r.hooks(ctx, hook.Update)
}
