package structs

// LookupTaskGroup gives the group of that name, nil when there is none (or no job).
func (j *Job) LookupTaskGroup(name string) *TaskGroup {
	if j == nil {
		return nil
	}
	for _, tg := range j.TaskGroups {
		if Val(tg.Name) == name {
			return tg
		}
	}
	return nil
}

// LookupTask gives the task of that name, nil when there is none (or no group).
func (tg *TaskGroup) LookupTask(name string) *Task {
	if tg == nil {
		return nil
	}
	for _, t := range tg.Tasks {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Stopped says that nothing of the job should run: it was stopped, or is gone.
func (j *Job) Stopped() bool { return j == nil || j.Stop }

// IsPeriodic says whether the job starts children by a schedule.
func (j *Job) IsPeriodic() bool { return j.Periodic != nil }

// IsPeriodicActive says whether the job's schedule starts children now.
func (j *Job) IsPeriodicActive() bool {
	return j.Periodic != nil && Val(j.Periodic.Enabled) && !j.Stop && !j.IsParameterized()
}

// IsParameterized says whether the job is a template for dispatched children.
func (j *Job) IsParameterized() bool { return j.ParameterizedJob != nil && !j.Dispatched }

// IsMultiregion says whether the job names regions.
func (j *Job) IsMultiregion() bool { return j.Multiregion != nil && len(j.Multiregion.Regions) > 0 }

// HasOwnAllocations says whether an evaluation of this job can place something: neither a periodic nor a
// parameterized parent does.
func (j *Job) HasOwnAllocations() bool { return !j.IsPeriodic() && !j.IsParameterized() }

// Stub is the job as lists show it. Meta is left out; a list that was asked for it sets it.
func (j *Job) Stub(summary *JobSummary) *JobListStub {
	return &JobListStub{
		ID:                Val(j.ID),
		ParentID:          j.ParentID,
		Name:              Val(j.Name),
		Namespace:         Val(j.Namespace),
		Datacenters:       j.Datacenters,
		Type:              Val(j.Type),
		Priority:          Val(j.Priority),
		Periodic:          j.IsPeriodic(),
		ParameterizedJob:  j.IsParameterized(),
		Stop:              j.Stop,
		Status:            j.Status,
		StatusDescription: j.StatusDescription,
		JobSummary:        summary,
		CreateIndex:       j.CreateIndex,
		ModifyIndex:       j.ModifyIndex,
		JobModifyIndex:    j.JobModifyIndex,
		SubmitTime:        j.SubmitTime,
	}
}
