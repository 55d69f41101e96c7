package rawexec

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/drivertest"
	"github.com/nomadlite/nomadlite/client/supervisor"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervisor" {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func sh(script string) drivertest.Config {
	return drivertest.Config{"command": "/bin/sh", "args": []any{"-c", script}}
}

func suite(dir string, noCgroups bool) drivertest.Suite {
	return drivertest.Suite{
		Open: func(t *testing.T) driver.Driver {
			client := supervisor.NewClient(supervisor.Config{Dir: dir, NoCgroups: noCgroups, IdleTimeout: time.Second})
			t.Cleanup(func() { client.Close() })
			return New(Config{Supervisor: client})
		},
		Exit: func(code int) drivertest.Config { return sh(fmt.Sprintf("exit %d", code)) },
		Run:  func() drivertest.Config { return drivertest.Config{"command": "sleep", "args": []any{"1000"}} },
		RunFor: func(d time.Duration, code int) drivertest.Config {
			return sh(fmt.Sprintf("sleep %f; exit %d", d.Seconds(), code))
		},
		Stubborn: func() drivertest.Config { return sh(`trap "" INT TERM; echo ready; while :; do sleep 1000; done`) },
		OnSignal: func(code int) drivertest.Config {
			return sh(fmt.Sprintf(`trap "exit %d" USR1; echo ready; while :; do sleep 0.05; done`, code))
		},
		Output: func(out, errs string) drivertest.Config {
			return drivertest.Config{"command": "sh", "args": []any{"-c", `printf %s "$0"; printf %s "$1" >&2`, out, errs}}
		},
		Tree: func(file string) drivertest.Config {
			// The grandchild's parent, a subshell, ends at once; setsid takes it out of session and group.
			return drivertest.Config{"command": "sh", "args": []any{"-c",
				`sleep 1000 & echo $! >"$0"; (setsid sh -c 'echo $$ >>"$0"; echo ready; exec sleep 1000' "$0" &); while :; do sleep 1000; done`, file}}
		},
		Env:     func(name string) drivertest.Config { return sh("echo $" + name) },
		Missing: func() drivertest.Config { return drivertest.Config{"command": "there-is-no-such-command"} },
		Bad: []drivertest.BadConfig{
			{Config: drivertest.Config{}, Faults: []string{`"command" is missing`}},
			{Config: drivertest.Config{"command": 7, "args": "x", "comand": "y", "work_dir": "here", "oom_score_adj": -1},
				Faults: []string{`"command" must be a string`, `"args" must be a list`, `no option "comand"`, `"work_dir" must be an absolute path`,
					`"oom_score_adj" must be between`}},
		},
	}
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, suite(filepath.Join(t.TempDir(), "supervisor"), false))
}

func TestConformanceWithoutCgroups(t *testing.T) {
	drivertest.Run(t, suite(filepath.Join(t.TempDir(), "supervisor"), true))
}
