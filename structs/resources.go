package structs

// Resources is documented with the public API.
type Resources struct {
	CPU         *int               `hcl:"cpu,optional"`
	Cores       *int               `hcl:"cores,optional"`
	MemoryMB    *int               `hcl:"memory,optional"`
	MemoryMaxMB *int               `hcl:"memory_max,optional"`
	DiskMB      *int               `hcl:"disk,optional"`
	Networks    []*NetworkResource `hcl:"network,block"`
	Devices     []*RequestedDevice `hcl:"device,block"`
	NUMA        *NUMAResource      `hcl:"numa,block"`
	SecretsMB   *int               `hcl:"secrets,optional"`
	IOPS        *int               `hcl:"iops,optional"`
}

// RequestedDevice is documented with the public API.
type RequestedDevice struct {
	Name        string        `hcl:",label"`
	Count       *uint64       `hcl:"count,optional"`
	Constraints []*Constraint `hcl:"constraint,block"`
	Affinities  []*Affinity   `hcl:"affinity,block"`
}

// NUMAResource is documented with the public API.
type NUMAResource struct {
	Affinity string   `hcl:"affinity,optional"`
	Devices  []string `hcl:"devices,optional"`
}
