package allocrunner

import (
	"slices"

	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/structs"
)

// previous is an allocation that has to end before this one begins.
type previous struct {
	ID       string
	NodeName string
	// Over is closed at its end when it is on this node. Of others the servers tell.
	Over <-chan struct{}
}

// findPrevious gives an allocation that has to end before this one begins, nil when there is none (any more) and once
// this one has begun: those on this node as the node itself sees them, those on others as the servers say.
func (r *Runner) findPrevious() *previous {
	r.mu.Lock()
	alloc, begun := r.alloc, r.local.Prerun || r.local.Cause != NotEnding
	r.mu.Unlock()
	if begun {
		return nil
	}
	if r.cfg.Previous != nil {
		if id, over := r.cfg.Previous(alloc); over != nil {
			return &previous{ID: id, NodeName: alloc.NodeName, Over: over}
		}
	}
	for _, a := range alloc.Awaits {
		if a.NodeID != alloc.NodeID {
			return &previous{ID: a.ID, NodeName: a.NodeName}
		}
	}
	return nil
}

// tellPrevious shows at each task whose end is waited for, once.
func (r *Runner) tellPrevious(p *previous) {
	for _, t := range r.tasks {
		e := taskrunner.EventWaitingForPrevious(p.ID, p.NodeName)
		told := func(o *structs.TaskEvent) bool { return o.Type == e.Type && o.DisplayMessage == e.DisplayMessage }
		if !slices.ContainsFunc(t.runner.View().State.Events, told) {
			t.runner.Emit(e)
		}
	}
}
