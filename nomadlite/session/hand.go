package session

import (
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// Hand answers nodes step by step, from one goroutine and without sessions: for simulations.
type Hand struct {
	Assignments *Assignments
	Store       *state.Store
	NewID       func() string
}

// Follow takes one change of the state in.
func (h Hand) Follow(change state.Change) { h.Assignments.apply(change) }

// Reread forgets which allocations were removed, as one does who has missed changes.
func (h Hand) Reread() { h.Assignments.reread() }

// Answer gives what a poll is answered now, and whether that is any news.
func (h Hand) Answer(req *structs.AssignmentsRequest) (res *structs.AssignmentsResponse, news bool) {
	a := h.Assignments
	a.mu.Lock()
	defer a.mu.Unlock()
	snap, epoch := a.look()
	return a.delta(snap, epoch, req)
}

// Observe makes the entry which a node's report is written in; nil when nothing of it is the node's.
func (h Hand) Observe(nodeID string, observations []*structs.AllocObservation, now time.Time) *fsm.AllocObserve {
	kept := ownObservations(h.Store, nodeID, observations, nil)
	if len(kept) == 0 {
		return nil
	}
	return &fsm.AllocObserve{Observations: kept, Evals: evalsFor(storeReader{h.Store}, kept, now.UnixNano(), h.NewID),
		Now: now.UnixNano()}
}
