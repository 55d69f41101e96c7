package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
)

func nodeEligibility() *spec {
	return &spec{name: "node eligibility", args: "<node>", synopsis: "Let the scheduler use a node, or keep it from it", client: true,
		help:    "Sets whether new allocations may be placed on a node; those there stay. A node may be given by prefix.",
		minArgs: 0, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var enable, disable, self bool
			fs.BoolVar(&enable, "enable", false, "The node may get allocations.")
			fs.BoolVar(&disable, "disable", false, "The node gets no new allocations.")
			fs.BoolVar(&self, "self", false, "The node of the agent that is asked.")
			return func(ctx context.Context, c *call) error {
				if enable == disable {
					return fmt.Errorf("give exactly one of -enable and -disable")
				}
				id := ""
				if len(c.args) == 1 {
					id = c.args[0]
				}
				if self {
					agent, err := c.client.Agent().Self(ctx)
					if err != nil {
						return fmt.Errorf("error querying agent: %s", api.Text(err))
					}
					id = agent.Stats["client"]["node_id"]
				}
				if id == "" {
					return fmt.Errorf("name a node, or use -self on a client agent")
				}
				node, err := c.node(ctx, id)
				if err != nil {
					return err
				}
				if _, _, err := c.client.Nodes().SetEligibility(ctx, node.ID, enable, nil); err != nil {
					return fmt.Errorf("error setting eligibility: %s", api.Text(err))
				}
				word := "ineligible"
				if enable {
					word = "eligible"
				}
				c.printf("Node %q scheduling eligibility set: %s for scheduling\n", node.ID, word)
				return nil
			}
		}}
}
