package structs

import "slices"

// Copy gives a deep copy, nil for nil.
func (p *PlanAnnotations) Copy() *PlanAnnotations {
	if p == nil {
		return nil
	}
	out := *p
	out.DesiredTGUpdates = copyMap(p.DesiredTGUpdates)
	out.PreemptedAllocs = copySlice(p.PreemptedAllocs)
	if p.Reasons != nil {
		out.Reasons = make(map[string][]*PlannedUpdate, len(p.Reasons))
		for name, list := range p.Reasons {
			out.Reasons[name] = copySlice(list)
		}
	}
	return &out
}

// Copy gives a deep copy, nil for nil.
func (u *PlannedUpdate) Copy() *PlannedUpdate {
	if u == nil {
		return nil
	}
	out := *u
	out.Differs = slices.Clone(u.Differs)
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
