package rank

import (
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// Exhausted dimensions, as the public API names them in an allocation's metrics.
const (
	dimensionCPU     = "cpu"
	dimensionMemory  = "memory"
	dimensionDisk    = "disk"
	dimensionCores   = "cores"
	dimensionAllocs  = "max allocations"
	dimensionDynamic = "network: dynamic port selection failed"
)

// place is a node with what is taken of it. The lists are shared with the state until they are first changed.
type place struct {
	node             *structs.Node
	cpu, memory      int64 // what allocations may use
	disk             int64
	usedCPU, usedMem int64
	usedDisk         int64
	allocs           int
	ports            []uint16 // held, sorted, as often as held
	reserved         []uint16 // never given out, sorted
	cores            []uint16 // held
	minDyn, maxDyn   int
	owned            bool // ports and cores are our own copies
	pool             *Pool
	shut             bool // nobody else can wait for what the pool's placement waits for
}

func newPlace(node *structs.Node, usage *structs.NodeUsage) place {
	p := place{node: node, minDyn: structs.DefaultMinDynamicPort, maxDyn: structs.DefaultMaxDynamicPort}
	p.setTotal()
	if r := node.NodeResources; r != nil {
		if r.MinDynamicPort > 0 {
			p.minDyn = r.MinDynamicPort
		}
		if r.MaxDynamicPort > 0 {
			p.maxDyn = r.MaxDynamicPort
		}
	}
	for _, hn := range node.HostNetworks {
		if hn.ReservedPorts != "" {
			more, _ := structs.ParsePortRanges(hn.ReservedPorts) // a node with an unreadable list does not start
			p.reserved = append(slices.Clone(p.reserved), more...)
			slices.Sort(p.reserved)
		}
	}
	if usage != nil {
		p.usedCPU, p.usedMem, p.usedDisk, p.allocs = usage.CPU, usage.MemoryMB, usage.DiskMB, usage.Allocs
		p.ports, p.cores = usage.Ports, usage.Cores
	}
	return p
}

// setTotal is what allocations may use: all but what is reserved for the host.
func (p *place) setTotal() {
	total := p.node.ComparableResources()
	p.cpu, p.memory, p.disk, p.reserved = total.CPU, total.MemoryMB, total.DiskMB, total.Ports
}

// lacks gives the first dimension in which the ask does not fit, "" when it fits. relief is what the allocation that
// is replaced holds on this node, nil when there is none.
func (p *place) lacks(a *ask, relief *structs.Comparable) string {
	if p.shut || relief != nil && p.pool != nil {
		return dimensionPreempting
	}
	cpu, mem, disk, allocs := p.usedCPU, p.usedMem, p.usedDisk, p.allocs
	if relief != nil {
		cpu, mem, disk, allocs = cpu-relief.CPU, mem-relief.MemoryMB, disk-relief.DiskMB, allocs-1
	}
	if limit := p.node.NodeMaxAllocs; limit > 0 && allocs+1 > limit {
		return dimensionAllocs
	}
	if a.cores > 0 {
		if p.freeCores(relief) < a.cores {
			return dimensionCores
		}
		cpu += int64(a.cores) * p.coreMHz()
	}
	switch {
	case cpu+a.cpu > p.cpu:
		return dimensionCPU
	case mem+a.memory > p.memory:
		return dimensionMemory
	case disk+a.disk > p.disk:
		return dimensionDisk
	}
	for i := range a.static {
		s := &a.static[i]
		if !p.portFree(s.port.Value, relief) {
			return s.collision
		}
	}
	if len(a.dynamic) > 0 && !p.dynamicLeft(len(a.dynamic)+len(a.static)) && p.countDynamic(a, relief) < len(a.dynamic) {
		return dimensionDynamic
	}
	return ""
}

// missing is how much of a dimension is short, 0 for dimensions without an amount. lacks must have named it.
func (p *place) missing(a *ask, relief *structs.Comparable, dimension string) int64 {
	cpu, mem, disk := p.usedCPU, p.usedMem, p.usedDisk
	if relief != nil {
		cpu, mem, disk = cpu-relief.CPU, mem-relief.MemoryMB, disk-relief.DiskMB
	}
	switch dimension {
	case dimensionCPU:
		return cpu + a.cpu + int64(a.cores)*p.coreMHz() - p.cpu
	case dimensionMemory:
		return mem + a.memory - p.memory
	case dimensionDisk:
		return disk + a.disk - p.disk
	case dimensionCores:
		return int64(a.cores - p.freeCores(relief))
	}
	return 0
}

// portFree says whether a host port may be given out: not reserved and held by nobody but the one that is replaced.
func (p *place) portFree(port int, relief *structs.Comparable) bool {
	if contains(p.reserved, port) {
		return false
	}
	held := count(p.ports, port)
	if relief != nil && held > 0 && contains(relief.Ports, port) {
		held--
	}
	return held == 0
}

// dynamicLeft is the quick answer: there are certainly n free ports in the dynamic range.
func (p *place) dynamicLeft(n int) bool {
	return p.maxDyn-p.minDyn+1-len(p.ports)-len(p.reserved) >= n
}

// countDynamic counts the free ports of the dynamic range, those aside which the ask names itself.
func (p *place) countDynamic(a *ask, relief *structs.Comparable) int {
	free := 0
	for port := p.minDyn; port <= p.maxDyn; port++ {
		if p.portFree(port, relief) && !a.names(port) {
			free++
		}
	}
	return free
}

func (a *ask) names(port int) bool {
	for i := range a.static {
		if a.static[i].port.Value == port {
			return true
		}
	}
	return false
}

// coreMHz is the share of one core.
func (p *place) coreMHz() int64 {
	r := p.node.NodeResources
	if r == nil || r.Cpu.TotalCpuCores == 0 {
		return 0
	}
	return r.Cpu.CpuShares / int64(r.Cpu.TotalCpuCores)
}

func (p *place) coreFree(core uint16, relief *structs.Comparable) bool {
	held := count(p.cores, int(core))
	if relief != nil && held > 0 && contains(relief.Cores, int(core)) {
		held--
	}
	return held == 0
}

func (p *place) freeCores(relief *structs.Comparable) int {
	free := 0
	for _, core := range p.node.NodeResources.Cpu.ReservableCpuCores {
		if p.coreFree(core, relief) {
			free++
		}
	}
	return free
}

// occupy counts an allocation in. Of what it takes over from the one it replaces, only the surplus counts; its ports
// and cores are held by both.
func (p *place) occupy(c *structs.Comparable, relief *structs.Comparable) {
	if relief == nil {
		relief = &structs.Comparable{}
		p.allocs++
	}
	p.usedCPU += max(0, c.CPU-relief.CPU)
	p.usedMem += max(0, c.MemoryMB-relief.MemoryMB)
	p.usedDisk += max(0, c.DiskMB-relief.DiskMB)
	if len(c.Ports) == 0 && len(c.Cores) == 0 {
		return
	}
	if !p.owned {
		p.ports = append(make([]uint16, 0, len(p.ports)+2*len(c.Ports)+8), p.ports...)
		p.cores = slices.Clone(p.cores)
		p.owned = true
	}
	p.ports = insert(p.ports, c.Ports)
	p.cores = insert(p.cores, c.Cores)
}

func insert(sorted, add []uint16) []uint16 {
	for _, v := range add {
		i, _ := slices.BinarySearch(sorted, v)
		sorted = slices.Insert(sorted, i, v)
	}
	return sorted
}

func contains(sorted []uint16, v int) bool {
	if len(sorted) == 0 || v < 0 || v > 65535 {
		return false
	}
	_, found := slices.BinarySearch(sorted, uint16(v))
	return found
}

func count(sorted []uint16, v int) int {
	if len(sorted) == 0 || v < 0 || v > 65535 {
		return 0
	}
	i, found := slices.BinarySearch(sorted, uint16(v))
	if !found {
		return 0
	}
	n := 0
	for ; i < len(sorted) && sorted[i] == uint16(v); i++ {
		n++
	}
	return n
}
