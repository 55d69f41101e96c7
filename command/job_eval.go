package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobEval() *spec {
	return &spec{name: "job eval", args: "<job>", synopsis: "Make a new evaluation for a job", client: true,
		help:    "Makes the scheduler look at a job anew. A job may be given by prefix.",
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var detach, force, verbose bool
			fs.BoolVar(&detach, "detach", false, "Print the evaluation's id and return at once.")
			fs.BoolVar(&force, "force-reschedule", false, "Replace failed allocations even when their reschedule policy is used up.")
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
			return func(ctx context.Context, c *call) error {
				job, err := c.job(ctx, c.args[0])
				if err != nil {
					return err
				}
				answer, _, err := c.client.Jobs().Evaluate(ctx, structs.Val(job.ID), structs.EvalOptions{ForceReschedule: force},
					&api.WriteOptions{Namespace: structs.Val(job.Namespace)})
				if err != nil {
					return fmt.Errorf("error evaluating job: %s", api.Text(err))
				}
				if detach {
					c.printf("Created eval ID: %q\n", shortID(answer.EvalID, verbose))
					return nil
				}
				return (&monitor{c: c, verbose: verbose}).eval(ctx, answer.EvalID)
			}
		}}
}
