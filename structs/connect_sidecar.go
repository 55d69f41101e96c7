package structs

import (
	"maps"
	"slices"
	"time"
)

// Kinds of tasks that belong to a Connect service, followed by ":" and the service's name.
const (
	TaskKindConnectProxy  = "connect-proxy"
	TaskKindConnectNative = "connect-native"
)

func (c *ConsulConnect) setDefaults() {
	if t := c.SidecarTask; t != nil {
		dropNil(&t.VolumeMounts)
		dropNil(&t.Identities)
	}
	if c.SidecarService == nil || c.SidecarService.Proxy == nil {
		return
	}
	p := c.SidecarService.Proxy
	if p.Expose == nil {
		p.Expose = p.ExposeConfig // an older name
	}
	p.ExposeConfig = nil
	dropNil(&p.Upstreams)
	for _, u := range p.Upstreams {
		if u.MeshGateway == nil {
			u.MeshGateway = &ConsulMeshGateway{}
		}
	}
}

// addConnectTasks adds what a Connect service stands for: the proxy's port and its task beside the group's own, or
// for a native service the mark on the task that speaks Connect itself.
func (tg *TaskGroup) addConnectTasks(j *Job) {
	for _, s := range tg.Services {
		switch {
		case s.Connect == nil:
		case s.Connect.Native:
			tg.markNative(s)
		case s.Connect.SidecarService != nil && len(tg.Networks) > 0:
			tg.addSidecar(j, s)
		}
	}
}

// markNative finds the task of a native service: the only one, unless the service names one.
func (tg *TaskGroup) markNative(s *Service) {
	if s.TaskName == "" && len(tg.Tasks) == 1 {
		s.TaskName = tg.Tasks[0].Name
	}
	if t := tg.LookupTask(s.TaskName); t != nil && t.Kind == "" {
		t.Kind = TaskKindConnectNative + ":" + s.Name
	}
}

func (tg *TaskGroup) addSidecar(j *Job, s *Service) {
	name := TaskKindConnectProxy + "-" + s.Name
	kind := TaskKindConnectProxy + ":" + s.Name
	if s.Connect.SidecarService.Port == "" {
		ports := &tg.Networks[0].DynamicPorts
		if !slices.ContainsFunc(*ports, func(p Port) bool { return p.Label == name }) {
			*ports = append(*ports, Port{Label: name, To: -1, HostNetwork: defaultHostNetwork})
		}
	}
	if slices.ContainsFunc(tg.Tasks, func(t *Task) bool { return t.Kind == kind }) {
		return
	}
	task := &Task{
		Name:   name,
		Kind:   kind,
		Driver: "docker",
		Config: map[string]any{
			"image": "${meta.connect.sidecar_image}",
			"args": []any{
				"-c", "${NOMAD_SECRETS_DIR}/envoy_bootstrap.json", "-l", "${meta.connect.log_level}",
				"--concurrency", "${meta.connect.proxy_concurrency}", "--disable-hot-restart",
			},
		},
		Lifecycle:     &TaskLifecycle{Hook: TaskLifecyclePrestart, Sidecar: true},
		LogConfig:     &LogConfig{MaxFiles: Ptr(2), MaxFileSizeMB: Ptr(2)},
		Resources:     &Resources{CPU: Ptr(250), MemoryMB: Ptr(128)},
		ShutdownDelay: 5 * time.Second,
		Constraints: []*Constraint{
			{LTarget: "${attr.consul.version}", Operand: ConstraintSemver, RTarget: ">= 1.8.0"},
			{LTarget: "${attr.consul.grpc}", Operand: ">", RTarget: "0"},
		},
	}
	s.Connect.SidecarTask.applyTo(task)
	tg.Tasks = append(tg.Tasks, task)
	task.setDefaults(j, tg)
}

// applyTo overrides the proxy's task with what the job says about it.
func (s *SidecarTask) applyTo(t *Task) {
	if s == nil {
		return
	}
	if s.Driver != "" && s.Driver != t.Driver {
		t.Driver = s.Driver
		t.Config = nil // it was meant for the other driver
	}
	if s.Config != nil {
		t.Config = copyAnyMap(s.Config)
	}
	for _, f := range []struct {
		to   *string
		from string
	}{{&t.Name, s.Name}, {&t.User, s.User}, {&t.KillSignal, s.KillSignal}} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	if s.Env != nil {
		t.Env = maps.Clone(s.Env)
	}
	if s.Meta != nil {
		t.Meta = maps.Clone(s.Meta)
	}
	if s.Resources != nil {
		base := t.Resources
		t.Resources = s.Resources.Copy()
		inherit(&t.Resources.MemoryMB, base.MemoryMB)
		if Val(t.Resources.Cores) == 0 {
			inherit(&t.Resources.CPU, base.CPU)
		}
	}
	if s.LogConfig != nil {
		base := t.LogConfig
		t.LogConfig = s.LogConfig.Copy()
		inherit(&t.LogConfig.MaxFiles, base.MaxFiles)
		inherit(&t.LogConfig.MaxFileSizeMB, base.MaxFileSizeMB)
	}
	if s.ShutdownDelay != nil {
		t.ShutdownDelay = *s.ShutdownDelay
	}
	inherit(&t.KillTimeout, s.KillTimeout)
	t.VolumeMounts = append(t.VolumeMounts, copySlice(s.VolumeMounts)...)
	t.Identities = append(t.Identities, copySlice(s.Identities)...)
}
