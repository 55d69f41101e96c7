package feasible

import (
	"iter"
	"slices"
	"sync"

	"github.com/nomadlite/nomadlite/structs"
)

// Fleet is all that scheduling asks of every node, side by side and worked out once: it serves every evaluation for as
// long as no node changes.
type Fleet struct {
	Sites []Site
	// Classes is how many computed classes there are.
	Classes            int
	pools, datacenters []string
	index              func() map[string]int
}

// Site is one node of a fleet.
type Site struct {
	Node  *structs.Node
	Ready bool
	// Class numbers the computed class, from 0; -1 is none.
	Class int32
	// CPU (MHz), Memory and Disk (MB) are what allocations may use; Reserved, sorted, are the ports they never get.
	CPU, Memory, Disk int64
	Reserved          []uint16
	// MinPort and MaxPort bound dynamic ports.
	MinPort, MaxPort int
	// CoreMHz is what a reserved core counts.
	CoreMHz int64
	// MaxAllocs bounds the allocations there; 0 is no bound.
	MaxAllocs int

	at               int32 // in the fleet
	pool, datacenter int32
}

// NewFleet looks at all nodes.
func NewFleet(nodes iter.Seq[*structs.Node]) *Fleet {
	f := &Fleet{}
	classes, pools, datacenters := map[string]int32{}, map[string]int32{}, map[string]int32{}
	number := func(known map[string]int32, name string) (n int32, first bool) {
		n, ok := known[name]
		if !ok {
			n = int32(len(known))
			known[name] = n
		}
		return n, !ok
	}
	for node := range nodes {
		s := NewSite(node)
		s.at = int32(len(f.Sites))
		if node.ComputedClass != "" {
			s.Class, _ = number(classes, node.ComputedClass)
		}
		pool := node.NodePool
		if pool == "" {
			pool = structs.NodePoolDefault
		}
		var first bool
		if s.pool, first = number(pools, pool); first {
			f.pools = append(f.pools, pool)
		}
		if s.datacenter, first = number(datacenters, node.Datacenter); first {
			f.datacenters = append(f.datacenters, node.Datacenter)
		}
		f.Sites = append(f.Sites, s)
	}
	f.Classes = len(classes)
	f.index = sync.OnceValue(func() map[string]int {
		index := make(map[string]int, len(f.Sites))
		for i := range f.Sites {
			index[f.Sites[i].Node.ID] = i
		}
		return index
	})
	return f
}

// Find gives the place of a node in Sites.
func (f *Fleet) Find(nodeID string) (at int, ok bool) {
	at, ok = f.index()[nodeID]
	return at, ok
}

// NewSite looks at a node by itself: its class has no number.
func NewSite(node *structs.Node) Site {
	total := node.ComparableResources()
	s := Site{Node: node, Ready: node.Ready(), Class: -1, CPU: total.CPU, Memory: total.MemoryMB, Disk: total.DiskMB,
		Reserved: total.Ports, MinPort: structs.DefaultMinDynamicPort, MaxPort: structs.DefaultMaxDynamicPort,
		MaxAllocs: node.NodeMaxAllocs}
	if r := node.NodeResources; r != nil {
		if r.MinDynamicPort > 0 {
			s.MinPort = r.MinDynamicPort
		}
		if r.MaxDynamicPort > 0 {
			s.MaxPort = r.MaxDynamicPort
		}
		if r.Cpu.TotalCpuCores > 0 {
			s.CoreMHz = r.Cpu.CpuShares / int64(r.Cpu.TotalCpuCores)
		}
	}
	for _, hn := range node.HostNetworks {
		if hn.ReservedPorts != "" {
			more, _ := structs.ParsePortRanges(hn.ReservedPorts) // a node with an unreadable list does not start
			s.Reserved = append(slices.Clone(s.Reserved), more...)
			slices.Sort(s.Reserved)
		}
	}
	return s
}
