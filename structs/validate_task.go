package structs

import (
	"encoding/hex"
	"path"
	"strconv"
	"strings"
)

const (
	minMemoryMB = 10
	maxTaskName = 200 // bytes
)

func (t *Task) validate(s scope, j *Job, tg *TaskGroup) {
	jobType := Val(j.Type)
	if t.Name == "" {
		s.addf("name is missing")
	}
	if strings.ContainsAny(t.Name, "/\\\x00") {
		s.addf("name must not hold slashes or null characters")
	}
	switch { // a task's directory and its log files are called by its name
	case t.Name == "." || t.Name == ".." || t.Name == "alloc":
		s.addf("name %q cannot be that of a directory beside alloc", t.Name)
	case len(t.Name) > maxTaskName:
		s.addf("name has more than %d bytes", maxTaskName)
	}
	if t.Driver == "" {
		s.addf("driver is missing")
	}
	s.notNegative("kill_timeout", Val(t.KillTimeout))
	s.notNegative("shutdown_delay", t.ShutdownDelay)
	if t.Resources != nil {
		t.Resources.validate(s.in("resources"))
	}
	validateConstraints(s, t.Constraints, placeTask)
	validateAffinities(s, t.Affinities, jobType)
	if t.RestartPolicy != nil && !t.RestartPolicy.same(tg.RestartPolicy) {
		t.RestartPolicy.validate(s.in("restart"))
	}
	if t.LogConfig != nil {
		t.LogConfig.validate(s.in("logs"), tg.EphemeralDisk)
	}
	if t.Lifecycle != nil {
		s.in("lifecycle").oneOf("hook", t.Lifecycle.Hook, TaskLifecyclePrestart, TaskLifecyclePoststart, TaskLifecyclePoststop)
	}
	t.validateTemplates(s)
	for i, a := range t.Artifacts {
		a.validate(s.in("artifact %d", i+1))
	}
	for _, svc := range t.Services {
		svc.validate(s.in("service %q", svc.Name), tg, t)
	}
	t.validateMounts(s, tg)
	t.validateNamed(s)
	for _, p := range t.ScalingPolicies {
		p.validateBounds(s.in("scaling"))
	}
	if t.Vault != nil {
		s.addf("vault: Vault is not enabled on the servers")
	}
	if t.Schedule != nil {
		s.addf("schedule: schedules of tasks are not part of the community edition")
	}
	if c := t.CSIPluginConfig; c != nil {
		s.in("csi_plugin").oneOf("type", c.Type, "node", "controller", "monolith")
		if c.ID == "" {
			s.addf("csi_plugin: id is missing")
		}
	}
	if d := t.DispatchPayload; d != nil {
		if d.File == "" {
			s.addf("dispatch_payload: file is missing")
		}
		if escapesAllocDir(path.Join("local", d.File)) {
			s.addf("dispatch_payload: file %q leaves the directory of the allocation", d.File)
		}
	}
}

func (r *Resources) validate(s scope) {
	cpu, cores := Val(r.CPU), Val(r.Cores)
	switch {
	case cpu > 0 && cores > 0:
		s.addf("cpu and cores exclude each other")
	case cores < 0:
		s.addf("cores must not be negative (they are %d)", cores)
	case cores == 0 && cpu < 1:
		s.addf("cpu must be at least 1 MHz (it is %d)", cpu)
	}
	memory := Val(r.MemoryMB)
	if memory < minMemoryMB {
		s.addf("memory must be at least %d MB (it is %d)", minMemoryMB, memory)
	}
	if m := Val(r.MemoryMaxMB); m != 0 && m != -1 && m < memory {
		s.addf("memory_max (%d) must not be below memory (%d)", m, memory)
	}
	if Val(r.DiskMB) < 0 || Val(r.SecretsMB) < 0 || Val(r.IOPS) < 0 {
		s.addf("disk, secrets and iops must not be negative")
	}
	validateNetworks(s, r.Networks)
	for _, d := range r.Devices {
		s := s.in("device %q", d.Name)
		if d.Name == "" {
			s.addf("name is missing")
		}
		if Val(d.Count) < 1 {
			s.addf("count must be at least 1")
		}
		validateConstraints(s, d.Constraints, placeDevice)
		validateAffinities(s, d.Affinities, JobTypeService)
	}
	if n := r.NUMA; n != nil {
		s := s.in("numa")
		s.oneOf("affinity", n.Affinity, NUMANone, NUMAPrefer, NUMARequire)
		if n.Affinity == NUMAPrefer || n.Affinity == NUMARequire {
			s.addf("placement by NUMA node is not part of the community edition")
		}
	}
}

func (l *LogConfig) validate(s scope, disk *EphemeralDisk) {
	if Val(l.MaxFiles) < 1 {
		s.addf("max_files must be at least 1 (it is %d)", Val(l.MaxFiles))
	}
	if Val(l.MaxFileSizeMB) < 1 {
		s.addf("max_file_size must be at least 1 MB (it is %d)", Val(l.MaxFileSizeMB))
	}
	if need := Val(l.MaxFiles) * Val(l.MaxFileSizeMB); disk != nil && !Val(l.Disabled) && need >= Val(disk.SizeMB) {
		s.addf("the logs' size (%d MB) must be below that of the ephemeral disk (%d MB)", need, Val(disk.SizeMB))
	}
}

