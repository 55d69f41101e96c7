package rank

import (
	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/structs"
)

// Newcomer is an allocation that a plan wants to put on a node.
type Newcomer struct {
	Resources structs.Comparable
	// Replaces is what the allocation that it replaces on the same node still holds, nil when there is none. The node
	// starts the newcomer after that one ended, so it takes over what that one holds.
	Replaces *structs.Comparable
}

// Fits says whether all newcomers fit on a node beside what its allocations hold (usage), and if not, which dimension
// is exhausted, by the very rules by which a Placer places. The planner of schedtest asks it; a server's plan applier
// has its own rules (nomadlite/plan), since it also weighs plans in flight and chains of replacements.
func Fits(node *structs.Node, usage *structs.NodeUsage, newcomers []Newcomer) (bool, string) {
	site := feasible.NewSite(node)
	var p place
	p.look(&site, usage) // keeps site off the heap
	for i := range newcomers {
		n := &newcomers[i]
		for _, port := range n.Resources.Ports {
			if !p.portFree(int(port), n.Replaces) {
				return false, "network: port collision"
			}
		}
		for _, core := range n.Resources.Cores {
			if !p.coreFree(core, n.Replaces) {
				return false, dimensionCores
			}
		}
		p.occupy(&n.Resources, n.Replaces)
		switch {
		case node.NodeMaxAllocs > 0 && p.allocs > node.NodeMaxAllocs:
			return false, dimensionAllocs
		case p.usedCPU > p.cpu:
			return false, dimensionCPU
		case p.usedMem > p.memory:
			return false, dimensionMemory
		case p.usedDisk > p.disk:
			return false, dimensionDisk
		}
	}
	return true, ""
}
