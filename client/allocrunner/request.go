package allocrunner

import (
	"context"
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

// RestartTask restarts one task, which must be running. The group's services and its shutdown_delay are none of its
// business. While the task goes down already, be it with the whole allocation, the terms may only become stricter. It
// returns once the request is durable.
func (r *Runner) RestartTask(name string, terms Terms) error {
	t := r.find(name)
	if t == nil {
		return unknownTask(name)
	}
	order := taskrunner.Order{NoShutdownDelay: terms.NoShutdownDelay, KillTimeout: terms.KillTimeout, Reason: reasonRestartTask}
	durable, err := t.runner.Restart(order)
	if err != nil {
		return err
	}
	r.await(durable)
	return nil
}

// RestartRunning restarts the allocation with all tasks that run now; taskrunner.ErrNotRunning when none does.
func (r *Runner) RestartRunning(terms Terms) error {
	return r.restart(RestartAll{Tasks: r.running(), Reason: reasonRestartRun}, terms)
}

// running names the tasks that run, without poststop tasks.
func (r *Runner) running() []string {
	running := []string{}
	for _, t := range r.tasks {
		if v := t.runner.View(); v.State.State == structs.TaskStateRunning && t.role != rolePoststop {
			running = append(running, t.name)
		}
	}
	return running
}

// RestartAll ends all tasks and begins their lifecycle anew, those included that have ended.
func (r *Runner) RestartAll(terms Terms) error {
	return r.restart(RestartAll{Reason: reasonRestartAll}, terms)
}

// RestartUnhealthy restarts a task, or with no name the allocation with all tasks that run, because a check says so: in the
// order of any restart, but by the terms of the restart policy. It is nothing to do for what does not run.
func (r *Runner) RestartUnhealthy(name, reason string) error {
	if name != "" {
		t := r.find(name)
		if t == nil {
			return unknownTask(name)
		}
		_, err := t.runner.Restart(taskrunner.Order{Reason: reason, Unhealthy: true})
		return err
	}
	return r.restart(RestartAll{Tasks: r.running(), Reason: reason, Unhealthy: true}, Terms{})
}

// restart notes a restart of the allocation, or joins it to the one under way, whose waits it may cut. It returns once
// that is durable.
func (r *Runner) restart(request RestartAll, terms Terms) error {
	request.NoShutdownDelay, request.KillTimeout = terms.NoShutdownDelay, terms.KillTimeout
	r.mu.Lock()
	under := r.local.RestartAll
	none := request.Tasks != nil && len(request.Tasks) == 0
	if r.alloc.ServerTerminal() || r.leaving || r.departing || r.local.Cause != NotEnding || under == nil && none {
		r.mu.Unlock()
		return taskrunner.ErrNotRunning
	}
	if under != nil && none {
		request.Tasks = under.Tasks
	}
	durable := r.changeLocked(func(l *Local) { l.RestartAll = under.join(request) })
	r.mu.Unlock()
	for _, t := range r.tasks {
		if request.concerns(t.name) && (under == nil || !under.concerns(t.name)) {
			t.runner.RestartAsked(request.Reason)
		}
	}
	r.await(durable)
	r.nudge()
	return nil
}

// await waits until a change is durable, or the agent ends.
func (r *Runner) await(durable <-chan struct{}) {
	select {
	case <-durable:
	case <-r.ended:
	}
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
