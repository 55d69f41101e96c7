package structs

import "time"

// ConsulConnect is a service's part in a Consul service mesh: native, beside a sidecar proxy, or a gateway.
type ConsulConnect struct {
	Native         bool                  `hcl:"native,optional"`
	Gateway        *ConsulGateway        `hcl:"gateway,block"`
	SidecarService *ConsulSidecarService `hcl:"sidecar_service,block"`
	SidecarTask    *SidecarTask          `hcl:"sidecar_task,block"`
}

// ConsulSidecarService is the proxy's own registration.
type ConsulSidecarService struct {
	Tags                   []string          `hcl:"tags,optional"`
	Port                   string            `hcl:"port,optional"`
	Proxy                  *ConsulProxy      `hcl:"proxy,block"`
	DisableDefaultTCPCheck bool              `hcl:"disable_default_tcp_check,optional"`
	Meta                   map[string]string `hcl:"meta,block"`
}

// SidecarTask overrides the task that runs the proxy.
type SidecarTask struct {
	Name          string              `hcl:"name,optional"`
	Driver        string              `hcl:"driver,optional"`
	User          string              `hcl:"user,optional"`
	Config        map[string]any      `hcl:"config,block"`
	Env           map[string]string   `hcl:"env,block"`
	Resources     *Resources          `hcl:"resources,block"`
	Meta          map[string]string   `hcl:"meta,block"`
	KillTimeout   *time.Duration      `hcl:"kill_timeout,optional"`
	LogConfig     *LogConfig          `hcl:"logs,block"`
	ShutdownDelay *time.Duration      `hcl:"shutdown_delay,optional"`
	KillSignal    string              `hcl:"kill_signal,optional"`
	VolumeMounts  []*VolumeMount      `hcl:"volume_mount,block"`
	Identities    []*WorkloadIdentity `hcl:"identity,block"`
}

// ConsulProxy is the configuration of a sidecar proxy.
type ConsulProxy struct {
	LocalServiceAddress string              `hcl:"local_service_address,optional"`
	LocalServicePort    int                 `hcl:"local_service_port,optional"`
	Expose              *ConsulExposeConfig `hcl:"expose,block"`
	ExposeConfig        *ConsulExposeConfig
	Upstreams           []*ConsulUpstream       `hcl:"upstreams,block"`
	TransparentProxy    *ConsulTransparentProxy `hcl:"transparent_proxy,block"`
	Config              map[string]any          `hcl:"config,block"`
}

// ConsulUpstream is a service which the proxy makes available on a local port or socket.
type ConsulUpstream struct {
	DestinationName      string             `hcl:"destination_name,optional"`
	DestinationNamespace string             `hcl:"destination_namespace,optional"`
	DestinationPeer      string             `hcl:"destination_peer,optional"`
	DestinationPartition string             `hcl:"destination_partition,optional"`
	DestinationType      string             `hcl:"destination_type,optional"`
	LocalBindPort        int                `hcl:"local_bind_port,optional"`
	Datacenter           string             `hcl:"datacenter,optional"`
	LocalBindAddress     string             `hcl:"local_bind_address,optional"`
	LocalBindSocketPath  string             `hcl:"local_bind_socket_path,optional"`
	LocalBindSocketMode  string             `hcl:"local_bind_socket_mode,optional"`
	MeshGateway          *ConsulMeshGateway `hcl:"mesh_gateway,block"`
	Config               map[string]any     `hcl:"config,block"`
}

// ConsulMeshGateway says how traffic reaches another datacenter.
type ConsulMeshGateway struct {
	Mode string `hcl:"mode,optional"`
}

// ConsulExposeConfig lists the paths that are reachable around the mesh.
type ConsulExposeConfig struct {
	Paths []*ConsulExposePath `hcl:"path,block"`
	Path  []*ConsulExposePath
}

// ConsulExposePath is one such path.
type ConsulExposePath struct {
	Path          string `hcl:"path,optional"`
	Protocol      string `hcl:"protocol,optional"`
	LocalPathPort int    `hcl:"local_path_port,optional"`
	ListenerPort  string `hcl:"listener_port,optional"`
}

// ConsulTransparentProxy redirects a task's traffic through the proxy without its knowledge.
type ConsulTransparentProxy struct {
	UID                  string   `hcl:"uid,optional"`
	OutboundPort         uint16   `hcl:"outbound_port,optional"`
	ExcludeInboundPorts  []string `hcl:"exclude_inbound_ports,optional"`
	ExcludeOutboundPorts []uint16 `hcl:"exclude_outbound_ports,optional"`
	ExcludeOutboundCIDRs []string `hcl:"exclude_outbound_cidrs,optional"`
	ExcludeUIDs          []string `hcl:"exclude_uids,optional"`
	NoDNS                bool     `hcl:"no_dns,optional"`
}

