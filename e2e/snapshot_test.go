package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/api"
)

// A saved state is there again on a fresh agent, also while its node runs something else; cut off archives change
// nothing.
func TestSnapshotIsRestoredOnAFreshCluster(t *testing.T) {
	spec := func(a *agent, node, name string) {
		must(t, a, "namespace", "apply", name)
		text := `job "` + name + `" {
  constraint {
    attribute = "${node.unique.name}"
    value     = "` + node + `"
  }
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "sleep"
        args    = ["600"]
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}`
		path := filepath.Join(a.Dir, name+".nomad")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, a, "job", "run", "-detach", path)
	}
	first := newAgent(t, func(c map[string]any) { c["name"] = "first" })
	first.Start()
	spec(first, "first", "kept")
	file := filepath.Join(t.TempDir(), "state.snap")
	must(t, first, "operator", "snapshot", "save", file)
	if out := must(t, first, "operator", "snapshot", "inspect", file); !strings.Contains(out, "allocs") || !strings.Contains(out, "Index") {
		t.Errorf("inspect:\n%s", out)
	}
	want := must(t, first, "job", "inspect", "kept")
	first.Kill()

	second := newAgent(t, func(c map[string]any) { c["name"] = "second" })
	second.Start()
	spec(second, "second", "forgotten")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := file + ".cut"
	if err := os.WriteFile(cut, raw[:len(raw)*2/3], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := second.cli("", "operator", "snapshot", "restore", cut); code == 0 || !strings.Contains(errs, "cut off") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	must(t, second, "job", "status", "forgotten")
	must(t, second, "operator", "snapshot", "restore", file)
	if got := must(t, second, "job", "inspect", "kept"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if _, errs, code := second.cli("", "job", "status", "forgotten"); code == 0 || !strings.Contains(errs, "forgotten") {
		t.Errorf("exit %d: %s", code, errs)
	}
	// The node of this agent is not in the restored state: it registers again, and takes work.
	spec(second, "second", "later")
	running := false
	for q := (&api.QueryOptions{}); !running; {
		allocs, meta, err := second.Client.Jobs().Allocations(limited(t), "later", false, q)
		if err != nil {
			t.Fatal(err)
		}
		running = len(allocs) == 1 && allocs[0].ClientStatus == "running"
		q.WaitIndex = meta.LastIndex
	}
	if out := must(t, second, "operator", "sim", file); !strings.Contains(out, "as recorded at index") {
		t.Errorf("sim:\n%s", out)
	}
}

// must runs a command that has to succeed, and gives what it prints.
func must(t *testing.T, a *agent, args ...string) string {
	t.Helper()
	out, errs, code := a.cli("", args...)
	if code != 0 {
		t.Fatalf("%v: exit %d: %s%s", args, code, out, errs)
	}
	return out
}
