package plan

import "github.com/nomadlite/nomadlite/structs"

// Overlay is what was verified but may not be in the state yet. Nothing in it frees anything: an allocation that is
// to stop holds its resources until it is observed terminal.
type Overlay struct {
	plans []*structs.Plan
}

// Add puts a verified plan on top.
func (o *Overlay) Add(plan *structs.Plan) { o.plans = append(o.plans, plan) }

// apply changes the allocations of one node as the plans in flight will. What the state already holds of them is
// newer and stays.
func (o *Overlay) apply(nodeID string, there map[string]*structs.Allocation, stopping map[string]bool) {
	if o == nil {
		return
	}
	for _, p := range o.plans {
		for _, list := range [2][]*structs.AllocStop{p.Stops[nodeID], p.Preemptions[nodeID]} {
			for _, s := range list {
				if s.DesiredStatus != "" {
					stopping[s.ID] = true
				}
			}
		}
		for _, a := range p.Places[nodeID] {
			if known := there[a.ID]; known == nil || !known.ClientTerminal() {
				there[a.ID] = a
			}
		}
	}
}
