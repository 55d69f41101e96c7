package structs

// NetworkResource is a network: what a group asks for, what an allocation was given, or what a node has.
type NetworkResource struct {
	Mode          string     `json:",omitempty" hcl:"mode,optional"`
	Device        string     `json:",omitempty" hcl:"device,optional"`
	CIDR          string     `json:",omitempty" hcl:"cidr,optional"`
	IP            string     `json:",omitempty" hcl:"ip,optional"`
	DNS           *DNSConfig `json:",omitempty" hcl:"dns,block"`
	ReservedPorts []Port     `json:",omitempty" hcl:"reserved_ports,block"`
	DynamicPorts  []Port     `json:",omitempty" hcl:"port,block"`
	Hostname      string     `json:",omitempty" hcl:"hostname,optional"`
	MBits         *int       `json:",omitempty" hcl:"mbits,optional"`
	CNI           *CNIConfig `json:",omitempty" hcl:"cni,block"`
}

// Port is a port by name. Value is the one on the host; a dynamic one is chosen by the scheduler. To is the one
// that the task sees, -1 the same.
type Port struct {
	Label           string `hcl:",label"`
	Value           int    `json:",omitempty" hcl:"static,optional"`
	To              int    `json:",omitempty" hcl:"to,optional"`
	HostNetwork     string `json:",omitempty" hcl:"host_network,optional"`
	IgnoreCollision bool   `json:",omitempty" hcl:"ignore_collision,optional"`
}

// DNSConfig is how names are resolved in a network.
type DNSConfig struct {
	Servers  []string `hcl:"servers,optional"`
	Searches []string `hcl:"searches,optional"`
	Options  []string `hcl:"options,optional"`
}

// CNIConfig holds arguments for CNI plugins.
type CNIConfig struct {
	Args map[string]string `hcl:"args,optional"`
}

// PortMapping is a port which an allocation was given.
type PortMapping struct {
	Label  string
	Value  int
	To     int
	HostIP string
}
