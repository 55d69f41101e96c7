package structs

import (
	"iter"
	"maps"
	"slices"
)

// PlanVerdict is what of a plan may be committed, and why the rest may not. It is made twice: when the plan is verified,
// and when its entry is applied, since other entries may come between.
type PlanVerdict struct {
	// Plan holds only what fits; empty when nothing does.
	Plan *Plan
	// Rejected says of each node whose part did not fit why, in words for logs.
	Rejected map[string]string
	// Stale is set when the job changed under the scheduler: nothing new of the plan was kept.
	Stale string
}

// Full says whether everything was kept.
func (v *PlanVerdict) Full() bool { return len(v.Rejected) == 0 && v.Stale == "" }

// Overtaken says why the scheduler's picture of the job is too old to place by, empty when it is not. job is the job as it
// is now, nil when it is gone. A stop or a new version that was registered after the plan's snapshot must not be overtaken
// by what was decided before.
func (p *Plan) Overtaken(job *Job) string {
	switch {
	case job == nil:
		return "the job is gone"
	case job.Stopped():
		return "the job was stopped"
	case job.JobModifyIndex > p.SnapshotIndex:
		return "the job has a newer version"
	}
	return ""
}

// Refuses says why a node, nil when it is gone, cannot take its part of a plan, empty when it can. fresh says that the part
// has allocations which are not on the node yet.
func (n *Node) Refuses(fresh bool) string {
	switch {
	case n == nil:
		return "the node is gone"
	case fresh && !n.Ready():
		return "the node takes no new allocations"
	case n.Status == NodeStatusDown:
		return "the node is down"
	}
	return ""
}

// Keep gives what is left of the plan without the parts of the nodes that rejected theirs: nothing to place when it is to
// be done all at once.
func (p *Plan) Keep(rejected map[string]string) *Plan {
	switch {
	case len(rejected) == 0:
		return p
	case p.AllAtOnce:
		return p.Without(maps.Keys(p.Places))
	}
	return p.Without(maps.Keys(rejected))
}

// Without gives the plan without its part for the nodes named. Stops that made room for a replacement which is left
// out are left out too: what runs goes on until its replacement has a place.
func (p *Plan) Without(nodes iter.Seq[string]) *Plan {
	out := *p
	out.Places, out.Preemptions, out.Stops = maps.Clone(p.Places), maps.Clone(p.Preemptions), maps.Clone(p.Stops)
	unreplaced := map[string]bool{}
	for nodeID := range nodes {
		for _, a := range p.Places[nodeID] {
			if a.PreviousAllocation != "" {
				unreplaced[a.PreviousAllocation] = true
			}
		}
		delete(out.Places, nodeID)
		delete(out.Preemptions, nodeID)
	}
	if p.AllAtOnce {
		// All or nothing: what the scheduler found ended is still recorded.
		for _, stops := range p.Stops {
			for _, s := range stops {
				unreplaced[s.ID] = true
			}
		}
	}
	for nodeID, stops := range out.Stops {
		kept := slices.DeleteFunc(slices.Clone(stops), func(s *AllocStop) bool {
			return unreplaced[s.ID] && s.Condition == nil
		})
		if len(kept) == 0 {
			delete(out.Stops, nodeID)
		} else {
			out.Stops[nodeID] = kept
		}
	}
	// A deployment without any of its allocations would be a claim about nothing.
	if len(out.Places) == 0 && len(p.Places) > 0 {
		out.Deployment = nil
		if p.AllAtOnce {
			out.DeploymentUpdates = nil
		}
	}
	return &out
}
