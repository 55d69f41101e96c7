package heartbeat

import (
	"context"
	"time"
)

// Hand drives a Duty step by step in the place of Run, from one goroutine and without waiting for anything: for
// simulations. Beat may wait for Work and needs a goroutine of its own.
type Hand struct{ Duty *Duty }

// Begin begins the leader's duty.
func (h Hand) Begin() { h.Duty.begin() }

// Work writes what is due now and says when something is due next.
func (h Hand) Work(ctx context.Context) (next time.Time, err error) {
	for {
		more, next, err := h.Duty.turn(ctx)
		if err != nil || !more {
			return next, err
		}
	}
}

// End ends the duty: leadership is lost.
func (h Hand) End() { h.Duty.end() }
