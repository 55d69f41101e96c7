package docker

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/structs"
)

// Labels of a container. Those of our own make it be found again; the others are the public ones.
const (
	labelPrefix = "nomadlite."
	labelTask   = labelPrefix + "task"
	labelLogs   = labelPrefix + "logs"

	publicPrefix = "com.hashicorp.nomad."
	labelAlloc   = publicPrefix + "alloc_id"
)

// Paths of a task's directories in its container.
const (
	allocTarget   = "/alloc"
	localTarget   = "/local"
	secretsTarget = "/secrets"
)

// logTarget is where a container's output goes; its label says it to later agents.
type logTarget struct {
	Stdout, Stderr string // FIFO paths, which name the rotated files; "" for nowhere
	MaxFiles       int
	MaxBytes       int64
}

func fileMode(m uint64) os.FileMode { return fs.FileMode(m) }

// createOptions says what container a task wants.
func (p *Plugin) createOptions(cfg *driver.TaskConfig, c *taskConfig, image string,
	share func(mhz int64) float64) (client.ContainerCreateOptions, error) {
	config, host := c.config, c.host
	config.Image, config.User, config.StopSignal = image, cfg.User, cfg.KillSignal
	for k, v := range cfg.Env {
		config.Env = append(config.Env, k+"="+v)
	}
	slices.Sort(config.Env)
	if err := p.label(cfg, &config); err != nil {
		return client.ContainerCreateOptions{}, err
	}
	if cfg.LogsDisabled || p.DisableLogCollection {
		host.LogConfig = container.LogConfig{Type: "none"}
	}
	limit(cfg, c, &host, share)
	if err := publish(cfg, c, &config, &host); err != nil {
		return client.ContainerCreateOptions{}, err
	}
	mounts, err := p.mounts(cfg, c)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	host.Mounts = mounts
	out := client.ContainerCreateOptions{Config: &config, HostConfig: &host, Name: cfg.Task + "-" + cfg.AllocID}
	if mode := host.NetworkMode; len(c.aliases) > 0 && mode.IsUserDefined() {
		out.NetworkingConfig = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
			string(mode): {Aliases: c.aliases},
		}}
	}
	return out, nil
}

func (p *Plugin) label(cfg *driver.TaskConfig, config *container.Config) error {
	labels := map[string]string{labelTask: cfg.ID, labelAlloc: cfg.AllocID}
	for k, v := range config.Labels {
		labels[k] = v
	}
	extra := map[string]string{"job_id": cfg.JobID, "job_name": cfg.JobID, "task_group_name": cfg.Group, "task_name": cfg.Task,
		"namespace": cfg.Namespace}
	for name, value := range extra {
		wanted := func(pattern string) bool { ok, err := path.Match(pattern, name); return ok && err == nil }
		if slices.ContainsFunc(p.ExtraLabels, wanted) {
			labels[publicPrefix+name] = value
		}
	}
	target := logTarget{MaxFiles: cfg.MaxLogFiles, MaxBytes: cfg.LogFileBytes}
	if !cfg.LogsDisabled && !p.DisableLogCollection {
		target.Stdout, target.Stderr = cfg.StdoutPath, cfg.StderrPath
	}
	text, err := json.Marshal(target)
	if err != nil {
		return fmt.Errorf("encode label: %w", err)
	}
	labels[labelLogs] = string(text)
	config.Labels = labels
	return nil
}

// Microseconds of the scheduler's period, and the least quota that engines take.
const (
	defaultPeriod = 100_000
	leastQuota    = 1000
)

// limit sets what the task's resources allow it. share says how many cores a number of MHz is; nil when that is not known.
func limit(cfg *driver.TaskConfig, c *taskConfig, host *container.HostConfig, share func(mhz int64) float64) {
	parent := cfg.CgroupParent
	if parent == "" {
		parent = driver.DefaultCgroupParent
	}
	host.CgroupParent = "/" + strings.TrimPrefix(parent, "/")
	r := cfg.Resources
	if r == nil {
		return
	}
	host.Memory = memoryBytes(r.Memory.MemoryMB)
	if most := max(r.Memory.MemoryMaxMB, c.hardLimitMB); most > r.Memory.MemoryMB {
		host.Memory, host.MemoryReservation = memoryBytes(most), memoryBytes(r.Memory.MemoryMB)
	} else if r.Memory.MemoryMaxMB < 0 { // no limit
		host.Memory, host.MemoryReservation = 0, memoryBytes(r.Memory.MemoryMB)
	}
	host.MemorySwap = host.Memory // no more than that with swap
	if r.Cpu.CpuShares > 0 {
		host.CPUShares = max(r.Cpu.CpuShares, 2)
	}
	if c.cpuHardLimit && share != nil && r.Cpu.CpuShares > 0 {
		if host.CPUPeriod == 0 {
			host.CPUPeriod = defaultPeriod
		}
		host.CPUQuota = max(int64(share(r.Cpu.CpuShares)*float64(host.CPUPeriod)), leastQuota)
	}
	if len(r.Cpu.ReservedCores) > 0 {
		var cores []string
		for _, n := range r.Cpu.ReservedCores {
			cores = append(cores, strconv.Itoa(int(n)))
		}
		host.CpusetCpus = strings.Join(cores, ",")
	}
}

