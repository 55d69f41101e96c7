package plan

import (
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// State is what verification looks at.
type State interface {
	Index() uint64
	Job(namespace, id string) *structs.Job
	Node(id string) *structs.Node
	AllocsByNode(nodeID string) []*structs.Allocation
}

// usages is a State that keeps what the allocations on a node hold together; never nil.
type usages interface {
	NodeUsage(nodeID string) *structs.NodeUsage
}

// Verdict is what of a plan may be committed, and why the rest may not.
type Verdict struct {
	// Plan holds only what fits; empty when nothing does.
	Plan *structs.Plan
	// Rejected says of each node whose part did not fit why, in words for logs.
	Rejected map[string]string
	// Stale is set when the job changed under the scheduler: nothing new of the plan was kept.
	Stale string
}

// Full says whether everything was kept.
func (v *Verdict) Full() bool { return len(v.Rejected) == 0 && v.Stale == "" }

// Verify decides what of plan fits into state, with the plans in flight on top.
func Verify(state State, flight *Overlay, plan *structs.Plan) *Verdict {
	v := &Verdict{Rejected: map[string]string{}}
	if v.Stale = stale(state, plan); v.Stale != "" {
		v.Plan = without(plan, maps.Keys(plan.Places))
		return v
	}
	for _, nodeID := range slices.Sorted(maps.Keys(plan.Places)) {
		if reason := verifyNode(state, flight, plan, nodeID); reason != "" {
			v.Rejected[nodeID] = reason
		}
	}
	switch {
	case len(v.Rejected) == 0:
		v.Plan = plan
	case plan.AllAtOnce:
		v.Plan = without(plan, maps.Keys(plan.Places))
	default:
		v.Plan = without(plan, maps.Keys(v.Rejected))
	}
	return v
}

// stale says why the scheduler's picture of the job is too old to place by, empty when it is not. A stop or a new
// version that was registered after its snapshot must not be overtaken by what it decided before.
func stale(state State, plan *structs.Plan) string {
	if len(plan.Places) == 0 || plan.JobID == "" {
		return ""
	}
	switch job := state.Job(plan.Namespace, plan.JobID); {
	case job == nil:
		return "the job is gone"
	case job.Stopped():
		return "the job was stopped"
	case job.JobModifyIndex > plan.SnapshotIndex:
		return "the job has a newer version"
	}
	return ""
}

// verifyNode says why the plan's part for one node does not fit, empty when it does.
func verifyNode(state State, flight *Overlay, plan *structs.Plan, nodeID string) string {
	node := state.Node(nodeID)
	if node == nil {
		return "the node is gone"
	}
	if kept, ok := state.(usages); ok && node.Ready() && roomy(node, kept.NodeUsage(nodeID), flight, plan) {
		return ""
	}
	there := map[string]*structs.Allocation{}
	for _, a := range state.AllocsByNode(nodeID) {
		there[a.ID] = a
	}
	fresh := false
	for _, a := range plan.Places[nodeID] {
		if there[a.ID] == nil {
			fresh = true
		}
	}
	switch {
	case fresh && !node.Ready():
		return "the node takes no new allocations"
	case node.Status == structs.NodeStatusDown:
		return "the node is down"
	}
	stopping := map[string]bool{}
	flight.apply(nodeID, there, stopping)
	change(plan, nodeID, there, stopping)
	return fits(node, there, stopping)
}

// change applies the plan's part for one node to the allocations there.
func change(plan *structs.Plan, nodeID string, there map[string]*structs.Allocation, stopping map[string]bool) {
	for _, list := range [2][]*structs.AllocStop{plan.Stops[nodeID], plan.Preemptions[nodeID]} {
		for _, s := range list {
			if s.Condition != nil && s.Condition.Status == structs.ConditionLost {
				delete(there, s.ID)
			} else if s.DesiredStatus != "" {
				stopping[s.ID] = true
			}
		}
	}
	for _, a := range plan.Places[nodeID] {
		there[a.ID] = a
	}
}

// without gives the plan without its part for the nodes named. Stops that made room for a replacement which is left
// out are left out too: what runs goes on until its replacement has a place.
func without(plan *structs.Plan, nodes func(yield func(string) bool)) *structs.Plan {
	out := *plan
	out.Places, out.Preemptions, out.Stops = maps.Clone(plan.Places), maps.Clone(plan.Preemptions), maps.Clone(plan.Stops)
	unreplaced := map[string]bool{}
	for nodeID := range nodes {
		for _, a := range plan.Places[nodeID] {
			if a.PreviousAllocation != "" {
				unreplaced[a.PreviousAllocation] = true
			}
		}
		delete(out.Places, nodeID)
		delete(out.Preemptions, nodeID)
	}
	if plan.AllAtOnce {
		// All or nothing: what the scheduler found ended is still recorded.
		for _, stops := range plan.Stops {
			for _, s := range stops {
				unreplaced[s.ID] = true
			}
		}
	}
	for nodeID, stops := range out.Stops {
		kept := slices.DeleteFunc(slices.Clone(stops), func(s *structs.AllocStop) bool {
			return unreplaced[s.ID] && s.Condition == nil
		})
		if len(kept) == 0 {
			delete(out.Stops, nodeID)
		} else {
			out.Stops[nodeID] = kept
		}
	}
	// A deployment without any of its allocations would be a claim about nothing.
	if len(out.Places) == 0 && len(plan.Places) > 0 {
		out.Deployment = nil
		if plan.AllAtOnce {
			out.DeploymentUpdates = nil
		}
	}
	return &out
}
