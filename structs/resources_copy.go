package structs

import "slices"

// Copy gives a deep copy, nil for nil.
func (r *Resources) Copy() *Resources {
	if r == nil {
		return nil
	}
	out := *r
	out.CPU = copyPtr(r.CPU)
	out.Cores = copyPtr(r.Cores)
	out.MemoryMB = copyPtr(r.MemoryMB)
	out.MemoryMaxMB = copyPtr(r.MemoryMaxMB)
	out.DiskMB = copyPtr(r.DiskMB)
	out.Networks = copySlice(r.Networks)
	out.Devices = copySlice(r.Devices)
	out.NUMA = r.NUMA.Copy()
	out.SecretsMB = copyPtr(r.SecretsMB)
	out.IOPS = copyPtr(r.IOPS)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (r *RequestedDevice) Copy() *RequestedDevice {
	if r == nil {
		return nil
	}
	out := *r
	out.Count = copyPtr(r.Count)
	out.Constraints = copySlice(r.Constraints)
	out.Affinities = copySlice(r.Affinities)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NUMAResource) Copy() *NUMAResource {
	if n == nil {
		return nil
	}
	out := *n
	out.Devices = slices.Clone(n.Devices)
	return &out
}
