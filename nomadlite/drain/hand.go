package drain

import (
	"context"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/state"
)

// Hand drives a Duty step by step in the place of Run, from one goroutine and without waiting for anything: for
// simulations.
type Hand struct{ Duty *Duty }

// Begin begins the leader's duty. It has seen all changes up to index.
func (h Hand) Begin() (index uint64) { return h.Duty.load() }

// Follow takes one change of the state in.
func (h Hand) Follow(change state.Change) { h.Duty.follow(change) }

// Work carries out one round of what is due now; more says that there may be another once the changes which it made
// were followed. next is when something is due next.
func (h Hand) Work(ctx context.Context) (more bool, next time.Time, err error) {
	return h.Duty.turn(ctx)
}
