package taskenv

import (
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// DefaultHostEnvDenylist is what tasks do not inherit from the agent unless its configuration says otherwise.
func DefaultHostEnvDenylist() []string {
	return []string{"CONSUL_TOKEN", "CONSUL_HTTP_TOKEN", "CONSUL_HTTP_TOKEN_FILE", "NOMAD_TOKEN", "VAULT_TOKEN", "NOMAD_LICENSE",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS"}
}

// HostEnv turns "K=V" lines into a map without the names that denylist matches (shell patterns).
func HostEnv(environ, denylist []string) map[string]string {
	out := make(map[string]string, len(environ))
	for _, kv := range environ {
		k, v, ok := strings.Cut(kv, "=")
		denied := func(pattern string) bool {
			matches, err := path.Match(pattern, k)
			return pattern == k || (err == nil && matches)
		}
		if !ok || k == "" || slices.ContainsFunc(denylist, denied) {
			continue
		}
		out[k] = v
	}
	return out
}

// Input is everything the environment of a task depends on.
type Input struct {
	Alloc  *structs.Allocation // with its Job
	Task   *structs.Task
	Node   *structs.Node
	Region string // the agent's; "" means the job's

	// The directories as the task sees them.
	AllocDir, LocalDir, SecretsDir string

	CgroupParent string            // "" leaves NOMAD_PARENT_CGROUP out
	APISocket    string            // the task API's unix socket; "" leaves NOMAD_UNIX_ADDR out
	HostEnv      map[string]string // for drivers without isolation (HostEnv)
	// HookEnv is what hooks added (devices, identity tokens, templates); it wins over everything else.
	HookEnv map[string]string
}

// Build makes the environment.
func Build(in Input) *Env {
	job, group := jobAndGroup(in)
	if in.Region == "" && job != nil {
		in.Region = structs.Val(job.Region)
	}
	e := &Env{vars: map[string]string{}, node: nodeRefs(in.Node, in.Region)}

	b := builder{env: map[string]string{}}
	b.identity(in, job, group)
	b.resources(in)
	b.network(in)
	maps.Copy(e.vars, in.HostEnv)
	maps.Copy(e.vars, b.env)

	// Meta and env may refer to the node and to all of the above.
	for k, v := range mergedMeta(job, group, in.Task) {
		v = e.Replace(v)
		e.vars["NOMAD_META_"+cleanName(k)] = v
		e.vars["NOMAD_META_"+strings.ToUpper(cleanName(k))] = v
	}
	if in.Task != nil {
		own := make(map[string]string, len(in.Task.Env))
		for k, v := range in.Task.Env {
			own[cleanEnvName(k)] = e.Replace(v)
		}
		maps.Copy(e.vars, own)
	}
	maps.Copy(e.vars, in.HookEnv)
	return e
}

func jobAndGroup(in Input) (*structs.Job, *structs.TaskGroup) {
	if in.Alloc == nil || in.Alloc.Job == nil {
		return nil, nil
	}
	for _, tg := range in.Alloc.Job.TaskGroups {
		if structs.Val(tg.Name) == in.Alloc.TaskGroup {
			return in.Alloc.Job, tg
		}
	}
	return in.Alloc.Job, nil
}

// mergedMeta lets the task's meta win over the group's, and that over the job's.
func mergedMeta(job *structs.Job, group *structs.TaskGroup, task *structs.Task) map[string]string {
	out := map[string]string{}
	if job != nil {
		maps.Copy(out, job.Meta)
	}
	if group != nil {
		maps.Copy(out, group.Meta)
	}
	if task != nil {
		maps.Copy(out, task.Meta)
	}
	return out
}

type builder struct {
	env map[string]string
}

// set leaves out what has no value.
func (b *builder) set(name, value string) {
	if value != "" {
		b.env[name] = value
	}
}

func (b *builder) identity(in Input, job *structs.Job, group *structs.TaskGroup) {
	b.set("NOMAD_ALLOC_DIR", in.AllocDir)
	b.set("NOMAD_TASK_DIR", in.LocalDir)
	b.set("NOMAD_SECRETS_DIR", in.SecretsDir)
	b.set("NOMAD_PARENT_CGROUP", in.CgroupParent)
	if in.APISocket != "" {
		b.set("NOMAD_UNIX_ADDR", "unix://"+in.APISocket)
	}
	if in.Task != nil {
		b.set("NOMAD_TASK_NAME", in.Task.Name)
	}
	if a := in.Alloc; a != nil {
		b.set("NOMAD_ALLOC_ID", a.ID)
		b.set("NOMAD_SHORT_ALLOC_ID", a.ID[:min(8, len(a.ID))])
		b.set("NOMAD_ALLOC_NAME", a.Name)
		b.set("NOMAD_ALLOC_INDEX", allocIndex(a.Name))
		b.set("NOMAD_GROUP_NAME", a.TaskGroup)
		b.set("NOMAD_JOB_ID", a.JobID)
		b.set("NOMAD_JOB_NAME", a.JobID)
		b.set("NOMAD_NAMESPACE", a.Namespace)
		// The create index rises with each allocation: storage can refuse a writer that was replaced.
		b.set("NOMAD_ALLOC_FENCE", strconv.FormatUint(a.CreateIndex, 10))
	}
	if job != nil {
		b.set("NOMAD_JOB_ID", structs.Val(job.ID))
		b.set("NOMAD_JOB_NAME", structs.Val(job.Name))
		b.set("NOMAD_JOB_PARENT_ID", job.ParentID)
	}
	if group != nil {
		b.set("NOMAD_GROUP_NAME", structs.Val(group.Name))
	}
	b.set("NOMAD_REGION", in.Region)
	if in.Node != nil {
		b.set("NOMAD_DC", in.Node.Datacenter)
	}
}

// allocIndex is the number in brackets at the end of an allocation's name.
func allocIndex(name string) string {
	open := strings.LastIndexByte(name, '[')
	if open < 0 || !strings.HasSuffix(name, "]") {
		return ""
	}
	return name[open+1 : len(name)-1]
}

func (b *builder) resources(in Input) {
	if in.Alloc == nil || in.Alloc.AllocatedResources == nil || in.Task == nil {
		return
	}
	r := in.Alloc.AllocatedResources.Tasks[in.Task.Name]
	if r == nil {
		return
	}
	if r.Memory.MemoryMB > 0 {
		b.set("NOMAD_MEMORY_LIMIT", strconv.FormatInt(r.Memory.MemoryMB, 10))
	}
	if r.Memory.MemoryMaxMB > 0 && r.Memory.MemoryMaxMB != r.Memory.MemoryMB {
		b.set("NOMAD_MEMORY_MAX_LIMIT", strconv.FormatInt(r.Memory.MemoryMaxMB, 10))
	}
	if r.Cpu.CpuShares > 0 {
		b.set("NOMAD_CPU_LIMIT", strconv.FormatInt(r.Cpu.CpuShares, 10))
	}
	b.set("NOMAD_CPU_CORES", coreList(r.Cpu.ReservedCores))
}

// coreList writes cores as a cpuset list, 0-2,7.
func coreList(cores []uint16) string {
	cores = slices.Clone(cores)
	slices.Sort(cores)
	var parts []string
	for i := 0; i < len(cores); {
		j := i
		for j+1 < len(cores) && cores[j+1] == cores[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(cores[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", cores[i], cores[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// hasOwnNetwork says whether the group's tasks have a network of their own, and not the node's.
func hasOwnNetwork(alloc *structs.Allocation) bool {
	group := alloc.Group()
	return group != nil && slices.ContainsFunc(group.Networks, func(n *structs.NetworkResource) bool {
		return n.Mode == structs.NetworkModeBridge || strings.HasPrefix(n.Mode, "cni/")
	})
}

func (b *builder) network(in Input) {
	if in.Alloc == nil || in.Alloc.AllocatedResources == nil {
		return
	}
	res := in.Alloc.AllocatedResources
	status := in.Alloc.NetworkStatus
	if !hasOwnNetwork(in.Alloc) {
		status = nil // it is the node's, which may have several addresses
	}
	for _, p := range res.Shared.Ports {
		inner := p.To
		if inner <= 0 {
			inner = p.Value
		}
		b.port("", p.Label, p.HostIP, p.Value, inner)
		ip := p.HostIP
		if status != nil && status.Address != "" {
			ip = status.Address // the address inside the group's network
		}
		label := cleanName(p.Label)
		b.set("NOMAD_ALLOC_IP_"+label, ip)
		b.set("NOMAD_ALLOC_PORT_"+label, strconv.Itoa(inner))
		b.set("NOMAD_ALLOC_ADDR_"+label, net.JoinHostPort(ip, strconv.Itoa(inner)))
	}
	if status != nil {
		b.set("NOMAD_ALLOC_INTERFACE_"+cleanName(status.InterfaceName), status.InterfaceName)
	}
	delete(b.env, "NOMAD_ALLOC_INTERFACE_")
	// Ports of the group as the older form of the allocation carries them.
	if len(res.Shared.Ports) == 0 {
		for _, n := range res.Shared.Networks {
			b.networkResource("", n)
		}
	}
	for _, task := range slices.Sorted(maps.Keys(res.Tasks)) {
		for _, n := range res.Tasks[task].Networks {
			if in.Task != nil && task == in.Task.Name {
				b.networkResource("", n)
			}
			b.networkResource(task, n)
		}
	}
}

func (b *builder) networkResource(task string, n *structs.NetworkResource) {
	for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
		inner := p.To
		if inner <= 0 {
			inner = p.Value
		}
		b.port(task, p.Label, n.IP, p.Value, inner)
	}
}

// port sets the variables of one port. NOMAD_PORT is the one to bind to, NOMAD_HOST_PORT the one of the host.
func (b *builder) port(task, label, ip string, host, inner int) {
	if label == "" {
		return
	}
	name := cleanName(label)
	if task != "" {
		name = cleanName(task) + "_" + name
	}
	b.set("NOMAD_IP_"+name, ip)
	b.set("NOMAD_PORT_"+name, strconv.Itoa(inner))
	b.set("NOMAD_ADDR_"+name, net.JoinHostPort(ip, strconv.Itoa(host)))
	b.set("NOMAD_HOST_IP_"+name, ip)
	b.set("NOMAD_HOST_PORT_"+name, strconv.Itoa(host))
	b.set("NOMAD_HOST_ADDR_"+name, net.JoinHostPort(ip, strconv.Itoa(host)))
}

// cleanName replaces what may not stand in the name of a variable that we make.
func cleanName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '.' || (r >= '0' && r <= '9') || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, s)
}

// cleanEnvName keeps names of the job's own as they are, except for dashes and what cannot stand in an environment.
func cleanEnvName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '=' || r == 0 {
			return '_'
		}
		return r
	}, s)
}
