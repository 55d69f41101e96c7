// Command nomadlite is a workload orchestrator: server, node agent and command line in one binary.
package main

import (
	"os"
	_ "time/tzdata" // time zones in jobs must not depend on the host's files

	"github.com/nomadlite/nomadlite/client/artifact"
	"github.com/nomadlite/nomadlite/client/supervisor"
	"github.com/nomadlite/nomadlite/client/template"
	"github.com/nomadlite/nomadlite/command"
)

func main() {
	// The supervisor is entered before anything else: it stays small for as long as tasks run.
	if len(os.Args) > 1 && os.Args[1] == "supervisor" {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	if len(os.Args) == 2 && os.Args[1] == template.Command {
		os.Exit(template.Main(os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == artifact.Command {
		os.Exit(artifact.Main(os.Args[2:]))
	}
	os.Exit(command.Main(os.Args[0], os.Args[1:]))
}
