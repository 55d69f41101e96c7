package structs

// JobAction is an action of a job as the API lists it. Its command is in the job.
type JobAction struct {
	Name          string
	TaskGroupName string
	TaskName      string
}

// ListActions gives the actions of all tasks, in the job's order.
func (j *Job) ListActions() []*JobAction {
	out := []*JobAction{}
	for _, tg := range j.TaskGroups {
		for _, t := range tg.Tasks {
			for _, a := range t.Actions {
				out = append(out, &JobAction{Name: a.Name, TaskGroupName: Val(tg.Name), TaskName: t.Name})
			}
		}
	}
	return out
}
