package structs

import "strings"

// Dynamic ports which a node gives out when its configuration says nothing else.
const (
	DefaultMinDynamicPort = 20000
	DefaultMaxDynamicPort = 32000
)

// Canonicalize fills in what a node may leave out, so that no reader has to ask twice.
func (n *Node) Canonicalize() {
	orDefault(&n.Datacenter, DefaultDatacenter)
	orDefault(&n.NodePool, NodePoolDefault)
	orDefault(&n.Status, NodeStatusInit)
	if n.SchedulingEligibility == "" {
		n.SchedulingEligibility = NodeEligible
		if n.DrainStrategy != nil {
			n.SchedulingEligibility = NodeIneligible
		}
	}
	n.Drain = n.DrainStrategy != nil
	if n.NodeResources == nil {
		n.NodeResources = &NodeResources{}
	}
	if n.NodeResources.MinDynamicPort == 0 {
		n.NodeResources.MinDynamicPort = DefaultMinDynamicPort
	}
	if n.NodeResources.MaxDynamicPort == 0 {
		n.NodeResources.MaxDynamicPort = DefaultMaxDynamicPort
	}
	if n.ReservedResources == nil {
		n.ReservedResources = &NodeReservedResources{}
	}
	// The older form of the resources is still read by tools.
	if n.Resources == nil {
		n.Resources = &Resources{
			CPU:      Ptr(int(n.NodeResources.Cpu.CpuShares)),
			MemoryMB: Ptr(int(n.NodeResources.Memory.MemoryMB)),
			DiskMB:   Ptr(int(n.NodeResources.Disk.DiskMB)),
			Networks: n.NodeResources.Networks,
		}
	}
	if n.Reserved == nil {
		n.Reserved = &Resources{
			CPU:      Ptr(int(n.ReservedResources.Cpu.CpuShares)),
			MemoryMB: Ptr(int(n.ReservedResources.Memory.MemoryMB)),
			DiskMB:   Ptr(int(n.ReservedResources.Disk.DiskMB)),
		}
	}
}

// Ready says whether the node may get new allocations.
func (n *Node) Ready() bool {
	return n.Status == NodeStatusReady && n.DrainStrategy == nil && n.SchedulingEligibility == NodeEligible &&
		n.Maintenance == nil
}

// Down says that what runs on the node cannot be heard.
func (n *Node) Down() bool { return n.Status == NodeStatusDown || n.Status == NodeStatusDisconnected }

// ComparableResources is what allocations may use: the total minus what is reserved for the host. Ports are the
// host ports that are reserved.
func (n *Node) ComparableResources() Comparable {
	var c Comparable
	if n.NodeResources != nil {
		c.CPU = n.NodeResources.Cpu.CpuShares
		c.MemoryMB = n.NodeResources.Memory.MemoryMB
		c.DiskMB = n.NodeResources.Disk.DiskMB
	}
	if r := n.ReservedResources; r != nil {
		c.CPU -= int64(r.Cpu.CpuShares)
		c.MemoryMB -= int64(r.Memory.MemoryMB)
		c.DiskMB -= int64(r.Disk.DiskMB)
		// A node with an unreadable list does not start; here the list is one that was read before.
		c.Ports, _ = ParsePortRanges(r.Networks.ReservedHostPorts)
	}
	return c
}

// hostOf is addr without its port and the brackets that an IPv6 address has before one.
func hostOf(addr string) string {
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 {
		return addr
	}
	host := addr[:colon]
	if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		return strings.TrimSuffix(inner, "]")
	}
	if strings.Contains(host, ":") {
		return addr // an IPv6 address without a port
	}
	return host
}

// Stub is the node as lists show it. Attributes, NodeResources and ReservedResources are left out; a list that was
// asked for them sets them.
func (n *Node) Stub() *NodeListStub {
	return &NodeListStub{
		Address:               hostOf(n.HTTPAddr),
		ID:                    n.ID,
		Datacenter:            n.Datacenter,
		Name:                  n.Name,
		NodeClass:             n.NodeClass,
		NodePool:              n.NodePool,
		Version:               n.Attributes["nomad.version"],
		Drain:                 n.DrainStrategy != nil,
		SchedulingEligibility: n.SchedulingEligibility,
		Status:                n.Status,
		StatusDescription:     n.StatusDescription,
		Drivers:               n.Drivers,
		LastDrain:             n.LastDrain,
		Maintenance:           n.Maintenance,
		CreateIndex:           n.CreateIndex,
		ModifyIndex:           n.ModifyIndex,
	}
}

func orDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}
