package command

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
)

//go:embed templates/example.nomad.hcl
var exampleJob string

//go:embed templates/example-short.nomad.hcl
var exampleJobShort string

//go:embed templates/example-connect.nomad.hcl
var exampleMesh string

//go:embed templates/example-connect-short.nomad.hcl
var exampleMeshShort string

func jobInit() *spec {
	return &spec{name: "job init", args: "[filename]", synopsis: "Write an example jobspec",
		help: `Writes an example jobspec to start from; the file is called example.nomad.hcl unless another name is
given. A file that exists is never overwritten.`,
		minArgs: 0, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var short, mesh bool
			fs.BoolVar(&short, "short", false, "Write one without comments.")
			fs.BoolVar(&mesh, "connect", false, "Write one with a service mesh.")
			return func(_ context.Context, c *call) error {
				name := "example.nomad.hcl"
				if len(c.args) == 1 {
					name = c.args[0]
				}
				text := exampleJob
				switch {
				case mesh && short:
					text = exampleMeshShort
				case mesh:
					text = exampleMesh
				case short:
					text = exampleJobShort
				}
				if err := writeExample(name, text); err != nil {
					return err
				}
				c.printf("Example job file written to %s\n", name)
				return nil
			}
		}}
}

// writeExample writes a new file.
func writeExample(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("a file %q exists already; give another name", name)
	}
	if err != nil {
		return fmt.Errorf("write example: %w", err)
	}
	if _, err := file.WriteString(text); err != nil {
		return errors.Join(fmt.Errorf("write example: %w", err), file.Close())
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write example: %w", err)
	}
	return nil
}
