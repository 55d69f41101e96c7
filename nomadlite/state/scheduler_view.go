package state

import (
	"iter"

	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/structs"
)

// Scheduler gives the snapshot as schedulers see it.
func (s *Snapshot) Scheduler() scheduler.State { return schedulerView{s} }

// schedulerView is a snapshot without watch sets. Beyond scheduler.State it offers all that a
// scheduler may make use of.
type schedulerView struct{ snap *Snapshot }

var (
	_ scheduler.State      = schedulerView{}
	_ scheduler.UsageState = schedulerView{}
	_ scheduler.FleetState = schedulerView{}
	_ scheduler.EvalState  = schedulerView{}
	_ scheduler.PoolState  = schedulerView{}
)

func (v schedulerView) Index() uint64 { return v.snap.Index() }

func (v schedulerView) Job(namespace, id string) *structs.Job { return v.snap.Job(nil, namespace, id) }

func (v schedulerView) AllocsByJob(namespace, id string) []*structs.Allocation {
	return v.snap.AllocsByJob(nil, namespace, id)
}

func (v schedulerView) AllocsByNode(nodeID string) []*structs.Allocation {
	return v.snap.AllocsByNode(nil, nodeID)
}

func (v schedulerView) Node(id string) *structs.Node { return v.snap.Node(nil, id) }

func (v schedulerView) Nodes() iter.Seq[*structs.Node] { return v.snap.Nodes(nil) }

func (v schedulerView) LatestDeployment(namespace, jobID string) *structs.Deployment {
	return v.snap.LatestDeployment(nil, namespace, jobID)
}

func (v schedulerView) SchedulerConfig() *structs.SchedulerConfiguration {
	return v.snap.SchedulerConfig(nil)
}

// NodeUsage gives what the allocations on a node hold, kept beside the node.
func (v schedulerView) NodeUsage(nodeID string) *structs.NodeUsage { return v.snap.NodeUsage(nodeID) }

// Fleet gives what scheduling needs of all nodes, and their usages.
func (v schedulerView) Fleet() (*feasible.Fleet, []*structs.NodeUsage) {
	f := v.snap.at().fleet()
	return f.fleet, f.usages
}

// Eval gives an evaluation, nil when there is none.
func (v schedulerView) Eval(id string) *structs.Evaluation { return v.snap.Eval(nil, id) }

// NodePool gives a node pool, nil when there is none.
func (v schedulerView) NodePool(name string) *structs.NodePool { return v.snap.NodePool(nil, name) }

// JobSpec gives a specification row by the JobModifyIndex of its job.
func (v schedulerView) JobSpec(namespace, id string, jobModifyIndex uint64) *structs.Job {
	return v.snap.JobSpec(namespace, id, jobModifyIndex)
}

// JobVersions gives the kept versions of a job, the newest first.
func (v schedulerView) JobVersions(namespace, id string) []*structs.Job {
	return v.snap.JobVersions(nil, namespace, id)
}
