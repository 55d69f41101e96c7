package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
)

func agentInfo() *spec {
	return &spec{name: "agent-info", args: "", synopsis: "Show figures of the agent", client: true,
		help: "Shows the figures of the agent that is asked.", maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON bool
			var tmpl string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			return func(ctx context.Context, c *call) error {
				self, err := c.client.Agent().Self(ctx)
				if err != nil {
					return fmt.Errorf("error querying agent: %s", api.Text(err))
				}
				if done, err := data(c.out, self, asJSON, tmpl); done {
					return err
				}
				for _, block := range sortedKeys(self.Stats) {
					c.printf("%s\n", block)
					for _, k := range sortedKeys(self.Stats[block]) {
						c.printf("  %s = %s\n", k, self.Stats[block][k])
					}
				}
				return nil
			}
		}}
}
