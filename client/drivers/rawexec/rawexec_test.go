package rawexec

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

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

// hierarchies are what a test lets the supervisor see.
type hierarchies int

const (
	all  hierarchies = iota
	v1               // as on a host without the unified one
	none             // plugin option no_cgroups
)

func suite(t *testing.T, what hierarchies) drivertest.Suite {
	dir := filepath.Join(t.TempDir(), "supervisor")
	cfg := supervisor.Config{Dir: dir, IdleTimeout: time.Second}
	if what == v1 {
		cfg.Mountinfo = withoutUnified(t)
	}
	s := drivertest.Suite{
		Open: func(t *testing.T) driver.Driver {
			client := supervisor.NewClient(cfg)
			t.Cleanup(func() { client.Close() })
			return New(Config{Supervisor: client, NoCgroups: what == none})
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
			{Config: drivertest.Config{"command": 7, "args": "x", "comand": "y", "work_dir": "here", "oom_score_adj": -1,
				"cgroup_v1_override": []any{map[string]any{"memory": 3}}, "cgroup_v2_override": 4, "denied_envvars": "PATH"},
				Faults: []string{`"cgroup_v1_override" must be a map`, `"cgroup_v2_override" must be a string`, `"denied_envvars" must be a list`,
					`"command" must be a string`, `"args" must be a list`, `no option "comand"`, `"work_dir" must be an absolute path`,
					`"oom_score_adj" must be between`}},
		},
	}
	if what != none {
		s.Bomb = func(dir string) drivertest.Config {
			return sh(`bomb() { while :; do env -i setsid sh -c 'sleep 0.05 & sleep 0.05 & exit' & sleep 0.01; done; }
				trap "" TERM; bomb & bomb & mkdir ` + dir + `; while :; do sleep 1000; done`)
		}
	}
	if what != none && limited() {
		s.Hungry = func() drivertest.Config { return sh("a=x; while :; do a=$a$a; done") }
	}
	return s
}

// withoutUnified gives a view of what is mounted that lacks the unified hierarchy.
func withoutUnified(t *testing.T) string {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(data), "\n"), func(line string) bool { return strings.Contains(line, " - cgroup2 ") })
	path := filepath.Join(t.TempDir(), "mountinfo")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// limited says whether this host has a controller of memory that we may use.
func limited() bool {
	if unix.Access("/sys/fs/cgroup/memory", unix.W_OK) == nil {
		return true
	}
	have, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	return err == nil && slices.Contains(strings.Fields(string(have)), "memory") && unix.Access("/sys/fs/cgroup", unix.W_OK) == nil
}

func TestConformance(t *testing.T) { drivertest.Run(t, suite(t, all)) }

func TestConformanceWithoutUnifiedHierarchy(t *testing.T) {
	if unix.Access("/sys/fs/cgroup/freezer", unix.W_OK) != nil {
		t.Skip("no cgroup v1 hierarchy of the freezer to write to")
	}
	drivertest.Run(t, suite(t, v1))
}

func TestConformanceWithoutCgroups(t *testing.T) { drivertest.Run(t, suite(t, none)) }

// TestConfigOfCgroups in both forms that a jobspec may give it.
func TestConfigOfCgroups(t *testing.T) {
	for _, block := range []any{
		map[string]any{"memory": "a", "pids": "b"}, []any{map[string]any{"memory": "a", "pids": "b"}},
		[]map[string]any{{"memory": "a", "pids": "b"}}, map[string]string{"memory": "a", "pids": "b"},
	} {
		c, err := parseConfig(map[string]any{"command": "x", "cgroup_v1_override": block, "cgroup_v2_override": "c.slice",
			"denied_envvars": []any{"AWS_*"}})
		if err != nil || len(c.joinV1) != 2 || c.joinV1["memory"] != "a" || c.joinUnified != "c.slice" || c.deniedEnv[0] != "AWS_*" {
			t.Errorf("%v: got %+v, %v", block, c, err)
		}
	}
}

func TestDeniedVariables(t *testing.T) {
	env := map[string]string{"AWS_KEY": "1", "MY_TOKEN": "2", "PATH": "3", "EXACT": "4", "EXACTLY": "5"}
	if got := envList(env, []string{"AWS_*", "*_TOKEN", "EXACT"}); !slices.Equal(got, []string{"EXACTLY=5", "PATH=3"}) {
		t.Errorf("got %v", got)
	}
}

// TestFiguresOfTheWholeTask count what has ended, and lack nothing that the kernel has not gathered yet.
func TestFiguresOfTheWholeTask(t *testing.T) {
	began := time.Unix(1000, 0)
	before := sample{at: began, whole: &supervisor.Usage{CPU: &supervisor.CPUUsage{Total: time.Second}}}
	now := sample{at: began.Add(2 * time.Second), procs: map[int]supervisor.ProcStats{1: {PID: 1, RSS: 4096}},
		whole: &supervisor.Usage{CPU: &supervisor.CPUUsage{Total: 2 * time.Second, User: time.Second, ThrottledPeriods: 3},
			Memory: &supervisor.MemoryUsage{Usage: 9000, MaxUsage: 9500}}}
	u := usageBetween(before, now, 1000).ResourceUsage
	if m := u.MemoryStats; m.RSS != 4096 || m.Usage != 9000 || m.MaxUsage != 9500 {
		t.Errorf("memory %+v", m)
	}
	if c := u.CpuStats; c.Percent != 50 || c.UserMode != 50 || c.TotalTicks != 500 || c.ThrottledPeriods != 3 {
		t.Errorf("processor %+v", c)
	}
	now.whole.Memory.RSS = 5000
	if m := usageBetween(before, now, 1000).ResourceUsage.MemoryStats; m.RSS != 5000 {
		t.Errorf("memory %+v", m)
	}
}