// ConsulGateway is a gateway of the mesh: ingress, terminating or mesh.
type ConsulGateway struct {
	Proxy       *ConsulGatewayProxy           `hcl:"proxy,block"`
	Ingress     *ConsulIngressConfigEntry     `hcl:"ingress,block"`
	Terminating *ConsulTerminatingConfigEntry `hcl:"terminating,block"`
	Mesh        *ConsulMeshConfigEntry        `hcl:"mesh,block"`
}

// ConsulGatewayProxy is the configuration of a gateway's proxy.
type ConsulGatewayProxy struct {
	ConnectTimeout                  *time.Duration                       `hcl:"connect_timeout,optional"`
	EnvoyGatewayBindTaggedAddresses bool                                 `hcl:"envoy_gateway_bind_tagged_addresses,optional"`
	EnvoyGatewayBindAddresses       map[string]*ConsulGatewayBindAddress `hcl:"envoy_gateway_bind_addresses,block"`
	EnvoyGatewayNoDefaultBind       bool                                 `hcl:"envoy_gateway_no_default_bind,optional"`
	EnvoyDNSDiscoveryType           string                               `hcl:"envoy_dns_discovery_type,optional"`
	Config                          map[string]any                       `hcl:"config,block"`
}

// ConsulGatewayBindAddress is an address on which a gateway listens.
type ConsulGatewayBindAddress struct {
	Name    string `hcl:",label"`
	Address string `hcl:"address,optional"`
	Port    int    `hcl:"port,optional"`
}

// ConsulGatewayTLSConfig is how a gateway encrypts.
type ConsulGatewayTLSConfig struct {
	Enabled       bool                       `hcl:"enabled,optional"`
	TLSMinVersion string                     `hcl:"tls_min_version,optional"`
	TLSMaxVersion string                     `hcl:"tls_max_version,optional"`
	CipherSuites  []string                   `hcl:"cipher_suites,optional"`
	SDS           *ConsulGatewayTLSSDSConfig `hcl:"sds,block"`
}

// ConsulGatewayTLSSDSConfig names a certificate that a secret discovery service gives.
type ConsulGatewayTLSSDSConfig struct {
	ClusterName  string `hcl:"cluster_name,optional"`
	CertResource string `hcl:"cert_resource,optional"`
}

// ConsulHTTPHeaderModifiers changes the headers that pass a gateway.
type ConsulHTTPHeaderModifiers struct {
	Add    map[string]string `hcl:"add,block"`
	Set    map[string]string `hcl:"set,block"`
	Remove []string          `hcl:"remove,optional"`
}

// ConsulIngressConfigEntry is what an ingress gateway lets in.
type ConsulIngressConfigEntry struct {
	TLS       *ConsulGatewayTLSConfig  `hcl:"tls,block"`
	Listeners []*ConsulIngressListener `hcl:"listener,block"`
}

// ConsulIngressListener is one port of an ingress gateway.
type ConsulIngressListener struct {
	Port     int                     `hcl:"port,optional"`
	Protocol string                  `hcl:"protocol,optional"`
	Services []*ConsulIngressService `hcl:"service,block"`
}

// ConsulIngressService is a service behind an ingress gateway.
type ConsulIngressService struct {
	Name                  string                     `hcl:"name,optional"`
	Hosts                 []string                   `hcl:"hosts,optional"`
	TLS                   *ConsulGatewayTLSConfig    `hcl:"tls,block"`
	RequestHeaders        *ConsulHTTPHeaderModifiers `hcl:"request_headers,block"`
	ResponseHeaders       *ConsulHTTPHeaderModifiers `hcl:"response_headers,block"`
	MaxConnections        *uint32                    `hcl:"max_connections,optional"`
	MaxPendingRequests    *uint32                    `hcl:"max_pending_requests,optional"`
	MaxConcurrentRequests *uint32                    `hcl:"max_concurrent_requests,optional"`
}

// ConsulLinkedService is a service outside the mesh behind a terminating gateway.
type ConsulLinkedService struct {
	Name     string `hcl:"name,optional"`
	CAFile   string `hcl:"ca_file,optional"`
	CertFile string `hcl:"cert_file,optional"`
	KeyFile  string `hcl:"key_file,optional"`
	SNI      string `hcl:"sni,optional"`
}

// ConsulTerminatingConfigEntry is what a terminating gateway lets out.
type ConsulTerminatingConfigEntry struct {
	Services []*ConsulLinkedService `hcl:"service,block"`
}

// ConsulMeshConfigEntry marks a gateway as a mesh gateway; it has no members.
type ConsulMeshConfigEntry struct{}
