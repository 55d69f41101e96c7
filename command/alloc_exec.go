package command

import (
	"context"
	"errors"
	"flag"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func allocExec() *spec {
	return &spec{name: "alloc exec", args: "<allocation> <command> [args...]", synopsis: "Run a command in a running task", client: true,
		help: `Runs a command beside a task: as its user, in its directory, with its environment and limits. With a terminal it is an
interactive session. The exit code is the command's, or 1 when it could not be run. An allocation may be given by prefix;
with -job the argument is a job, of which an allocation is taken.`,
		minArgs: 2, maxArgs: -1, positional: true,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &execFlags{}
			f.add(fs)
			var byJob bool
			fs.BoolVar(&byJob, "job", false, "The argument is a job; its newest running allocation is taken.")
			return func(ctx context.Context, c *call) error {
				if f.group != "" && !byJob {
					return errors.New("-group is for -job")
				}
				a, err := c.allocOrOfJob(ctx, byJob, c.args[0], f.group)
				if err != nil {
					return err
				}
				task, err := taskOf(a, f.task)
				if err != nil {
					return err
				}
				return f.session(ctx, c, &api.ExecRequest{AllocID: a.ID, Task: task, Command: c.args[1:]}, a.Namespace)
			}
		}}
}

func (c *call) allocOrOfJob(ctx context.Context, byJob bool, id, group string) (*structs.Allocation, error) {
	if byJob {
		return c.allocOfJob(ctx, id, group)
	}
	return c.alloc(ctx, id)
}
