package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// observationsPerEntry bounds one raft entry.
const observationsPerEntry = 4096

// applyTimeout bounds one raft entry of observations.
const applyTimeout = 30 * time.Second

// observer folds the observations of many nodes into few raft entries: the first goes out at once, and what arrives
// while an entry is being written goes out together in the next.
type observer struct {
	raft  Applier
	state allocReader
	now   func() time.Time

	mu       sync.Mutex
	waiting  []*report
	flushing bool
	flushes  sync.WaitGroup
}

// allocReader is what the observer looks at.
type allocReader interface {
	AllocOf(id string) *structs.Allocation
	JobOf(namespace, id string) *structs.Job
}

// report is one node's batch.
type report struct {
	observations []*structs.AllocObservation
	index        uint64
	err          error
	done         chan struct{}
}

// submit writes observations and waits until they are committed.
func (o *observer) submit(ctx context.Context, observations []*structs.AllocObservation) (uint64, error) {
	if len(observations) == 0 {
		return 0, nil
	}
	r := &report{observations: observations, done: make(chan struct{})}
	o.mu.Lock()
	o.waiting = append(o.waiting, r)
	if !o.flushing {
		o.flushing = true
		o.flushes.Add(1)
		go o.flush()
	}
	o.mu.Unlock()
	select {
	case <-r.done:
		return r.index, r.err
	case <-ctx.Done():
		return 0, fmt.Errorf("report allocations: %w", context.Cause(ctx))
	}
}

// flush writes entries until nothing waits.
func (o *observer) flush() {
	defer o.flushes.Done()
	for {
		batch := o.take()
		if batch == nil {
			return
		}
		var all []*structs.AllocObservation
		for _, r := range batch {
			all = append(all, r.observations...)
		}
		now := o.now().UnixNano()
		ctx, cancel := context.WithTimeout(context.Background(), applyTimeout)
		_, index, err := o.raft.Apply(ctx, fsm.KindAllocObserve, &fsm.AllocObserve{
			Observations: all, Evals: evalsFor(o.state, all, now), Now: now,
		})
		cancel()
		if err != nil {
			err = fmt.Errorf("store observations: %w", err)
		}
		for _, r := range batch {
			r.index, r.err = index, err
			close(r.done)
		}
	}
}

// take gives the next entry's reports, or ends the flush.
func (o *observer) take() []*report {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, size := 0, 0
	for n < len(o.waiting) && (n == 0 || size+len(o.waiting[n].observations) <= observationsPerEntry) {
		size += len(o.waiting[n].observations)
		n++
	}
	if n == 0 {
		o.flushing, o.waiting = false, nil
		return nil
	}
	batch := o.waiting[:n:n]
	o.waiting = o.waiting[n:]
	return batch
}

// evalsFor are the evaluations which observations give cause for, one a job at most: of a failed allocation that
// should run, of one that ended although its job wants it to run for ever, and of one that is heard again after its
// node had been lost from sight.
func evalsFor(state allocReader, observations []*structs.AllocObservation, now int64) []*structs.Evaluation {
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
			ID: uuid.New(), Namespace: alloc.Namespace, JobID: alloc.JobID, JobModifyIndex: job.JobModifyIndex,
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
	case o.ObservedStatus == structs.AllocClientStatusFailed:
		return structs.EvalTriggerRetryFailedAlloc
	case o.ObservedStatus == structs.AllocClientStatusComplete && forever:
		return structs.EvalTriggerRetryFailedAlloc
	case away:
		return structs.EvalTriggerReconnect
	}
	return ""
}
