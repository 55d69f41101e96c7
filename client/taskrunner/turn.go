package taskrunner

import (
	"context"
	"time"
)

// Restore does what Run does first: it takes over what an earlier agent left. Who takes the steps by himself, as a
// simulation does, calls it once and then Step; Run does both.
func (r *Runner) Restore(ctx context.Context) { r.restore(ctx) }

// Step takes the next step. taken is false when there is nothing to do until something arrives or, when left is above 0,
// that time is over; a stop under way whose terms became stricter is shortened then.
func (r *Runner) Step(ctx context.Context) (taken bool, left time.Duration) {
	s, left := r.next()
	switch s {
	case over:
		return false, 0
	case idle:
		r.shortenKill(ctx)
		return false, left
	}
	r.take(ctx, s)
	return true, 0
}
