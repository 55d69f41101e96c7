package hook

import (
	"context"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/structs"
)

// Hook is what all hooks have: a name, unique in its list, which errors and traces carry.
type Hook interface{ Name() string }

// Point is a moment in the life of an allocation or a task.
type Point string

// The points of an allocation, then those of a task. Prestop and PreKill are points of both.
const (
	Prerun   Point = "prerun"
	Update   Point = "update"
	Prestop  Point = "prestop"
	PreKill  Point = "prekill"
	Resume   Point = "resume"
	Postrun  Point = "postrun"
	Destroy  Point = "destroy"
	Shutdown Point = "shutdown"

	Prestart  Point = "prestart"
	Poststart Point = "poststart"
	Reattach  Point = "reattach"
	Exited    Point = "exited"
	Stop      Point = "stop"
)

// AllocRequest is what a hook of an allocation gets. Alloc is shared and must not be changed.
type AllocRequest struct {
	Alloc *structs.Allocation
	// Attempt is 1 for the first life of the tasks; each restart of the whole allocation begins another.
	Attempt uint64
	// NoShutdownDelay says that the stop or restart under way is one that was asked to skip its delays.
	NoShutdownDelay bool
	// Data is what this hook kept earlier.
	Data map[string]string
}

// AllocResponse is a hook's answer. Data, when not nil, replaces what is kept for it.
type AllocResponse struct {
	Data map[string]string
}

// The interfaces of an allocation's hooks.
type (
	// AllocPrerunner runs before any task; an error fails the allocation.
	AllocPrerunner interface {
		Prerun(context.Context, *AllocRequest, *AllocResponse) error
	}
	// AllocUpdater learns of an in-place update.
	AllocUpdater interface {
		Update(context.Context, *AllocRequest, *AllocResponse) error
	}
	// AllocPrestopper runs first of all when the allocation is to stop or to be restarted, with and without delays.
	AllocPrestopper interface {
		Prestop(context.Context, *AllocRequest, *AllocResponse) error
	}
	// AllocPreKiller runs before the group's shutdown_delay: services leave discovery here.
	AllocPreKiller interface {
		PreKill(context.Context, *AllocRequest, *AllocResponse) error
	}
	// AllocResumer runs when all tasks have ended for a restart, before any is started again: what PreKill took away
	// comes back. An error fails the allocation.
	AllocResumer interface {
		Resume(context.Context, *AllocRequest, *AllocResponse) error
	}
	// AllocPostrunner runs after all tasks have ended.
	AllocPostrunner interface {
		Postrun(context.Context, *AllocRequest, *AllocResponse) error
	}
	// AllocDestroyer removes what is left on the node when the allocation is garbage collected.
	AllocDestroyer interface {
		Destroy(context.Context, *AllocRequest, *AllocResponse) error
	}
	// AllocShutdowner runs when the agent shuts down and the allocation goes on.
	AllocShutdowner interface {
		Shutdown(context.Context, *AllocRequest, *AllocResponse) error
	}
)

// TaskRequest is what a hook of a task gets. Alloc and Task are shared and must not be changed.
type TaskRequest struct {
	Alloc           *structs.Allocation
	Task            *structs.Task
	Attempt         uint64 // 1 for the first start of the task
	NoShutdownDelay bool
	Handle          *driver.Handle     // from Poststart on
	Exit            *driver.ExitResult // in Exited and Stop, when the task ran
	Data            map[string]string
	// Control is what the hook may ask of the task, during the call and until its Stop.
	Control TaskControl
}

// TaskControl is what a hook may ask of its task while that lives. Its calls may come from any goroutine.
type TaskControl interface {
	// Restart brings the running task down in the order of a stop and starts it again; an error when it does not run.
	Restart(reason string) error
	// Signal sends a signal to the running process; an error when there is none.
	Signal(ctx context.Context, signal, reason string) error
	// Exec runs a command beside the task's process, and gives its exit code and what it wrote first.
	Exec(ctx context.Context, command []string) (code int, output string, err error)
	// Fail ends the task for good, as failed.
	Fail(reason string)
	// Emit appends to the task's events.
	Emit(events ...*structs.TaskEvent)
}

// TaskResponse is a hook's answer.
type TaskResponse struct {
	Data map[string]string
	// Env is added to the task's environment (Prestart only); it is kept with the hook's data.
	Env map[string]string
	// Once says that the point need not be run again for later attempts.
	Once bool
	// Events are appended to the task's events.
	Events []*structs.TaskEvent
}

// The interfaces of a task's hooks.
type (
	// TaskPrestarter runs before each start of the task; an error counts as a failed start. Errors that wrap
	// driver.ErrUnrecoverable fail the task at once.
	TaskPrestarter interface {
		Prestart(context.Context, *TaskRequest, *TaskResponse) error
	}
	// TaskPoststarter runs once the task runs.
	TaskPoststarter interface {
		Poststart(context.Context, *TaskRequest, *TaskResponse) error
	}
	// TaskReattacher runs when a restarted agent has taken the running task over.
	TaskReattacher interface {
		Reattach(context.Context, *TaskRequest, *TaskResponse) error
	}
	// TaskPrestopper runs when the allocation is to stop or to be restarted, before any of its services leave discovery.
	TaskPrestopper interface {
		Prestop(context.Context, *TaskRequest, *TaskResponse) error
	}
	// TaskPreKiller runs before the task's shutdown_delay: its services leave discovery here.
	TaskPreKiller interface {
		PreKill(context.Context, *TaskRequest, *TaskResponse) error
	}
	// TaskExiter runs after each end of the task's process.
	TaskExiter interface {
		Exited(context.Context, *TaskRequest, *TaskResponse) error
	}
	// TaskStopper runs once, when the task will not be started again.
	TaskStopper interface {
		Stop(context.Context, *TaskRequest, *TaskResponse) error
	}
	// TaskUpdater learns of an in-place update.
	TaskUpdater interface {
		Update(context.Context, *TaskRequest, *TaskResponse) error
	}
)
