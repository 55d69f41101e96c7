package session

import (
	"iter"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// assignedReader is the part of a snapshot that a delta is made from.
type assignedReader interface {
	Index() uint64
	JobSpec(namespace, id string, jobModifyIndex uint64) *structs.Job
}

// delta is what a node with this request has to learn, and whether that is anything. The lock is held.
func (a *Assignments) delta(snap *state.Snapshot, epoch string, req *structs.AssignmentsRequest) (*structs.AssignmentsResponse, bool) {
	return makeDelta(snap, snap.AllocsByNode(nil, req.NodeID), a.removals.since(req.NodeID, req.Index), epoch, req)
}

// makeDelta compares what is assigned to a node with what it says it holds: the index up to which it is current, and
// the digest of its ids. It answers with a delta when applying that leads to the assigned set for certain, else with
// the complete set.
func makeDelta(snap assignedReader, assigned []*structs.Allocation, removed []string, epoch string,
	req *structs.AssignmentsRequest) (*structs.AssignmentsResponse, bool) {

	res := &structs.AssignmentsResponse{
		Epoch: epoch, AppliesTo: req.Index, ResultsIn: snap.Index(), Digest: structs.AssignmentDigest(ids(assigned)),
	}
	expected := req.Digest
	if req.Epoch != epoch || req.Epoch == "" || req.Index > snap.Index() {
		res.Complete = true
	} else {
		held := map[string]bool{}
		for _, alloc := range assigned {
			if alloc.AllocModifyIndex > req.Index {
				res.Upsert = append(res.Upsert, alloc)
			}
			if alloc.CreateIndex > req.Index {
				expected += structs.AssignmentDigest(one(alloc.ID))
			}
			held[alloc.ID] = true
		}
		for _, id := range removed {
			if !held[id] {
				res.Remove = append(res.Remove, id)
				expected -= structs.AssignmentDigest(one(id))
			}
		}
		// A removal may have been forgotten, and the node may have lost something: then its digest tells.
		res.Complete = expected != res.Digest
	}
	if res.Complete {
		res.AppliesTo, res.Remove, res.Upsert = 0, nil, assigned
	}
	res.Jobs = specifications(snap, res, req.Index)
	return res, res.Complete || len(res.Upsert) > 0 || len(res.Remove) > 0
}

// specifications are the jobs which a node needs for what it is told, each once. A node has those of allocations that
// it already held and that now only have to stop.
func specifications(snap assignedReader, res *structs.AssignmentsResponse, index uint64) []*structs.Job {
	type key struct {
		namespace, id string
		index         uint64
	}
	seen := map[key]bool{}
	var jobs []*structs.Job
	for _, alloc := range res.Upsert {
		if !res.Complete && alloc.CreateIndex <= index && alloc.DesiredStatus != structs.AllocDesiredStatusRun {
			continue
		}
		k := key{alloc.Namespace, alloc.JobID, alloc.JobModifyIndex}
		if seen[k] {
			continue
		}
		seen[k] = true
		job := alloc.Job
		if job == nil {
			job = snap.JobSpec(alloc.Namespace, alloc.JobID, alloc.JobModifyIndex)
		}
		if job != nil {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

func ids(allocs []*structs.Allocation) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, a := range allocs {
			if !yield(a.ID) {
				return
			}
		}
	}
}

func one(id string) iter.Seq[string] { return func(yield func(string) bool) { yield(id) } }

// removalsKept bounds what is remembered of removed allocations, a node.
const removalsKept = 512

// removal is an allocation that the state holds no more.
type removal struct {
	index   uint64
	created uint64 // when it was placed
	id      string
}

// removals remembers what was removed from which node since the feed was last read without a gap, newest last. What
// it has forgotten shows in the digest.
type removals struct{ byNode map[string][]removal }

func (r *removals) reset() { r.byNode = nil }

func (r *removals) add(nodeID string, rm removal) {
	if r.byNode == nil {
		r.byNode = map[string][]removal{}
	}
	list := append(r.byNode[nodeID], rm)
	if len(list) > removalsKept {
		list = append([]removal(nil), list[len(list)-removalsKept:]...)
	}
	r.byNode[nodeID] = list
}

// since gives the ids removed after an index, of those that were there at that index.
func (r *removals) since(nodeID string, index uint64) []string {
	var ids []string
	for _, rm := range r.byNode[nodeID] {
		if rm.index > index && rm.created <= index {
			ids = append(ids, rm.id)
		}
	}
	return ids
}
