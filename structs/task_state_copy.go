package structs

import (
	"maps"
	"slices"
)

// Copy gives a deep copy, nil for nil.
func (t *TaskState) Copy() *TaskState {
	if t == nil {
		return nil
	}
	out := *t
	out.Events = copySlice(t.Events)
	out.Packed = slices.Clone(t.Packed)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (t *TaskEvent) Copy() *TaskEvent {
	if t == nil {
		return nil
	}
	out := *t
	out.Details = maps.Clone(t.Details)
	return &out
}
