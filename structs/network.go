package structs

// NetworkResource is documented with the public API.
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

// Port is documented with the public API.
type Port struct {
	Label           string `hcl:",label"`
	Value           int    `json:",omitempty" hcl:"static,optional"`
	To              int    `json:",omitempty" hcl:"to,optional"`
	HostNetwork     string `json:",omitempty" hcl:"host_network,optional"`
	IgnoreCollision bool   `json:",omitempty" hcl:"ignore_collision,optional"`
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
