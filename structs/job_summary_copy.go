package structs

import "maps"

// Copy gives a deep copy, nil for nil.
func (j *JobSummary) Copy() *JobSummary {
	if j == nil {
		return nil
	}
	out := *j
	out.Summary = maps.Clone(j.Summary)
	out.Children = j.Children.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (j *JobChildrenSummary) Copy() *JobChildrenSummary {
	if j == nil {
		return nil
	}
	out := *j
	return &out
}
