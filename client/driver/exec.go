package driver

import (
	"context"
	"io"

	"github.com/nomadlite/nomadlite/structs"
)

// ExecRequest is a command to be run beside a task, where the task runs.
type ExecRequest struct {
	Command []string
	// TTY gives the command a terminal, of Size at first; what it writes is all in Stdout then.
	TTY    bool
	Stdin  io.Reader // its end closes the command's input
	Stdout io.Writer
	Stderr io.Writer
	// Resize gives sizes of the terminal as they change. nil for none.
	Resize <-chan structs.TerminalSize
}

// Execer is implemented by drivers that run commands beside a task: with its environment, user and limits, in its
// directory, and ended with it. Capabilities.Exec says the same.
type Execer interface {
	// Exec runs a command until it ends, and gives its exit code: 128 and the signal's number when one killed it. When ctx
	// is done the command and its process group are killed. What the command has left running belongs to the task.
	// cfg is that of the task's running attempt. ErrTaskNotFound when that does not run.
	Exec(ctx context.Context, cfg *TaskConfig, req *ExecRequest) (exitCode int, err error)
}
