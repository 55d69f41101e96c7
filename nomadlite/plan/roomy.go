package plan

import "github.com/nomadlite/nomadlite/structs"

// roomy is the quick answer, which costs the same however many allocations a node has: it certainly has room for what
// plans put there, even if nothing that is there ever went. It says no of all that is not plain: what stops, follows
// another allocation, or holds something that only one may hold is looked at with everything that is there.
func roomy(node *structs.Node, usage *structs.NodeUsage, flight *Overlay, plan *structs.Plan) bool {
	cpu, memory, disk, count := usage.CPU, usage.MemoryMB, usage.DiskMB, usage.Allocs
	plain := func(p *structs.Plan) bool {
		if len(p.Stops[node.ID]) > 0 || len(p.Preemptions[node.ID]) > 0 {
			return false
		}
		for _, a := range p.Places[node.ID] {
			if a.AllocatedResources == nil || a.PreviousAllocation != "" || len(a.PreemptedAllocations) > 0 || singular(a.AllocatedResources) {
				return false
			}
			own := a.AllocatedResources.Comparable()
			cpu, memory, disk, count = cpu+own.CPU, memory+own.MemoryMB, disk+own.DiskMB, count+1
		}
		return true
	}
	if flight != nil {
		for _, p := range flight.plans {
			if !plain(p) {
				return false
			}
		}
	}
	if !plain(plan) {
		return false
	}
	total := node.ComparableResources()
	return cpu <= total.CPU && memory <= total.MemoryMB && disk <= total.DiskMB &&
		(node.NodeMaxAllocs == 0 || count <= node.NodeMaxAllocs)
}

// singular says whether something is among the resources that no other allocation may hold.
func singular(r *structs.AllocatedResources) bool {
	own := r.Comparable()
	if len(own.Ports) > 0 || len(own.Cores) > 0 {
		return true
	}
	for _, t := range r.Tasks {
		if len(t.Devices) > 0 {
			return true
		}
	}
	return false
}
