package structs

// Copy gives a deep copy, nil for nil.
func (s *SchedulerConfiguration) Copy() *SchedulerConfiguration {
	if s == nil {
		return nil
	}
	out := *s
	return &out
}
