package scheduler

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/scheduler/rank"
	"github.com/nomadlite/nomadlite/structs"
)

// examples is how many nodes of a barrier are named.
const examples = 3

// ExplainGroup tells where one more allocation of a group fits in the cluster as it is, what keeps it off the other
// nodes, and what would open nodes if it alone were changed. Evictions are not considered.
func ExplainGroup(state State, job *structs.Job, tg *structs.TaskGroup) *structs.GroupExplanation {
	s := &generic{state: state, job: job, eval: &structs.Evaluation{Namespace: structs.Val(job.Namespace), JobID: structs.Val(job.ID)}}
	s.plan, s.system = &structs.Plan{}, structs.Val(job.Type) == structs.JobTypeSystem || structs.Val(job.Type) == structs.JobTypeSysBatch
	scope := feasible.NewScope(anyReady(state), job)
	ranker := rank.New(s.rankConfig(scope.Pool), job, scope, s.ownPeers(), s.usage)
	placer := ranker.Group(tg, feasible.NewGroup(job, tg))
	out := &structs.GroupExplanation{Name: structs.Val(tg.Name), Desired: structs.Val(tg.Count)}
	there := map[string]bool{}
	for _, peer := range s.ownPeers() {
		there[peer.NodeID] = there[peer.NodeID] || s.system && peer.Group == out.Name && !peer.Stopping
	}
	barriers, opens := map[string]*structs.NodeBarrier{}, map[string]int{}
	for node := range state.Nodes() {
		out.Nodes++
		closed := append(notReady(node), outside(job, node)...)
		if len(outside(job, node)) == 0 {
			closed = append(closed, placer.Barriers(node)...)
		}
		if there[node.ID] {
			closed = []string{"runs its allocation already"}
		}
		switch len(closed) {
		case 0:
			out.Open++
		case 1:
			opens[closed[0]]++
		}
		for _, what := range closed {
			b := barriers[what]
			if b == nil {
				b = &structs.NodeBarrier{What: what}
				barriers[what] = b
			}
			b.Nodes++
			if len(b.Examples) < examples {
				b.Examples = append(b.Examples, cmp.Or(node.Name, node.ID))
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(barriers)) {
		out.Barriers = append(out.Barriers, *barriers[what])
		if n := opens[what]; n > 0 {
			out.Relax = append(out.Relax, structs.Relaxation{What: what, Opens: n})
		}
	}
	slices.SortStableFunc(out.Barriers, func(a, b structs.NodeBarrier) int { return b.Nodes - a.Nodes })
	slices.SortStableFunc(out.Relax, func(a, b structs.Relaxation) int { return b.Opens - a.Opens })
	return out
}

// anyReady gives all nodes as if they were ready: what else stands in the way of those that are not is told too.
func anyReady(state State) func(yield func(*structs.Node) bool) {
	return func(yield func(*structs.Node) bool) {
		for node := range state.Nodes() {
			if !node.Ready() {
				ready := *node
				ready.Status, ready.SchedulingEligibility = structs.NodeStatusReady, structs.NodeEligible
				ready.DrainStrategy, ready.Maintenance = nil, nil
				node = &ready
			}
			if !yield(node) {
				return
			}
		}
	}
}

// notReady says why a node takes nothing new, whatever it is.
func notReady(node *structs.Node) []string {
	switch {
	case node.Status != structs.NodeStatusReady:
		return []string{"node is " + node.Status}
	case node.DrainStrategy != nil:
		return []string{"node is draining"}
	case node.Maintenance != nil:
		return []string{"node is away for a maintenance"}
	case node.SchedulingEligibility != structs.NodeEligible:
		return []string{"node is ineligible"}
	}
	return nil
}

// outside says why a node is not one that the job looks at.
func outside(job *structs.Job, node *structs.Node) []string {
	pool := cmp.Or(structs.Val(job.NodePool), structs.NodePoolDefault)
	switch {
	case feasible.Contains(job, node):
		return nil
	case !feasible.InPool(node, pool):
		return []string{"not in node pool " + pool}
	}
	return []string{"not in the job's datacenters"}
}

// ownPeers are the job's allocations that hold resources.
func (s *generic) ownPeers() []rank.Peer {
	var peers []rank.Peer
	for _, a := range s.state.AllocsByJob(s.eval.Namespace, s.eval.JobID) {
		if a.HoldsResources() {
			peers = append(peers, rank.Peer{ID: a.ID, NodeID: a.NodeID, Group: a.TaskGroup, Stopping: a.ServerTerminal()})
		}
	}
	return peers
}
