package allocrunner

import (
	"context"
	"errors"
	"time"

	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/structs"
)

// Reasons shown with restarts.
const (
	reasonRestartTask = "User requested task to restart"
	reasonRestartAll  = "User requested all tasks to restart"
	reasonRestartRun  = "User requested running tasks to restart"
)

// Terms of a restart that an operator asks for; they hold for that restart alone.
type Terms struct {
	NoShutdownDelay bool
	KillTimeout     *time.Duration
}

func unknownTask(name string) error {
	return structs.Errorf(structs.CodeNotFound, "unknown task %q", name)
}

func (r *Runner) find(name string) *task {
	for _, t := range r.tasks {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (r *Runner) ending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alloc.ServerTerminal() || r.leaving || r.local.Cause != NotEnding
}

// RestartTask restarts one task, which must be running.
func (r *Runner) RestartTask(name string, terms Terms) error {
	t := r.find(name)
	if t == nil {
		return unknownTask(name)
	}
	return t.runner.Restart(taskrunner.Order{
		NoShutdownDelay: terms.NoShutdownDelay, KillTimeout: terms.KillTimeout, Reason: reasonRestartTask,
	})
}

// RestartRunning restarts all tasks that run now; taskrunner.ErrNotRunning when none does.
func (r *Runner) RestartRunning(terms Terms) error {
	some := false
	for _, t := range r.tasks {
		err := t.runner.Restart(taskrunner.Order{
			NoShutdownDelay: terms.NoShutdownDelay, KillTimeout: terms.KillTimeout, Reason: reasonRestartRun,
		})
		switch {
		case err == nil:
			some = true
		case !errors.Is(err, taskrunner.ErrNotRunning):
			return err
		}
	}
	if !some {
		return taskrunner.ErrNotRunning
	}
	return nil
}

// RestartAll ends all tasks and begins their lifecycle anew, those included that have ended.
func (r *Runner) RestartAll(terms Terms) error {
	if r.ending() {
		return taskrunner.ErrNotRunning
	}
	r.change(func(l *Local) {
		l.RestartAll = &RestartAll{
			NoShutdownDelay: terms.NoShutdownDelay, KillTimeout: terms.KillTimeout, Reason: reasonRestartAll,
		}
	})
	r.nudge()
	return nil
}

// Signal sends a signal to one task, or to all running ones when name is empty.
func (r *Runner) Signal(ctx context.Context, name, signal string) error {
	if name != "" {
		t := r.find(name)
		if t == nil {
			return unknownTask(name)
		}
		return t.runner.Signal(ctx, signal, "User requested task to be signaled")
	}
	var faults structs.Errors
	for _, t := range r.tasks {
		if t.runner.View().State.State == structs.TaskStateRunning {
			faults.Add(t.runner.Signal(ctx, signal, "User requested task to be signaled"))
		}
	}
	return faults.Err()
}

// Stats gives what the running tasks use, of one task when name is not empty.
func (r *Runner) Stats(ctx context.Context, name string) (map[string]*structs.TaskResourceUsage, error) {
	if name != "" && r.find(name) == nil {
		return nil, unknownTask(name)
	}
	out := make(map[string]*structs.TaskResourceUsage)
	for _, t := range r.tasks {
		if name != "" && t.name != name {
			continue
		}
		usage, err := t.runner.Stats(ctx)
		if err != nil {
			return nil, err
		}
		if usage != nil {
			out[t.name] = usage
		}
	}
	return out, nil
}

// HasTask says whether the allocation has a task of that name.
func (r *Runner) HasTask(name string) bool { return r.find(name) != nil }

// TaskOver is closed once the task will write no more logs; nil for a task that the allocation does not have.
func (r *Runner) TaskOver(name string) <-chan struct{} {
	if t := r.find(name); t != nil {
		return t.runner.Dead()
	}
	return nil
}