func (t *Task) validateTemplates(s scope) {
	var destinations []string
	for i, tpl := range t.Templates {
		tpl.validate(s.in("template %d", i+1))
		if d := Val(tpl.DestPath); d != "" {
			destinations = append(destinations, path.Clean(d))
		}
	}
	s.in("template").unique("destination", destinations)
}

func (t *Template) validate(s scope) {
	if Val(t.SourcePath) == "" && Val(t.EmbeddedTmpl) == "" {
		s.addf("both source and data are missing")
	}
	switch dest := Val(t.DestPath); {
	case dest == "":
		s.addf("destination is missing")
	case escapesAllocDir(dest):
		s.addf("destination %q leaves the directory of the allocation", dest)
	}
	s.oneOf("change_mode", Val(t.ChangeMode), ChangeModeNoop, ChangeModeRestart, ChangeModeSignal, ChangeModeScript)
	switch Val(t.ChangeMode) {
	case ChangeModeSignal:
		if Val(t.ChangeSignal) == "" {
			s.addf("change_signal is missing")
		}
		if Val(t.Envvars) {
			s.addf("change_mode %q cannot be used with env", ChangeModeSignal)
		}
	case ChangeModeScript:
		if t.ChangeScript == nil || Val(t.ChangeScript.Command) == "" {
			s.addf("change_script with a command is missing")
		}
	}
	s.notNegative("splay", Val(t.Splay))
	if perms := Val(t.Perms); perms != "" {
		if _, err := strconv.ParseUint(perms, 8, 12); err != nil {
			s.addf("perms %q are not an octal number", perms)
		}
	}
	if w := t.Wait; w != nil {
		s.notNegative("wait: min", Val(w.Min))
		if w.Max != nil && Val(w.Min) > *w.Max {
			s.addf("wait: min (%s) must not be above max (%s)", Val(w.Min), *w.Max)
		}
	}
}

func (a *TaskArtifact) validate(s scope) {
	if Val(a.GetterSource) == "" {
		s.addf("source is missing")
	}
	s.oneOf("mode", Val(a.GetterMode), ArtifactModeAny, ArtifactModeFile, ArtifactModeDir)
	if escapesAllocDir(Val(a.RelativeDest)) {
		s.addf("destination %q leaves the directory of the allocation", *a.RelativeDest)
	}
	sum, ok := a.GetterOptions["checksum"]
	if !ok || interpolated(sum) || strings.HasPrefix(sum, "file:") {
		return
	}
	kind, digits, _ := strings.Cut(strings.TrimSpace(sum), ":")
	length, known := map[string]int{"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64}[kind]
	if raw, err := hex.DecodeString(digits); !known || err != nil || len(raw) != length {
		s.addf("checksum %q is not TYPE:HEX with a type of md5, sha1, sha256 or sha512", sum)
	}
}

func (t *Task) validateMounts(s scope, tg *TaskGroup) {
	for i, m := range t.VolumeMounts {
		s := s.in("volume_mount %d", i+1)
		switch name := Val(m.Volume); {
		case name == "":
			s.addf("volume is missing")
		case tg.Volumes[name] == nil:
			s.addf("volume %q is not a volume of the group", name)
		}
		if Val(m.Destination) == "" {
			s.addf("destination is missing")
		}
		s.oneOf("propagation_mode", Val(m.PropagationMode), PropagationPrivate, PropagationHostToTask,
			PropagationBidirectional)
	}
}

// validateNamed checks the blocks of a task that go by a name.
func (t *Task) validateNamed(s scope) {
	var names []string
	for _, a := range t.Actions {
		names = append(names, a.Name)
		s := s.in("action %q", a.Name)
		s.words("name", a.Name)
		if a.Command == "" {
			s.addf("command is missing")
		}
	}
	s.unique("action", names)
	names = nil
	for _, secret := range t.Secrets {
		names = append(names, secret.Name)
		s := s.in("secret %q", secret.Name)
		s.words("name", secret.Name)
		if secret.Provider == "" {
			s.addf("provider is missing")
		}
		if secret.Path == "" {
			s.addf("path is missing")
		}
	}
	s.unique("secret", names)
	names = nil
	if t.Identity != nil {
		t.Identity.validate(s.in("identity"))
		names = append(names, t.Identity.Name)
	}
	for _, id := range t.Identities {
		names = append(names, id.Name)
		id.validate(s.in("identity %q", id.Name))
	}
	s.unique("identity", names)
}

func (id *WorkloadIdentity) validate(s scope) {
	s.words("name", id.Name)
	s.notNegative("ttl", id.TTL)
	s.oneOf("change_mode", id.ChangeMode, "", ChangeModeNoop, ChangeModeRestart, ChangeModeSignal)
	if id.ChangeMode == ChangeModeSignal && id.ChangeSignal == "" {
		s.addf("change_signal is missing")
	}
	if id.Filepath != "" && escapesAllocDir(path.Join("secrets", id.Filepath)) {
		s.addf("filepath %q leaves the directory of the allocation", id.Filepath)
	}
}