// memoryBytes keeps above the least that engines take; 0 is no limit.
func memoryBytes(mb int64) int64 {
	const least = 6
	if mb <= 0 {
		return 0
	}
	return max(mb, least) << 20
}

// publish maps the ports that the task names.
func publish(cfg *driver.TaskConfig, c *taskConfig, config *container.Config, host *container.HostConfig) error {
	for _, label := range c.ports {
		i := slices.IndexFunc(cfg.Ports, func(m structs.PortMapping) bool { return m.Label == label })
		if i < 0 {
			return fmt.Errorf("the group's network has no port %q: %w", label, driver.ErrUnrecoverable)
		}
		if host.NetworkMode.IsHost() {
			continue
		}
		m := cfg.Ports[i]
		inside := m.To
		if inside <= 0 {
			inside = m.Value
		}
		binding := network.PortBinding{HostPort: strconv.Itoa(m.Value)}
		if m.HostIP != "" {
			addr, err := netip.ParseAddr(m.HostIP)
			if err != nil {
				return fmt.Errorf("port %q: %w", label, err)
			}
			binding.HostIP = addr
		}
		for _, proto := range []network.IPProtocol{network.TCP, network.UDP} {
			port, ok := network.PortFrom(uint16(inside), proto)
			if !ok {
				return fmt.Errorf("port %q: %d is no port", label, inside)
			}
			if config.ExposedPorts == nil {
				config.ExposedPorts, host.PortBindings = network.PortSet{}, network.PortMap{}
			}
			config.ExposedPorts[port] = struct{}{}
			host.PortBindings[port] = append(host.PortBindings[port], binding)
		}
	}
	return nil
}

// mounts are the task's own directories and what its config block wants.
func (p *Plugin) mounts(cfg *driver.TaskConfig, c *taskConfig) ([]mount.Mount, error) {
	bind := func(source, target string) mount.Mount {
		return mount.Mount{Type: mount.TypeBind, Source: source, Target: target}
	}
	out := []mount.Mount{
		bind(cfg.AllocDir, allocTarget),
		bind(filepath.Join(cfg.TaskDir, "local"), localTarget),
		bind(filepath.Join(cfg.TaskDir, "secrets"), secretsTarget),
	}
	for _, m := range c.host.Mounts {
		if m.Type == mount.TypeBind {
			source, err := p.hostPath(cfg, m.Source)
			if err != nil {
				return nil, err
			}
			m.Source = source
		}
		out = append(out, m)
	}
	for _, v := range c.volumes {
		parts := strings.SplitN(v, ":", 3)
		if len(parts) < 2 {
			return nil, fmt.Errorf("volume %q is not of the form source:target: %w", v, driver.ErrUnrecoverable)
		}
		source, err := p.hostPath(cfg, parts[0])
		if err != nil {
			return nil, err
		}
		m := bind(source, parts[1])
		if len(parts) == 3 {
			for option := range strings.SplitSeq(parts[2], ",") {
				switch option {
				case "ro":
					m.ReadOnly = true
				case "rw", "z", "Z":
				default:
					m.BindOptions = &mount.BindOptions{Propagation: mount.Propagation(option)}
				}
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// hostPath judges the source of a bind mount. A relative one lies in the task's directory, links and all, and is made
// when it is not there; others need the plugin's leave.
func (p *Plugin) hostPath(cfg *driver.TaskConfig, source string) (string, error) {
	if filepath.IsAbs(source) {
		if !p.Volumes {
			return "", fmt.Errorf("path %q of the host may not be mounted on this node (plugin block volumes): %w", source, driver.ErrUnrecoverable)
		}
		return source, nil
	}
	root, err := os.OpenRoot(cfg.TaskDir)
	if err != nil {
		return "", fmt.Errorf("open task directory: %w", err)
	}
	defer root.Close()
	// A root does not leave its directory: "..", and links that lead out, are errors of it.
	if _, err = root.Stat(source); os.IsNotExist(err) {
		err = root.MkdirAll(source, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("mount %q of the task directory: %w: %w", source, driver.ErrUnrecoverable, err)
	}
	return filepath.Join(cfg.TaskDir, source), nil
}
