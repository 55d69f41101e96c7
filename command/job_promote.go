package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobPromote() *spec {
	return &spec{name: "job promote", args: "<job>", synopsis: "Promote the canaries of a job", client: true,
		help: `Makes the canaries of the job's newest deployment ordinary allocations, those of all groups or of the ones named; the rest is
then rolled out. Follows the evaluation and the deployment unless -detach is given. A job may be given by prefix.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var detach, verbose bool
			var groups listFlag
			fs.BoolVar(&detach, "detach", false, "Print the evaluation's id and return at once.")
			fs.Var(&groups, "group", "`NAME` of a group; may be repeated.")
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
			return func(ctx context.Context, c *call) error {
				job, err := c.job(ctx, c.args[0])
				if err != nil {
					return err
				}
				id, namespace := structs.Val(job.ID), structs.Val(job.Namespace)
				d, _, err := c.client.Jobs().LatestDeployment(ctx, id, &api.QueryOptions{Namespace: namespace})
				if err != nil {
					return fmt.Errorf("error querying the deployment: %s", api.Text(err))
				}
				if d == nil {
					return fmt.Errorf("job %q has no deployment to promote", id)
				}
				answer, _, err := c.client.Deployments().Promote(ctx, d.ID, groups, &api.WriteOptions{Namespace: namespace})
				if err != nil {
					return fmt.Errorf("error promoting deployment %q of job %q: %s", shortID(d.ID, verbose), id, api.Text(err))
				}
				if detach {
					c.printf("Evaluation ID: %s\n", answer.EvalID)
					return nil
				}
				return (&monitor{c: c, verbose: verbose}).eval(ctx, answer.EvalID)
			}
		}}
}
