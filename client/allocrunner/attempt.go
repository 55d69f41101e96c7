package allocrunner

import "github.com/nomadlite/nomadlite/client/taskrunner"

// Attempt says whether this attempt of a task is the one that the allocation's record tells of, and not over.
func (r *Runner) Attempt(task string, attempt uint64) bool {
	t := r.find(task)
	if t == nil {
		return false
	}
	v := t.runner.View()
	return v.Attempt == attempt && v.Phase != taskrunner.Dead
}
