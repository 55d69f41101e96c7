package command

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/nomadlite/nomadlite/structs"
)

// printVersion writes the version; a program called nomad answers in the public form, which tools compare.
func printVersion(w io.Writer, program string) {
	if program == "nomad" {
		fmt.Fprintf(w, "Nomad v%s\n", structs.CompatVersion)
		return
	}
	fmt.Fprintf(w, "nomadlite v%s\n", structs.Version)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				fmt.Fprintf(w, "Revision %s\n", s.Value)
			}
		}
	}
	fmt.Fprintf(w, "Speaks the interface of version %s\n", structs.CompatVersion)
}

func version(program string) *spec {
	return &spec{name: "version", args: "", synopsis: "Show the version", help: "Shows the version of this program.", maxArgs: 0,
		prepare: func(*flag.FlagSet) func(context.Context, *call) error {
			return func(_ context.Context, c *call) error {
				printVersion(c.out, program)
				return nil
			}
		}}
}
