package structs

import "maps"

// Copy gives a deep copy, nil for nil.
func (n *NodePool) Copy() *NodePool {
	if n == nil {
		return nil
	}
	out := *n
	out.Meta = maps.Clone(n.Meta)
	out.SchedulerConfiguration = n.SchedulerConfiguration.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NodePoolSchedulerConfiguration) Copy() *NodePoolSchedulerConfiguration {
	if n == nil {
		return nil
	}
	out := *n
	out.MemoryOversubscriptionEnabled = copyPtr(n.MemoryOversubscriptionEnabled)
	return &out
}
