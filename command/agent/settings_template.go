package agent

import (
	"github.com/nomadlite/nomadlite/client/template"
	"github.com/nomadlite/nomadlite/structs"
)

// templates reads the client's template block. Its fields about Consul and Vault have no meaning here, nor has max_stale:
// nodes ask the leader; servers are asked again for as long as it takes.
func (r *resolver) templates(in *ClientTemplateConfig, out *template.Settings) {
	if in == nil {
		return
	}
	out.Denylist = in.FunctionDenylist
	if out.Denylist == nil {
		out.Denylist = in.FunctionBlacklist
	}
	out.Unconfined = structs.Val(in.DisableFileSandbox)
	out.Wait = r.wait("client.template.wait", in.Wait)
	out.WaitBounds = r.wait("client.template.wait_bounds", in.WaitBounds)
}

func (r *resolver) wait(name string, in *WaitConfig) *structs.WaitConfig {
	if in == nil {
		return nil
	}
	out := &structs.WaitConfig{}
	if in.Min != nil {
		out.Min = structs.Ptr(r.duration(name+".min", in.Min))
	}
	if in.Max != nil {
		out.Max = structs.Ptr(r.duration(name+".max", in.Max))
	}
	if out.Min != nil && out.Max != nil && *out.Min > *out.Max {
		r.faults.Addf("%s: min (%s) is above max (%s)", name, *out.Min, *out.Max)
	}
	return out
}
