package structs

// Copy gives a deep copy, nil for nil.
func (c *Constraint) Copy() *Constraint {
	if c == nil {
		return nil
	}
	out := *c
	return &out
}

// Copy gives a deep copy, nil for nil.
func (a *Affinity) Copy() *Affinity {
	if a == nil {
		return nil
	}
	out := *a
	out.Weight = copyPtr(a.Weight)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (s *Spread) Copy() *Spread {
	if s == nil {
		return nil
	}
	out := *s
	out.Weight = copyPtr(s.Weight)
	out.SpreadTarget = copySlice(s.SpreadTarget)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (s *SpreadTarget) Copy() *SpreadTarget {
	if s == nil {
		return nil
	}
	out := *s
	return &out
}
