package fsm

import (
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// PeriodicLaunch launches a periodic job for a time of its schedule: the child, its evaluation and the note that the
// time is done with are one entry, which does nothing when it is written a second time (structs.CodeConflict).
type PeriodicLaunch struct {
	Namespace, JobID string
	Time             int64  // of the schedule, unix nanoseconds; of now when it is forced
	Force            bool   `cbor:",omitempty"`
	EvalID           string // of the evaluation that is made
	Now              int64
}

// JobDispatch makes a child of a parameterized job, with its evaluation.
type JobDispatch struct {
	Namespace, JobID string
	ChildID          string
	Payload          []byte            `cbor:",omitempty"`
	Meta             map[string]string `cbor:",omitempty"`
	Priority         int               `cbor:",omitempty"` // 0: the parent's
	IdempotencyToken string            `cbor:",omitempty"`
	EvalID           string
	Now              int64
}

// LaunchResult answers PeriodicLaunch and JobDispatch. Child is nil when prohibit_overlap left the launch out.
type LaunchResult struct {
	Child *structs.Job
	// New is false when the child was there already.
	New bool
}

func applyPeriodicLaunch(tx *state.Txn, r *PeriodicLaunch) (any, error) {
	child, err := tx.LaunchPeriodic(state.PeriodicLaunch{
		Namespace: r.Namespace, JobID: r.JobID, Time: r.Time, Force: r.Force, EvalID: r.EvalID, Now: r.Now})
	if err != nil {
		return nil, err
	}
	return LaunchResult{Child: child, New: child != nil && child.CreateIndex == tx.Index()}, nil
}

func applyJobDispatch(tx *state.Txn, r *JobDispatch) (any, error) {
	child, isNew, err := tx.DispatchJob(state.JobDispatch{
		Namespace: r.Namespace, JobID: r.JobID, ChildID: r.ChildID, EvalID: r.EvalID, Now: r.Now,
		Dispatch: structs.Dispatch{Payload: r.Payload, Meta: r.Meta, Priority: r.Priority, IdempotencyToken: r.IdempotencyToken}})
	if err != nil {
		return nil, err
	}
	return LaunchResult{Child: child, New: isNew}, nil
}
