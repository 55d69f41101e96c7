package command

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
)

//go:embed templates/pool.nomad.hcl
var examplePool string

//go:embed templates/pool.nomad.json
var examplePoolJSON string

func nodePoolInit() *spec {
	return &spec{name: "node pool init", args: "[filename]", synopsis: "Write an example node pool",
		help: `Writes an example node pool to start from; the file is called pool.nomad.hcl, or pool.nomad.json, unless another name is
given. A file that exists is never overwritten.`,
		minArgs: 0, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var quiet bool
			var format string
			fs.BoolVar(&quiet, "quiet", false, "Say nothing when it is written.")
			fs.StringVar(&format, "out", "hcl", "`FORMAT` of the file, hcl or json.")
			return func(_ context.Context, c *call) error {
				text, ok := map[string]string{"hcl": examplePool, "json": examplePoolJSON}[format]
				if !ok {
					return fmt.Errorf("-out must be hcl or json, got %q", format)
				}
				name := "pool.nomad." + format
				if len(c.args) == 1 {
					name = c.args[0]
				}
				if err := writeExample(name, text); err != nil {
					return err
				}
				if !quiet {
					c.printf("Example node pool specification written to %s\n", name)
				}
				return nil
			}
		}}
}
