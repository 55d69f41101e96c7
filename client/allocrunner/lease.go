package allocrunner

import (
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/internal/boottime"
)

// Process names what a driver may be running for the allocation.
type Process struct {
	Driver string
	TaskID string
}

// Processes lists what drivers may be running now.
func (r *Runner) Processes() []Process {
	group := r.Alloc().Group()
	var out []Process
	for _, t := range r.tasks {
		spec := group.LookupTask(t.name)
		if id, ok := t.runner.Process(); ok && spec != nil {
			out = append(out, Process{Driver: spec.Driver, TaskID: id})
		}
	}
	return out
}

// Fence ends the allocation because its lease has run out: without shutdown delays, and nothing of it is started any
// more. kill is when its processes are dead whatever happens. Only the first call counts.
func (r *Runner) Fence(kill boottime.Deadline) {
	r.mu.Lock()
	if r.local.Fence.IsZero() && !r.local.Done {
		r.changeLocked(func(l *Local) { l.Fence = kill })
		if r.interrupt != nil {
			r.interrupt()
		}
	}
	r.mu.Unlock()
	r.nudge()
}

// Fenced gives what Fence was told; false when the lease never ran out.
func (r *Runner) Fenced() (kill boottime.Deadline, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.local.Fence, !r.local.Fence.IsZero()
}

// fenceTerms adds to the terms of an end that the lease has run out; the caller holds the lock.
func (r *Runner) fenceTerms(o taskrunner.Order) taskrunner.Order {
	o.NoShutdownDelay = o.NoShutdownDelay || !r.local.Fence.IsZero()
	return o
}

// fenced says that what ended the allocation, or would have, is that its lease has run out. Its processes may have been
// killed for that before the agent knew: then the first that it saw was a task that failed.
func (l *Local) fenced() bool {
	return !l.Fence.IsZero() && (l.Cause == LeaseOver || l.Cause == TaskFailed)
}
