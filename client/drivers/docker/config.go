package docker

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/registry"

	"github.com/nomadlite/nomadlite/structs"
)

// defaultPullTimeout is how long a pull may take where the task says nothing.
const defaultPullTimeout = 5 * time.Minute

// taskConfig is a task's config block.
type taskConfig struct {
	image, load  string
	pullTimeout  time.Duration
	forcePull    bool
	auth         *registry.AuthConfig
	config       container.Config     // what the block says of it
	host         container.HostConfig // likewise
	ports        []string
	aliases      []string
	volumes      []string
	hardLimitMB  int64
	cpuHardLimit bool
}

// parseConfig reads a config block and tells all its faults at once. Values that hold an unresolved reference are only
// checked for their type.
func (p *Plugin) parseConfig(config map[string]any) (*taskConfig, error) {
	var faults structs.Errors
	b := newBlock("", config, &faults)
	c := &taskConfig{image: b.text("image"), load: b.text("load"), pullTimeout: b.duration("image_pull_timeout", defaultPullTimeout),
		forcePull: b.yes("force_pull"), ports: b.list("ports"), aliases: b.list("network_aliases"), volumes: b.list("volumes"),
		hardLimitMB: b.number("memory_hard_limit", 0), cpuHardLimit: b.yes("cpu_hard_limit")}
	if strings.TrimSpace(c.image) == "" {
		faults.Addf("option \"image\" is missing")
	}
	for _, a := range b.blocks("auth") {
		c.auth = &registry.AuthConfig{Username: a.text("username"), Password: a.text("password"), ServerAddress: a.text("server_address")}
		a.text("email") // registries do not ask for it any more
		a.end()
	}
	p.readProcess(b, c)
	p.readHost(b, c)
	p.readLimits(b, c)
	readNetwork(b, c)
	p.readMounts(b, c)
	b.end()
	return c, faults.Err()
}

func (p *Plugin) readProcess(b *block, c *taskConfig) {
	c.config.Entrypoint = b.list("entrypoint")
	if command := b.text("command"); command != "" {
		c.config.Cmd = []string{command}
	}
	c.config.Cmd = append(c.config.Cmd, b.list("args")...)
	c.config.Tty, c.config.OpenStdin = b.yes("tty"), b.yes("interactive")
	c.config.WorkingDir, c.config.Hostname = b.text("work_dir"), b.text("hostname")
	c.config.Labels = b.table("labels")
	for name := range c.config.Labels {
		if strings.HasPrefix(name, labelPrefix) {
			b.faults.Addf("label %q is the node's own", name)
		}
	}
	for _, h := range b.blocks("healthchecks") {
		if h.yes("disable") {
			c.config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
		}
		h.end()
	}
}

func (p *Plugin) readHost(b *block, c *taskConfig) {
	h := &c.host
	h.Privileged = b.yes("privileged")
	if h.Privileged && !p.AllowPrivileged {
		b.faults.Addf("privileged containers are not allowed on this node (plugin option allow_privileged)")
	}
	caps, refused := p.capabilities(b.list("cap_add"), b.list("cap_drop"))
	if len(refused) > 0 {
		b.faults.Addf("capabilities %s are not allowed on this node (plugin option allow_caps)", strings.Join(refused, ", "))
	}
	if !h.Privileged {
		h.CapAdd, h.CapDrop = caps, []string{"all"}
	}
	h.SecurityOpt, h.ReadonlyRootfs, h.GroupAdd = b.list("security_opt"), b.yes("readonly_rootfs"), b.list("group_add")
	h.PidMode, h.IpcMode = container.PidMode(b.text("pid_mode")), container.IpcMode(b.text("ipc_mode"))
	h.UTSMode, h.UsernsMode = container.UTSMode(b.text("uts_mode")), container.UsernsMode(b.text("userns_mode"))
	if h.Runtime = b.text("runtime"); h.Runtime != "" && !slices.Contains(p.AllowRuntimes, h.Runtime) {
		b.faults.Addf("runtime %q is not allowed on this node (plugin option allow_runtimes)", h.Runtime)
	}
	h.StorageOpt, h.Sysctls = b.table("storage_opt"), b.table("sysctl")
	if b.yes("init") {
		yes := true
		h.Init = &yes
	}
	h.LogConfig = container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "100m", "max-file": "3"}}
	for _, l := range b.blocks("logging") {
		kind, driver := l.text("type"), l.text("driver")
		if kind == "" {
			kind = driver
		}
		if kind == "" {
			kind = "json-file"
		}
		h.LogConfig = container.LogConfig{Type: kind, Config: l.table("config")}
		l.end()
	}
	for _, d := range b.blocks("devices") {
		m := container.DeviceMapping{PathOnHost: d.text("host_path"), PathInContainer: d.text("container_path"),
			CgroupPermissions: d.text("cgroup_permissions")}
		d.end()
		if m.PathOnHost == "" {
			b.faults.Addf("option \"devices.host_path\" is missing")
		}
		if m.PathInContainer == "" {
			m.PathInContainer = m.PathOnHost
		}
		if m.CgroupPermissions == "" {
			m.CgroupPermissions = "rwm"
		}
		h.Devices = append(h.Devices, m)
	}
}

