package structs

import (
	"fmt"
	"strings"
)

// setDefaults fills in a task; its job and group are filled in.
func (t *Task) setDefaults(j *Job, tg *TaskGroup) {
	setPlacementDefaults(&t.Constraints, &t.Affinities, nil)
	if t.Resources == nil {
		t.Resources = &Resources{}
	}
	t.Resources.setDefaults()
	fillPolicy(&t.RestartPolicy, tg.RestartPolicy, nil)
	if Val(t.KillTimeout) == 0 {
		t.KillTimeout = Ptr(DefaultKillTimeout)
	}
	if t.LogConfig == nil {
		t.LogConfig = &LogConfig{}
	}
	t.LogConfig.setDefaults()
	dropNil(&t.Artifacts)
	dropNil(&t.Templates)
	dropNil(&t.Services)
	dropNil(&t.VolumeMounts)
	dropNil(&t.Secrets)
	dropNil(&t.Actions)
	dropNil(&t.ScalingPolicies)
	dropNil(&t.Identities)
	for _, a := range t.Artifacts {
		a.setDefaults()
	}
	for _, tpl := range t.Templates {
		tpl.setDefaults()
	}
	t.Vault.setDefaults()
	if t.Consul != nil {
		orDefault(&t.Consul.Cluster, defaultCluster)
	}
	for _, m := range t.VolumeMounts {
		setDefault(&m.Volume, "")
		setDefault(&m.Destination, "")
		setDefault(&m.ReadOnly, false)
		setDefault(&m.PropagationMode, PropagationPrivate)
		setDefault(&m.SELinuxLabel, "")
	}
	if c := t.CSIPluginConfig; c != nil {
		orDefault(&c.MountDir, "/csi")
		orDefault(&c.StagePublishBaseDir, "/local/csi")
		if c.HealthTimeout == 0 {
			c.HealthTimeout = defaultCSIHealthTimeout
		}
	}
	for _, p := range t.ScalingPolicies {
		p.setDefaults(j, tg, t)
	}
	for _, s := range t.Services {
		s.setDefaults(j, tg, t)
	}
	t.setIdentities()
}

func (r *Resources) setDefaults() {
	setDefault(&r.Cores, 0)
	if r.CPU == nil {
		r.CPU = Ptr(DefaultCPU)
		if *r.Cores > 0 {
			r.CPU = Ptr(0) // follows from the cores that the scheduler picks
		}
	}
	setDefault(&r.MemoryMB, DefaultMemoryMB)
	setDefault(&r.MemoryMaxMB, 0)
	setDefault(&r.DiskMB, 0)
	setDefault(&r.IOPS, 0)
	setDefault(&r.SecretsMB, 0)
	dropNil(&r.Networks)
	for _, n := range r.Networks {
		n.setDefaults()
	}
	dropNil(&r.Devices)
	for _, d := range r.Devices {
		setDefault(&d.Count, 1)
		setPlacementDefaults(&d.Constraints, &d.Affinities, nil)
	}
	if r.NUMA != nil {
		orDefault(&r.NUMA.Affinity, NUMANone)
	}
}

func (l *LogConfig) setDefaults() {
	setDefault(&l.MaxFiles, DefaultLogFiles)
	setDefault(&l.MaxFileSizeMB, DefaultLogFileSizeMB)
	setDefault(&l.Disabled, false)
	l.Enabled = nil // an older name that has no effect
}

func (a *TaskArtifact) setDefaults() {
	setDefault(&a.GetterSource, "")
	setDefault(&a.GetterMode, ArtifactModeAny)
	setDefault(&a.GetterInsecure, false)
	if Val(a.RelativeDest) == "" {
		a.RelativeDest = Ptr("local/")
	}
}

