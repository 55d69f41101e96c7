package structs

// NodeResources is what a node has.
type NodeResources struct {
	Cpu            NodeCpuResources
	Memory         NodeMemoryResources
	Disk           NodeDiskResources
	Networks       []*NetworkResource
	Devices        []*NodeDeviceResource
	MinDynamicPort int
	MaxDynamicPort int
}

// NodeCpuResources is a node's processor time in MHz, and its cores.
type NodeCpuResources struct {
	CpuShares          int64
	TotalCpuCores      uint16
	ReservableCpuCores []uint16
}

// NodeMemoryResources is a node's memory in MB.
type NodeMemoryResources struct {
	MemoryMB int64
}

// NodeDiskResources is a node's disk space in MB.
type NodeDiskResources struct {
	DiskMB int64
}

// NodeReservedResources is what a node keeps for itself.
type NodeReservedResources struct {
	Cpu      NodeReservedCpuResources
	Memory   NodeReservedMemoryResources
	Disk     NodeReservedDiskResources
	Networks NodeReservedNetworkResources
}

// NodeReservedCpuResources is processor time in MHz.
type NodeReservedCpuResources struct {
	CpuShares uint64
}

// NodeReservedMemoryResources is memory in MB.
type NodeReservedMemoryResources struct {
	MemoryMB uint64
}

// NodeReservedDiskResources is disk space in MB.
type NodeReservedDiskResources struct {
	DiskMB uint64
}

// NodeReservedNetworkResources lists host ports, as in "22,80,8500-8600".
type NodeReservedNetworkResources struct {
	ReservedHostPorts string
}

// NodeDeviceResource is a group of like devices.
type NodeDeviceResource struct {
	Vendor     string
	Type       string
	Name       string
	Instances  []*NodeDevice
	Attributes map[string]*Attribute
}

// NodeDevice is one device of a group.
type NodeDevice struct {
	ID                string
	Healthy           bool
	HealthDescription string
	Locality          *NodeDeviceLocality
}

// NodeDeviceLocality is where a device is plugged in.
type NodeDeviceLocality struct {
	PciBusID string
}

// Attribute is a value with a unit; one of its fields is set.
type Attribute struct {
	Float  *float64 `json:",omitempty"`
	Int    *int64   `json:",omitempty"`
	String *string  `json:",omitempty"`
	Bool   *bool    `json:",omitempty"`
	Unit   string
}
