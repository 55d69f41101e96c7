package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
)

func systemGC() *spec {
	return &spec{name: "system gc", args: "", synopsis: "Remove what nothing refers to any more", client: true,
		help: `Removes at once the jobs, evaluations, allocations, deployments and nodes which have ended and which nothing
refers to.`, maxArgs: 0,
		prepare: func(*flag.FlagSet) func(context.Context, *call) error {
			return func(ctx context.Context, c *call) error {
				if err := c.client.System().GarbageCollect(ctx); err != nil {
					return fmt.Errorf("error running system garbage collection: %s", api.Text(err))
				}
				return nil
			}
		}}
}
