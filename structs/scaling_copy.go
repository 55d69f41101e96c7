package structs

import "maps"

// Copy gives a deep copy, nil for nil.
func (s *ScalingPolicy) Copy() *ScalingPolicy {
	if s == nil {
		return nil
	}
	out := *s
	out.Min = copyPtr(s.Min)
	out.Max = copyPtr(s.Max)
	out.Policy = copyAnyMap(s.Policy)
	out.Enabled = copyPtr(s.Enabled)
	out.Target = maps.Clone(s.Target)
	return &out
}
