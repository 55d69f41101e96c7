package allocrunner

import (
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// The group's max_run_duration bounds how long an allocation runs, counted from when its runner was made on the node:
// waiting, preparing and restarts count, an agent that was away does not begin anew, and a changed limit holds for what
// has passed already. When it is over all tasks end in the ordinary order, poststop tasks are not started, and the
// allocation is complete.

// descTooLong is the description of an allocation that was ended so, as the public interface words it.
const descTooLong = "allocation exceeded max_run_duration"

// keepBegin writes when the runner was made, where a limit counts from it; else that is written along with what comes.
func (r *Runner) keepBegin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runLimit() > 0 && r.saved.Load().Made.IsZero() && !r.local.Done {
		r.changeLocked(func(*Local) {})
	}
}

// runLimit is the group's max_run_duration, 0 for none; the caller holds the lock.
func (r *Runner) runLimit() time.Duration {
	group := r.alloc.Group()
	if group == nil {
		return 0
	}
	return structs.Val(group.MaxRunDuration)
}

// leftToRun is what is left of the limit, at least a nanosecond; 0 means that there is none, and overdue that it has
// been reached. The caller holds the lock.
func (r *Runner) leftToRun() (left time.Duration, overdue bool) {
	limit := r.runLimit()
	if limit <= 0 || r.local.Cause != NotEnding {
		return 0, false
	}
	left = limit + r.local.Made.Remaining(r.cfg.Clock)
	return max(left, 1), left <= 0
}
