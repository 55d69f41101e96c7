package structs

import (
	"maps"
	"slices"
)

// Copy gives a deep copy, nil for nil.
func (t *Task) Copy() *Task {
	if t == nil {
		return nil
	}
	out := *t
	out.Lifecycle = t.Lifecycle.Copy()
	out.Config = copyAnyMap(t.Config)
	out.Constraints = copySlice(t.Constraints)
	out.Affinities = copySlice(t.Affinities)
	out.Env = maps.Clone(t.Env)
	out.Services = copySlice(t.Services)
	out.Resources = t.Resources.Copy()
	out.RestartPolicy = t.RestartPolicy.Copy()
	out.Meta = maps.Clone(t.Meta)
	out.KillTimeout = copyPtr(t.KillTimeout)
	out.LogConfig = t.LogConfig.Copy()
	out.Artifacts = copySlice(t.Artifacts)
	out.Vault = t.Vault.Copy()
	out.Consul = t.Consul.Copy()
	out.Templates = copySlice(t.Templates)
	out.DispatchPayload = t.DispatchPayload.Copy()
	out.VolumeMounts = copySlice(t.VolumeMounts)
	out.CSIPluginConfig = t.CSIPluginConfig.Copy()
	out.ScalingPolicies = copySlice(t.ScalingPolicies)
	out.Secrets = copySlice(t.Secrets)
	out.Identity = t.Identity.Copy()
	out.Identities = copySlice(t.Identities)
	out.Actions = copySlice(t.Actions)
	out.Schedule = t.Schedule.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (t *TaskLifecycle) Copy() *TaskLifecycle {
	if t == nil {
		return nil
	}
	out := *t
	return &out
}

// Copy gives a deep copy, nil for nil.
func (l *LogConfig) Copy() *LogConfig {
	if l == nil {
		return nil
	}
	out := *l
	out.MaxFiles = copyPtr(l.MaxFiles)
	out.MaxFileSizeMB = copyPtr(l.MaxFileSizeMB)
	out.Enabled = copyPtr(l.Enabled)
	out.Disabled = copyPtr(l.Disabled)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (t *TaskArtifact) Copy() *TaskArtifact {
	if t == nil {
		return nil
	}
	out := *t
	out.GetterSource = copyPtr(t.GetterSource)
	out.GetterOptions = maps.Clone(t.GetterOptions)
	out.GetterHeaders = maps.Clone(t.GetterHeaders)
	out.GetterMode = copyPtr(t.GetterMode)
	out.GetterInsecure = copyPtr(t.GetterInsecure)
	out.RelativeDest = copyPtr(t.RelativeDest)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (t *Template) Copy() *Template {
	if t == nil {
		return nil
	}
	out := *t
	out.SourcePath = copyPtr(t.SourcePath)
	out.DestPath = copyPtr(t.DestPath)
	out.EmbeddedTmpl = copyPtr(t.EmbeddedTmpl)
	out.ChangeMode = copyPtr(t.ChangeMode)
	out.ChangeScript = t.ChangeScript.Copy()
	out.ChangeSignal = copyPtr(t.ChangeSignal)
	out.Once = copyPtr(t.Once)
	out.Splay = copyPtr(t.Splay)
	out.Perms = copyPtr(t.Perms)
	out.Uid = copyPtr(t.Uid)
	out.Gid = copyPtr(t.Gid)
	out.LeftDelim = copyPtr(t.LeftDelim)
	out.RightDelim = copyPtr(t.RightDelim)
	out.Envvars = copyPtr(t.Envvars)
	out.VaultGrace = copyPtr(t.VaultGrace)
	out.Wait = t.Wait.Copy()
	out.ErrMissingKey = copyPtr(t.ErrMissingKey)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *ChangeScript) Copy() *ChangeScript {
	if c == nil {
		return nil
	}
	out := *c
	out.Command = copyPtr(c.Command)
	out.Args = slices.Clone(c.Args)
	out.Timeout = copyPtr(c.Timeout)
	out.FailOnError = copyPtr(c.FailOnError)
	out.RunOnFirstRender = copyPtr(c.RunOnFirstRender)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (w *WaitConfig) Copy() *WaitConfig {
	if w == nil {
		return nil
	}
	out := *w
	out.Min = copyPtr(w.Min)
	out.Max = copyPtr(w.Max)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (v *Vault) Copy() *Vault {
	if v == nil {
		return nil
	}
	out := *v
	out.Policies = slices.Clone(v.Policies)
	out.Namespace = copyPtr(v.Namespace)
	out.Env = copyPtr(v.Env)
	out.DisableFile = copyPtr(v.DisableFile)
	out.ChangeMode = copyPtr(v.ChangeMode)
	out.ChangeSignal = copyPtr(v.ChangeSignal)
	out.AllowTokenExpiration = copyPtr(v.AllowTokenExpiration)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (v *VolumeMount) Copy() *VolumeMount {
	if v == nil {
		return nil
	}
	out := *v
	out.Volume = copyPtr(v.Volume)
	out.Destination = copyPtr(v.Destination)
	out.ReadOnly = copyPtr(v.ReadOnly)
	out.PropagationMode = copyPtr(v.PropagationMode)
	out.SELinuxLabel = copyPtr(v.SELinuxLabel)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (t *TaskCSIPluginConfig) Copy() *TaskCSIPluginConfig {
	if t == nil {
		return nil
	}
	out := *t
	return &out
}

// Copy gives a deep copy, nil for nil.
func (s *Secret) Copy() *Secret {
	if s == nil {
		return nil
	}
	out := *s
	out.Config = copyAnyMap(s.Config)
	out.Env = maps.Clone(s.Env)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (a *Action) Copy() *Action {
	if a == nil {
		return nil
	}
	out := *a
	out.Args = slices.Clone(a.Args)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (t *TaskSchedule) Copy() *TaskSchedule {
	if t == nil {
		return nil
	}
	out := *t
	out.Cron = t.Cron.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (t *TaskScheduleCron) Copy() *TaskScheduleCron {
	if t == nil {
		return nil
	}
	out := *t
	return &out
}

// Copy gives a deep copy, nil for nil.
func (w *WorkloadIdentity) Copy() *WorkloadIdentity {
	if w == nil {
		return nil
	}
	out := *w
	out.Audience = slices.Clone(w.Audience)
	out.ExtraClaims = slices.Clone(w.ExtraClaims)
	return &out
}
