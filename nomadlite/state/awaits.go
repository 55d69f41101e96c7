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
	tx.await(alloc, alloc.PreviousAllocation, now)
	for _, a := range named {
		tx.await(alloc, a.ID, now)
	}
	// What each of them waits for holds everything before it already.
	for _, a := range slices.Concat(named, []structs.AwaitedAlloc{{ID: alloc.PreviousAllocation}}) {
		if old := tx.alloc(a.ID); old != nil {
			for _, earlier := range old.Awaits {
				tx.await(alloc, earlier.ID, now)
			}
		}
	}
}

func (tx *Txn) await(alloc *structs.Allocation, id string, now int64) {
	old := tx.alloc(id)
	if id == "" || id == alloc.ID || old == nil {
		return
	}
	awaited := *old
	if id == alloc.PreviousAllocation {
		awaited.NextAllocation = alloc.ID
	}
	if !alloc.AwaitsAlloc(id) && old.HoldsBack(tx.node(old.NodeID)) {
		alloc.Awaits = append(alloc.Awaits, structs.AwaitedAlloc{ID: id, NodeID: old.NodeID, NodeName: old.NodeName})
		awaited.AwaitedBy = append(slices.Clone(old.AwaitedBy), alloc.ID)
	}
	if len(awaited.AwaitedBy) != len(old.AwaitedBy) || awaited.NextAllocation != old.NextAllocation {
		tx.putAlloc(old, &awaited, now)
	}
}

// release lets those begin that waited for an allocation which no longer holds them back; after is nil when it is
// deleted. It is part of each change of an allocation, so no entry leaves somebody waiting for what is over.
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
