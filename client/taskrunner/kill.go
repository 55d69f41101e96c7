package taskrunner

import (
	"context"
	"errors"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/internal/pause"
	"github.com/nomadlite/nomadlite/structs"
)

// Kill ends the task for good, whatever it is doing. The first call decides why (events are shown then); later ones
// may only make the terms stricter: a shutdown_delay under way ends at once, a kill_timeout becomes the smaller of
// what is left and what is asked.
func (r *Runner) Kill(o Order, events ...*structs.TaskEvent) {
	r.mu.Lock()
	if r.local.Phase == Dead {
		r.mu.Unlock()
		return
	}
	stop := r.local.Stop.hasten(o)
	if r.local.Stop != nil {
		events = nil
		if r.local.Stop.sameTerms(stop) {
			r.mu.Unlock()
			return
		}
	}
	r.changeLocked(func(l *Local) { l.Stop = stop }, events...)
	if r.interrupt != nil {
		r.interrupt()
	}
	r.mu.Unlock()
	r.nudge()
	r.cfg.Changed()
}

// killTimeout is the time between kill_signal and SIGKILL on the terms of o; the caller holds the lock.
func (r *Runner) killTimeout(o *Order) time.Duration {
	timeout := structs.DefaultKillTimeout
	if r.task.KillTimeout != nil {
		timeout = *r.task.KillTimeout
	}
	timeout = min(timeout, r.cfg.MaxKillTimeout)
	if o != nil && o.KillTimeout != nil {
		timeout = min(timeout, *o.KillTimeout)
	}
	return max(timeout, 0)
}

// beginKill asks the driver to end the process; its end arrives through watch. After a restart of the agent it asks
// again, for the time that is left.
func (r *Runner) beginKill(ctx context.Context) {
	r.mu.Lock()
	order := r.local.order()
	timeout := r.killTimeout(order)
	var events []*structs.TaskEvent
	switch {
	case r.local.Phase == Killing:
		timeout = max(min(timeout, r.local.Until.Remaining(r.cfg.Clock)), 0)
	case r.task.ShutdownDelay > 0 && order != nil && order.NoShutdownDelay:
		events = append(events, EventSkippingDelay())
	}
	if r.local.Phase != Killing {
		events = append(events, eventKilling(order, r.task.KillSignal, timeout))
	}
	r.killSent = true
	r.changeLocked(func(l *Local) {
		l.Phase, l.Until = Killing, boottime.After(r.cfg.Clock, timeout)
	}, events...)
	r.mu.Unlock()
	r.cfg.Changed()
	r.stopProcess(ctx, timeout)
}

// shortenKill asks the driver again when the terms became stricter while kill_timeout runs.
func (r *Runner) shortenKill(ctx context.Context) {
	r.mu.Lock()
	order := r.local.order()
	if r.local.Phase != Killing || r.local.Exit != nil || order == nil || order.KillTimeout == nil {
		r.mu.Unlock()
		return
	}
	timeout := r.killTimeout(order)
	if r.local.Until.Remaining(r.cfg.Clock) <= timeout {
		r.mu.Unlock()
		return
	}
	r.changeLocked(func(l *Local) { l.Until = boottime.After(r.cfg.Clock, timeout) })
	r.mu.Unlock()
	r.stopProcess(ctx, timeout)
}

// stopProcess runs beside the loop, so that a second one can shorten the first. A driver that cannot be asked is asked
// again, for what is left of the time; one that refuses kills the task.
func (r *Runner) stopProcess(ctx context.Context, timeout time.Duration) {
	r.mu.Lock()
	id, signal := r.taskID(), r.task.KillSignal
	r.mu.Unlock()
	deadline := boottime.After(r.cfg.Clock, timeout)
	r.procs.Go(func() {
		for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
			left := max(deadline.Remaining(r.cfg.Clock), 0)
			err := r.cfg.Driver.Stop(ctx, id, signal, left)
			if ctx.Err() != nil || errors.Is(err, driver.ErrTaskNotFound) {
				return
			}
			r.mu.Lock()
			r.killErr = err
			r.mu.Unlock()
			if err == nil {
				return
			}
			if left == 0 || structs.ErrorCode(err) == structs.CodeInvalid {
				r.cfg.Logger.Error("driver cannot stop the task, killing it", "task", id, "error", err)
				if err = r.cfg.Driver.Destroy(ctx, id, true); err == nil || errors.Is(err, driver.ErrTaskNotFound) {
					return
				}
			}
			r.cfg.Logger.Error("driver does not end the task, trying again", "task", id, "error", err)
			if !pause.For(ctx, wait) || r.exited() {
				return
			}
		}
	})
}

// exited says that the process under way has ended.
func (r *Runner) exited() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.local.Exit != nil || !r.local.Phase.hasProcess()
}
