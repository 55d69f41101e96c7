package structs

import (
	"slices"
	"strconv"
	"strings"
)

// Comparable is what the scheduler and the plan applier add up: of an allocation what it uses, of a node what there
// is to use (then Ports and Cores are those that nobody may have).
type Comparable struct {
	CPU      int64 // MHz
	MemoryMB int64
	DiskMB   int64
	Ports    []uint16 // host ports, sorted
	Cores    []uint16 // reserved cores, sorted
}

// Comparable adds up the resources of all tasks and the shared ones.
func (r *AllocatedResources) Comparable() Comparable {
	var c Comparable
	if r == nil {
		return c
	}
	for _, t := range r.Tasks {
		c.CPU += t.Cpu.CpuShares
		c.MemoryMB += t.Memory.MemoryMB
		c.Cores = append(c.Cores, t.Cpu.ReservedCores...)
		c.Ports = appendNetworkPorts(c.Ports, t.Networks)
	}
	c.DiskMB = r.Shared.DiskMB
	c.Ports = appendNetworkPorts(c.Ports, r.Shared.Networks)
	for _, p := range r.Shared.Ports {
		if p.Value > 0 {
			c.Ports = append(c.Ports, uint16(p.Value))
		}
	}
	// The shared networks and the port mappings name the same ports.
	c.Ports = sortedSet(c.Ports)
	c.Cores = sortedSet(c.Cores)
	return c
}

func appendNetworkPorts(ports []uint16, networks []*NetworkResource) []uint16 {
	for _, n := range networks {
		for _, list := range [2][]Port{n.ReservedPorts, n.DynamicPorts} {
			for _, p := range list {
				if p.Value > 0 {
					ports = append(ports, uint16(p.Value))
				}
			}
		}
	}
	return ports
}

func sortedSet(s []uint16) []uint16 {
	if len(s) < 2 {
		return s
	}
	slices.Sort(s)
	return slices.Compact(s)
}

// NodeUsage is what the allocations on a node hold. Ports and Cores are sorted and name a port as often as it is
// held: a replacement may hold the port of the allocation it replaces while that one still stops.
type NodeUsage struct {
	CPU      int64 // MHz
	MemoryMB int64
	DiskMB   int64
	Allocs   int
	Ports    []uint16
	Cores    []uint16
}

// Copy gives a deep copy, an empty usage for nil.
func (u *NodeUsage) Copy() *NodeUsage {
	if u == nil {
		return &NodeUsage{}
	}
	out := *u
	out.Ports = slices.Clone(u.Ports)
	out.Cores = slices.Clone(u.Cores)
	return &out
}

// Add counts an allocation in.
func (u *NodeUsage) Add(a *Allocation) { u.AddResources(a.AllocatedResources.Comparable()) }

// Remove counts an allocation out.
func (u *NodeUsage) Remove(a *Allocation) { u.RemoveResources(a.AllocatedResources.Comparable()) }

// AddResources counts in what one allocation uses.
func (u *NodeUsage) AddResources(c Comparable) {
	u.CPU += c.CPU
	u.MemoryMB += c.MemoryMB
	u.DiskMB += c.DiskMB
	u.Allocs++
	u.Ports = insertSorted(u.Ports, c.Ports)
	u.Cores = insertSorted(u.Cores, c.Cores)
}

// RemoveResources counts out what one allocation uses.
func (u *NodeUsage) RemoveResources(c Comparable) {
	u.CPU -= c.CPU
	u.MemoryMB -= c.MemoryMB
	u.DiskMB -= c.DiskMB
	u.Allocs--
	u.Ports = removeSorted(u.Ports, c.Ports)
	u.Cores = removeSorted(u.Cores, c.Cores)
}

// HasPort says whether an allocation holds the host port.
func (u *NodeUsage) HasPort(port int) bool {
	if u == nil || port <= 0 || port > 65535 {
		return false
	}
	_, found := slices.BinarySearch(u.Ports, uint16(port))
	return found
}

// HasCore says whether an allocation has reserved the core.
func (u *NodeUsage) HasCore(core uint16) bool {
	if u == nil {
		return false
	}
	_, found := slices.BinarySearch(u.Cores, core)
	return found
}

func insertSorted(s, add []uint16) []uint16 {
	for _, v := range add {
		i, _ := slices.BinarySearch(s, v)
		s = slices.Insert(s, i, v)
	}
	return s
}

func removeSorted(s, del []uint16) []uint16 {
	for _, v := range del {
		if i, found := slices.BinarySearch(s, v); found {
			s = slices.Delete(s, i, i+1)
		}
	}
	return s
}

// ParsePortRanges reads a list of ports and port ranges ("22,80,8500-8600") into a sorted set.
func ParsePortRanges(text string) ([]uint16, error) {
	var ports []uint16
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		lo, hi, isRange := strings.Cut(part, "-")
		first, err := parsePort(lo)
		if err != nil {
			return nil, err
		}
		last := first
		if isRange {
			if last, err = parsePort(hi); err != nil {
				return nil, err
			}
			if last < first {
				return nil, Errorf(CodeInvalid, "invalid range: starting value (%d) less than ending (%d) value", last, first)
			}
		}
		for p := int(first); p <= int(last); p++ {
			ports = append(ports, uint16(p))
		}
	}
	return sortedSet(ports), nil
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
	if err != nil || n == 0 {
		return 0, Errorf(CodeInvalid, "port %q is not a number from 1 to 65535", text)
	}
	return uint16(n), nil
}
