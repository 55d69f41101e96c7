package structs

import "maps"

// Copy gives a deep copy, nil for nil.
func (n *Node) Copy() *Node {
	if n == nil {
		return nil
	}
	out := *n
	out.Attributes = maps.Clone(n.Attributes)
	out.Resources = n.Resources.Copy()
	out.Reserved = n.Reserved.Copy()
	out.NodeResources = n.NodeResources.Copy()
	out.ReservedResources = n.ReservedResources.Copy()
	out.Links = maps.Clone(n.Links)
	out.Meta = maps.Clone(n.Meta)
	out.DrainStrategy = n.DrainStrategy.Copy()
	out.Events = copySlice(n.Events)
	out.Drivers = copyMap(n.Drivers)
	out.HostVolumes = copyMap(n.HostVolumes)
	out.HostNetworks = copyMap(n.HostNetworks)
	out.CSIControllerPlugins = copyMap(n.CSIControllerPlugins)
	out.CSINodePlugins = copyMap(n.CSINodePlugins)
	out.LastDrain = n.LastDrain.Copy()
	out.Maintenance = n.Maintenance.Copy()
	out.Leaving = n.Leaving.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (d *DriverInfo) Copy() *DriverInfo {
	if d == nil {
		return nil
	}
	out := *d
	out.Attributes = maps.Clone(d.Attributes)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NodeEvent) Copy() *NodeEvent {
	if n == nil {
		return nil
	}
	out := *n
	out.Details = maps.Clone(n.Details)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (d *DrainStrategy) Copy() *DrainStrategy {
	if d == nil {
		return nil
	}
	out := *d
	out.KillTimeout = copyPtr(d.KillTimeout)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (d *DrainMetadata) Copy() *DrainMetadata {
	if d == nil {
		return nil
	}
	out := *d
	out.Meta = maps.Clone(d.Meta)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (h *HostVolumeInfo) Copy() *HostVolumeInfo {
	if h == nil {
		return nil
	}
	out := *h
	return &out
}

// Copy gives a deep copy, nil for nil.
func (h *HostNetworkInfo) Copy() *HostNetworkInfo {
	if h == nil {
		return nil
	}
	out := *h
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *CSIInfo) Copy() *CSIInfo {
	if c == nil {
		return nil
	}
	out := *c
	out.ControllerInfo = c.ControllerInfo.Copy()
	out.NodeInfo = c.NodeInfo.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *CSINodeInfo) Copy() *CSINodeInfo {
	if c == nil {
		return nil
	}
	out := *c
	out.AccessibleTopology = c.AccessibleTopology.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *CSIControllerInfo) Copy() *CSIControllerInfo {
	if c == nil {
		return nil
	}
	out := *c
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *CSITopology) Copy() *CSITopology {
	if c == nil {
		return nil
	}
	out := *c
	out.Segments = maps.Clone(c.Segments)
	return &out
}
