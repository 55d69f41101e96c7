package scheduler

import (
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/scheduler/preempt"
	"github.com/nomadlite/nomadlite/scheduler/rank"
	"github.com/nomadlite/nomadlite/scheduler/reconcile"
	"github.com/nomadlite/nomadlite/structs"
)

// sharing is an allocation that waits for the end of evicted ones on its node.
type sharing struct {
	alloc *structs.Allocation
	pool  *rank.Pool
}

// preempts says whether jobs of this type may evict allocations of lower priority. Without a configuration system jobs
// may, as publicly documented.
func (s *generic) preempts() bool {
	sc := s.state.SchedulerConfig()
	switch {
	case sc == nil:
		return s.system && !s.batch
	case s.system && s.batch:
		return sc.PreemptionConfig.SysBatchSchedulerEnabled
	case s.system:
		return sc.PreemptionConfig.SystemSchedulerEnabled
	case s.batch:
		return sc.PreemptionConfig.BatchSchedulerEnabled
	}
	return sc.PreemptionConfig.ServiceSchedulerEnabled
}

// candidates are the allocations on a node that may be evicted for the job. Its own are none, even when its priority was
// raised since they were placed: what becomes of them the reconciler says.
func (s *generic) candidates(node *structs.Node) []preempt.Candidate {
	var out []preempt.Candidate
	priority := structs.Val(s.job.Priority)
	there := s.state.AllocsByNode(node.ID)
	awaited := awaitedEnds(there)
	shares := func(id string) bool { return awaited[id] > 1 }
	for _, a := range there {
		if s.evicted[a.ID] || a.JobID == s.eval.JobID && a.Namespace == s.eval.Namespace {
			continue
		}
		if slices.ContainsFunc(a.PreemptedAllocations, shares) {
			continue // until those end, what it was promised is the others' too: its end makes no room
		}
		if c, ok := preempt.NewCandidate(a, priority); ok {
			out = append(out, c)
		}
	}
	return out
}

// awaitedEnds counts, for each evicted allocation on a node that has not ended, those that begin once it has.
func awaitedEnds(there []*structs.Allocation) map[string]int {
	var out map[string]int
	for _, a := range there {
		if a.DesiredStatus == structs.AllocDesiredStatusEvict && a.HoldsResources() {
			if out == nil {
				out = map[string]int{}
			}
			out[a.ID] = 0
		}
	}
	if out == nil {
		return nil
	}
	for _, a := range there {
		if !a.HoldsResources() {
			continue
		}
		for _, id := range a.PreemptedAllocations {
			if n, waits := out[id]; waits {
				out[id] = n + 1
			}
		}
	}
	return out
}

// planEvictions ends what has to end for a placement.
func (s *generic) planEvictions(p *reconcile.Place, a *structs.Allocation, placement *rank.Placement) {
	if placement.Pool != nil {
		s.sharing = append(s.sharing, sharing{a, placement.Pool})
	}
	for _, id := range placement.Evicted {
		s.evicted[id] = true
		s.plan.Preemptions[a.NodeID] = append(s.plan.Preemptions[a.NodeID], &structs.AllocStop{
			ID: id, DesiredStatus: structs.AllocDesiredStatusEvict, DesiredDescription: "Preempted by alloc ID " + a.ID,
			PreemptedBy: a.ID,
		})
		if d := s.result.Desired[structs.Val(p.Group.Name)]; d != nil {
			d.Preemptions++
		}
	}
}

// shareEvictions tells each allocation for whose end it waits, once all evictions on its node are known: nobody can say
// whose end made room for whom.
func (s *generic) shareEvictions() {
	for _, sh := range s.sharing {
		sh.alloc.PreemptedAllocations = slices.Clone(sh.pool.Victims)
		for _, id := range sh.pool.Victims {
			if !sh.alloc.AwaitsAlloc(id) {
				sh.alloc.Awaits = append(sh.alloc.Awaits, structs.AwaitedAlloc{ID: id})
			}
		}
	}
}

// evictedStubs are the allocations that the plan evicts, for people.
func (s *generic) evictedStubs() []*structs.AllocationListStub {
	var out []*structs.AllocationListStub
	for _, node := range slices.Sorted(maps.Keys(s.plan.Preemptions)) {
		for _, a := range s.state.AllocsByNode(node) {
			if s.evicted[a.ID] {
				out = append(out, a.Stub())
			}
		}
	}
	return out
}
