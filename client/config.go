package client

import (
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client/artifact"
	"github.com/nomadlite/nomadlite/client/fingerprint"
	"github.com/nomadlite/nomadlite/client/gc"
	"github.com/nomadlite/nomadlite/client/template"
	"github.com/nomadlite/nomadlite/structs"
)

// Config is what the agent's configuration says about its client. Zero values mean the defaults of the public
// documentation.
type Config struct {
	Logger hclog.Logger

	// DataDir is the agent's; StateDir and AllocDir lie in it (client, alloc) unless set.
	DataDir  string
	StateDir string
	AllocDir string

	Region     string
	Datacenter string
	Name       string // of the node; the host's name when empty
	NodeClass  string
	NodePool   string
	Meta       map[string]string
	Options    map[string]string // driver.allowlist, driver.denylist, env.denylist, driver.raw_exec.enable

	// Servers are host:port of servers' 4647.
	Servers []string
	// HTTPAddr is host:port of the agent's HTTP port as others reach it; HTTPTLS says that it speaks TLS.
	HTTPAddr string
	HTTPTLS  bool

	NetworkInterface string
	NetworkSpeed     int // Mbit/s
	PreferIPv6       bool
	HostNetworks     []fingerprint.HostNetwork
	CPUTotalCompute  int // MHz
	MemoryTotalMB    int
	DiskTotalMB      int
	DiskFreeMB       int
	ReservableCores  string
	MinDynamicPort   int
	MaxDynamicPort   int
	Reserved         fingerprint.Reserved
	NodeMaxAllocs    int
	HostVolumes      map[string]*structs.HostVolumeInfo
	CgroupParent     string
	// DefaultIneligible registers a new node as ineligible.
	DefaultIneligible bool
	ServiceDiscovery  bool

	MaxKillTimeout time.Duration
	// Lease, when above 0, ends every allocation of the node once no heartbeat was confirmed for that long.
	Lease time.Duration
	// LeaveDeadline bounds Depart, one minute unless set. DrainOnShutdown makes it drain the node.
	LeaveDeadline   time.Duration
	DrainOnShutdown *structs.DrainSpec
	// ExpectBack is for how long ExpectBack announces the node's absence.
	ExpectBack time.Duration
	GC         gc.Limits
	GCInterval time.Duration
	Templates  template.Settings
	// Artifacts are the artifact block's; nil means the defaults.
	Artifacts *artifact.Settings

	// Drivers are the plugin blocks by driver name, already decoded to plain values.
	Drivers map[string]DriverConfig

	// DevMode: raw_exec is enabled, nothing is synced to disk, and everything ends with the agent.
	DevMode bool
	// SupervisorCommand starts the supervisor process; empty means this very binary.
	SupervisorCommand []string
	// NoCgroups keeps tasks out of control groups (tests).
	NoCgroups bool
}

// DriverConfig is one plugin block.
type DriverConfig struct {
	Enabled *bool
	Options map[string]any // the other keys
}

const (
	defaultGCInterval = time.Minute
	probeInterval     = 30 * time.Second
)

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	c.Logger = c.Logger.Named("client")
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&c.StateDir, filepath.Join(c.DataDir, "client"))
	set(&c.AllocDir, filepath.Join(c.DataDir, "alloc"))
	set(&c.Region, structs.DefaultRegion)
	set(&c.Datacenter, structs.DefaultDatacenter)
	set(&c.NodePool, structs.NodePoolDefault)
	if c.MaxKillTimeout <= 0 {
		c.MaxKillTimeout = structs.DefaultMaxKillTimeout
	}
	if c.MinDynamicPort == 0 {
		c.MinDynamicPort = structs.DefaultMinDynamicPort
	}
	if c.MaxDynamicPort == 0 {
		c.MaxDynamicPort = structs.DefaultMaxDynamicPort
	}
	if c.GCInterval <= 0 {
		c.GCInterval = defaultGCInterval
	}
	c.GC = c.GC.WithDefaults()
	return c
}

// Validate tells all faults at once.
func (c Config) Validate() error {
	var errs structs.Errors
	if c.DataDir == "" && (c.StateDir == "" || c.AllocDir == "") {
		errs.Addf("a client needs data_dir, or both state_dir and alloc_dir")
	}
	for _, port := range []int{c.MinDynamicPort, c.MaxDynamicPort} {
		if port < 0 || port > 65535 {
			errs.Addf("dynamic port %d is not from 1 to 65535", port)
		}
	}
	if c.MinDynamicPort > 0 && c.MaxDynamicPort > 0 && c.MinDynamicPort > c.MaxDynamicPort {
		errs.Addf("min_dynamic_port %d is above max_dynamic_port %d", c.MinDynamicPort, c.MaxDynamicPort)
	}
	if _, err := structs.ParsePortRanges(c.Reserved.Ports); err != nil {
		errs.Addf("reserved_ports: %w", err)
	}
	if c.NodePool == structs.NodePoolAll {
		errs.Addf("node_pool %q is built in and no node can be in it", structs.NodePoolAll)
	}
	return errs.Err()
}
