package agent

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client"
	"github.com/nomadlite/nomadlite/nomadlite"
	"github.com/nomadlite/nomadlite/structs"
)

// Settings are a configuration with its defaults, checked: what an agent is built from.
type Settings struct {
	Config *Config // as it was written, for /v1/agent/self
	Dev    bool
	// DataDir is empty in dev mode: the client then works in a temporary folder.
	DataDir string

	HTTPAddr      string // where the public API listens
	HTTPAdvertise string
	Headers       map[string]string
	EnableDebug   bool
	MaxHTTPConns  int // of one address; 0 is no bound

	LogLevel    hclog.Level
	LogJSON     bool
	LogLocation bool
	LogFile     string

	Server *nomadlite.Config // nil: no server
	Client *client.Config    // nil: no client
}

// resolver collects faults while it reads a configuration.
type resolver struct {
	faults structs.Errors
	c      *Config
	dev    bool
}

// Resolve completes and checks a configuration; the error tells all faults at once.
func Resolve(c *Config, dev bool) (*Settings, error) {
	r := &resolver{c: c, dev: dev}
	s := &Settings{Config: c, Dev: dev, Headers: c.HTTPAPIResponseHeaders, EnableDebug: structs.Val(c.EnableDebug),
		LogJSON: structs.Val(c.LogJSON), LogLocation: structs.Val(c.LogIncludeLocation), LogFile: structs.Val(c.LogFile)}
	r.refuse()
	r.logLevel(s)
	r.dataDir(s)
	r.http(s)
	isServer, isClient := dev, dev
	if c.Server != nil {
		isServer = isServer || structs.Val(c.Server.Enabled)
	}
	if c.Client != nil {
		isClient = isClient || structs.Val(c.Client.Enabled)
	}
	if !isServer && !isClient {
		r.faults.Addf("the agent is neither server nor client: set server.enabled or client.enabled, or use -dev")
	}
	if isServer {
		s.Server = r.server(s)
	}
	if isClient {
		s.Client = r.client(s, isServer)
	}
	r.leaving(s)
	if err := r.faults.Err(); err != nil {
		return nil, oneLineEach(r.faults)
	}
	return s, nil
}

// oneLineEach gives a single fault as it is, several one a line.
func oneLineEach(faults structs.Errors) error {
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = strings.TrimSpace(f.Error())
	}
	return fmt.Errorf("%s", strings.Join(texts, "\n"))
}

// refuse names what is asked for and cannot be had yet: to go on without it would be unsafe or surprising.
func (r *resolver) refuse() {
	c := r.c
	if c.ACL != nil && structs.Val(c.ACL.Enabled) {
		r.faults.Addf("acl.enabled: access control is not supported by this version of nomadlite; the agent would be open to everyone")
	}
	if t := c.TLS; t != nil && (structs.Val(t.HTTP) || structs.Val(t.RPC)) {
		r.faults.Addf("tls: TLS is not supported by this version of nomadlite; the agent would speak in plain text")
	}
	for _, v := range c.Vault {
		if structs.Val(v.Enabled) {
			r.faults.Addf("vault.enabled: Vault is not supported by this version of nomadlite")
		}
	}
	for _, k := range c.Keyring {
		if k.Provider != "" && k.Provider != "aead" {
			r.faults.Addf("keyring %q: only the provider \"aead\" is supported by this version of nomadlite", k.Provider)
		}
	}
}

func (r *resolver) logLevel(s *Settings) {
	level := "INFO"
	if r.dev {
		level = "DEBUG"
	}
	if r.c.LogLevel != nil {
		level = *r.c.LogLevel
	}
	s.LogLevel = hclog.LevelFromString(level)
	if s.LogLevel == hclog.NoLevel {
		r.faults.Addf("log_level: %q is none of TRACE, DEBUG, INFO, WARN, ERROR, OFF", level)
	}
}

func (r *resolver) dataDir(s *Settings) {
	if r.c.DataDir != nil {
		s.DataDir = filepath.Clean(*r.c.DataDir)
	}
	switch {
	case r.dev:
		s.DataDir = ""
	case s.DataDir == "":
		r.faults.Addf("data_dir must be set: the folder which holds the agent's state")
	case !filepath.IsAbs(s.DataDir):
		r.faults.Addf("data_dir: %q is not an absolute path", s.DataDir)
	}
}

// listen gives host:port of one of the three ports.
func (r *resolver) listen(address *string, port *int, standard int) string {
	host := "0.0.0.0"
	if r.dev {
		host = "127.0.0.1"
	}
	if r.c.BindAddr != nil && *r.c.BindAddr != "" {
		host = *r.c.BindAddr
	}
	if address != nil && *address != "" {
		host = *address
	}
	if port != nil && *port != 0 {
		standard = *port
	}
	if standard < 0 || standard > 65535 {
		r.faults.Addf("ports: %d is no port", standard)
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(standard))
}

func (r *resolver) http(s *Settings) {
	var address, told *string
	var port *int
	if r.c.Addresses != nil {
		address = r.c.Addresses.HTTP
	}
	if r.c.Ports != nil {
		port = r.c.Ports.HTTP
	}
	if r.c.Advertise != nil {
		told = r.c.Advertise.HTTP
	}
	s.HTTPAddr = r.listen(address, port, 4646)
	s.HTTPAdvertise = nomadlite.Advertised(structs.Val(told), s.HTTPAddr)
	s.MaxHTTPConns = 100
	if r.c.Limits != nil && r.c.Limits.HTTPMaxConnsPerClient != nil {
		s.MaxHTTPConns = *r.c.Limits.HTTPMaxConnsPerClient
	}
}

func (r *resolver) name() string {
	if r.c.Name != nil && *r.c.Name != "" {
		return *r.c.Name
	}
	host, err := os.Hostname()
	if err != nil {
		return "nomadlite"
	}
	return host
}

func (r *resolver) region() string { return orDefault(r.c.Region, structs.DefaultRegion) }
func (r *resolver) datacenter() string {
	return orDefault(r.c.Datacenter, structs.DefaultDatacenter)
}

func orDefault(s *string, standard string) string {
	if s == nil || *s == "" {
		return standard
	}
	return *s
}

// duration reads a duration key; empty means the default of whoever uses it.
func (r *resolver) duration(key string, s *string) time.Duration {
	if s == nil || *s == "" {
		return 0
	}
	d, err := time.ParseDuration(*s)
	if err != nil || d < 0 {
		r.faults.Addf("%s: %q is no duration such as 30s, 5m or 1h", key, *s)
	}
	return d
}
