package broker

import (
	"context"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// Hand drives a Broker step by step in the place of Run and Dequeue, from one goroutine and without waiting for anything:
// for simulations.
type Hand struct {
	Broker *Broker
	Store  *state.Store
	Raft   Raft
}

// Begin makes the broker hand out evaluations. It has seen all changes up to index.
func (h Hand) Begin() (index uint64) { return h.Broker.load(h.Store) }

// Follow takes one change of the state in.
func (h Hand) Follow(change state.Change) { h.Broker.follow(h.Store, change) }

// Work does what is due now and says when something is due next.
func (h Hand) Work(ctx context.Context) (next time.Time, ok bool) {
	next, ok = h.Broker.tick()
	for {
		if more, _ := h.Broker.record(ctx, h.Raft); !more { // what could not be written is written by a later call
			return next, ok
		}
		next, ok = h.Broker.tick()
	}
}

// Take is Dequeue for what is ready now; nil when nothing is.
func (h Hand) Take(types []string) (eval *structs.Evaluation, token string) {
	token = h.Broker.newID()
	eval, _ = h.Broker.take(types, token)
	return eval, token
}

// End takes all deliveries away: leadership is lost.
func (h Hand) End() { h.Broker.stop() }
