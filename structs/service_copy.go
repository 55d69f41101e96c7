package structs

import (
	"maps"
	"slices"
)

// Copy gives a deep copy, nil for nil.
func (s *Service) Copy() *Service {
	if s == nil {
		return nil
	}
	out := *s
	out.Tags = slices.Clone(s.Tags)
	out.CanaryTags = slices.Clone(s.CanaryTags)
	out.Checks = copyValues(s.Checks, (*ServiceCheck).Copy)
	out.CheckRestart = s.CheckRestart.Copy()
	out.Connect = s.Connect.Copy()
	out.Meta = maps.Clone(s.Meta)
	out.CanaryMeta = maps.Clone(s.CanaryMeta)
	out.TaggedAddresses = maps.Clone(s.TaggedAddresses)
	out.Identity = s.Identity.Copy()
	out.Weights = s.Weights.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (s *ServiceCheck) Copy() *ServiceCheck {
	if s == nil {
		return nil
	}
	out := *s
	out.Args = slices.Clone(s.Args)
	out.Header = copyLists(s.Header)
	out.CheckRestart = s.CheckRestart.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *CheckRestart) Copy() *CheckRestart {
	if c == nil {
		return nil
	}
	out := *c
	out.Grace = copyPtr(c.Grace)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (s *ServiceWeights) Copy() *ServiceWeights {
	if s == nil {
		return nil
	}
	out := *s
	return &out
}
