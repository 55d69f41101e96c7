package structs

import "slices"

// Copy gives a deep copy, nil for nil.
func (a *AllocatedResources) Copy() *AllocatedResources {
	if a == nil {
		return nil
	}
	out := *a
	out.Tasks = copyMap(a.Tasks)
	out.Shared = *a.Shared.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (a *AllocatedTaskResources) Copy() *AllocatedTaskResources {
	if a == nil {
		return nil
	}
	out := *a
	out.Cpu = *a.Cpu.Copy()
	out.Networks = copySlice(a.Networks)
	out.Devices = copySlice(a.Devices)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (a *AllocatedSharedResources) Copy() *AllocatedSharedResources {
	if a == nil {
		return nil
	}
	out := *a
	out.Networks = copySlice(a.Networks)
	out.Ports = slices.Clone(a.Ports)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (a *AllocatedCpuResources) Copy() *AllocatedCpuResources {
	if a == nil {
		return nil
	}
	out := *a
	out.ReservedCores = slices.Clone(a.ReservedCores)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (a *AllocatedDeviceResource) Copy() *AllocatedDeviceResource {
	if a == nil {
		return nil
	}
	out := *a
	out.DeviceIDs = slices.Clone(a.DeviceIDs)
	return &out
}
