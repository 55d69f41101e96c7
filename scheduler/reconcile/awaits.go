package reconcile

import "github.com/nomadlite/nomadlite/structs"

// holders collects the allocations of a group that end, or are about to, and whose place somebody else may take. A new
// one of that place begins only once they have ended, whether it follows them or not: after a job was stopped and run
// again, say, or purged.
type holders struct {
	stopping []*structs.Allocation // told to stop before this reconciliation, not ended
	stops    int                   // how many stops the result had when the group's turn came
	places   int
}

// place is the name that only one of a service or batch job may have at a time; of a system job it is the node.
func place(name, node string) string {
	if node != "" {
		return node
	}
	return name
}

// setAwaits tells the group's new placements which allocations of their place end. What it follows each knows.
func (g *group) setAwaits() {
	ending := g.holders.stopping
	for i := range g.out.Stops[g.holders.stops:] {
		st := &g.out.Stops[g.holders.stops+i]
		if st.Desired != "" && st.Condition == nil && !st.Alloc.ClientTerminal() {
			ending = append(ending, st.Alloc)
		}
	}
	if len(ending) == 0 {
		return
	}
	byPlace := map[string][]string{}
	for _, a := range ending {
		byPlace[a.Name] = append(byPlace[a.Name], a.ID)
		byPlace[a.NodeID] = append(byPlace[a.NodeID], a.ID)
	}
	for i := range g.out.Places[g.holders.places:] {
		p := &g.out.Places[g.holders.places+i]
		if p.Canary {
			continue // it is meant to run beside who has its name
		}
		for _, id := range byPlace[place(p.Name, p.Node)] {
			if p.Previous == nil || p.Previous.ID != id {
				p.Awaits = append(p.Awaits, id)
			}
		}
	}
}
