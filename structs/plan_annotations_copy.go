package structs

// Copy gives a deep copy, nil for nil.
func (p *PlanAnnotations) Copy() *PlanAnnotations {
	if p == nil {
		return nil
	}
	out := *p
	out.DesiredTGUpdates = copyMap(p.DesiredTGUpdates)
	out.PreemptedAllocs = copySlice(p.PreemptedAllocs)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (d *DesiredUpdates) Copy() *DesiredUpdates {
	if d == nil {
		return nil
	}
	out := *d
	return &out
}
