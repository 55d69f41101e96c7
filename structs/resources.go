package structs

// Resources is what a task asks for: CPU in MHz or whole Cores, the rest in MB.
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

// RequestedDevice asks for devices by TYPE, VENDOR/TYPE or VENDOR/TYPE/NAME.
type RequestedDevice struct {
	Name        string        `hcl:",label"`
	Count       *uint64       `hcl:"count,optional"`
	Constraints []*Constraint `hcl:"constraint,block"`
	Affinities  []*Affinity   `hcl:"affinity,block"`
}

// NUMAResource asks for cores and devices of one NUMA node.
type NUMAResource struct {
	Affinity string   `hcl:"affinity,optional"`
	Devices  []string `hcl:"devices,optional"`
}