func (p *Plugin) readLimits(b *block, c *taskConfig) {
	h := &c.host
	h.CPUPeriod, h.CpusetCpus, h.ShmSize = b.number("cpu_cfs_period", 1000), b.text("cpuset_cpus"), b.number("shm_size", 1)
	if h.CPUPeriod > 1_000_000 {
		b.fault("cpu_cfs_period", "at most 1000000")
	}
	h.OomScoreAdj = int(b.number("oom_score_adj", 0))
	pids := b.number("pids_limit", 0)
	if p.PidsLimit > 0 && pids > p.PidsLimit {
		b.faults.Addf("option \"pids_limit\" is above the node's %d", p.PidsLimit)
	}
	if pids == 0 {
		pids = p.PidsLimit
	}
	if pids > 0 {
		h.PidsLimit = &pids
	}
	for name, value := range b.table("ulimit") {
		u := value
		if !strings.Contains(u, ":") {
			u += ":" + u
		}
		limit, err := units.ParseUlimit(name + "=" + u)
		if err != nil {
			if !unresolved(value) {
				b.faults.Addf("option \"ulimit\": %w", err)
			}
			continue
		}
		h.Ulimits = append(h.Ulimits, limit)
	}
}

func readNetwork(b *block, c *taskConfig) {
	h := &c.host
	h.NetworkMode = container.NetworkMode(b.text("network_mode"))
	h.DNSOptions, h.DNSSearch, h.ExtraHosts = b.list("dns_options"), b.list("dns_search_domains"), b.list("extra_hosts")
	for _, server := range b.list("dns_servers") {
		addr, err := netip.ParseAddr(server)
		if err != nil {
			if !unresolved(server) {
				b.faults.Addf("option \"dns_servers\": %q is no address", server)
			}
			continue
		}
		h.DNS = append(h.DNS, addr)
	}
	for _, host := range h.ExtraHosts {
		if !strings.Contains(host, ":") && !unresolved(host) {
			b.faults.Addf("option \"extra_hosts\": %q is not of the form host:address", host)
		}
	}
}

func (p *Plugin) readMounts(b *block, c *taskConfig) {
	for _, target := range b.list("tmpfs") {
		if c.host.Tmpfs == nil {
			c.host.Tmpfs = map[string]string{}
		}
		path, options, _ := strings.Cut(target, ":")
		c.host.Tmpfs[path] = options
	}
	for _, v := range c.volumes {
		if parts := strings.Split(v, ":"); (len(parts) < 2 || len(parts) > 3) && !unresolved(v) {
			b.faults.Addf("option \"volumes\": %q is not of the form source:target[:options]", v)
		}
	}
	for _, key := range []string{"mount", "mounts"} {
		for _, m := range b.blocks(key) {
			c.host.Mounts = append(c.host.Mounts, p.readMount(m))
			m.end()
		}
	}
}

func (p *Plugin) readMount(m *block) mount.Mount {
	out := mount.Mount{Type: mount.Type(m.text("type")), Source: m.text("source"), Target: m.text("target"), ReadOnly: m.yes("readonly")}
	if out.Type == "" {
		out.Type = mount.TypeVolume
	}
	if out.Target == "" {
		m.faults.Addf("option %q is missing", m.path+"target")
	}
	if !slices.Contains([]mount.Type{mount.TypeVolume, mount.TypeBind, mount.TypeTmpfs}, out.Type) {
		m.fault("type", "volume, bind or tmpfs")
	}
	for _, o := range m.blocks("bind_options") {
		out.BindOptions = &mount.BindOptions{Propagation: mount.Propagation(o.text("propagation"))}
		o.end()
	}
	for _, o := range m.blocks("tmpfs_options") {
		out.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: o.number("size", 0)}
		if mode, err := strconv.ParseUint(o.text("mode"), 8, 32); err == nil {
			out.TmpfsOptions.Mode = fileMode(mode)
		} else if o.values["mode"] != nil {
			o.fault("mode", "an octal number in quotes")
		}
		o.end()
	}
	for _, o := range m.blocks("volume_options") {
		out.VolumeOptions = &mount.VolumeOptions{NoCopy: o.yes("no_copy"), Labels: o.table("labels")}
		for _, d := range o.blocks("driver_config") {
			out.VolumeOptions.DriverConfig = &mount.Driver{Name: d.text("name"), Options: d.table("options")}
			d.end()
			if !p.Volumes { // its options can name any path of the host
				m.faults.Addf("volume drivers are not allowed on this node (plugin block volumes)")
			}
		}
		o.end()
	}
	return out
}
