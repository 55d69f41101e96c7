package structs

// NodeResources is documented with the public API.
type NodeResources struct {
	Cpu            NodeCpuResources
	Memory         NodeMemoryResources
	Disk           NodeDiskResources
	Networks       []*NetworkResource
	Devices        []*NodeDeviceResource
	MinDynamicPort int
	MaxDynamicPort int
}

// NodeCpuResources is documented with the public API.
type NodeCpuResources struct {
	CpuShares          int64
	TotalCpuCores      uint16
	ReservableCpuCores []uint16
}

// NodeMemoryResources is documented with the public API.
type NodeMemoryResources struct {
	MemoryMB int64
}

// NodeDiskResources is documented with the public API.
type NodeDiskResources struct {
	DiskMB int64
}

// NodeReservedResources is documented with the public API.
type NodeReservedResources struct {
	Cpu      NodeReservedCpuResources
	Memory   NodeReservedMemoryResources
	Disk     NodeReservedDiskResources
	Networks NodeReservedNetworkResources
}

// NodeReservedCpuResources is documented with the public API.
type NodeReservedCpuResources struct {
	CpuShares uint64
}

// NodeReservedMemoryResources is documented with the public API.
type NodeReservedMemoryResources struct {
	MemoryMB uint64
}

// NodeReservedDiskResources is documented with the public API.
type NodeReservedDiskResources struct {
	DiskMB uint64
}

// NodeReservedNetworkResources is documented with the public API.
type NodeReservedNetworkResources struct {
	ReservedHostPorts string
}

// NodeDeviceResource is documented with the public API.
type NodeDeviceResource struct {
	Vendor     string
	Type       string
	Name       string
	Instances  []*NodeDevice
	Attributes map[string]*Attribute
}

// NodeDevice is documented with the public API.
type NodeDevice struct {
	ID                string
	Healthy           bool
	HealthDescription string
	Locality          *NodeDeviceLocality
}

// NodeDeviceLocality is documented with the public API.
type NodeDeviceLocality struct {
	PciBusID string
}

// Attribute is documented with the public API.
type Attribute struct {
	Float  *float64 `json:",omitempty"`
	Int    *int64   `json:",omitempty"`
	String *string  `json:",omitempty"`
	Bool   *bool    `json:",omitempty"`
	Unit   string
}
