package broker

import (
	"math"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// freeRoom is what the newest state says of nodes, each looked at once.
type freeRoom struct {
	store *state.Store
	snap  *state.Snapshot
	known map[string]nodeRoom
}

type nodeRoom struct {
	free  Size
	ready bool
}

var _ Rooms = (*freeRoom)(nil)

// Free implements Rooms.
func (r *freeRoom) Free(nodeID string) (Size, bool) {
	if r.snap == nil {
		r.snap, r.known = r.store.Snapshot(), map[string]nodeRoom{}
	}
	room, seen := r.known[nodeID]
	if !seen {
		if node := r.snap.Node(nil, nodeID); node != nil && node.Ready() {
			room = nodeRoom{freeOf(node, r.snap.NodeUsage(nodeID)), true}
		}
		r.known[nodeID] = room
	}
	return room.free, room.ready
}

func freeOf(node *structs.Node, used *structs.NodeUsage) Size {
	free := Size{CPU: -used.CPU, MemoryMB: -used.MemoryMB, DiskMB: -used.DiskMB, Allocs: math.MaxInt32}
	if total := node.NodeResources; total != nil {
		free.CPU += total.Cpu.CpuShares
		free.MemoryMB += total.Memory.MemoryMB
		free.DiskMB += total.Disk.DiskMB
	}
	if held := node.ReservedResources; held != nil {
		free.CPU -= int64(held.Cpu.CpuShares)
		free.MemoryMB -= int64(held.Memory.MemoryMB)
		free.DiskMB -= int64(held.Disk.DiskMB)
	}
	if node.NodeMaxAllocs > 0 {
		free.Allocs = int64(node.NodeMaxAllocs - used.Allocs)
	}
	return free
}

// asksOf is what a blocked evaluation waits for; nothing when room is not all that decides, so that any change may help.
func asksOf(store *state.Store, eval *structs.Evaluation) []Ask {
	if len(eval.FailedTGAllocs) == 0 || preempts(store.SchedulerConfig(nil).PreemptionConfig, eval.Type) {
		return nil
	}
	job := store.Job(nil, eval.Namespace, eval.JobID)
	if job == nil {
		return nil
	}
	for _, a := range store.AllocsByJob(nil, eval.Namespace, eval.JobID) {
		leaves := a.JobModifyIndex != job.JobModifyIndex || a.DesiredStatus != structs.AllocDesiredStatusRun ||
			a.DesiredTransition.ShouldMigrate()
		if leaves && a.HoldsResources() {
			return nil // its successor may take over what it holds
		}
	}
	var asks []Ask
	for _, tg := range job.TaskGroups {
		name := structs.Val(tg.Name)
		failed := eval.FailedTGAllocs[name]
		if failed == nil {
			continue
		}
		count := int64(max(1, failed.CoalescedFailures+1, eval.QueuedAllocations[name]))
		asks = append(asks, Ask{Size: sizeOf(tg), Count: count})
	}
	if len(asks) != len(eval.FailedTGAllocs) {
		return nil // a group that the job has no more
	}
	return asks
}

// preempts says whether the scheduler may evict others to make room: then not only free room decides.
func preempts(cfg structs.PreemptionConfig, evalType string) bool {
	switch evalType {
	case structs.JobTypeBatch:
		return cfg.BatchSchedulerEnabled
	case structs.JobTypeSystem:
		return cfg.SystemSchedulerEnabled
	case structs.JobTypeSysBatch:
		return cfg.SysBatchSchedulerEnabled
	default:
		return cfg.ServiceSchedulerEnabled
	}
}

// sizeOf is the least that an allocation of the group takes. Reserved cores are left out: what they are in MHz differs
// from node to node.
func sizeOf(tg *structs.TaskGroup) Size {
	size := Size{Allocs: 1}
	if tg.EphemeralDisk != nil {
		size.DiskMB = int64(structs.Val(tg.EphemeralDisk.SizeMB))
	}
	for _, task := range tg.Tasks {
		if task.Resources == nil {
			continue
		}
		if structs.Val(task.Resources.Cores) == 0 {
			size.CPU += int64(structs.Val(task.Resources.CPU))
		}
		size.MemoryMB += int64(structs.Val(task.Resources.MemoryMB))
	}
	return size
}
