package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func evalList() *spec {
	return &spec{name: "eval list", args: "", synopsis: "List evaluations", client: true,
		help: "Lists evaluations, oldest first.", minArgs: 0, maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON, verbose bool
			var tmpl, filter, job, status, token string
			var perPage int
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.StringVar(&filter, "filter", "", "List only evaluations that an `EXPRESSION` matches.")
			fs.StringVar(&job, "job", "", "List only those of the `JOB`.")
			fs.StringVar(&status, "status", "", "List only those in `STATUS`.")
			fs.IntVar(&perPage, "per-page", 0, "How many `EVALUATIONS` on a page.")
			fs.StringVar(&token, "page-token", "", "`TOKEN` of the page to list.")
			fs.BoolVar(new(bool), "ui", false, "Accepted; there is no page to open yet.")
			return func(ctx context.Context, c *call) error {
				q := c.query()
				q.Filter, q.PerPage, q.NextToken = filter, perPage, token
				q.Params = map[string]string{}
				if job != "" {
					q.Params["job"] = job
				}
				if status != "" {
					q.Params["status"] = status
				}
				evals, meta, err := c.client.Evaluations().List(ctx, q)
				if err != nil {
					return fmt.Errorf("error querying evaluations: %s", api.Text(err))
				}
				if done, err := data(c.out, evals, asJSON, tmpl); done {
					return err
				}
				if len(evals) == 0 {
					c.printf("No evals found\n")
					return nil
				}
				c.printf("%s", evalTable(evals, verbose))
				if meta.NextToken != "" {
					c.printf("\nResults have been paginated. To get the next page run:\n\nnomadlite eval list -page-token %s\n", meta.NextToken)
				}
				return nil
			}
		}}
}

func evalTable(evals []*structs.Evaluation, verbose bool) string {
	rows := [][]string{{"ID", "Priority", "Triggered By", "Job ID", "Namespace", "Node ID", "Status", "Placement Failures"}}
	for _, e := range evals {
		failed := yesNo(len(e.FailedTGAllocs) > 0)
		if e.Status == structs.EvalStatusBlocked {
			failed = "N/A - In Progress"
		}
		rows = append(rows, []string{shortID(e.ID, verbose), fmt.Sprint(e.Priority), e.TriggeredBy, e.JobID, e.Namespace,
			shortID(e.NodeID, verbose), e.Status, failed})
	}
	return table(rows)
}
