package allocrunner

import "github.com/nomadlite/nomadlite/structs"

// Descriptions of what is observed, as the public interface words them.
const (
	descPending  = "No tasks have started"
	descRunning  = "Tasks are running"
	descComplete = "All tasks have completed"
	descFailed   = "Failed tasks"
)

// observe derives the status that is reported. It only moves forward: once a task has started the allocation runs
// until everything, postrun hooks included, is over; only then it is complete or failed, and its resources are free.
func observe(done bool, states map[string]*structs.TaskState) (status, description string) {
	started, failed := false, false
	for _, s := range states {
		started = started || !s.StartedAt.IsZero()
		failed = failed || s.Failed
	}
	switch {
	case done && failed:
		return structs.AllocClientStatusFailed, descFailed
	case done:
		return structs.AllocClientStatusComplete, descComplete
	case started:
		return structs.AllocClientStatusRunning, descRunning
	}
	return structs.AllocClientStatusPending, descPending
}
