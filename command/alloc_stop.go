package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
)

func allocStop() *spec {
	return &spec{name: "alloc stop", args: "<allocation>", synopsis: "Stop an allocation and let the scheduler replace it", client: true,
		help:    "Stops one allocation; the scheduler places another if its job still wants it. An allocation may be given by prefix.",
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &stopFlags{}
			var detach, verbose bool
			f.declare(fs)
			fs.BoolVar(&detach, "detach", false, "Print the evaluation's id and return at once.")
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
			return func(ctx context.Context, c *call) error {
				noDelay, killTimeout := f.values()
				a, err := c.alloc(ctx, c.args[0])
				if err != nil {
					return err
				}
				answer, _, err := c.client.Allocations().Stop(ctx, a.ID, &api.StopOptions{NoShutdownDelay: noDelay, KillTimeout: killTimeout}, nil)
				if err != nil {
					return fmt.Errorf("error stopping allocation: %s", api.Text(err))
				}
				if detach {
					c.printf("%s\n", answer.EvalID)
					return nil
				}
				return (&monitor{c: c, verbose: verbose}).eval(ctx, answer.EvalID)
			}
		}}
}
