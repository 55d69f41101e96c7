package taskrunner

import (
	"context"
	"errors"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/structs"
)

// Exec runs a command beside the task's process and gives its exit code. It is over, at the latest, when that process
// has ended. ErrNotRunning when there is none.
func (r *Runner) Exec(ctx context.Context, req *driver.ExecRequest) (int, error) {
	r.mu.Lock()
	running := r.local.Phase.hasProcess() && r.local.Exit == nil
	build := BuildRequest{TaskID: r.taskID(), Alloc: r.alloc, Task: r.task}
	r.mu.Unlock()
	if !running || r.cfg.Driver == nil {
		return 0, ErrNotRunning
	}
	execer, ok := r.cfg.Driver.(driver.Execer)
	if !ok {
		return 0, structs.Errorf(structs.CodeInvalid, "driver %q runs no commands beside a task", r.cfg.Task.Driver)
	}
	build.HookEnv = r.chain.Env()
	cfg, err := r.cfg.Build(ctx, build)
	if err != nil {
		return 0, err
	}
	code, err := execer.Exec(ctx, cfg, req)
	if errors.Is(err, driver.ErrTaskNotFound) {
		err = ErrNotRunning // it has just ended
	}
	return code, err
}
