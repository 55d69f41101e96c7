package state

import (
	"maps"

	"github.com/nomadlite/nomadlite/structs"
)

// FitPlan says what of a verified plan still holds: between its verification and its entry others may have come, which
// took a node away from new work, stopped the job or registered another version. It gives nil when all of it holds. What
// it leaves out the plan's evaluation decides anew, by a state that has those entries.
func (tx *Txn) FitPlan(plan *structs.Plan) *structs.PlanVerdict {
	v := &structs.PlanVerdict{Rejected: map[string]string{}}
	if len(plan.Places) > 0 && plan.JobID != "" {
		v.Stale = plan.Overtaken(tx.job(plan.Namespace, plan.JobID))
	}
	for nodeID, places := range plan.Places {
		if v.Stale != "" {
			break
		}
		node := tx.node(nodeID)
		if node != nil && node.Ready() {
			continue
		}
		fresh := false
		for _, a := range places {
			fresh = fresh || tx.alloc(a.ID) == nil
		}
		if reason := node.Refuses(fresh); reason != "" {
			v.Rejected[nodeID] = reason
		}
	}
	heard := tx.heardSince(plan)
	if v.Full() && len(heard) == 0 {
		return nil
	}
	v.Plan = plan.Keep(v.Rejected)
	if v.Stale != "" {
		v.Plan = plan.Without(maps.Keys(plan.Places))
	}
	if len(heard) > 0 {
		v.Plan = withoutConditions(v.Plan, heard)
	}
	return v
}

// heardSince gives the nodes that the scheduler could not hear, on which the plan gives allocations up, and that have been
// heard since it looked.
func (tx *Txn) heardSince(plan *structs.Plan) map[string]bool {
	var heard map[string]bool
	for nodeID, stops := range plan.Stops {
		for _, s := range stops {
			if s.Condition == nil {
				continue
			}
			if node := tx.node(nodeID); node != nil && !node.Down() && node.ModifyIndex > plan.SnapshotIndex {
				if heard == nil {
					heard = map[string]bool{}
				}
				heard[nodeID] = true
			}
			break
		}
	}
	return heard
}

// withoutConditions gives the plan without what it infers of allocations on those nodes; what it stops there it stops.
func withoutConditions(plan *structs.Plan, nodes map[string]bool) *structs.Plan {
	out := *plan
	out.Stops = maps.Clone(plan.Stops)
	for nodeID := range nodes {
		var stops []*structs.AllocStop
		for _, s := range plan.Stops[nodeID] {
			if s.Condition != nil {
				unsaid := *s
				unsaid.Condition = nil
				s = &unsaid
			}
			stops = append(stops, s)
		}
		out.Stops[nodeID] = stops
	}
	return &out
}
