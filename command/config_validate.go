package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/command/agent"
)

func configValidate() *spec {
	return &spec{name: "config validate", args: "<path> ...", synopsis: "Check agent configuration for faults",
		help:    "Reads configuration files and folders as an agent would and tells what is wrong with them.",
		minArgs: 1, maxArgs: -1,
		prepare: func(*flag.FlagSet) func(context.Context, *call) error {
			return func(_ context.Context, c *call) error {
				cfg, err := agent.Load(c.args)
				if err != nil {
					return err
				}
				if _, err := agent.Resolve(cfg, false); err != nil {
					return fmt.Errorf("configuration is not valid: %w", err)
				}
				c.printf("Configuration is valid!\n")
				return nil
			}
		}}
}
