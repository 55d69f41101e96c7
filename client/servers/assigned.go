package servers

import (
	"maps"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Assigned is what the servers assigned to the node, as far as it was told: the pure bookkeeping of the assignments
// protocol. It is not safe for use by several goroutines.
type Assigned struct {
	// Epoch and Index are what the node is current to. Persist them with the allocations, and hand them to Restore.
	Epoch string
	Index uint64
	ids   map[string]struct{}
}

// Restore sets what the node persisted: the ids of all allocations that it holds, ended ones included.
func (a *Assigned) Restore(epoch string, index uint64, ids []string) {
	a.Epoch, a.Index, a.ids = epoch, index, map[string]struct{}{}
	for _, id := range ids {
		a.ids[id] = struct{}{}
	}
}

// Request is the next poll.
func (a *Assigned) Request(wait time.Duration) structs.AssignmentsRequest {
	return structs.AssignmentsRequest{
		Epoch: a.Epoch, Index: a.Index, Digest: structs.AssignmentDigest(maps.Keys(a.ids)), Wait: wait,
	}
}

// Apply takes an answer over. Upserts get their Job from the answer, as far as it is there: an allocation that the
// node held already and that only has to stop comes without. remove are the ids to give up: those that the answer
// names and, of a complete set, those that are not in it. ok is false when the answer does not fit what the node
// holds: then nothing was taken over, and the next request asks for the complete set.
func (a *Assigned) Apply(res *structs.AssignmentsResponse) (upsert []*structs.Allocation, remove []string, ok bool) {
	next := map[string]struct{}{}
	if !res.Complete {
		if res.Epoch != a.Epoch || res.AppliesTo != a.Index {
			a.Epoch = ""
			return nil, nil, false
		}
		next = maps.Clone(a.ids)
		if next == nil {
			next = map[string]struct{}{}
		}
	}
	for _, alloc := range res.Upsert {
		next[alloc.ID] = struct{}{}
	}
	for _, id := range res.Remove {
		delete(next, id)
	}
	if structs.AssignmentDigest(maps.Keys(next)) != res.Digest {
		a.Epoch = ""
		return nil, nil, false
	}
	for id := range a.ids {
		if _, kept := next[id]; !kept {
			remove = append(remove, id)
		}
	}
	attach(res)
	a.Epoch, a.Index, a.ids = res.Epoch, res.ResultsIn, next
	return res.Upsert, remove, true
}

// attach gives each allocation the specification which it runs.
func attach(res *structs.AssignmentsResponse) {
	type key struct {
		namespace, id string
		index         uint64
	}
	jobs := make(map[key]*structs.Job, len(res.Jobs))
	for _, job := range res.Jobs {
		jobs[key{structs.Val(job.Namespace), structs.Val(job.ID), job.JobModifyIndex}] = job
	}
	for _, alloc := range res.Upsert {
		if job := jobs[key{alloc.Namespace, alloc.JobID, alloc.JobModifyIndex}]; job != nil {
			alloc.Job = job
		}
	}
}
