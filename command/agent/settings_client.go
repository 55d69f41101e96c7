package agent

import (
	"net"
	"strings"

	"github.com/nomadlite/nomadlite/client"
	"github.com/nomadlite/nomadlite/client/fingerprint"
	"github.com/nomadlite/nomadlite/structs"
)

// client reads the client block.
func (r *resolver) client(s *Settings, withServer bool) *client.Config {
	in := r.c.Client
	if in == nil {
		in = &ClientConfig{}
	}
	out := &client.Config{
		DataDir: s.DataDir, StateDir: structs.Val(in.StateDir), AllocDir: structs.Val(in.AllocDir),
		Region: r.region(), Datacenter: r.datacenter(), Name: r.name(), NodeClass: structs.Val(in.NodeClass),
		NodePool: structs.Val(in.NodePool), Meta: in.Meta, Options: in.Options, HTTPAddr: s.HTTPAdvertise,
		NetworkInterface: structs.Val(in.NetworkInterface), NetworkSpeed: structs.Val(in.NetworkSpeed),
		PreferIPv6:      structs.Val(in.PreferredAddressFamily) == "ipv6",
		CPUTotalCompute: structs.Val(in.CPUTotalCompute), MemoryTotalMB: structs.Val(in.MemoryTotalMB),
		DiskTotalMB: structs.Val(in.DiskTotalMB), DiskFreeMB: structs.Val(in.DiskFreeMB),
		ReservableCores: structs.Val(in.ReservableCores),
		MinDynamicPort:  structs.Val(in.MinDynamicPort), MaxDynamicPort: structs.Val(in.MaxDynamicPort),
		NodeMaxAllocs: structs.Val(in.NodeMaxAllocs), CgroupParent: structs.Val(in.CgroupParent),
		DefaultIneligible: structs.Val(in.DefaultIneligible),
		MaxKillTimeout:    r.duration("client.max_kill_timeout", in.MaxKillTimeout),
		Lease:             r.duration("client.lease", in.Lease),
		GCInterval:        r.duration("client.gc_interval", in.GCInterval),
		DevMode:           r.dev,
	}
	if r.dev && out.NetworkInterface == "" {
		out.NetworkInterface = loopback() // as the agent itself, what it runs for trying out is for this machine only
	}
	if in.NomadServiceDiscovery == nil || *in.NomadServiceDiscovery {
		out.ServiceDiscovery = true
	}
	switch family := structs.Val(in.PreferredAddressFamily); family {
	case "", "ipv4", "ipv6":
	default:
		r.faults.Addf("client.preferred_address_family: %q is neither ipv4 nor ipv6", family)
	}
	if res := in.Reserved; res != nil {
		out.Reserved = fingerprint.Reserved{CPU: structs.Val(res.CPU), MemoryMB: structs.Val(res.Memory), DiskMB: structs.Val(res.Disk),
			Ports: structs.Val(res.ReservedPorts), Cores: structs.Val(res.Cores)}
	}
	for _, n := range in.HostNetwork {
		out.HostNetworks = append(out.HostNetworks, fingerprint.HostNetwork{Name: n.Name, CIDR: structs.Val(n.CIDR),
			Interface: structs.Val(n.Interface), ReservedPorts: structs.Val(n.ReservedPorts)})
	}
	for _, v := range in.HostVolume {
		if out.HostVolumes == nil {
			out.HostVolumes = map[string]*structs.HostVolumeInfo{}
		}
		out.HostVolumes[v.Name] = &structs.HostVolumeInfo{Path: structs.Val(v.Path), ReadOnly: structs.Val(v.ReadOnly)}
	}
	out.GC.MaxAllocs = structs.Val(in.GCMaxAllocs)
	out.GC.ParallelDestroys = structs.Val(in.GCParallelDestroys)
	out.GC.DiskUsageThreshold = structs.Val(in.GCDiskUsageThreshold)
	out.GC.InodeUsageThreshold = structs.Val(in.GCInodeUsageThreshold)
	r.templates(in.Template, &out.Templates)
	out.Artifacts = r.artifacts(in.Artifact)
	r.drivers(out)
	r.servers(in, out, withServer)
	if !r.dev {
		r.faults.Add(out.Validate())
	}
	return out
}

// drivers reads the plugin blocks: "enabled" is common to all, the rest is the driver's own.
func (r *resolver) drivers(out *client.Config) {
	for _, p := range r.c.Plugin {
		d := client.DriverConfig{Options: map[string]any{}}
		for key, value := range p.Config {
			if key != "enabled" {
				d.Options[key] = value
				continue
			}
			enabled, ok := value.(bool)
			if !ok {
				r.faults.Addf("plugin %q: enabled must be true or false", p.Name)
				continue
			}
			d.Enabled = &enabled
		}
		if out.Drivers == nil {
			out.Drivers = map[string]client.DriverConfig{}
		}
		out.Drivers[p.Name] = d
	}
}

// servers gathers the addresses of servers. An agent that is a server too asks that one, which is filled in when it
// listens.
func (r *resolver) servers(in *ClientConfig, out *client.Config, withServer bool) {
	list := append([]string{}, in.Servers...)
	if j := in.ServerJoin; j != nil {
		list = append(append(list, j.StartJoin...), j.RetryJoin...)
	}
	for _, s := range list {
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			host, port = strings.Trim(s, "[]"), "4647"
		}
		if host == "" {
			r.faults.Addf("client.servers: %q is not HOST or HOST:PORT", s)
			continue
		}
		out.Servers = append(out.Servers, net.JoinHostPort(host, port))
	}
	if len(out.Servers) == 0 && !withServer {
		r.faults.Addf("client.servers must name at least one server (HOST or HOST:PORT of its port 4647)")
	}
}

// loopback names the loopback interface; empty when there is none.
func loopback() string {
	interfaces, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp != 0 {
			return i.Name
		}
	}
	return ""
}
