package broker

import "github.com/nomadlite/nomadlite/structs"

// errand is what evaluations have in common of which one does the work of all. Such an evaluation says only that something
// has happened to nodes: a scheduler looks at its whole job anyway.
type errand struct {
	job      structs.NamespacedID
	trigger  string
	kind     string
	priority int
}

// errandOf gives an evaluation's errand; false for one that another cannot stand for.
func errandOf(e *structs.Evaluation) (errand, bool) {
	switch e.TriggeredBy {
	case structs.EvalTriggerNodeUpdate, structs.EvalTriggerMaxDisconnect, structs.EvalTriggerReconnect:
	default:
		return errand{}, false // it may be followed by its id, or mean more than its job's state
	}
	if e.Type != structs.JobTypeService && e.Type != structs.JobTypeBatch {
		return errand{}, false // system jobs wait for each node by itself
	}
	if e.Status != structs.EvalStatusPending || !e.WaitUntil.IsZero() || e.NoShutdownDelay || e.KillTimeout != nil || e.AnnotatePlan {
		return errand{}, false
	}
	return errand{job: structs.NamespacedID{Namespace: e.Namespace, ID: e.JobID}, trigger: e.TriggeredBy, kind: e.Type,
		priority: e.Priority}, true
}

// Redundant says whether an evaluation that is not known yet has no work of its own: one of the same errand was not yet
// delivered, and will look at a state that is at least as new. That one goes, not the first, so that a job whose nodes
// change all the time gets its turn.
func (q *Queue) Redundant(eval *structs.Evaluation) bool {
	if _, known := q.entries[eval.ID]; known {
		return false
	}
	what, ok := errandOf(eval)
	if !ok {
		return false
	}
	first := q.errands[what]
	return first != nil && !first.failed && (first.place == ready || first.place == behind)
}

// undertake notes that e does its errand, as long as the queue knows it.
func (q *Queue) undertake(e *entry) {
	if what, ok := errandOf(e.eval); ok {
		q.errands[what] = e
	}
}

// drop is undertake's end.
func (q *Queue) drop(e *entry) {
	if what, ok := errandOf(e.eval); ok && q.errands[what] == e {
		delete(q.errands, what)
	}
}
