package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/command/agent"
)

func agentCommand() *spec {
	return &spec{name: "agent", args: "", synopsis: "Run an agent: server, client, or both",
		help: `Runs an agent in the foreground until SIGINT or SIGTERM. Configuration comes from files (HCL or JSON) and
folders given with -config, in order; flags win over files. With -dev it is a server and a client in one that keeps
its state in memory: for trying things out, never for production.`,
		maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &agentFlags{}
			f.declare(fs)
			return f.run
		}}
}

// agentFlags are the flags of the agent command; each stands for a key of the configuration.
type agentFlags struct {
	config     list
	dev        bool
	over       agent.Config
	join       list
	retry      list
	meta       list
	client     agent.ClientConfig
	server     agent.ServerConfig
	retrying   agent.ServerJoin
	aclEnabled bool
	servers    string
}

func (f *agentFlags) declare(fs *flag.FlagSet) {
	text := func(p **string, name, usage string) {
		fs.Func(name, usage, func(v string) error { *p = &v; return nil })
	}
	number := func(p **int, name, usage string) {
		fs.Func(name, usage, func(v string) error {
			n, err := strconv.Atoi(v)
			if err != nil {
				return fmt.Errorf("%q is not a whole number", v)
			}
			*p = &n
			return nil
		})
	}
	truth := func(p **bool, name, usage string) {
		fs.BoolFunc(name, usage, func(v string) error {
			b, err := strconv.ParseBool(v)
			if err != nil {
				return fmt.Errorf("%q is neither true nor false", v)
			}
			*p = &b
			return nil
		})
	}
	fs.Var(&f.config, "config", "`PATH` of a configuration file or folder; may be repeated.")
	fs.BoolVar(&f.dev, "dev", false, "Server and client in one, state in memory.")
	text(&f.over.BindAddr, "bind", "`ADDR`ess to listen on.")
	text(&f.over.DataDir, "data-dir", "`PATH` of the folder that holds the agent's state.")
	text(&f.over.Datacenter, "dc", "`NAME` of the datacenter.")
	text(&f.over.Region, "region", "`NAME` of the region.")
	text(&f.over.Name, "node", "`NAME` of this agent; the host's name by default.")
	text(&f.over.LogLevel, "log-level", "`LEVEL` of the log: TRACE, DEBUG, INFO, WARN or ERROR.")
	text(&f.over.PluginDir, "plugin-dir", "`PATH` of the folder with plugins.")
	truth(&f.over.LogJSON, "log-json", "Log in JSON.")
	truth(&f.over.LogIncludeLocation, "log-include-location", "Log the place in the source.")
	truth(&f.server.Enabled, "server", "Be a server.")
	number(&f.server.BootstrapExpect, "bootstrap-expect", "`NUMBER` of servers to wait for.")
	text(&f.server.Encrypt, "encrypt", "`KEY` which all servers share, base64.")
	number(&f.server.RaftProtocol, "raft-protocol", "`VERSION` of raft's protocol; 3 is the only one.")
	truth(&f.server.RejoinAfterLeave, "rejoin", "Accepted.")
	fs.Var(&f.join, "join", "`ADDR`ess of a server to join; may be repeated.")
	fs.Var(&f.retry, "retry-join", "`ADDR`ess of a server to join until it answers; may be repeated.")
	number(&f.retrying.RetryMax, "retry-max", "`NUMBER` of attempts to join; 0 is without end.")
	text(&f.retrying.RetryInterval, "retry-interval", "`DURATION` between attempts to join.")
	truth(&f.client.Enabled, "client", "Be a client: run allocations.")
	text(&f.client.AllocDir, "alloc-dir", "`PATH` of the folder with allocations' directories.")
	text(&f.client.StateDir, "state-dir", "`PATH` of the folder with the client's state.")
	text(&f.client.AllocMountsDir, "alloc-mounts-dir", "`PATH` of the folder with allocations' mounts.")
	text(&f.client.HostVolumesDir, "host-volumes-dir", "`PATH` of the folder with dynamic host volumes.")
	text(&f.client.HostVolumePluginDir, "host-volume-plugin-dir", "`PATH` of the folder with host volume plugins.")
	text(&f.client.NodeClass, "node-class", "`NAME` of the node's class.")
	text(&f.client.NodePool, "node-pool", "`NAME` of the node's pool.")
	text(&f.client.NetworkInterface, "network-interface", "`NAME` of the interface whose address is the node's.")
	number(&f.client.NetworkSpeed, "network-speed", "Speed of the network in `MBITS`.")
	text(&f.client.PreferredAddressFamily, "preferred-address-family", "`FAMILY`: ipv4 or ipv6.")
	fs.StringVar(&f.servers, "servers", "", "`ADDRS` of servers for a client, separated by commas.")
	fs.Var(&f.meta, "meta", "`KEY=VALUE` of the node's meta; may be repeated.")
	fs.BoolVar(&f.aclEnabled, "acl-enabled", false, "Enforce access control.")
}

func (f *agentFlags) run(ctx context.Context, c *call) error {
	files, err := agent.Load(f.config)
	if err != nil {
		return err
	}
	over, err := f.overrides()
	if err != nil {
		return err
	}
	settings, err := agent.Resolve(agent.Merge(files, over), f.dev)
	if err != nil {
		return err
	}
	a, err := agent.New(settings, c.err)
	if err != nil {
		return err
	}
	err = a.Run(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// overrides is what the flags say, as a configuration.
func (f *agentFlags) overrides() (*agent.Config, error) {
	over := f.over
	server, client, join := f.server, f.client, f.retrying
	join.StartJoin, join.RetryJoin = f.join, f.retry
	if len(join.StartJoin)+len(join.RetryJoin) > 0 || join.RetryMax != nil || join.RetryInterval != nil {
		server.ServerJoin = &join
	}
	if f.servers != "" {
		client.Servers = strings.Split(f.servers, ",")
	}
	for _, m := range f.meta {
		key, value, ok := strings.Cut(m, "=")
		if !ok {
			return nil, fmt.Errorf("-meta needs KEY=VALUE, got %q", m)
		}
		if client.Meta == nil {
			client.Meta = map[string]string{}
		}
		client.Meta[key] = value
	}
	over.Server, over.Client = &server, &client
	if f.aclEnabled {
		over.ACL = &agent.ACLConfig{Enabled: &f.aclEnabled}
	}
	return &over, nil
}
