package plan

import (
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// roomy is the quick answer, which costs the same however many allocations a node has: it certainly has room for what
// plans put there, even if nothing that is there ever went. It says no of all that is not plain: what stops, follows
// another allocation, holds a device, or wants a port or core that something else holds or wants. That is looked at with
// everything that is there.
func roomy(node *structs.Node, usage *structs.NodeUsage, flight *Overlay, plan *structs.Plan) bool {
	cpu, memory, disk, count := usage.CPU, usage.MemoryMB, usage.DiskMB, usage.Allocs
	var ports, cores []uint16 // of the plans
	plain := func(p *structs.Plan) bool {
		if len(p.Stops[node.ID]) > 0 || len(p.Preemptions[node.ID]) > 0 {
			return false
		}
		for _, a := range p.Places[node.ID] {
			if a.AllocatedResources == nil || a.PreviousAllocation != "" || len(a.PreemptedAllocations) > 0 || hasDevices(a.AllocatedResources) {
				return false
			}
			own := a.AllocatedResources.Comparable()
			cpu, memory, disk, count = cpu+own.CPU, memory+own.MemoryMB, disk+own.DiskMB, count+1
			ports, cores = append(ports, own.Ports...), append(cores, own.Cores...)
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
		(node.NodeMaxAllocs == 0 || count <= node.NodeMaxAllocs) &&
		unshared(ports, usage.Ports, total.Ports) && unshared(cores, usage.Cores, nil)
}

// unshared says that each of wanted is wanted once, and neither held nor reserved; these two are sorted.
func unshared(wanted, held, reserved []uint16) bool {
	slices.Sort(wanted)
	for i, v := range wanted {
		_, taken := slices.BinarySearch(held, v)
		_, kept := slices.BinarySearch(reserved, v)
		if taken || kept || i > 0 && wanted[i-1] == v {
			return false
		}
	}
	return true
}

func hasDevices(r *structs.AllocatedResources) bool {
	for _, t := range r.Tasks {
		if len(t.Devices) > 0 {
			return true
		}
	}
	return false
}
