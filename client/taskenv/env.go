package taskenv

import (
	"maps"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// Env is a task's environment together with what its references may name. It is immutable.
type Env struct {
	vars map[string]string
	node map[string]string // full references: "node.class", "attr.cpu.arch", "meta.rack"
}

// Map gives a copy of the variables.
func (e *Env) Map() map[string]string { return maps.Clone(e.vars) }

// List gives the variables as sorted "K=V" lines.
func (e *Env) List() []string {
	out := make([]string, 0, len(e.vars))
	for k, v := range e.vars {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

// Lookup gives one variable.
func (e *Env) Lookup(name string) (string, bool) {
	v, ok := e.vars[name]
	return v, ok
}

// Facts gives the variables and what is known of the node, under the names of its references, as "K=V" lines.
func (e *Env) Facts() []string {
	out := make([]string, 0, len(e.vars)+len(e.node))
	for k, v := range e.node {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return append(e.List(), out...) // a variable wins over a reference of its name
}

// nodeRefs are the references which describe the node.
func nodeRefs(n *structs.Node, region string) map[string]string {
	refs := map[string]string{}
	if n == nil {
		return refs
	}
	refs["node.unique.id"] = n.ID
	refs["node.unique.name"] = n.Name
	refs["node.datacenter"] = n.Datacenter
	refs["node.class"] = n.NodeClass
	refs["node.pool"] = n.NodePool
	refs["node.region"] = region
	for k, v := range n.Attributes {
		refs["attr."+k] = v
	}
	for k, v := range n.Meta {
		refs["meta."+k] = v
	}
	return refs
}

// Replace resolves each ${reference} that it knows: node.*, attr.*, meta.*, env["NAME"] and plain names of variables.
// All others stay as they are, for the task itself (a shell, say) to resolve.
func (e *Env) Replace(s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	var b strings.Builder
	for {
		start := strings.Index(s, "${")
		if start < 0 {
			break
		}
		end := strings.IndexByte(s[start:], '}')
		if end < 0 {
			break
		}
		end += start
		b.WriteString(s[:start])
		if v, ok := e.resolve(strings.TrimSpace(s[start+2 : end])); ok {
			b.WriteString(v)
			s = s[end+1:]
			continue
		}
		// Not ours. What follows the opening may still hold one: "${a${NOMAD_DC}}".
		b.WriteString("${")
		s = s[start+2:]
	}
	b.WriteString(s)
	return b.String()
}

func (e *Env) resolve(ref string) (string, bool) {
	if v, ok := e.node[ref]; ok {
		return v, true
	}
	if name, ok := strings.CutPrefix(ref, "env["); ok {
		name, ok = strings.CutSuffix(name, "]")
		name = strings.TrimSpace(name)
		if !ok || len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' {
			return "", false
		}
		v, ok := e.vars[name[1:len(name)-1]]
		return v, ok
	}
	if v, ok := e.vars[ref]; ok {
		return v, true
	}
	return "", false
}

// ReplaceAll resolves each string of a list, as a copy.
func (e *Env) ReplaceAll(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = e.Replace(s)
	}
	return out
}

// ReplaceMap resolves keys and values, as a copy.
func (e *Env) ReplaceMap(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[e.Replace(k)] = e.Replace(v)
	}
	return out
}

// ReplaceConfig resolves every string, key and value, at each depth of a driver's config, as a copy.
func (e *Env) ReplaceConfig(config map[string]any) map[string]any {
	if config == nil {
		return nil
	}
	return e.replaceAny(config).(map[string]any)
}

func (e *Env) replaceAny(v any) any {
	switch v := v.(type) {
	case string:
		return e.Replace(v)
	case []string:
		return e.ReplaceAll(v)
	case map[string]string:
		return e.ReplaceMap(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = e.replaceAny(v[i])
		}
		return out
	case []map[string]any:
		out := make([]map[string]any, len(v))
		for i := range v {
			out[i] = e.replaceAny(v[i]).(map[string]any)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[e.Replace(k)] = e.replaceAny(item)
		}
		return out
	default:
		return v
	}
}

// ReplaceServices resolves the strings of services and their checks, as a copy.
func (e *Env) ReplaceServices(services []*structs.Service) []*structs.Service {
	if services == nil {
		return nil
	}
	out := make([]*structs.Service, len(services))
	for i, s := range services {
		c := *s
		for _, f := range []*string{&c.Name, &c.PortLabel, &c.AddressMode, &c.Address, &c.TaskName, &c.OnUpdate, &c.Cluster, &c.Kind} {
			*f = e.Replace(*f)
		}
		c.Tags, c.CanaryTags = e.ReplaceAll(c.Tags), e.ReplaceAll(c.CanaryTags)
		c.Meta, c.CanaryMeta = e.ReplaceMap(c.Meta), e.ReplaceMap(c.CanaryMeta)
		c.TaggedAddresses = e.ReplaceMap(c.TaggedAddresses)
		c.Checks = slices.Clone(c.Checks)
		for j := range c.Checks {
			e.replaceCheck(&c.Checks[j])
		}
		out[i] = &c
	}
	return out
}

func (e *Env) replaceCheck(c *structs.ServiceCheck) {
	for _, f := range []*string{&c.Name, &c.Type, &c.Command, &c.Path, &c.Protocol, &c.PortLabel, &c.InitialStatus, &c.Notes,
		&c.TLSServerName, &c.Method, &c.GRPCService, &c.TaskName, &c.Body, &c.Advertise} {
		*f = e.Replace(*f)
	}
	c.Args = e.ReplaceAll(c.Args)
	if c.Header != nil {
		header := make(map[string][]string, len(c.Header))
		for k, v := range c.Header {
			header[e.Replace(k)] = e.ReplaceAll(v)
		}
		c.Header = header
	}
}
