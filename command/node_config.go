package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
)

func nodeConfig() *spec {
	return &spec{name: "node config", args: "", synopsis: "Show the servers which a node knows", client: true,
		help:    `Lists the servers which the agent that is asked knows, one a line.`,
		minArgs: 0, maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var servers bool
			fs.BoolVar(&servers, "servers", false, "List the servers.")
			return func(ctx context.Context, c *call) error {
				if !servers {
					return fmt.Errorf("say what to show: -servers")
				}
				list, err := c.client.Agent().Servers(ctx)
				if err != nil {
					return fmt.Errorf("error querying the servers: %s", api.Text(err))
				}
				for _, server := range list {
					c.printf("%s\n", server)
				}
				return nil
			}
		}}
}
