package state

import (
	"slices"
	"strings"
	"sync"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/structs"
)

// fleetChanges is how many commits the usages may be behind and still be brought up to date node by node.
const fleetChanges = 1024

// fleets keeps the newest fleet and usages that were made of any view of a generation. Every evaluation looks at all
// nodes, few entries change one, and a plan changes the usages of few: what one evaluation worked out serves the next.
type fleets struct {
	mu      sync.Mutex
	newest  *fleetView
	changed []usageChange // the newest commits, the oldest first
}

// usageChange tells the nodes whose usage one commit changed.
type usageChange struct {
	commit uint64
	nodes  []string
}

// fleetView is a fleet and its usages as of one commit. It is immutable.
type fleetView struct {
	commit uint64 // counts the commits of a generation
	nodes  uint64 // index of the last change to a node
	fleet  *feasible.Fleet
	usages []*structs.NodeUsage
}

// note takes in which usages a commit changed, before any view shows it.
func (f *fleets) note(commit uint64, nodes []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newest == nil {
		return // nobody schedules here
	}
	if len(f.changed) == fleetChanges {
		f.changed = slices.Delete(f.changed, 0, fleetChanges/2)
	}
	f.changed = append(f.changed, usageChange{commit, nodes})
}

// fleet gives the fleet and the usages of a view.
func (v *view) fleet() *fleetView {
	nodes := Reader{at: func() *view { return v }}.TableIndex(TableNodes)
	v.fleets.mu.Lock()
	defer v.fleets.mu.Unlock()
	newest := v.fleets.newest
	if newest == nil || newest.commit > v.commit || newest.nodes != nodes {
		made := v.newFleet(nodes, newest)
		if newest == nil || newest.commit < v.commit { // an old snapshot's does not take a newer one's place
			v.fleets.newest, v.fleets.changed = made, v.fleets.after(v.commit)
		}
		return made
	}
	if newest.commit == v.commit {
		return newest
	}
	if len(v.fleets.changed) == 0 || v.fleets.changed[0].commit != newest.commit+1 {
		v.fleets.newest = v.newFleet(nodes, newest) // too far behind
	} else {
		v.fleets.newest = v.caughtUp(newest)
	}
	v.fleets.changed = v.fleets.after(v.commit)
	return v.fleets.newest
}

// after drops the changes up to a commit.
func (f *fleets) after(commit uint64) []usageChange {
	return slices.DeleteFunc(f.changed, func(c usageChange) bool { return c.commit <= commit })
}

// newFleet looks at all nodes, but for what a fleet of the same nodes knows, and all usages.
func (v *view) newFleet(nodes uint64, known *fleetView) *fleetView {
	made := &fleetView{commit: v.commit, nodes: nodes}
	if known != nil && known.nodes == nodes {
		made.fleet = known.fleet
	} else {
		made.fleet = feasible.NewFleet(scan[*structs.Node](v, nil, TableNodes, indexID, ""))
	}
	made.usages = make([]*structs.NodeUsage, len(made.fleet.Sites))
	at := 0
	for row := range scan[*usageRow](v, nil, tableUsage, indexID, "") { // in the order of the nodes
		for at < len(made.usages) && made.fleet.Sites[at].Node.ID < row.nodeID {
			at++
		}
		if at < len(made.usages) && made.fleet.Sites[at].Node.ID == row.nodeID {
			made.usages[at] = row.usage
		}
	}
	return made
}

// caughtUp brings an older fleetView of the same nodes up to date.
func (v *view) caughtUp(old *fleetView) *fleetView {
	made := &fleetView{commit: v.commit, nodes: old.nodes, fleet: old.fleet, usages: slices.Clone(old.usages)}
	for _, c := range v.fleets.changed {
		if c.commit > v.commit {
			break
		}
		for _, id := range c.nodes {
			at, found := slices.BinarySearchFunc(made.fleet.Sites, id, func(s feasible.Site, id string) int {
				return strings.Compare(s.Node.ID, id)
			})
			if found {
				made.usages[at] = nil
				if row := get[*usageRow](v, nil, tableUsage, indexID, id); row != nil {
					made.usages[at] = row.usage
				}
			}
		}
	}
	return made
}
