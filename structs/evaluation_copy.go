package structs

import (
	"maps"
	"slices"
)

// Copy gives a deep copy, nil for nil.
func (e *Evaluation) Copy() *Evaluation {
	if e == nil {
		return nil
	}
	out := *e
	out.RelatedEvals = copySlice(e.RelatedEvals)
	out.FailedTGAllocs = copyMap(e.FailedTGAllocs)
	out.PlanAnnotations = e.PlanAnnotations.Copy()
	out.ClassEligibility = maps.Clone(e.ClassEligibility)
	out.MissingNonNodeResources = slices.Clone(e.MissingNonNodeResources)
	out.QueuedAllocations = maps.Clone(e.QueuedAllocations)
	out.KillTimeout = copyPtr(e.KillTimeout)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (e *EvaluationStub) Copy() *EvaluationStub {
	if e == nil {
		return nil
	}
	out := *e
	return &out
}
