package taskrunner

import (
	"context"

	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/structs"
)

// control is what hooks may ask of the task.
type control struct{ r *Runner }

var _ hook.TaskControl = control{}

func (c control) Restart(reason string) error {
	_, err := c.r.Restart(Order{Reason: reason})
	return err
}

func (c control) Signal(ctx context.Context, signal, reason string) error {
	return c.r.Signal(ctx, signal, reason)
}

// Fail shows the reason as that of the task's end.
func (c control) Fail(reason string) {
	e := event(structs.TaskKilling, "Killing task: "+reason, map[string]string{"kill_reason": reason, "fails_task": "true"})
	e.KillReason, e.FailsTask = reason, true
	c.r.Kill(Order{}, e)
}

func (c control) Emit(events ...*structs.TaskEvent) { c.r.Emit(events...) }
