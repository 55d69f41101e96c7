package state

import (
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

// allocsTable has no rows of its own: allocations are held by the rows by id of table alloc_rows, which putAlloc and
// deleteAlloc change.
func allocsTable() *table {
	t := plainTable(TableAllocs, func(a *structs.Allocation) string { return a.ID })
	t.indexes = nil
	t.held = func(v *view, id string) any {
		if alloc := allocByID(v, nil, id); alloc != nil {
			return alloc
		}
		return nil
	}
	t.save = func(v *view, put func(any) error) error {
		for alloc := range allocsByPrefix(v, nil, "") {
			if err := put(alloc); err != nil {
				return err
			}
		}
		return nil
	}
	t.restore = func(tx *Txn, decode func(any) error) error {
		var alloc *structs.Allocation
		if err := decode(&alloc); err != nil {
			return err
		}
		alloc.Job = tx.spec(alloc.Namespace, alloc.JobID, alloc.JobModifyIndex)
		if alloc.Job == nil {
			return fmt.Errorf("allocation %s, job %q, specification %d: %w", alloc.ID, alloc.JobID, alloc.JobModifyIndex, errNotHere)
		}
		tx.shared.alloc(alloc)
		tx.linkAlloc(nil, alloc)
		tx.put(TableAllocs, alloc)
		return nil
	}
	return t
}

// Alloc gives an allocation by id, nil when there is none.
func (r Reader) Alloc(ws memdb.WatchSet, id string) *structs.Allocation {
	return allocByID(r.at(), ws, id)
}

func allocByID(v *view, ws memdb.WatchSet, id string) *structs.Allocation {
	return get[*allocRow](v, ws, tableAllocRows, indexID, allocRowKey(rowByID, shelfOf(id))).byID(id)
}

// allocsByPrefix gives the allocations whose id begins with prefix, by id.
func allocsByPrefix(v *view, ws memdb.WatchSet, prefix string) iter.Seq[*structs.Allocation] {
	rows := scan[*allocRow](v, ws, tableAllocRows, indexID, allocRowKey(rowByID, shelfOf(prefix)))
	return func(yield func(*structs.Allocation) bool) {
		for row := range rows {
			for alloc := range row.all() {
				if strings.HasPrefix(alloc.ID, prefix) && !yield(alloc) {
					return
				}
			}
		}
	}
}

// Allocs gives the allocations of a namespace (structs.AllNamespaces: of all), by id.
func (r Reader) Allocs(ws memdb.WatchSet, namespace string) iter.Seq[*structs.Allocation] {
	return r.AllocsByPrefix(ws, namespace, "")
}

// AllocsByPrefix gives the allocations whose id begins with prefix, by id.
func (r Reader) AllocsByPrefix(ws memdb.WatchSet, namespace, prefix string) iter.Seq[*structs.Allocation] {
	return allocsIn(namespace, allocsByPrefix(r.at(), ws, prefix))
}

// AllocsByCreate gives the allocations in the order in which they were made, or the newest first.
func (r Reader) AllocsByCreate(ws memdb.WatchSet, namespace string, newestFirst bool) iter.Seq[*structs.Allocation] {
	row := r.allocRow(ws, rowAll, rowAll)
	if newestFirst {
		return allocsIn(namespace, row.newestFirst())
	}
	return allocsIn(namespace, row.all())
}

func allocsIn(namespace string, seq iter.Seq[*structs.Allocation]) iter.Seq[*structs.Allocation] {
	if namespace == structs.AllNamespaces {
		return seq
	}
	return filter(seq, func(a *structs.Allocation) bool { return a.Namespace == namespace })
}

func (r Reader) allocRow(ws memdb.WatchSet, kind, of string) *allocRow {
	return get[*allocRow](r.at(), ws, tableAllocRows, indexID, allocRowKey(kind, of))
}

// AllocsByJob gives all allocations of a job id, the oldest first, those of an earlier purged job included.
func (r Reader) AllocsByJob(ws memdb.WatchSet, namespace, jobID string) []*structs.Allocation {
	return r.allocRow(ws, rowByJob, joinKey(namespace, jobID)).list()
}

// AllocsByNode gives all allocations on a node, the oldest first.
func (r Reader) AllocsByNode(ws memdb.WatchSet, nodeID string) []*structs.Allocation {
	return r.allocRow(ws, rowByNode, nodeID).list()
}

// AllocsByEval gives the allocations which an evaluation made, or updated last.
func (r Reader) AllocsByEval(ws memdb.WatchSet, evalID string) []*structs.Allocation {
	return r.allocRow(ws, rowByEval, evalID).list()
}

// AllocsByDeployment gives the allocations of a deployment, the oldest first.
func (r Reader) AllocsByDeployment(ws memdb.WatchSet, deploymentID string) []*structs.Allocation {
	return r.allocRow(ws, rowByDeployment, deploymentID).list()
}

func (tx *Txn) alloc(id string) *structs.Allocation {
	return lookup[*structs.Allocation](tx, TableAllocs, id)
}

// linkAlloc keeps everything up to date that is made of allocations and not saved; before and after may be nil.
func (tx *Txn) linkAlloc(before, after *structs.Allocation) {
	tx.indexAlloc(before, after)
	tx.useNode(before, after)
	if before != nil {
		tx.refSpec(before.Namespace, before.JobID, before.JobModifyIndex, -1)
	}
	if after != nil {
		tx.refSpec(after.Namespace, after.JobID, after.JobModifyIndex, 1)
	}
}

// putAlloc stores an allocation in place of before (nil: a new one). It is the only way into the table, so here
// ClientStatus becomes what the three facts say.
func (tx *Txn) putAlloc(before, after *structs.Allocation, now int64) {
	setClientStatus(after)
	tx.release(before, after, now)
	after.ModifyIndex, after.ModifyTime = tx.index, now
	tx.linkAlloc(before, after)
	tx.countAlloc(before, after)
	tx.followAlloc(before, after)
	tx.pauseDeployment(before, after, now)
	tx.put(TableAllocs, after)
	tx.touchJob(after.Namespace, after.JobID)
}

// setClientStatus is the only place that assigns ClientStatus.
func setClientStatus(alloc *structs.Allocation) { alloc.ClientStatus = alloc.DeriveClientStatus() }

func (tx *Txn) deleteAlloc(alloc *structs.Allocation) {
	tx.release(alloc, nil, alloc.ModifyTime)
	tx.linkAlloc(alloc, nil)
	tx.countAlloc(alloc, nil)
	tx.followAlloc(alloc, nil)
	tx.pauseDeployment(alloc, nil, alloc.ModifyTime)
	tx.remove(TableAllocs, alloc.ID)
	tx.touchJob(alloc.Namespace, alloc.JobID)
}

// ReapAlloc deletes an allocation that has ended: observed terminal, or given up. It says whether it did.
func (tx *Txn) ReapAlloc(id string) bool {
	alloc := tx.alloc(id)
	if alloc == nil || !alloc.ClientTerminal() {
		return false
	}
	tx.deleteAlloc(alloc)
	return true
}

// ObserveAlloc takes over what a node reports of an allocation. A report that goes back in its life is refused and
// counted, as is one about an allocation that is not there. Being heard ends away and unknown; lost stays. While the
// node's own row says that it is silent, its return, which is written next, ends them together with that: an allocation
// that is well on a silent node is one that the scheduler gives up.
func (tx *Txn) ObserveAlloc(o *structs.AllocObservation, now int64) {
	old := tx.alloc(o.AllocID)
	if old == nil {
		tx.unknownAllocs++
		return
	}
	if !structs.ObservedTransitionLegal(old.ObservedStatus, o.ObservedStatus) {
		tx.regressions++
		tx.store.log.Debug("refused an observation that goes back", "alloc_id", old.ID,
			"observed", old.ObservedStatus, "reported", o.ObservedStatus)
		return
	}
	alloc := *old
	alloc.ObservedStatus = o.ObservedStatus
	alloc.ClientDescription, alloc.Fenced, alloc.Departed = o.ClientDescription, old.Fenced || o.Fenced, old.Departed || o.Departed
	tx.shared.text(&alloc.ObservedStatus)
	tx.shared.text(&alloc.ClientDescription)
	for _, state := range o.TaskStates {
		if state != nil {
			state.Packed = nil // only servers pack
		}
	}
	tx.shared.tasks(o.TaskStates)
	if len(o.TaskStates) > 0 {
		alloc.TaskStates = mergeTaskStates(old.TaskStates, o.TaskStates)
	}
	if o.NetworkStatus != nil {
		alloc.NetworkStatus = o.NetworkStatus
	}
	switch alloc.Condition.Status {
	case structs.ConditionAway, structs.ConditionUnknown:
		if node := tx.node(alloc.NodeID); node == nil || !node.Down() {
			alloc.Condition = structs.Condition{Status: structs.ConditionOK, Since: unixTime(now)}
		}
	}
	tx.observeHealth(&alloc, o.DeploymentStatus, now)
	tx.putAlloc(old, &alloc, now)
}

// mergeTaskStates keeps the tasks of which a report says nothing.
func mergeTaskStates(old, reported map[string]*structs.TaskState) map[string]*structs.TaskState {
	for name := range old {
		if reported[name] == nil {
			merged := maps.Clone(old)
			for name, state := range reported {
				if state != nil {
					merged[name] = state
				}
			}
			return merged
		}
	}
	return reported
}

// setCondition changes what the cluster infers of an allocation. Lost is never taken back.
func (tx *Txn) setCondition(old *structs.Allocation, condition structs.Condition, now int64) *structs.Allocation {
	if old.Condition.Status == structs.ConditionLost || sameCondition(old.Condition, condition) {
		return old
	}
	alloc := *old
	alloc.Condition = condition
	tx.putAlloc(old, &alloc, now)
	return &alloc
}

func sameCondition(a, b structs.Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Since.Equal(b.Since) && a.Until.Equal(b.Until) &&
		a.Grace == b.Grace
}

// TransitionAlloc merges an operator's, the drainer's or the deployment watcher's wish into an allocation. It says
// whether the allocation is there. Options of a stop mean nothing to one whose end was observed and are left out.
func (tx *Txn) TransitionAlloc(id string, want *structs.DesiredTransition, now int64) bool {
	alloc := tx.alloc(id)
	if alloc == nil {
		return false
	}
	if want != nil && alloc.ObservedTerminal() {
		rest := *want
		rest.NoShutdownDelay, rest.KillTimeout = nil, nil
		want = &rest
	}
	tx.mergeTransition(alloc, want, now)
	return true
}

func (tx *Txn) mergeTransition(old *structs.Allocation, want *structs.DesiredTransition, now int64) {
	alloc := *old
	alloc.DesiredTransition.Merge(want)
	tx.noteUrged(&alloc, want)
	if sameTransition(&old.DesiredTransition, &alloc.DesiredTransition) {
		return
	}
	alloc.AllocModifyIndex = tx.index
	tx.putAlloc(old, &alloc, now)
}

// noteUrged marks that the servers were asked to end an allocation within a time. Asked once more for the same time they
// are as urged as before, and the node is to hear of it.
func (tx *Txn) noteUrged(alloc *structs.Allocation, want *structs.DesiredTransition) {
	if want != nil && want.KillTimeout != nil {
		alloc.DesiredTransition.Urged = tx.index
	}
}

func sameTransition(a, b *structs.DesiredTransition) bool {
	return samePtr(a.Migrate, b.Migrate) && samePtr(a.Reschedule, b.Reschedule) &&
		samePtr(a.ForceReschedule, b.ForceReschedule) && samePtr(a.NoShutdownDelay, b.NoShutdownDelay) &&
		samePtr(a.MigrateDisablePlacement, b.MigrateDisablePlacement) && samePtr(a.KillTimeout, b.KillTimeout) &&
		a.Urged == b.Urged
}

func samePtr[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// clearStopOptions takes the options of a stop from allocations that are to run on, so that no later, ordinary stop
// has them.
func (tx *Txn) clearStopOptions(allocs []*structs.Allocation, now int64) {
	for _, old := range allocs {
		t := &old.DesiredTransition
		if old.TerminalStatus() || t.NoShutdownDelay == nil && t.KillTimeout == nil {
			continue
		}
		alloc := *old
		alloc.DesiredTransition.NoShutdownDelay, alloc.DesiredTransition.KillTimeout, alloc.DesiredTransition.Urged = nil, nil, 0
		alloc.AllocModifyIndex = tx.index
		tx.putAlloc(old, &alloc, now)
	}
}

// shortenStops gives the options of stops which ride on an evaluation to those of a job's allocations that stop already:
// the evaluation's plan stamps only what it stops itself.
func (tx *Txn) shortenStops(namespace, jobID string, eval *structs.Evaluation, now int64, concerned func(*structs.Allocation) bool) {
	if eval == nil || !eval.NoShutdownDelay && eval.KillTimeout == nil {
		return
	}
	want := &structs.DesiredTransition{KillTimeout: eval.KillTimeout}
	if eval.NoShutdownDelay {
		want.NoShutdownDelay = structs.Ptr(true)
	}
	for _, alloc := range tx.allocsByJob(namespace, jobID) {
		if alloc.ServerTerminal() && !alloc.ObservedTerminal() && concerned(alloc) {
			tx.mergeTransition(tx.alloc(alloc.ID), want, now)
		}
	}
}

func unixTime(nanos int64) time.Time { return time.Unix(0, nanos).UTC() }
