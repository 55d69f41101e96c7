package rank

import (
	"slices"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
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
	site             *feasible.Site
	node             *structs.Node
	cpu, memory      int64 // what allocations may use
	disk             int64
	usedCPU, usedMem int64
	usedDisk         int64
	allocs           int
	reserved         []uint16 // never given out, sorted
	ports            []uint16 // held, sorted, as often as held
	cores            []uint16 // held
	owned            bool     // ports and cores are our own copies
	pool             *Pool
	shut             bool // nobody else can wait for what the pool's placement waits for
}

// look takes in what is known of the node, and what is held there.
func (p *place) look(site *feasible.Site, usage *structs.NodeUsage) {
	p.node, p.cpu, p.memory, p.disk, p.reserved = site.Node, site.CPU, site.Memory, site.Disk, site.Reserved
	if usage != nil {
		p.usedCPU, p.usedMem, p.usedDisk, p.allocs = usage.CPU, usage.MemoryMB, usage.DiskMB, usage.Allocs
		p.ports, p.cores = usage.Ports, usage.Cores
	}
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
	if limit := p.site.MaxAllocs; limit > 0 && allocs+1 > limit {
		return dimensionAllocs
	}
	if a.cores > 0 {
		if p.freeCores(relief) < a.cores {
			return dimensionCores
		}
		cpu += int64(a.cores) * p.site.CoreMHz
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
		return cpu + a.cpu + int64(a.cores)*p.site.CoreMHz - p.cpu
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
	return p.site.MaxPort-p.site.MinPort+1-len(p.ports)-len(p.reserved) >= n
}

// countDynamic counts the free ports of the dynamic range, those aside which the ask names itself.
func (p *place) countDynamic(a *ask, relief *structs.Comparable) int {
	free := 0
	for port := p.site.MinPort; port <= p.site.MaxPort; port++ {
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
