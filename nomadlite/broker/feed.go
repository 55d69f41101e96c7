package broker

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// follow takes one change of the state in: new and ended evaluations, and whatever may have made room.
func (b *Broker) follow(store *state.Store, change state.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	room := map[string]string{}             // node -> class
	left := map[structs.NamespacedID]bool{} // jobs with an allocation less
	all := false
	for _, item := range change.Items {
		switch item.Table {
		case state.TableEvals:
			before, _ := item.Before.(*structs.Evaluation)
			after, _ := item.After.(*structs.Evaluation)
			b.evalLocked(now, before, after)
		case state.TableNodes:
			before, _ := item.Before.(*structs.Node)
			after, _ := item.After.(*structs.Node)
			if after == nil && before != nil {
				b.blocked.ForgetNode(before.ID)
			}
			if gainsRoom(before, after) {
				room[after.ID] = after.ComputedClass
			}
		case state.TableAllocs:
			before, _ := item.Before.(*structs.Allocation)
			after, _ := item.After.(*structs.Allocation)
			if !leavesRoom(before, after) {
				continue
			}
			left[structs.NamespacedID{Namespace: before.Namespace, ID: before.JobID}] = true
			if room[before.NodeID] == "" {
				if node := store.Node(nil, before.NodeID); node != nil && node.Ready() {
					room[node.ID] = node.ComputedClass
				}
			}
		case state.TableConfig:
			if cfg, ok := item.After.(*structs.SchedulerConfiguration); ok {
				b.paused = cfg.PauseEvalBroker
				all = true
			}
		case state.TableNodePools:
			all = true
		}
	}
	for _, nodeID := range slices.Sorted(maps.Keys(room)) { // the same each time, so that simulations can be repeated
		b.requeueLocked(now, b.blocked.Room(nodeID, room[nodeID], change.Index))
	}
	for job := range left {
		b.requeueLocked(now, b.blocked.JobRoom(job, change.Index))
	}
	if all {
		b.requeueLocked(now, b.blocked.WakeAll(change.Index))
	}
	b.unblockLocked(now)
	b.wakeLocked()
}

// unblockLocked lets those blocked evaluations run again which the present room could help.
func (b *Broker) unblockLocked(now time.Time) {
	if b.store == nil {
		return
	}
	for _, eval := range b.blocked.Wake(&freeRoom{store: b.store}) {
		b.queue.Requeue(now, eval)
		if !b.queue.Active(eval.ID) {
			b.blocked.Done(eval.ID) // its job's turn is with another one: it is not to keep room from others
		}
	}
}

// sweepLocked takes back what was promised to evaluations that lost their turn because a delivery of them failed.
func (b *Broker) sweepLocked() {
	for _, id := range b.blocked.Woken() {
		if !b.queue.Active(id) {
			b.blocked.Done(id)
		}
	}
}

func (b *Broker) requeueLocked(now time.Time, evals []*structs.Evaluation) {
	for _, eval := range evals {
		b.queue.Requeue(now, eval)
	}
}

// evalLocked files an evaluation by its new status.
func (b *Broker) evalLocked(now time.Time, before, after *structs.Evaluation) {
	switch {
	case after == nil:
		if before != nil {
			b.queue.Remove(before.ID)
			b.blocked.Remove(before.ID)
		}
	case after.ShouldEnqueue():
		b.enqueueLocked(now, after)
	case after.ShouldBlock():
		b.blockLocked(now, after, false)
	case after.TerminalStatus():
		b.queue.Remove(after.ID)
		b.blocked.Remove(after.ID)
		if after.Status == structs.EvalStatusComplete && len(after.FailedTGAllocs) == 0 && after.BlockedEval == "" {
			b.cancelLocked(byNewer, b.blocked.Settled(after)...)
		}
	}
}

// gainsRoom says whether a node's change may let something be placed there that could not be before.
func gainsRoom(before, after *structs.Node) bool {
	if after == nil || !after.Ready() {
		return false
	}
	return before == nil || !before.Ready() || before.ComputedClass != after.ComputedClass ||
		before.NodeMaxAllocs != after.NodeMaxAllocs ||
		!reflect.DeepEqual(before.NodeResources, after.NodeResources) ||
		!reflect.DeepEqual(before.ReservedResources, after.ReservedResources)
}

// leavesRoom says whether an allocation's change may have freed something on its node: it was observed to end, was
// given up, was removed, or holds less than before.
func leavesRoom(before, after *structs.Allocation) bool {
	if before == nil || !before.HoldsResources() {
		return false
	}
	if after == nil || !after.HoldsResources() {
		return true
	}
	if before.AllocatedResources == after.AllocatedResources {
		return false
	}
	was, is := before.AllocatedResources.Comparable(), after.AllocatedResources.Comparable()
	return is.CPU < was.CPU || is.MemoryMB < was.MemoryMB || is.DiskMB < was.DiskMB ||
		!reflect.DeepEqual(is.Ports, was.Ports) || !reflect.DeepEqual(is.Cores, was.Cores)
}
