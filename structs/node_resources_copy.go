package structs

import "slices"

// Copy gives a deep copy, nil for nil.
func (n *NodeResources) Copy() *NodeResources {
	if n == nil {
		return nil
	}
	out := *n
	out.Cpu = *n.Cpu.Copy()
	out.Networks = copySlice(n.Networks)
	out.Devices = copySlice(n.Devices)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NodeCpuResources) Copy() *NodeCpuResources {
	if n == nil {
		return nil
	}
	out := *n
	out.ReservableCpuCores = slices.Clone(n.ReservableCpuCores)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NodeReservedResources) Copy() *NodeReservedResources {
	if n == nil {
		return nil
	}
	out := *n
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NodeDeviceResource) Copy() *NodeDeviceResource {
	if n == nil {
		return nil
	}
	out := *n
	out.Instances = copySlice(n.Instances)
	out.Attributes = copyMap(n.Attributes)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NodeDevice) Copy() *NodeDevice {
	if n == nil {
		return nil
	}
	out := *n
	out.Locality = n.Locality.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NodeDeviceLocality) Copy() *NodeDeviceLocality {
	if n == nil {
		return nil
	}
	out := *n
	return &out
}

// Copy gives a deep copy, nil for nil.
func (a *Attribute) Copy() *Attribute {
	if a == nil {
		return nil
	}
	out := *a
	out.Float = copyPtr(a.Float)
	out.Int = copyPtr(a.Int)
	out.String = copyPtr(a.String)
	out.Bool = copyPtr(a.Bool)
	return &out
}
