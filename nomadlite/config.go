package nomadlite

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	wire "github.com/nomadlite/nomadlite/internal/session"
	"github.com/nomadlite/nomadlite/nomadlite/endpoint"
	"github.com/nomadlite/nomadlite/structs"
)

// Ports by default.
const (
	DefaultRPCPort    = "4647"
	defaultGossipPort = "4648"
)

// Config is all that a server is told. Zero values mean the public defaults.
type Config struct {
	Logger     hclog.Logger
	Name       string // of this server; default the host's
	Region     string // default "global"
	Datacenter string // default "dc1"

	// DataDir holds raft's log, snapshots and the key file; empty keeps all in memory (DevMode).
	DataDir string
	// DevMode is a single server in memory.
	DevMode bool

	// Listener is port 4647. When it is nil, New listens on RPCAddr.
	Listener net.Listener
	RPCAddr  string // host:port; default "0.0.0.0:4647"
	// RPCHandshakeTimeout and RPCMaxConnsPerClient are session.Config's HandshakeTimeout and MaxConnsPerHost.
	RPCHandshakeTimeout  time.Duration
	RPCMaxConnsPerClient int
	// RPCAdvertise is the host:port which others reach port 4647 under; default the listener's address, with the first
	// private address of the host for a wildcard.
	RPCAdvertise  string
	HTTPAdvertise string // host:port of the public API, shown to others

	BootstrapExpect int           // servers to wait for before the first bootstrap; 0 joins only
	Join            []string      // host[:port] of other servers (start_join, retry_join, server_join)
	RetryMax        int           // attempts to join before giving up; 0: for ever
	RetryInterval   time.Duration // default 30 s
	EncryptKey      string        // base64 of 16 or 32 bytes which all servers share

	NumSchedulers     *int // workers; default one a core; 0 none
	EnabledSchedulers []string

	MinHeartbeatTTL        time.Duration // default 10 s
	MaxHeartbeatsPerSecond float64       // default 50
	HeartbeatGrace         time.Duration // default 10 s
	FailoverHeartbeatTTL   time.Duration // default 5 min

	JobGCInterval         time.Duration // default 5 min
	JobGCThreshold        time.Duration // default 4 h
	EvalGCThreshold       time.Duration // default 1 h
	BatchEvalGCThreshold  time.Duration // default 24 h
	NodeGCThreshold       time.Duration // default 24 h
	DeploymentGCThreshold time.Duration // default 1 h

	RaftMultiplier        int
	RaftSnapshotThreshold uint64        // log entries; default 8192
	RaftSnapshotInterval  time.Duration // default 2 min
	RaftTrailingLogs      uint64        // default 10240
	PlanApplyPipeline     int           // raft entries with plans in flight; default 1
	EvalNackTimeout       time.Duration // default 1 min
	EvalDeliveryLimit     int           // default 3

	JobDefaultPriority int // default 50
	JobMaxPriority     int // default 100
	JobMaxCount        int // default 50000
	JobMaxSourceSize   int64
	JobTrackedVersions int // default 6
	Search             endpoint.SearchLimits
	// DefaultSchedulerConfig is what a new cluster begins with (default_scheduler_config); nil: the built-in one.
	DefaultSchedulerConfig *structs.SchedulerConfiguration

	// ProbeInterval is the time between two visits of each known server; default 1 s.
	ProbeInterval time.Duration
}

// withDefaults fills in what was left out and finds all faults at once.
func (c Config) withDefaults() (Config, error) {
	var faults structs.Errors
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	text := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	text(&c.Region, structs.DefaultRegion)
	text(&c.Datacenter, structs.DefaultDatacenter)
	text(&c.Name, "server")
	text(&c.RPCAddr, net.JoinHostPort("0.0.0.0", DefaultRPCPort))
	if c.DevMode {
		c.DataDir, c.BootstrapExpect, c.Join = "", 1, nil
	} else if c.DataDir == "" {
		faults.Addf("data_dir must be set for a server, unless in dev mode")
	}
	if c.NumSchedulers == nil {
		c.NumSchedulers = structs.Ptr(runtime.GOMAXPROCS(0))
	}
	known := []string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch,
		structs.JobTypeCore}
	if len(c.EnabledSchedulers) == 0 {
		c.EnabledSchedulers = known
	}
	for _, name := range c.EnabledSchedulers {
		if !slices.Contains(known, name) {
			faults.Addf("enabled_schedulers: unknown scheduler %q", name)
		}
	}
	if !slices.Contains(c.EnabledSchedulers, structs.JobTypeCore) {
		// Collecting garbage is each server's duty when it leads; the public interface lists it as a scheduler.
		c.EnabledSchedulers = append(slices.Clone(c.EnabledSchedulers), structs.JobTypeCore)
	}
	if *c.NumSchedulers < 0 {
		faults.Addf("num_schedulers must not be negative")
	}
	if c.BootstrapExpect < 0 {
		faults.Addf("bootstrap_expect must not be negative")
	}
	if strings.Contains(c.Region, "/") {
		faults.Addf("region must not contain a slash")
	}
	if _, err := wire.ParseKey(c.EncryptKey); err != nil {
		faults.Add(fmt.Errorf("encrypt: %w", err))
	}
	join := c.Join
	c.Join = nil
	for _, addr := range join {
		full, err := joinAddr(addr)
		faults.Add(err)
		c.Join = append(c.Join, full)
	}
	return c, faults.Err()
}

// joinAddr completes an address to join. Servers introduce themselves on port 4647; the gossip port, which
// configurations written for others name, stands for it.
func joinAddr(addr string) (string, error) {
	if strings.Contains(addr, "provider=") {
		return "", fmt.Errorf("retry_join: discovery by provider is not supported: %q", addr)
	}
	if !strings.Contains(addr, ":") || strings.HasSuffix(addr, "]") {
		addr += ":" + DefaultRPCPort
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("retry_join: %q is not an address: %w", addr, err)
	}
	if port == defaultGossipPort {
		port = DefaultRPCPort
	}
	return net.JoinHostPort(host, port), nil
}

// Advertised completes the host[:port] under which others reach a listener on listen (host:port): by default the first
// private address of this host stands for a wildcard.
func Advertised(configured, listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if configured != "" {
		if _, _, err := net.SplitHostPort(configured); err == nil {
			return configured
		}
		return net.JoinHostPort(strings.Trim(configured, "[]"), port)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
		return listen
	}
	addrs, err := net.InterfaceAddrs()
	if err == nil {
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsPrivate() && n.IP.To4() != nil {
				return net.JoinHostPort(n.IP.String(), port)
			}
		}
	}
	return net.JoinHostPort("127.0.0.1", port)
}
