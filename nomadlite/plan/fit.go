package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// fits says why the allocations do not fit on the node together, empty when they do. Those that stop hold what they
// have, except toward the one allocation that replaces them there: the pair holds the larger of both.
func fits(node *structs.Node, there map[string]*structs.Allocation, stopping map[string]bool) string {
	heirs := map[string]string{} // stopping allocation -> the one that follows it
	inherits := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(there)) {
		a := there[id]
		if !a.HoldsResources() {
			continue
		}
		for _, old := range append([]string{a.PreviousAllocation}, a.PreemptedAllocations...) {
			o := there[old]
			if o == nil || !o.HoldsResources() || !(stopping[old] || o.ServerTerminal()) {
				continue
			}
			if other, taken := heirs[old]; taken && other != id {
				return fmt.Sprintf("allocations %s and %s both replace %s", other, id, old)
			}
			heirs[old] = id
			inherits[id] = append(inherits[id], old)
		}
	}
	var cpu, memory, disk, count int64
	ports, cores, devices := claims[uint16]{}, claims[uint16]{}, claims[string]{}
	for id, a := range there {
		if !a.HoldsResources() || heirs[id] != "" {
			continue // what is inherited counts with its heir
		}
		own := chain(id, there, inherits, map[string]bool{})
		cpu, memory, disk, count = cpu+own.CPU, memory+own.MemoryMB, disk+own.DiskMB, count+1
		for port := range own.ports {
			ports.claim(port)
		}
		for core := range own.cores {
			cores.claim(core)
		}
		for device := range own.devices {
			devices.claim(device)
		}
	}
	total := node.ComparableResources()
	reserved := map[uint16]bool{}
	for _, p := range total.Ports {
		reserved[p] = true
	}
	for port := range ports {
		if reserved[port] {
			return fmt.Sprintf("port %d is reserved for the host", port)
		}
	}
	switch {
	case cpu > total.CPU:
		return "cpu exhausted"
	case memory > total.MemoryMB:
		return "memory exhausted"
	case disk > total.DiskMB:
		return "disk exhausted"
	case node.NodeMaxAllocs > 0 && count > int64(node.NodeMaxAllocs):
		return "max allocations exceeded"
	}
	if port, twice := ports.collision(); twice {
		return fmt.Sprintf("port %d is taken", port)
	}
	if core, twice := cores.collision(); twice {
		return fmt.Sprintf("core %d is taken", core)
	}
	if device, twice := devices.collision(); twice {
		return fmt.Sprintf("device %s is taken", device)
	}
	return ""
}

// holding is what an allocation and those that it follows hold together.
type holding struct {
	structs.Comparable
	ports, cores map[uint16]bool
	devices      map[string]bool
}

// chain adds up an allocation and those which it follows: of each resource the larger of its own and theirs.
func chain(id string, there map[string]*structs.Allocation, inherits map[string][]string, seen map[string]bool) holding {
	seen[id] = true
	a := there[id]
	h := holding{Comparable: a.AllocatedResources.Comparable(),
		ports: map[uint16]bool{}, cores: map[uint16]bool{}, devices: map[string]bool{}}
	for _, p := range h.Ports {
		h.ports[p] = true
	}
	for _, c := range h.Cores {
		h.cores[c] = true
	}
	if a.AllocatedResources != nil {
		for _, t := range a.AllocatedResources.Tasks {
			for _, d := range t.Devices {
				for _, instance := range d.DeviceIDs {
					h.devices[d.Vendor+"/"+d.Type+"/"+d.Name+"/"+instance] = true
				}
			}
		}
	}
	var cpu, memory, disk int64
	for _, old := range inherits[id] {
		if seen[old] {
			continue
		}
		o := chain(old, there, inherits, seen)
		cpu, memory, disk = cpu+o.CPU, memory+o.MemoryMB, disk+o.DiskMB
		maps.Copy(h.ports, o.ports)
		maps.Copy(h.cores, o.cores)
		maps.Copy(h.devices, o.devices)
	}
	h.CPU, h.MemoryMB, h.DiskMB = max(h.CPU, cpu), max(h.MemoryMB, memory), max(h.DiskMB, disk)
	return h
}

// claims counts who holds a thing that only one may hold.
type claims[K comparable] map[K]int

func (c claims[K]) claim(key K) { c[key]++ }

func (c claims[K]) collision() (key K, twice bool) {
	for k, n := range c {
		if n > 1 {
			return k, true
		}
	}
	return key, false
}
