package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/e2e/proc"
)

// waitLimit bounds each wait for what an agent does.
const waitLimit = 30 * time.Second

// agent is one running process of the binary, with its own command line.
type agent struct {
	*proc.Agent
	t testing.TB
}

// newAgent prepares an agent with data on disk that is server and client, unless change says otherwise.
func newAgent(t testing.TB, change func(config map[string]any)) *agent {
	t.Helper()
	return &agent{t: t, Agent: proc.New(t, func(c map[string]any) {
		c["name"], c["log_level"] = "e2e", "DEBUG"
		if change != nil {
			change(c)
		}
	})}
}

// cli runs a command of the binary against the agent.
func (a *agent) cli(stdin string, args ...string) (stdout, stderr string, code int) {
	a.t.Helper()
	return runCLI(a.t, a.Addr(), a.Dir, stdin, args...)
}

func runCLI(t testing.TB, addr, dir, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, proc.Binary(t), args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "NOMAD_ADDR="+addr)
	var failed *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &failed) {
		t.Fatalf("run %v: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
