package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// observationsPerEntry bounds one raft entry.
const observationsPerEntry = 4096

// observer writes what nodes observe, together with the evaluations which that gives cause for.
type observer struct {
	groupCommit[[]*structs.AllocObservation]
	raft  Applier
	state allocReader
	now   func() time.Time
}

func newObserver(raft Applier, state allocReader, now func() time.Time) *observer {
	o := &observer{raft: raft, state: state, now: now}
	o.limit = observationsPerEntry
	o.rows = func(list []*structs.AllocObservation) int { return len(list) }
	o.write = o.commit
	return o
}

// allocReader is what the observer looks at.
type allocReader interface {
	AllocOf(id string) *structs.Allocation
	JobOf(namespace, id string) *structs.Job
}

// report writes a node's observations and waits until they are committed.
func (o *observer) report(ctx context.Context, observations []*structs.AllocObservation) error {
	if len(observations) == 0 {
		return nil
	}
	if _, err := o.submit(ctx, observations); err != nil {
		return fmt.Errorf("report allocations: %w", err)
	}
	return nil
}

func (o *observer) commit(ctx context.Context, batch [][]*structs.AllocObservation) (uint64, error) {
	all := slices.Concat(batch...)
	now := o.now().UnixNano()
	_, index, err := o.raft.Apply(ctx, fsm.KindAllocObserve, &fsm.AllocObserve{
		Observations: all, Evals: evalsFor(o.state, all, now, uuid.New), Now: now,
	})
	if err != nil {
		return 0, fmt.Errorf("store observations: %w", err)
	}
	return index, nil
}

// evalsFor are the evaluations which observations give cause for, one a job at most: of a failed allocation that
// should run, of one that ended although its job wants it to run for ever, and of one that is heard again after its
// node had been lost from sight.
func evalsFor(state allocReader, observations []*structs.AllocObservation, now int64, newID func() string,
) []*structs.Evaluation {
	type key struct{ namespace, id string }
	seen := map[key]bool{}
	var evals []*structs.Evaluation
	for _, o := range observations {
		alloc := state.AllocOf(o.AllocID)
		if alloc == nil || seen[key{alloc.Namespace, alloc.JobID}] {
			continue
		}
		job := state.JobOf(alloc.Namespace, alloc.JobID)
		if job.Stopped() {
			continue
		}
		trigger := triggerOf(alloc, o, structs.Val(job.Type))
		if trigger == "" {
			continue
		}
		seen[key{alloc.Namespace, alloc.JobID}] = true
		evals = append(evals, &structs.Evaluation{
			ID: newID(), Namespace: alloc.Namespace, JobID: alloc.JobID, JobModifyIndex: job.JobModifyIndex,
			Priority: structs.Val(job.Priority), Type: structs.Val(job.Type), TriggeredBy: trigger,
			DeploymentID: alloc.DeploymentID, Status: structs.EvalStatusPending, CreateTime: now, ModifyTime: now,
		})
	}
	return evals
}

// triggerOf is the reason for an evaluation that an observation gives; empty: none. First match wins.
func triggerOf(alloc *structs.Allocation, o *structs.AllocObservation, jobType string) string {
	ended := alloc.ObservedStatus == structs.AllocClientStatusComplete ||
		alloc.ObservedStatus == structs.AllocClientStatusFailed
	wanted := alloc.DesiredStatus == structs.AllocDesiredStatusRun
	away := alloc.Condition.Status == structs.ConditionUnknown || alloc.Condition.Status == structs.ConditionAway
	forever := jobType == structs.JobTypeService || jobType == structs.JobTypeSystem
	switch {
	case ended:
		return "" // told before
	case !wanted:
		return "" // it was to stop
	case o.Departed:
		return structs.EvalTriggerNodeUpdate
	case o.ObservedStatus == structs.AllocClientStatusFailed:
		return structs.EvalTriggerRetryFailedAlloc
	case o.ObservedStatus == structs.AllocClientStatusComplete && forever:
		return structs.EvalTriggerRetryFailedAlloc
	case away:
		return structs.EvalTriggerReconnect
	}
	return ""
}
