package state

import (
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// linkReplaced tells the allocation which a new one replaces of it, and notes in the new one what has to end before it
// begins: what it replaces, what else the plan names, and what those wait for themselves (one that was told to stop
// before it had begun ends before what it waited for). What holds nothing back by now is left out. None of it is news for
// the nodes of those that are replaced.
func (tx *Txn) linkReplaced(alloc *structs.Allocation, now int64) {
	named := alloc.Awaits
	alloc.Awaits, alloc.AwaitedBy = nil, nil
	if alloc.PreviousAllocation == "" && len(named) == 0 {
		return
	}
	earlier := tx.await(alloc, alloc.PreviousAllocation, now)
	for _, a := range named {
		earlier = append(earlier, tx.await(alloc, a.ID, now)...)
	}
	for _, a := range earlier { // each of them names all before it
		if !alloc.AwaitsAlloc(a.ID) {
			tx.await(alloc, a.ID, now)
		}
	}
}

// await has a new allocation wait for another one, if that holds it back, and gives whom that one waits for.
func (tx *Txn) await(alloc *structs.Allocation, id string, now int64) []structs.AwaitedAlloc {
	if id == "" || id == alloc.ID {
		return nil
	}
	old := tx.alloc(id)
	if old == nil {
		return nil
	}
	awaited, changed := *old, false
	if id == alloc.PreviousAllocation && old.NextAllocation != alloc.ID {
		awaited.NextAllocation, changed = alloc.ID, true
	}
	if !alloc.AwaitsAlloc(id) && old.HoldsBack(tx.node(old.NodeID)) {
		alloc.Awaits = append(alloc.Awaits, structs.AwaitedAlloc{ID: id, NodeID: old.NodeID, NodeName: old.NodeName})
		awaited.AwaitedBy, changed = append(slices.Clone(old.AwaitedBy), alloc.ID), true
	}
	if changed {
		tx.putAlloc(old, &awaited, now)
	}
	return slices.Clip(old.Awaits)
}

// release lets those begin that waited for an allocation which no longer holds them back; after is nil when it is
// deleted. It is part of each change of an allocation, and of those of a node's terms (releaseOnNode), so no entry leaves
// somebody waiting for what is over.
func (tx *Txn) release(before, after *structs.Allocation, now int64) {
	if before == nil || len(before.AwaitedBy) == 0 || after != nil && after.HoldsBack(tx.node(after.NodeID)) {
		return
	}
	waiting := before.AwaitedBy
	if after != nil {
		after.AwaitedBy = nil
	}
	for _, id := range waiting {
		old := tx.alloc(id)
		if old == nil || !old.AwaitsAlloc(before.ID) {
			continue
		}
		alloc := *old
		alloc.Awaits = slices.DeleteFunc(slices.Clone(old.Awaits), func(a structs.AwaitedAlloc) bool { return a.ID == before.ID })
		if len(alloc.Awaits) == 0 {
			alloc.Awaits = nil
		}
		if before.NodeID != alloc.NodeID { // its own node saw the end before anybody
			alloc.AllocModifyIndex = tx.index
		}
		tx.putAlloc(old, &alloc, now)
	}
}

// releaseOnNode lets those begin that wait for allocations of a node whose terms have changed: one that cannot be heard
// holds them back only as long as it has a lease.
func (tx *Txn) releaseOnNode(id string, now int64) {
	for _, a := range slices.Clone(tx.allocsByNode(id)) {
		old := tx.alloc(a.ID) // the release of one may have changed another
		if len(old.AwaitedBy) > 0 && !old.HoldsBack(tx.node(id)) {
			alloc := *old
			tx.putAlloc(old, &alloc, now)
		}
	}
}
