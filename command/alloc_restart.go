package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
)

func allocRestart() *spec {
	return &spec{name: "alloc restart", args: "<allocation> [task]", synopsis: "Restart the tasks of an allocation", client: true,
		help: `Restarts the running tasks of an allocation where it is, or one task, or with -all-tasks also those that have
ended. An allocation may be given by prefix.`,
		minArgs: 1, maxArgs: 2,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &stopFlags{}
			var all bool
			var task string
			f.declare(fs)
			fs.BoolVar(&all, "all-tasks", false, "Restart all tasks, also those that have ended.")
			fs.StringVar(&task, "task", "", "`NAME` of the task.")
			fs.BoolVar(new(bool), "verbose", false, "Accepted.")
			return func(ctx context.Context, c *call) error {
				noDelay, killTimeout := f.values()
				a, err := c.alloc(ctx, c.args[0])
				if err != nil {
					return err
				}
				if len(c.args) == 2 {
					task = c.args[1]
				}
				if task != "" {
					if all {
						return fmt.Errorf("-all-tasks and a task cannot be used together")
					}
					if task, err = taskOf(a, task); err != nil {
						return err
					}
				}
				opts := api.RestartOptions{Task: task, AllTasks: all, NoShutdownDelay: noDelay, KillTimeout: killTimeout}
				if err := c.client.Allocations().Restart(ctx, a.ID, opts, nil); err != nil {
					return fmt.Errorf("failed to restart allocation: %s", api.Text(err))
				}
				return nil
			}
		}}
}
