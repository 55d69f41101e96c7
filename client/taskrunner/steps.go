package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/restart"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/internal/pause"
	"github.com/nomadlite/nomadlite/structs"
)

func (r *Runner) take(ctx context.Context, s step) {
	switch s {
	case begin:
		r.begin()
	case park:
		r.park()
	case runPrestart:
		r.prestart(ctx)
	case startDriver:
		r.start(ctx)
	case runPoststart:
		r.poststart(ctx)
	case runPreKill:
		r.preKill(ctx)
	case beginKill:
		r.beginKill(ctx)
	case handleExit:
		r.handleExit(ctx)
	case runStop:
		r.finish(ctx)
	}
}

// begin opens a new attempt.
func (r *Runner) begin() {
	r.change(func(l *Local) {
		l.Phase, l.Attempt = Prestart, l.Attempt+1
		l.Handle, l.Exit, l.Restart, l.Until = nil, nil, nil, boottime.Deadline{}
		r.killSent, r.killErr = false, nil
	})
}

// park keeps a task down that has no process.
func (r *Runner) park() {
	r.change(func(l *Local) {
		l.Phase, l.Parked, l.Restart, l.Handle, l.Exit, l.Until = Backoff, true, nil, nil, nil, boottime.Deadline{}
		s := *l.State
		s.State = structs.TaskStatePending
		l.State = &s
	})
}

// interruptible gives a context that ends when the task is to stop, or to go down for a restart of the allocation.
func (r *Runner) interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.local.Stop != nil || r.local.parking() {
		cancel()
	}
	r.interrupt = cancel
	return ctx, func() {
		cancel()
		r.mu.Lock()
		r.interrupt = nil
		r.mu.Unlock()
	}
}

func (r *Runner) prestart(ctx context.Context) {
	inner, done := r.interruptible(ctx)
	defer done()
	err := r.hooks(inner, hook.Prestart)
	switch {
	case inner.Err() != nil: // stopped or shut down: the loop knows what to do
	case err != nil:
		r.startFailed(err, eventHookFailed(err))
	default:
		durable := r.change(func(l *Local) { l.Phase = Starting })
		r.mu.Lock()
		r.attempted = durable
		r.mu.Unlock()
	}
}

func (r *Runner) start(ctx context.Context) {
	inner, done := r.interruptible(ctx)
	defer done()
	if r.cfg.Driver == nil {
		err := fmt.Errorf("%w: this node has no driver %q", driver.ErrUnrecoverable, r.cfg.Task.Driver)
		r.startFailed(err, eventValidation(err))
		return
	}
	r.mu.Lock()
	req := BuildRequest{TaskID: r.taskID(), Alloc: r.alloc, Task: r.task}
	attempted := r.attempted
	r.mu.Unlock()
	req.HookEnv = r.chain.Env()
	cfg, err := r.cfg.Build(inner, req)
	if err != nil {
		if inner.Err() == nil {
			r.startFailed(err, EventSetupFailure(err))
		}
		return
	}
	select { // the driver may not know a task which the disk does not, nor one whose hooks it knows less of
	case <-attempted:
	case <-inner.Done():
		return
	}
	starting, given := unhurried(ctx, inner)
	defer given()
	cfg.Event = func(message string) { r.Emit(eventDriver(message)) }
	handle, err := r.cfg.Driver.Start(starting, cfg)
	switch {
	case err == nil:
	case inner.Err() == nil:
		r.startFailed(err, eventDriverFailure(err))
		return
	case ctx.Err() == nil: // it was given up, and nobody knows whether the driver got as far as a process
		if handle = r.find(ctx, cfg.ID); handle == nil {
			r.undoStart(ctx, cfg.ID)
			return
		}
		// What has begun is ended in the order of a stop, by its signal.
	default: // the next agent finds out
		return
	}
	r.begun(handle, r.cfg.Clock.Now())
	r.watch(ctx, cfg.ID)
}

// startGrace is how long a start that is under way may still take when the agent ends: given up, it would be undone, and
// a process that has begun its work would be run a second time.
const startGrace = 5 * time.Second

