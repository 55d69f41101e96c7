package broker

import (
	"cmp"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// blockedKey is what at most one evaluation is blocked for. NodeID is set only for evaluations of one node (system
// jobs): they are woken by that node alone.
type blockedKey struct {
	Namespace, JobID, NodeID string
}

// Blocked is the pure core that holds evaluations which found no room, and says which of them a change could help.
// Indexes are raft indexes.
type Blocked struct {
	evals   map[blockedKey]*structs.Evaluation
	byID    map[string]blockedKey
	classes map[string]uint64        // newest index at which room may have appeared on a node of the class
	nodes   map[string]uint64        // the same of one node
	retries map[blockedKey]time.Time // when those that did not fail for want of room run again by themselves
	floor   uint64                   // what happened up to here is not known: evaluations older than this are woken on arrival
}

// NewBlocked makes an empty set. What happened up to index floor is unknown to it.
func NewBlocked(floor uint64) *Blocked {
	return &Blocked{
		evals: map[blockedKey]*structs.Evaluation{}, byID: map[string]blockedKey{},
		classes: map[string]uint64{}, nodes: map[string]uint64{}, floor: floor,
		retries: map[blockedKey]time.Time{},
	}
}

func keyOf(eval *structs.Evaluation) blockedKey {
	k := blockedKey{Namespace: eval.Namespace, JobID: eval.JobID}
	if eval.Type == structs.JobTypeSystem || eval.Type == structs.JobTypeSysBatch {
		k.NodeID = eval.NodeID
	}
	return k
}

// Block takes a blocked evaluation in. wake is true when something that could help happened after the evaluation
// looked at the state: it is not kept, and must run again. superseded is the older evaluation of the same job, if
// any, which nothing needs any more; it may be eval itself.
func (b *Blocked) Block(eval *structs.Evaluation) (wake bool, superseded *structs.Evaluation) {
	k := keyOf(eval)
	if old := b.evals[k]; old != nil {
		switch {
		case old.ID == eval.ID:
		case newer(old, eval):
			return false, eval
		default:
			superseded = old
		}
		b.drop(k)
	}
	if b.missed(eval, k) {
		return true, superseded
	}
	b.evals[k] = eval
	b.byID[eval.ID] = k
	return false, superseded
}

// Contended says that an evaluation is blocked because its plans kept meeting others: no change need ever come that
// could help it, so it runs again after some time.
func Contended(eval *structs.Evaluation) bool {
	return eval.TriggeredBy == structs.EvalTriggerMaxPlans && eval.EscapedComputedClass
}

// RetryAt lets a blocked evaluation run again at due, if nothing wakes it before.
func (b *Blocked) RetryAt(evalID string, due time.Time) {
	if k, ok := b.byID[evalID]; ok {
		b.retries[k] = due
	}
}

// Due takes out the evaluations whose time has come, oldest first.
func (b *Blocked) Due(now time.Time) []*structs.Evaluation {
	if next, ok := b.Next(); !ok || next.After(now) {
		return nil
	}
	return b.take(func(k blockedKey, _ *structs.Evaluation) bool {
		due, ok := b.retries[k]
		return ok && !due.After(now)
	})
}

// Next says when Due has something; false when there is nothing to wait for.
func (b *Blocked) Next() (next time.Time, ok bool) {
	for _, due := range b.retries {
		if !ok || due.Before(next) {
			next, ok = due, true
		}
	}
	return next, ok
}

// newer says whether a saw a newer state than b, or was created later on the same.
func newer(a, b *structs.Evaluation) bool {
	if a.SnapshotIndex != b.SnapshotIndex {
		return a.SnapshotIndex > b.SnapshotIndex
	}
	return a.CreateIndex > b.CreateIndex
}

// helps says whether room on a node of the class could help eval: classes which it found ineligible never do,
// unless something outside the class decides (escaped).
func helps(eval *structs.Evaluation, class string) bool {
	if eval.EscapedComputedClass {
		return true
	}
	eligible, seen := eval.ClassEligibility[class]
	return eligible || !seen
}

func (b *Blocked) missed(eval *structs.Evaluation, k blockedKey) bool {
	if eval.SnapshotIndex < b.floor {
		return true
	}
	if k.NodeID != "" {
		return b.nodes[k.NodeID] > eval.SnapshotIndex
	}
	for class, index := range b.classes {
		if index > eval.SnapshotIndex && helps(eval, class) {
			return true
		}
	}
	return false
}

// Room says that at index room may have appeared on a node of the class. It gives what must run again, oldest first.
func (b *Blocked) Room(nodeID, class string, index uint64) []*structs.Evaluation {
	b.classes[class] = max(b.classes[class], index)
	b.nodes[nodeID] = max(b.nodes[nodeID], index)
	return b.take(func(k blockedKey, eval *structs.Evaluation) bool {
		if eval.SnapshotIndex >= index {
			return false // it has seen this change
		}
		if k.NodeID != "" {
			return k.NodeID == nodeID
		}
		return helps(eval, class)
	})
}

// WakeAll says that at index something changed that could help any evaluation (the scheduler's configuration).
func (b *Blocked) WakeAll(index uint64) []*structs.Evaluation {
	b.floor = max(b.floor, index)
	return b.take(func(_ blockedKey, eval *structs.Evaluation) bool { return eval.SnapshotIndex < index })
}

// Settled says that another evaluation of the job placed everything at index: what was blocked before is not needed
// any more. It gives the superseded evaluations.
func (b *Blocked) Settled(eval *structs.Evaluation) []*structs.Evaluation {
	return b.take(func(k blockedKey, old *structs.Evaluation) bool {
		return k.Namespace == eval.Namespace && k.JobID == eval.JobID && old.ID != eval.ID &&
			old.CreateIndex < eval.ModifyIndex && (k.NodeID == "" || k.NodeID == eval.NodeID)
	})
}

// Remove forgets an evaluation that ended or was deleted.
func (b *Blocked) Remove(evalID string) {
	if k, ok := b.byID[evalID]; ok {
		b.drop(k)
	}
}

// ForgetNode drops what is remembered of a node that is gone. Its evaluations stay until their job settles.
func (b *Blocked) ForgetNode(nodeID string) { delete(b.nodes, nodeID) }

// Len is the number of blocked evaluations; escaped those which any class may help.
func (b *Blocked) Len() (total, escaped int) {
	for _, eval := range b.evals {
		if eval.EscapedComputedClass {
			escaped++
		}
	}
	return len(b.evals), escaped
}

func (b *Blocked) drop(k blockedKey) {
	delete(b.byID, b.evals[k].ID)
	delete(b.evals, k)
	delete(b.retries, k)
}

func (b *Blocked) take(match func(blockedKey, *structs.Evaluation) bool) []*structs.Evaluation {
	var out []*structs.Evaluation
	for k, eval := range b.evals {
		if match(k, eval) {
			out = append(out, eval)
			b.drop(k)
		}
	}
	slices.SortFunc(out, func(x, y *structs.Evaluation) int {
		return cmp.Or(cmp.Compare(x.CreateIndex, y.CreateIndex), cmp.Compare(x.ID, y.ID))
	})
	return out
}
