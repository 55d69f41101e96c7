package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
)

func systemReconcileSummaries() *spec {
	return &spec{name: "system reconcile summaries", args: "", synopsis: "Count the summaries of all jobs anew", client: true,
		help: "Counts the summaries of all jobs anew, from their allocations.", maxArgs: 0,
		prepare: func(*flag.FlagSet) func(context.Context, *call) error {
			return func(ctx context.Context, c *call) error {
				if err := c.client.System().ReconcileSummaries(ctx); err != nil {
					return fmt.Errorf("error reconciling summaries: %s", api.Text(err))
				}
				return nil
			}
		}}
}
