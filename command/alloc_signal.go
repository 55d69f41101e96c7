package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
)

func allocSignal() *spec {
	return &spec{name: "alloc signal", args: "<allocation> [task]", synopsis: "Send a signal to the tasks of an allocation", client: true,
		help:    "Sends a signal to all running tasks of an allocation, or to one. An allocation may be given by prefix.",
		minArgs: 1, maxArgs: 2,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var signal, task string
			fs.StringVar(&signal, "s", "SIGKILL", "`SIGNAL` to send.")
			fs.StringVar(&task, "task", "", "`NAME` of the task.")
			fs.BoolVar(new(bool), "verbose", false, "Accepted.")
			return func(ctx context.Context, c *call) error {
				a, err := c.alloc(ctx, c.args[0])
				if err != nil {
					return err
				}
				if len(c.args) == 2 {
					task = c.args[1]
				}
				if task != "" {
					if task, err = taskOf(a, task); err != nil {
						return err
					}
				}
				if err := c.client.Allocations().Signal(ctx, a.ID, task, signal, nil); err != nil {
					return fmt.Errorf("error signalling allocation: %s", api.Text(err))
				}
				return nil
			}
		}}
}
