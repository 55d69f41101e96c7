package structs

import (
	"maps"
	"slices"
)

// Copy gives a deep copy, nil for nil.
func (t *TaskGroup) Copy() *TaskGroup {
	if t == nil {
		return nil
	}
	out := *t
	out.Name = copyPtr(t.Name)
	out.Count = copyPtr(t.Count)
	out.Constraints = copySlice(t.Constraints)
	out.Affinities = copySlice(t.Affinities)
	out.Tasks = copySlice(t.Tasks)
	out.Spreads = copySlice(t.Spreads)
	out.Volumes = copyMap(t.Volumes)
	out.RestartPolicy = t.RestartPolicy.Copy()
	out.Disconnect = t.Disconnect.Copy()
	out.ReschedulePolicy = t.ReschedulePolicy.Copy()
	out.EphemeralDisk = t.EphemeralDisk.Copy()
	out.Update = t.Update.Copy()
	out.Migrate = t.Migrate.Copy()
	out.Networks = copySlice(t.Networks)
	out.Meta = maps.Clone(t.Meta)
	out.Services = copySlice(t.Services)
	out.ShutdownDelay = copyPtr(t.ShutdownDelay)
	out.MaxRunDuration = copyPtr(t.MaxRunDuration)
	out.StopAfterClientDisconnect = copyPtr(t.StopAfterClientDisconnect)
	out.MaxClientDisconnect = copyPtr(t.MaxClientDisconnect)
	out.Scaling = t.Scaling.Copy()
	out.Consul = t.Consul.Copy()
	out.PreventRescheduleOnLost = copyPtr(t.PreventRescheduleOnLost)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (e *EphemeralDisk) Copy() *EphemeralDisk {
	if e == nil {
		return nil
	}
	out := *e
	out.Sticky = copyPtr(e.Sticky)
	out.Migrate = copyPtr(e.Migrate)
	out.SizeMB = copyPtr(e.SizeMB)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (r *RestartPolicy) Copy() *RestartPolicy {
	if r == nil {
		return nil
	}
	out := *r
	out.Interval = copyPtr(r.Interval)
	out.Attempts = copyPtr(r.Attempts)
	out.Delay = copyPtr(r.Delay)
	out.Mode = copyPtr(r.Mode)
	out.RenderTemplates = copyPtr(r.RenderTemplates)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (r *ReschedulePolicy) Copy() *ReschedulePolicy {
	if r == nil {
		return nil
	}
	out := *r
	out.Attempts = copyPtr(r.Attempts)
	out.Interval = copyPtr(r.Interval)
	out.Delay = copyPtr(r.Delay)
	out.DelayFunction = copyPtr(r.DelayFunction)
	out.MaxDelay = copyPtr(r.MaxDelay)
	out.Unlimited = copyPtr(r.Unlimited)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (m *MigrateStrategy) Copy() *MigrateStrategy {
	if m == nil {
		return nil
	}
	out := *m
	out.MaxParallel = copyPtr(m.MaxParallel)
	out.HealthCheck = copyPtr(m.HealthCheck)
	out.MinHealthyTime = copyPtr(m.MinHealthyTime)
	out.HealthyDeadline = copyPtr(m.HealthyDeadline)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (u *UpdateStrategy) Copy() *UpdateStrategy {
	if u == nil {
		return nil
	}
	out := *u
	out.Stagger = copyPtr(u.Stagger)
	out.MaxParallel = copyPtr(u.MaxParallel)
	out.HealthCheck = copyPtr(u.HealthCheck)
	out.MinHealthyTime = copyPtr(u.MinHealthyTime)
	out.HealthyDeadline = copyPtr(u.HealthyDeadline)
	out.ProgressDeadline = copyPtr(u.ProgressDeadline)
	out.Canary = copyPtr(u.Canary)
	out.AutoRevert = copyPtr(u.AutoRevert)
	out.AutoPromote = copyPtr(u.AutoPromote)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (d *DisconnectStrategy) Copy() *DisconnectStrategy {
	if d == nil {
		return nil
	}
	out := *d
	out.LostAfter = copyPtr(d.LostAfter)
	out.StopOnClientAfter = copyPtr(d.StopOnClientAfter)
	out.Replace = copyPtr(d.Replace)
	out.Reconcile = copyPtr(d.Reconcile)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (v *VolumeRequest) Copy() *VolumeRequest {
	if v == nil {
		return nil
	}
	out := *v
	out.MountOptions = v.MountOptions.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *CSIMountOptions) Copy() *CSIMountOptions {
	if c == nil {
		return nil
	}
	out := *c
	out.MountFlags = slices.Clone(c.MountFlags)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *Consul) Copy() *Consul {
	if c == nil {
		return nil
	}
	out := *c
	return &out
}
