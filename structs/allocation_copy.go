package structs

import (
	"maps"
	"slices"
)

// Copy gives a deep copy. Job is shared: it points at an immutable row.
func (a *Allocation) Copy() *Allocation {
	if a == nil {
		return nil
	}
	out := *a
	out.Resources = a.Resources.Copy()
	out.TaskResources = copyMap(a.TaskResources)
	out.AllocatedResources = a.AllocatedResources.Copy()
	out.Services = maps.Clone(a.Services)
	out.Metrics = a.Metrics.Copy()
	out.DesiredTransition = *a.DesiredTransition.Copy()
	out.TaskStates = copyMap(a.TaskStates)
	out.DeploymentStatus = a.DeploymentStatus.Copy()
	out.RescheduleTracker = a.RescheduleTracker.Copy()
	out.NetworkStatus = a.NetworkStatus.Copy()
	out.PreemptedAllocations = slices.Clone(a.PreemptedAllocations)
	out.Awaits, out.AwaitedBy = slices.Clone(a.Awaits), slices.Clone(a.AwaitedBy)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (a *AllocationListStub) Copy() *AllocationListStub {
	if a == nil {
		return nil
	}
	out := *a
	out.AllocatedResources = a.AllocatedResources.Copy()
	out.TaskStates = copyMap(a.TaskStates)
	out.DeploymentStatus = a.DeploymentStatus.Copy()
	out.RescheduleTracker = a.RescheduleTracker.Copy()
	out.PreemptedAllocations = slices.Clone(a.PreemptedAllocations)
	out.Condition = copyPtr(a.Condition)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (d *DesiredTransition) Copy() *DesiredTransition {
	if d == nil {
		return nil
	}
	out := *d
	out.Migrate = copyPtr(d.Migrate)
	out.Reschedule = copyPtr(d.Reschedule)
	out.ForceReschedule = copyPtr(d.ForceReschedule)
	out.NoShutdownDelay = copyPtr(d.NoShutdownDelay)
	out.MigrateDisablePlacement = copyPtr(d.MigrateDisablePlacement)
	out.KillTimeout = copyPtr(d.KillTimeout)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (a *AllocDeploymentStatus) Copy() *AllocDeploymentStatus {
	if a == nil {
		return nil
	}
	out := *a
	out.Healthy = copyPtr(a.Healthy)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (a *AllocNetworkStatus) Copy() *AllocNetworkStatus {
	if a == nil {
		return nil
	}
	out := *a
	out.DNS = a.DNS.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (r *RescheduleTracker) Copy() *RescheduleTracker {
	if r == nil {
		return nil
	}
	out := *r
	out.Events = copySlice(r.Events)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (r *RescheduleEvent) Copy() *RescheduleEvent {
	if r == nil {
		return nil
	}
	out := *r
	return &out
}
