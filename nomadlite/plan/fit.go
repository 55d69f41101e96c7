package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// fits says why the allocations do not fit on the node together, empty when they do. Those that stop hold what they
// have, except toward those that follow them there: both hold the larger of both together. Only one allocation replaces
// another; several may wait for the same evicted ones, when all of them wait for all of those.
func fits(node *structs.Node, there map[string]*structs.Allocation, stopping map[string]bool) string {
	b := bequests{there: there, heirs: map[string][]string{}, inherits: map[string][]string{}}
	for _, id := range slices.Sorted(maps.Keys(there)) {
		b.add(id, stopping)
	}
	if reason := b.contested(); reason != "" {
		return reason
	}
	var cpu, memory, disk, count int64
	ports, cores, devices := claims[uint16]{}, claims[uint16]{}, claims[string]{}
	for _, own := range b.holdings() {
		cpu, memory, disk, count = cpu+own.CPU, memory+own.MemoryMB, disk+own.DiskMB, count+own.count
		for port := range own.ports {
			ports.claim(port)
		}
		for core := range own.cores {
			cores.claim(core)
		}
		for device := range own.devices {
			devices.claim(device)
		}
		if own.collision != "" {
			return own.collision
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
