package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/nomadlite/nomadlite/structs"
)

// simDisk is the disk of a described node that does not say, in MB.
const simDisk = 100 * 1024

// makeNodes makes n nodes of a class, the first one with the number from.
func (s *simSource) makeNodes(class string, from, n int) ([]*structs.Node, error) {
	at := slices.IndexFunc(s.Nodes, func(c *simNodes) bool { return c.Class == class })
	if at < 0 {
		var known []string
		for _, c := range s.Nodes {
			known = append(known, c.Class)
		}
		return nil, structs.Errorf(structs.CodeInvalid, "there is no class of nodes %q, only: %s", class, strings.Join(known, ", "))
	}
	out := make([]*structs.Node, n)
	for i := range out {
		node, diags := s.Nodes[at].node(from + i)
		if diags.HasErrors() {
			return nil, s.fault(diags)
		}
		if s.names[node.Name] {
			return nil, s.fault(hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Name taken", Subject: s.Nodes[at].Name.Range().Ptr(),
				Detail: fmt.Sprintf("There are two nodes called %q. Use index in the name.", node.Name)}})
		}
		s.names[node.Name] = true
		out[i] = node
	}
	return out, nil
}

// node makes the node with that number.
func (c *simNodes) node(index int) (*structs.Node, hcl.Diagnostics) {
	ctx := &hcl.EvalContext{Variables: map[string]cty.Value{"index": cty.NumberIntVal(int64(index)), "class": cty.StringVal(c.Class)}}
	name, diags := textOf(c.Name, ctx, fmt.Sprintf("%s-%d", c.Class, index))
	datacenter, more := textOf(c.Datacenter, ctx, structs.DefaultDatacenter)
	diags = append(diags, more...)
	attributes, more := textsOf(c.Attributes, ctx)
	diags = append(diags, more...)
	meta, more := textsOf(c.Meta, ctx)
	diags = append(diags, more...)
	if diags.HasErrors() {
		return nil, diags
	}
	cores := make([]uint16, c.Cores)
	for i := range cores {
		cores[i] = uint16(i)
	}
	disk := c.Disk
	if disk == 0 {
		disk = simDisk
	}
	n := &structs.Node{
		ID: name, Name: name, NodeClass: c.Class, NodePool: c.Pool, Datacenter: datacenter, Meta: meta,
		Status: structs.NodeStatusReady, SchedulingEligibility: structs.NodeEligible, NodeMaxAllocs: c.MaxAllocs,
		Attributes: usualAttributes(name), Drivers: map[string]*structs.DriverInfo{}, HostVolumes: map[string]*structs.HostVolumeInfo{},
		NodeResources: &structs.NodeResources{
			Cpu:      structs.NodeCpuResources{CpuShares: int64(c.CPU), TotalCpuCores: uint16(c.Cores), ReservableCpuCores: cores},
			Memory:   structs.NodeMemoryResources{MemoryMB: int64(c.Memory)},
			Disk:     structs.NodeDiskResources{DiskMB: int64(disk)},
			Networks: []*structs.NetworkResource{{Mode: "host", Device: "eth0", IP: "192.0.2.1"}},
		},
	}
	drivers := c.Drivers
	if drivers == nil {
		drivers = []string{"docker", "exec", "java", "mock_driver", "qemu", "raw_exec"}
	}
	for _, d := range drivers {
		n.Drivers[d] = &structs.DriverInfo{Detected: true, Healthy: true}
		n.Attributes["driver."+d] = "1"
	}
	for _, v := range c.HostVolumes {
		n.HostVolumes[v] = &structs.HostVolumeInfo{Path: "/" + v}
	}
	maps.Copy(n.Attributes, attributes)
	return n, nil
}

// usualAttributes are those of an ordinary Linux node which jobs may rely on without a word.
func usualAttributes(name string) map[string]string {
	out := map[string]string{
		"kernel.name": "linux", "os.name": "linux", "cpu.arch": "amd64", "arch": "amd64", "unique.hostname": name,
		"nomad.version": structs.CompatVersion, "nomad.service_discovery": "true",
		"os.signals": "SIGABRT,SIGCONT,SIGHUP,SIGINT,SIGIO,SIGKILL,SIGPIPE,SIGQUIT,SIGSTOP,SIGTERM,SIGTSTP,SIGUSR1,SIGUSR2," +
			"SIGWINCH,SIGXCPU,SIGXFSZ",
	}
	for _, plugin := range []string{"bridge", "firewall", "host-local", "loopback", "portmap"} {
		out["plugins.cni.version."+plugin] = "v1.4.0"
	}
	return out
}

// textOf evaluates an expression that gives text.
func textOf(e hcl.Expression, ctx *hcl.EvalContext, otherwise string) (string, hcl.Diagnostics) {
	v, diags := e.Value(ctx)
	if diags.HasErrors() || v.IsNull() {
		return otherwise, diags
	}
	text, err := convert.Convert(v, cty.String)
	if err != nil || !text.IsKnown() || text.IsNull() {
		return "", append(diags, notText(e, "Expected text."))
	}
	return text.AsString(), diags
}

// textsOf evaluates an expression that gives texts by name.
func textsOf(e hcl.Expression, ctx *hcl.EvalContext) (map[string]string, hcl.Diagnostics) {
	out := map[string]string{}
	v, diags := e.Value(ctx)
	if diags.HasErrors() || v.IsNull() {
		return out, diags
	}
	texts, err := convert.Convert(v, cty.Map(cty.String))
	if err != nil || !texts.IsWhollyKnown() {
		return out, append(diags, notText(e, "Expected texts by name: { rack = \"r1\" }."))
	}
	for name, text := range texts.AsValueMap() {
		if !text.IsNull() {
			out[name] = text.AsString()
		}
	}
	return out, diags
}

func notText(e hcl.Expression, detail string) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Unsuitable value", Detail: detail, Subject: e.Range().Ptr()}
}