// unhurried gives the context of a driver's start. It ends with inner when the task is to stop, and startGrace later when
// it is the agent that ends.
func unhurried(ctx, inner context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(inner, func() {
		if ctx.Err() == nil || pause.For(out, startGrace) {
			cancel()
		}
	})
	return out, func() {
		stop()
		cancel()
	}
}

// begun notes that the process is there.
func (r *Runner) begun(handle *driver.Handle, at time.Time) {
	started := eventStarted()
	started.Time = at.UnixNano()
	r.change(func(l *Local) {
		l.Handle, l.Phase = handle, Poststart
		s := *l.State
		s.State, s.StartedAt = structs.TaskStateRunning, at.UTC()
		l.State = &s
	}, started)
}

// taskID is unique on the node for each attempt; the caller holds the lock.
func (r *Runner) taskID() string {
	return fmt.Sprintf("%s/%s/%d", r.cfg.Alloc.ID, r.cfg.Task.Name, r.local.Attempt)
}

// startFailed lets the restart policy decide about a start that did not work.
func (r *Runner) startFailed(err error, why *structs.TaskEvent) {
	r.mu.Lock()
	stopping := r.local.Stop != nil
	policy := restart.PolicyOf(structs.Val(r.alloc.Job.Type), r.task, r.alloc.Group())
	memory := r.local.Memory
	r.mu.Unlock()
	if stopping {
		r.change(nil, why)
		return
	}
	ended := restart.Ended{Unrecoverable: errors.Is(err, driver.ErrUnrecoverable)}
	why.FailsTask = false
	delete(why.Details, "fails_task")
	r.decided(restart.Decide(policy, memory, ended, r.cfg.Clock.Now(), r.cfg.Random()))(why)
}

// decided gives a function that carries the decision out, so that a caller can put its own event first.
func (r *Runner) decided(d restart.Decision, memory restart.Memory) func(first ...*structs.TaskEvent) {
	return func(first ...*structs.TaskEvent) {
		var next *structs.TaskEvent
		switch d.Verdict {
		case restart.Again:
			next = eventRestarting(d)
		case restart.Failed:
			next = eventNotRestarting(d.Reason)
		}
		if next != nil {
			first = append(first, next)
		}
		r.change(func(l *Local) {
			parked, waits := l.parking(), l.Restart != nil && l.Restart.Unhealthy
			l.Memory, l.Restart = memory, nil
			if d.Verdict != restart.Again {
				l.Phase = Finishing
				return
			}
			l.Phase, l.Handle, l.Exit, l.Parked = Backoff, nil, nil, parked
			l.Until = boottime.After(r.cfg.Clock, d.Delay)
			if parked && !waits { // whoever releases it has waited already
				l.Until = boottime.Deadline{}
			}
			s := *l.State
			s.State, s.Restarts, s.LastRestart = structs.TaskStatePending, s.Restarts+1, r.cfg.Clock.Now().UTC()
			l.State = &s
		}, first...)
	}
}

func (r *Runner) poststart(ctx context.Context) {
	if err := r.hooks(ctx, hook.Poststart); err != nil {
		if ctx.Err() != nil {
			return
		}
		r.cfg.Logger.Warn("poststart failed", "task", r.cfg.Task.Name, "error", err)
		r.change(nil, eventHookFailed(err))
	}
	r.change(func(l *Local) {
		if l.Phase == Poststart {
			l.Phase = Running
		}
	})
}

// preKill runs the hooks, then begins the wait or skips it. The deadline is durable before it is waited for.
func (r *Runner) preKill(ctx context.Context) {
	r.change(func(l *Local) { l.Phase = PreKill })
	if err := r.hooks(ctx, hook.PreKill); err != nil {
		if ctx.Err() != nil {
			return
		}
		r.change(nil, eventHookFailed(err))
	}
	r.mu.Lock()
	delay := r.task.ShutdownDelay
	skip := r.local.order() != nil && r.local.order().NoShutdownDelay
	r.mu.Unlock()
	if delay <= 0 || skip {
		r.change(func(l *Local) { l.Phase, l.Until = Delaying, boottime.Deadline{} })
		return
	}
	durable := r.change(func(l *Local) {
		l.Phase, l.Until = Delaying, boottime.After(r.cfg.Clock, delay)
	}, eventTaskDelay(delay))
	select {
	case <-durable:
	case <-ctx.Done():
	}
}

