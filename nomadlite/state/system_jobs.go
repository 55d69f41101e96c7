package state

import (
	"slices"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/structs"
)

// SystemJobs gives the live system and sysbatch jobs that are meant for at least one of the nodes, by pool and
// datacenter: these must be looked at when such a node becomes ready, eligible or another than it was, since they may
// have nothing on it yet. Their order is that of namespace and id.
func (s *Snapshot) SystemJobs(nodes ...*structs.Node) []*structs.Job {
	var out []*structs.Job
	for job := range s.Jobs(nil, structs.AllNamespaces) {
		if kind := structs.Val(job.Type); kind != structs.JobTypeSystem && kind != structs.JobTypeSysBatch {
			continue
		}
		if job.Stopped() || !job.HasOwnAllocations() {
			continue
		}
		if slices.ContainsFunc(nodes, func(n *structs.Node) bool { return feasible.Contains(job, n) }) {
			out = append(out, job)
		}
	}
	return out
}
