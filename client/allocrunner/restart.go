package allocrunner

import (
	"context"

	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/internal/boottime"
)

// progress is how far an end has come, be it for good or for a restart of the allocation.
type progress struct {
	Prestopped, PreKilled, Delayed bool
	Delay                          boottime.Deadline
}

// progress changes that of the end under way.
func (l *Local) progress(f func(*progress)) {
	a := l.RestartAll
	if a == nil || l.Cause != NotEnding {
		p := progress{l.Prestopped, l.PreKilled, l.Delayed, l.Delay}
		f(&p)
		l.Prestopped, l.PreKilled, l.Delayed, l.Delay = p.Prestopped, p.PreKilled, p.Delayed, p.Delay
		return
	}
	p, next := progress{a.Prestopped, a.PreKilled, a.Delayed, a.Delay}, *a
	f(&p)
	next.Prestopped, next.PreKilled, next.Delayed, next.Delay = p.Prestopped, p.PreKilled, p.Delayed, p.Delay
	l.RestartAll = &next
}

// delayLocked is the group's shutdown_delay of the end under way; the caller holds the lock.
func (r *Runner) delayLocked() boottime.Deadline {
	if a := r.local.RestartAll; a != nil && r.local.Cause == NotEnding {
		return a.Delay
	}
	return r.local.Delay
}

// concerned says that the end under way is one of this task too.
func (r *Runner) concerned(t *task) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.local.RestartAll
	return a == nil || r.local.Cause != NotEnding || a.concerns(t.name)
}

// park asks tasks to go down for a restart of the allocation.
func (r *Runner) park(tasks []*task) {
	r.mu.Lock()
	order := r.terms()
	r.mu.Unlock()
	for _, t := range tasks {
		t.runner.Park(order)
	}
}

// resume runs the hooks that bring back what the end took away. As with prerun, a fault fails every task. How far the end
// had come stays, but for the hooks' PreKill: what some of them have brought back already leaves again.
func (r *Runner) resume(ctx context.Context) {
	err := r.chain.Alloc(ctx, hook.Resume, r.request())
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.cfg.Logger.Error("allocation cannot be prepared for its restart", "alloc", r.ID(), "error", err)
		for _, t := range r.tasks {
			t.runner.Emit(taskrunner.EventSetupFailure(err))
		}
		r.change(func(l *Local) {
			a := l.RestartAll
			l.Prestopped, l.PreKilled, l.Delayed, l.Delay = a.Prestopped, false, a.Delayed, a.Delay
			l.Cause, l.RestartAll = PrerunFailed, nil
		})
	default:
		r.change(func(l *Local) {
			next := *l.RestartAll
			next.Resumed = true
			l.RestartAll = &next
		})
	}
}

// reset begins the lifecycle anew after all tasks have ended for it.
func (r *Runner) reset() {
	r.mu.Lock()
	restart := *r.local.RestartAll
	r.mu.Unlock()
	for _, t := range r.tasks {
		if restart.concerns(t.name) && t.runner.Reset(restart.Reason) {
			t.started = false
		}
	}
	r.change(func(l *Local) {
		if (l.RestartAll.Tasks == nil) == (restart.Tasks == nil) && len(l.RestartAll.Tasks) == len(restart.Tasks) {
			l.RestartAll, l.Restarts = nil, l.Restarts+1
		} // else another request has joined meanwhile, which concerns more tasks
	})
}
