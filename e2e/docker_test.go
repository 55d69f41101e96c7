package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/client/drivertest"
	"github.com/nomadlite/nomadlite/structs"
)

// TestAContainer runs a web server beside a counter in containers, and kills the agent under them.
func TestAContainer(t *testing.T) {
	if why := drivertest.DockerdMissing(); why != "" {
		t.Skip(why)
	}
	dir, err := os.MkdirTemp("", "engine") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	engine, err := drivertest.StartDockerd(limited(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := engine.ImportBusybox(limited(t), "busybox", "1"); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, func(c map[string]any) {
		c["plugin"] = map[string]any{"docker": map[string]any{"config": map[string]any{"endpoint": "unix://" + engine.Socket}}}
	})
	a.Start()
	const lines, kill = 3000, 200
	script := fmt.Sprintf(`cd /local; echo "$NOMAD_ALLOC_DIR $NOMAD_SECRETS_DIR" >index.html
		busybox httpd -p 127.0.0.1:8080 -h /local || exit 9
		n=0; while [ $n -lt %d ]; do echo line-$n; n=$((n+1)); [ $((n %% 100)) = 0 ] && sleep 0.05; done; trap "exit 0" INT; sleep 600 & wait`, lines)
	register(t, a.Client, job("box", "", func(_ *structs.Job, _ *structs.TaskGroup, task *structs.Task) {
		task.Driver = "docker"
		task.Config = map[string]any{"image": "busybox:1", "network_mode": "none", "command": "/bin/sh", "args": []any{"-c", script}}
	}))
	stub := awaitRunning(t, a.Client, "box", 1)[0]
	followLines(t, a, stub.ID, 0, kill, 0, map[int]func(){kill: func() { a.Kill() }})
	a.Start()
	followLines(t, a, stub.ID, 0, lines, 0, nil)
	after := awaitRunning(t, a.Client, "box", 1)[0]
	if after.ID != stub.ID || after.TaskStates["t"].Restarts != 0 {
		t.Errorf("it was not taken over: %+v", after.TaskStates["t"])
	}
	out, errs, code := a.cli("", "alloc", "exec", stub.ID, "/bin/sh", "-c", "busybox wget -qO- http://127.0.0.1:8080/; exit 3")
	if out != "/alloc /secrets\n" || code != 3 {
		t.Errorf("exec: %q %q %d", out, errs, code)
	}
	if _, errs, code := a.cli("", "job", "stop", "box"); code != 0 {
		t.Fatalf("stop: %s", errs)
	}
	awaitAllocs(t, a.Client, "box", "the end of its allocation", func(l []*structs.AllocationListStub) bool {
		return len(withStatus(l, structs.AllocClientStatusComplete)) == 1
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	running, err := exec.CommandContext(ctx, "docker", "-H", "unix://"+engine.Socket, "ps", "-q").Output()
	if err != nil || strings.TrimSpace(string(running)) != "" {
		t.Errorf("containers that still run: %q %v", running, err)
	}
}
