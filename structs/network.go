package structs

// NetworkResource is documented with the public API.
type NetworkResource struct {
	Mode          string     `hcl:"mode,optional"`
	Device        string     `hcl:"device,optional"`
	CIDR          string     `hcl:"cidr,optional"`
	IP            string     `hcl:"ip,optional"`
	DNS           *DNSConfig `hcl:"dns,block"`
	ReservedPorts []Port     `hcl:"reserved_ports,block"`
	DynamicPorts  []Port     `hcl:"port,block"`
	Hostname      string     `hcl:"hostname,optional"`
	MBits         *int       `hcl:"mbits,optional"`
	CNI           *CNIConfig `hcl:"cni,block"`
}

// Port is documented with the public API.
type Port struct {
	Label           string `hcl:",label"`
	Value           int    `hcl:"static,optional"`
	To              int    `hcl:"to,optional"`
	HostNetwork     string `hcl:"host_network,optional"`
	IgnoreCollision bool   `hcl:"ignore_collision,optional"`
}

// DNSConfig is documented with the public API.
type DNSConfig struct {
	Servers  []string `hcl:"servers,optional"`
	Searches []string `hcl:"searches,optional"`
	Options  []string `hcl:"options,optional"`
}

// CNIConfig is documented with the public API.
type CNIConfig struct {
	Args map[string]string `hcl:"args,optional"`
}

// PortMapping is documented with the public API.
type PortMapping struct {
	Label  string
	Value  int
	To     int
	HostIP string
}
