package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func evalDelete() *spec {
	return &spec{name: "eval delete", args: "[evaluation]", synopsis: "Delete evaluations", client: true,
		help: `Deletes one evaluation, or all that a filter matches; "eval list -filter" shows which these are. It is for outages with a
backlog that nobody wants any more: the evaluation broker must be paused before and resumed after. Evaluations whose allocations are
still wanted stay.`,
		minArgs: 0, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var filter string
			var yes bool
			fs.StringVar(&filter, "filter", "", "Delete the evaluations that an `EXPRESSION` matches.")
			fs.BoolVar(&yes, "yes", false, "Do not ask when a filter names the evaluations.")
			return func(ctx context.Context, c *call) error {
				req := structs.EvalDeleteRequest{Filter: filter}
				switch {
				case (len(c.args) == 1) == (filter != ""):
					return fmt.Errorf("give either an evaluation or -filter")
				case len(c.args) == 1:
					eval, err := c.eval(ctx, c.args[0])
					if err != nil {
						return err
					}
					req.EvalIDs = []string{eval.ID}
				default:
					if ok, err := confirmDeletion(ctx, c, filter, yes); !ok || err != nil {
						return err
					}
				}
				n, _, err := c.client.Evaluations().Delete(ctx, req, &api.WriteOptions{Namespace: c.ns})
				if err != nil {
					return fmt.Errorf("error deleting evaluations: %s", api.Text(err))
				}
				c.printf("Successfully deleted %s\n", evaluationCount(n))
				return nil
			}
		}}
}

func evaluationCount(n int) string {
	if n == 1 {
		return "1 evaluation"
	}
	return fmt.Sprintf("%d evaluations", n)
}

// confirmDeletion asks before all are deleted that a filter matches; false when there are none, or the answer is no.
func confirmDeletion(ctx context.Context, c *call, filter string, yes bool) (bool, error) {
	q := c.query()
	q.Filter = filter
	n, _, err := c.client.Evaluations().Count(ctx, q)
	if err != nil {
		return false, fmt.Errorf("error querying evaluations: %s", api.Text(err))
	}
	if n == 0 {
		c.printf("No evaluations match the filter\n")
		return false, nil
	}
	if yes {
		return true, nil
	}
	ok, err := c.confirm(fmt.Sprintf("Are you sure you want to delete %s? [y/N] ", evaluationCount(n)))
	if err == nil && !ok {
		c.printf("Cancelling eval delete\n")
	}
	return ok, err
}
