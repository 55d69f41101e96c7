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
type Verdict = structs.PlanVerdict

// Verify decides what of plan fits into state, with the plans in flight on top.
func Verify(state State, flight *Overlay, plan *structs.Plan) *Verdict {
	v := &Verdict{Rejected: map[string]string{}}
	if len(plan.Places) > 0 && plan.JobID != "" {
		v.Stale = plan.Overtaken(state.Job(plan.Namespace, plan.JobID))
	}
	if v.Stale != "" {
		v.Plan = plan.Without(maps.Keys(plan.Places))
		return v
	}
	for _, nodeID := range slices.Sorted(maps.Keys(plan.Places)) {
		if reason := verifyNode(state, flight, plan, nodeID); reason != "" {
			v.Rejected[nodeID] = reason
		}
	}
	v.Plan = plan.Keep(v.Rejected)
	return v
}

// verifyNode says why the plan's part for one node does not fit, empty when it does.
func verifyNode(state State, flight *Overlay, plan *structs.Plan, nodeID string) string {
	node := state.Node(nodeID)
	if kept, ok := state.(usages); ok && node != nil && node.Ready() && roomy(node, kept.NodeUsage(nodeID), flight, plan) {
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
	if reason := node.Refuses(fresh); reason != "" {
		return reason
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