func (t *Template) setDefaults() {
	setDefault(&t.SourcePath, "")
	setDefault(&t.DestPath, "")
	setDefault(&t.EmbeddedTmpl, "")
	setDefault(&t.ChangeMode, defaultChangeMode)
	setDefault(&t.ChangeSignal, "")
	t.ChangeSignal = Ptr(strings.ToUpper(*t.ChangeSignal))
	setDefault(&t.Once, false)
	setDefault(&t.Splay, defaultTemplateSplay)
	setDefault(&t.Perms, defaultTemplatePerms)
	setDefault(&t.LeftDelim, "{{")
	setDefault(&t.RightDelim, "}}")
	setDefault(&t.Envvars, false)
	setDefault(&t.VaultGrace, 0)
	setDefault(&t.ErrMissingKey, false)
	if s := t.ChangeScript; s != nil {
		setDefault(&s.Command, "")
		setDefault(&s.Timeout, defaultChangeTimeout)
		setDefault(&s.FailOnError, false)
		setDefault(&s.RunOnFirstRender, false)
	}
}

func (v *Vault) setDefaults() {
	if v == nil {
		return
	}
	orDefault(&v.Cluster, defaultCluster)
	setDefault(&v.Namespace, "")
	setDefault(&v.Env, true)
	setDefault(&v.DisableFile, false)
	setDefault(&v.ChangeMode, defaultChangeMode)
	setDefault(&v.ChangeSignal, "")
	v.ChangeSignal = Ptr(strings.ToUpper(*v.ChangeSignal))
	setDefault(&v.AllowTokenExpiration, false)
}

// setIdentities puts the identity that every task has, with the default audience, where it belongs; a jobspec may
// write it as one of the others, without a name.
func (t *Task) setIdentities() {
	others := t.Identities[:0]
	for _, id := range t.Identities {
		if t.Identity == nil && (id.Name == "" || id.Name == DefaultIdentityName) {
			t.Identity = id
			continue
		}
		others = append(others, id)
	}
	t.Identities = others
	if t.Identity == nil {
		t.Identity = &WorkloadIdentity{}
	}
	t.Identity.Name = DefaultIdentityName
	t.Identity.Audience = []string{DefaultIdentityAudience}
	for _, id := range append([]*WorkloadIdentity{t.Identity}, t.Identities...) {
		id.ChangeSignal = strings.ToUpper(id.ChangeSignal)
	}
}

// setDefaults fills in a service of a group, or with t of a task.
func (s *Service) setDefaults(j *Job, tg *TaskGroup, t *Task) {
	task := ""
	if t != nil {
		task = t.Name
		s.TaskName = task
	}
	base := *j.Name + "-" + *tg.Name
	names := []string{"${JOB}", *j.Name, "${TASKGROUP}", *tg.Name}
	if t != nil {
		base += "-" + task
		names = append(names, "${TASK}", task)
	}
	orDefault(&s.Name, base)
	// What else a name interpolates is known on the node only.
	s.Name = strings.NewReplacer(append(names, "${BASE}", base)...).Replace(s.Name)
	s.Namespace = *j.Namespace
	orDefault(&s.Provider, DefaultServiceProvider)
	orDefault(&s.Cluster, defaultCluster)
	orDefault(&s.AddressMode, AddressModeAuto)
	orDefault(&s.OnUpdate, OnUpdateRequireHealthy)
	for i := range s.Checks {
		s.Checks[i].setDefaults(s, task)
	}
	s.CheckRestart = nil // now part of each check
	if w := s.Weights; w != nil {
		w.Passing, w.Warning = max(w.Passing, 1), max(w.Warning, 1)
	}
	if s.Connect != nil {
		s.Connect.setDefaults()
	}
}

func (c *ServiceCheck) setDefaults(s *Service, task string) {
	if c.Name == "" {
		c.Name = fmt.Sprintf("service: %q check", s.Name)
	}
	orDefault(&c.OnUpdate, s.OnUpdate)
	if task != "" {
		orDefault(&c.TaskName, task)
	}
	if s.CheckRestart != nil {
		own := c.CheckRestart
		if own == nil {
			own = &CheckRestart{}
			c.CheckRestart = own
		}
		if own.Limit == 0 {
			own.Limit = s.CheckRestart.Limit
		}
		inherit(&own.Grace, s.CheckRestart.Grace)
		own.IgnoreWarnings = own.IgnoreWarnings || s.CheckRestart.IgnoreWarnings
	}
	if c.CheckRestart != nil {
		setDefault(&c.CheckRestart.Grace, defaultCheckGrace)
	}
}
