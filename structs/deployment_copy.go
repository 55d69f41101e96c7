package structs

import "slices"

// Copy gives a deep copy, nil for nil.
func (d *Deployment) Copy() *Deployment {
	if d == nil {
		return nil
	}
	out := *d
	out.TaskGroups = copyMap(d.TaskGroups)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (d *DeploymentState) Copy() *DeploymentState {
	if d == nil {
		return nil
	}
	out := *d
	out.PlacedCanaries = slices.Clone(d.PlacedCanaries)
	out.Pauses = slices.Clone(d.Pauses)
	return &out
}
