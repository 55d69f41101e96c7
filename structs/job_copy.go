package structs

import (
	"maps"
	"slices"
)

// Copy gives a deep copy, nil for nil.
func (j *Job) Copy() *Job {
	if j == nil {
		return nil
	}
	out := *j
	out.Region = copyPtr(j.Region)
	out.Namespace = copyPtr(j.Namespace)
	out.ID = copyPtr(j.ID)
	out.Name = copyPtr(j.Name)
	out.Type = copyPtr(j.Type)
	out.Priority = copyPtr(j.Priority)
	out.AllAtOnce = copyPtr(j.AllAtOnce)
	out.Datacenters = slices.Clone(j.Datacenters)
	out.NodePool = copyPtr(j.NodePool)
	out.Constraints = copySlice(j.Constraints)
	out.Affinities = copySlice(j.Affinities)
	out.TaskGroups = copySlice(j.TaskGroups)
	out.Update = j.Update.Copy()
	out.Multiregion = j.Multiregion.Copy()
	out.Spreads = copySlice(j.Spreads)
	out.Periodic = j.Periodic.Copy()
	out.ParameterizedJob = j.ParameterizedJob.Copy()
	out.Reschedule = j.Reschedule.Copy()
	out.Migrate = j.Migrate.Copy()
	out.Meta = maps.Clone(j.Meta)
	out.UI = j.UI.Copy()
	out.Payload = slices.Clone(j.Payload)
	out.ConsulNamespace = copyPtr(j.ConsulNamespace)
	out.VaultNamespace = copyPtr(j.VaultNamespace)
	out.VersionTag = j.VersionTag.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (j *JobUIConfig) Copy() *JobUIConfig {
	if j == nil {
		return nil
	}
	out := *j
	out.Links = copySlice(j.Links)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (j *JobUILink) Copy() *JobUILink {
	if j == nil {
		return nil
	}
	out := *j
	return &out
}

// Copy gives a deep copy, nil for nil.
func (j *JobVersionTag) Copy() *JobVersionTag {
	if j == nil {
		return nil
	}
	out := *j
	return &out
}

// Copy gives a deep copy, nil for nil.
func (p *PeriodicConfig) Copy() *PeriodicConfig {
	if p == nil {
		return nil
	}
	out := *p
	out.Enabled = copyPtr(p.Enabled)
	out.Spec = copyPtr(p.Spec)
	out.Specs = slices.Clone(p.Specs)
	out.SpecType = copyPtr(p.SpecType)
	out.ProhibitOverlap = copyPtr(p.ProhibitOverlap)
	out.TimeZone = copyPtr(p.TimeZone)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (p *ParameterizedJobConfig) Copy() *ParameterizedJobConfig {
	if p == nil {
		return nil
	}
	out := *p
	out.MetaRequired = slices.Clone(p.MetaRequired)
	out.MetaOptional = slices.Clone(p.MetaOptional)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (m *Multiregion) Copy() *Multiregion {
	if m == nil {
		return nil
	}
	out := *m
	out.Strategy = m.Strategy.Copy()
	out.Regions = copySlice(m.Regions)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (m *MultiregionStrategy) Copy() *MultiregionStrategy {
	if m == nil {
		return nil
	}
	out := *m
	out.MaxParallel = copyPtr(m.MaxParallel)
	out.OnFailure = copyPtr(m.OnFailure)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (m *MultiregionRegion) Copy() *MultiregionRegion {
	if m == nil {
		return nil
	}
	out := *m
	out.Count = copyPtr(m.Count)
	out.Datacenters = slices.Clone(m.Datacenters)
	out.Meta = maps.Clone(m.Meta)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (j *JobSubmission) Copy() *JobSubmission {
	if j == nil {
		return nil
	}
	out := *j
	out.VariableFlags = maps.Clone(j.VariableFlags)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (d *DispatchPayloadConfig) Copy() *DispatchPayloadConfig {
	if d == nil {
		return nil
	}
	out := *d
	return &out
}