// handleExit runs once the process has ended, or goes on with that after a restart of the agent. The exit is durable
// before the driver is told to forget the task.
func (r *Runner) handleExit(ctx context.Context) {
	r.mu.Lock()
	exit, phase, id := r.local.Exit, r.local.Phase, r.taskID()
	r.mu.Unlock()
	if exit == nil { // a damaged record
		exit = &Exit{Message: "exit code was not recorded", At: r.cfg.Clock.Now()}
	}
	var events []*structs.TaskEvent
	if phase != Exited {
		events = append(events, eventTerminated(exit.Result()))
	}
	durable := r.change(func(l *Local) { l.Phase, l.Exit, l.Until = Exited, exit, boottime.Deadline{} }, events...)
	if err := r.hooks(ctx, hook.Exited); err != nil && ctx.Err() == nil {
		r.change(nil, eventHookFailed(err))
	}
	select {
	case <-durable:
	case <-ctx.Done():
		return
	}
	if err := r.cfg.Driver.Destroy(ctx, id, true); err != nil && !errors.Is(err, driver.ErrTaskNotFound) {
		r.cfg.Logger.Warn("driver cannot clean up after the task", "task", id, "error", err)
	}
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	stopping, order, killErr := r.local.Stop != nil, r.local.Restart, r.killErr
	policy := restart.PolicyOf(structs.Val(r.alloc.Job.Type), r.task, r.alloc.Group())
	memory := r.local.Memory
	r.mu.Unlock()
	if stopping {
		r.change(func(l *Local) { l.Phase = Finishing }, eventKilled(killErr))
		return
	}
	unhealthy := order != nil && order.Unhealthy
	ended := restart.Ended{Success: exit.Result().Successful() && !unhealthy, Requested: order != nil && !unhealthy}
	r.decided(restart.Decide(policy, memory, ended, r.cfg.Clock.Now(), r.cfg.Random()))()
}

// finish runs the last hooks; then the task is dead.
func (r *Runner) finish(ctx context.Context) {
	r.mu.Lock()
	killed := r.local.Stop != nil && r.local.Phase != Finishing
	r.mu.Unlock()
	var events []*structs.TaskEvent
	if killed { // it had no process
		events = append(events, eventKilled(nil))
	}
	r.change(func(l *Local) { l.Phase = Finishing }, events...)
	if err := r.hooks(ctx, hook.Stop); err != nil && ctx.Err() == nil {
		r.change(nil, eventHookFailed(err))
	}
	if ctx.Err() != nil {
		return
	}
	r.change(func(l *Local) {
		l.Phase = Dead
		s := *l.State
		s.State, s.FinishedAt = structs.TaskStateDead, r.cfg.Clock.Now().UTC()
		l.State = &s
	})
}

// watch waits for the process in the background and writes down how it ended.
func (r *Runner) watch(ctx context.Context, taskID string) {
	r.procs.Go(func() { r.awaitExit(ctx, taskID) })
}

func (r *Runner) awaitExit(ctx context.Context, taskID string) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		res, err := r.cfg.Driver.Wait(ctx, taskID)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, driver.ErrTaskNotFound) {
			res = &driver.ExitResult{Err: fmt.Errorf("wait for task: %w", err), At: r.cfg.Clock.Now()}
		} else if err != nil {
			// The driver lost its way to the task (its supervisor is being replaced, say): the task may well run.
			r.cfg.Logger.Warn("cannot wait for the task, trying again", "task", taskID, "error", err)
			if !pause.For(ctx, wait) {
				return
			}
			continue
		}
		r.change(func(l *Local) {
			if l.Exit == nil {
				l.Exit = exitOf(res)
			}
		})
		return
	}
}
