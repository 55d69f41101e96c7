package command

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobAllocs() *spec {
	return &spec{name: "job allocs", args: "<job>", synopsis: "List the allocations of a job", client: true,
		help:    "Lists the allocations of a job. A job may be given by prefix.",
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var all, asJSON, verbose bool
			var tmpl string
			fs.BoolVar(&all, "all", false, "Also show allocations of an earlier job with the same id.")
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
			return func(ctx context.Context, c *call) error {
				job, err := c.job(ctx, c.args[0])
				if err != nil {
					return err
				}
				allocs, _, err := c.client.Jobs().Allocations(ctx, structs.Val(job.ID), all, &api.QueryOptions{Namespace: structs.Val(job.Namespace)})
				if err != nil {
					return fmt.Errorf("error querying allocations: %s", api.Text(err))
				}
				if done, err := data(c.out, allocs, asJSON, tmpl); done {
					return err
				}
				if len(allocs) == 0 {
					c.printf("No allocations placed\n")
					return nil
				}
				c.printf("%s", allocTable(allocs, verbose, time.Now()))
				return nil
			}
		}}
}
