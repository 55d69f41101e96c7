package structs

import (
	"fmt"
	"maps"
	"slices"
)

// Unsupported tells what of a job is accepted and kept, but not yet done by this version, so that nobody takes silence
// for consent. What can never be done is refused by Validate instead. The job must be canonical.
func (j *Job) Unsupported() []string {
	u := unsupported{}
	for _, tg := range j.TaskGroups {
		u.group(unsupported{prefix: fmt.Sprintf("Group %q: ", Val(tg.Name))}, tg)
	}
	return u.words
}

// unsupported collects words about one object.
type unsupported struct {
	prefix string
	words  []string
}

func (u *unsupported) addf(format string, args ...any) {
	u.words = append(u.words, u.prefix+fmt.Sprintf(format, args...))
}

func (u *unsupported) group(in unsupported, tg *TaskGroup) {
	for _, n := range tg.Networks {
		if n.Mode != "" && n.Mode != "host" && n.Mode != "none" {
			in.addf("network mode %q is offered by no node yet: its allocations cannot run", n.Mode)
		}
		in.network(n)
	}
	if d := tg.EphemeralDisk; d != nil && Val(d.Migrate) {
		in.addf("migrate of ephemeral_disk has no effect yet: only an allocation on the same node takes data over")
	}
	for _, name := range slices.Sorted(maps.Keys(tg.Volumes)) {
		in.addf("volume %q of type %q is offered by no node yet: its allocations cannot run", name, tg.Volumes[name].Type)
	}
	if tg.Consul != nil {
		in.addf("consul has no effect yet")
	}
	in.services(tg.Services)
	u.words = append(u.words, in.words...)
	for _, t := range tg.Tasks {
		u.task(unsupported{prefix: fmt.Sprintf("%stask %q: ", in.prefix, t.Name)}, t)
	}
}

func (u *unsupported) network(n *NetworkResource) {
	for _, f := range []struct {
		used bool
		what string
	}{
		{n.DNS != nil, "dns of a network has no effect yet: tasks resolve names as their node does"},
		{n.Hostname != "", "hostname of a network has no effect yet: tasks have the name of their node"},
		{n.CNI != nil && len(n.CNI.Args) > 0, "cni args of a network have no effect yet"},
	} {
		if f.used {
			u.addf("%s", f.what)
		}
	}
	for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
		if p.IgnoreCollision {
			u.addf("port %q: ignore_collision has no effect yet: no other allocation of the node may have the port", p.Label)
		}
	}
}

func (u *unsupported) services(list []*Service) {
	for _, s := range list {
		if s.Connect != nil {
			u.addf("service %q: connect: there is no service mesh yet", s.Name)
		}
	}
}

func (u *unsupported) task(in unsupported, t *Task) {
	for _, f := range []struct {
		used bool
		what string
	}{
		{t.Vault != nil, "vault is not asked yet: the task fails on its node"},
		{len(t.VolumeMounts) > 0, "volume_mount blocks are not mounted yet: the task fails on its node"},
		{t.Consul != nil, "consul has no effect yet"},
		{t.CSIPluginConfig != nil, "csi_plugin has no effect yet: the task runs, but as no plugin"},
		{t.Resources != nil && len(t.Resources.Devices) > 0, "device is offered by no node yet: the group cannot be placed"},
		{len(t.Secrets) > 0, "secret blocks are not read yet: no node has a provider, the group cannot be placed"},
		{t.Resources != nil && Val(t.Resources.DiskMB) > 0, "disk of resources has no effect any more: ephemeral_disk of the group has a size"},
		{t.Resources != nil && Val(t.Resources.IOPS) > 0, "iops of resources has no effect any more"},
		{slices.ContainsFunc(t.Templates, func(tpl *Template) bool { return Val(tpl.VaultGrace) > 0 }), "vault_grace has no effect any more"},
		{wantsToken(t), "identity is stored, but no token is made for it yet: neither environment nor file holds one"},
	} {
		if f.used {
			in.addf("%s", f.what)
		}
	}
	in.services(t.Services)
	u.words = append(u.words, in.words...)
}

// wantsToken says whether a task asks for a token where it could see it. The identity that each task has by default is
// not one of these.
func wantsToken(t *Task) bool {
	if t.Identity != nil && (t.Identity.Env || t.Identity.File) {
		return true
	}
	for _, id := range t.Identities {
		if id.Env || id.File || id.Name != DefaultIdentityName {
			return true
		}
	}
	return false
}
