package taskrunner

import (
	"context"
	"strings"
	"sync"

	"github.com/nomadlite/nomadlite/client/driver"
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

func (c control) Exec(ctx context.Context, command []string) (int, string, error) {
	var out head
	code, err := c.r.Exec(ctx, &driver.ExecRequest{Command: command, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
	return code, out.String(), err
}

// head keeps the first bytes of what a command writes.
type head struct {
	mu  sync.Mutex
	buf []byte
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf = append(h.buf, p[:min(len(p), 1024-len(h.buf))]...)
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.buf)
}

// Fail shows the reason as that of the task's end.
func (c control) Fail(reason string) {
	e := event(structs.TaskKilling, "Killing task: "+reason, map[string]string{"kill_reason": reason, "fails_task": "true"})
	e.KillReason, e.FailsTask = reason, true
	c.r.Kill(Order{}, e)
}

func (c control) Emit(events ...*structs.TaskEvent) { c.r.Emit(events...) }
