package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobPeriodicForce() *spec {
	return &spec{name: "job periodic force", args: "<job>", synopsis: "Launch a periodic job now", client: true,
		help: `Launches an instance of a periodic job at once, outside of its schedule and also where prohibit_overlap would leave it
out, and follows its evaluation unless -detach is given. The job may be given by prefix; its schedule must be enabled.

Exit code 2: not everything could be placed.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var detach, verbose bool
			fs.BoolVar(&detach, "detach", false, "Print the evaluation's id and return at once.")
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
			return func(ctx context.Context, c *call) error {
				job, err := c.jobOf(ctx, c.args[0], func(j *structs.JobListStub) bool { return j.Periodic })
				if err != nil {
					return err
				}
				answer, _, err := c.client.Jobs().PeriodicForce(ctx, structs.Val(job.ID), &api.WriteOptions{Namespace: structs.Val(job.Namespace)})
				if err != nil {
					return fmt.Errorf("error forcing periodic job %q: %s", structs.Val(job.ID), api.Text(err))
				}
				if detach {
					c.printf("Force periodic successful\nEvaluation ID: %s\n", answer.EvalID)
					return nil
				}
				return (&monitor{c: c, verbose: verbose}).eval(ctx, answer.EvalID)
			}
		}}
}
