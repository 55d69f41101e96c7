package allocrunner

import (
	"context"

	"github.com/nomadlite/nomadlite/client/driver"
)

// Exec runs a command beside a task and gives its exit code.
func (r *Runner) Exec(ctx context.Context, name string, req *driver.ExecRequest) (int, error) {
	t := r.find(name)
	if t == nil {
		return 0, unknownTask(name)
	}
	return t.runner.Exec(ctx, req)
}
