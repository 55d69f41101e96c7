package structs

import (
	"maps"
	"slices"
)

// Copy gives a deep copy, nil for nil.
func (a *AllocationMetric) Copy() *AllocationMetric {
	if a == nil {
		return nil
	}
	out := *a
	out.NodesAvailable = maps.Clone(a.NodesAvailable)
	out.ClassFiltered = maps.Clone(a.ClassFiltered)
	out.ConstraintFiltered = maps.Clone(a.ConstraintFiltered)
	out.ClassExhausted = maps.Clone(a.ClassExhausted)
	out.DimensionExhausted = maps.Clone(a.DimensionExhausted)
	out.QuotaExhausted = slices.Clone(a.QuotaExhausted)
	out.ResourcesExhausted = copyMap(a.ResourcesExhausted)
	out.Missing = maps.Clone(a.Missing)
	out.Scores = maps.Clone(a.Scores)
	out.ScoreMetaData = copySlice(a.ScoreMetaData)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (n *NodeScoreMeta) Copy() *NodeScoreMeta {
	if n == nil {
		return nil
	}
	out := *n
	out.Scores = maps.Clone(n.Scores)
	return &out
}
