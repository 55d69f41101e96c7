package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/e2e/proc"
	"github.com/nomadlite/nomadlite/structs"
)

func TestJobspecFaultsNameTheirPlaceAllAtOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "bad.nomad.hcl")
	text := "job \"bad\" {\n  prioritty = 10\n  group \"g\" {\n    cuont = 2\n    task \"t\" {\n      driver = \"raw_exec\"\n      kill_timeout = \"5 seconds\"\n    }\n  }\n}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := runCLI(t, "http://127.0.0.1:1", dir, "", "job", "run", "bad.nomad.hcl")
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, want := range []string{"bad.nomad.hcl:2:3", "prioritty = 10", `Did you mean "priority"?`, "bad.nomad.hcl:4:5", `Did you mean "count"?`,
		"bad.nomad.hcl:7:22", `"5 seconds" is no duration`} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q in:\n%s", want, errs)
		}
	}
	_, errs, code = runCLI(t, "http://127.0.0.1:1", dir, "", "job", "run", "absent.nomad.hcl")
	if code != 1 || !strings.Contains(errs, "absent.nomad.hcl") {
		t.Errorf("missing file: exit %d, %s", code, errs)
	}
}

func TestBadRequestsAreRefusedClearly(t *testing.T) {
	a := newAgent(t, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })
	a.Start()
	long := `{"Job": {"ID": "` + strings.Repeat("x", 40<<20) + `"}}`
	for _, c := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"PUT", "/v1/jobs", "{", 400, ""},
		{"PUT", "/v1/jobs", "", 400, ""},
		{"PUT", "/v1/jobs", `{"Job": null}`, 400, "Job"},
		{"PUT", "/v1/jobs", `{"Job": {"ID": 7}}`, 400, "ID"},
		{"PUT", "/v1/jobs", `{"Job": {"ID": "x", "Type": "odd", "TaskGroups": [{"Name": "g", "Count": -1}]}}`, 500, "odd"},
		{"PUT", "/v1/jobs", long, 413, ""},
		{"GET", "/v1/jobs?index=abc", "", 400, "index"},
		{"GET", "/v1/jobs?index=1&wait=soon", "", 400, "wait"},
		{"GET", "/v1/jobs?per_page=many", "", 400, "per_page"},
		{"GET", "/v1/job/none", "", 404, "not found"},
		{"GET", "/v1/allocation/8ba85cef-22b2-4d6a-8b1a-000000000000", "", 404, "not found"},
		{"GET", "/v1/node/8ba85cef-22b2-4d6a-8b1a-000000000000", "", 404, "not found"},
		{"GET", "/v1/evaluation/8ba85cef-22b2-4d6a-8b1a-000000000000", "", 404, "not found"},
		{"GET", "/v1/client/fs/ls/8ba85cef-22b2-4d6a-8b1a-000000000000", "", 404, ""},
		{"GET", "/v1/nothing/here", "", 404, ""},
		{"DELETE", "/v1/jobs", "", 405, ""},
		{"POST", "/v1/status/leader", "", 405, ""},
		{"DELETE", "/v1/job/none?purge=maybe", "", 400, "purge"},
		{"PUT", "/v1/allocation/8ba85cef-22b2-4d6a-8b1a-000000000000/stop", "", 404, ""},
	} {
		req, err := http.NewRequest(c.method, a.Addr()+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("%s %s: %v", c.method, c.path, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(body), c.text) {
			t.Errorf("%s %s %.60q: status %d, want %d: %s", c.method, c.path, c.body, resp.StatusCode, c.status, body)
		}
		if bytes.Contains(body, []byte("goroutine")) || bytes.Contains(body, []byte(".go:")) {
			t.Errorf("%s %s shows its inside: %s", c.method, c.path, body)
		}
	}
	if strings.Contains(a.Log(), "panic") {
		t.Errorf("the agent panicked:\n%s", a.Log())
	}
}

// refused starts an agent which must end with code 1 and one clear line.
func refused(t *testing.T, file string, want string) {
	t.Helper()
	cmd := exec.Command(proc.Binary(t), "agent", "-config", file)
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit code %d, want 1\n%s", cmd.ProcessState.ExitCode(), out)
	}
	var said []string
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if strings.Contains(line, want) {
			said = append(said, line)
		}
	}
	if len(said) != 1 {
		t.Errorf("want one line with %q, got:\n%s", want, out)
	}
	if strings.Contains(string(out), "goroutine ") {
		t.Errorf("a panic:\n%s", out)
	}
}

func writeConfig(t *testing.T, dir, text string) string {
	t.Helper()
	file := filepath.Join(dir, "agent.hcl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheAgentRefusesWhatItCannotDo(t *testing.T) {
	config := func(t *testing.T, dataDir, more string) string {
		p := proc.FreePorts(t, 3)
		return fmt.Sprintf("data_dir = %q\nbind_addr = \"127.0.0.1\"\nports {\n  http = %d\n  rpc = %d\n  serf = %d\n}\nserver {\n  enabled = true\n  bootstrap_expect = 1\n}\n%s",
			dataDir, p[0], p[1], p[2], more)
	}
	t.Run("unknown key", func(t *testing.T) {
		dir := t.TempDir()
		refused(t, writeConfig(t, dir, "data_dir = \"/tmp/x\"\nclient {\n  enabledd = true\n}\n"), `agent.hcl:3:3: `)
	})
	t.Run("port in use", func(t *testing.T) {
		dir := t.TempDir()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		p := proc.FreePorts(t, 2)
		text := fmt.Sprintf("data_dir = %q\nbind_addr = \"127.0.0.1\"\nports {\n  http = %d\n  rpc = %d\n  serf = %d\n}\nserver {\n  enabled = true\n  bootstrap_expect = 1\n}\n",
			filepath.Join(dir, "data"), port, p[0], p[1])
		refused(t, writeConfig(t, dir, text), fmt.Sprintf("127.0.0.1:%d: bind: address already in use: stop what listens there", port))
	})
	t.Run("data_dir that cannot be written", func(t *testing.T) {
		dir := t.TempDir()
		blocked := filepath.Join(dir, "file")
		if err := os.WriteFile(blocked, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, writeConfig(t, dir, config(t, filepath.Join(blocked, "data"), "")), blocked)
	})
	t.Run("data_dir of a newer version", func(t *testing.T) {
		a := newAgent(t, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })
		a.Start()
		register(t, a.Client, job("kept", "true", func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) { g.Count = structs.Ptr(0) }))
		a.Kill()
		version := filepath.Join(a.Dir, "data", "VERSION")
		was, err := os.ReadFile(version)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(version, []byte("999\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, writeConfig(t, a.Dir, config(t, filepath.Join(a.Dir, "data"), "")), "newer")
		if err := os.WriteFile(version, was, 0o600); err != nil {
			t.Fatal(err)
		}
		a.Start()
		if _, _, err := a.Client.Jobs().Info(limited(t), "kept", nil); err != nil {
			t.Errorf("the refused start damaged the data: %v", err)
		}
	})
	t.Run("two agents on one data_dir", func(t *testing.T) {
		a := newAgent(t, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })
		a.Start()
		refused(t, writeConfig(t, a.Dir, config(t, filepath.Join(a.Dir, "data"), "")), "in use")
	})
}

func TestATaskCommandThatDoesNotExist(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	j := job("typo", "", func(j *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		j.Type = structs.Ptr("batch")
		task.Config = map[string]any{"command": "/no/such/program"}
		g.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(1), Delay: structs.Ptr(structs.DefaultKillTimeout / 50), Mode: structs.Ptr("fail")}
		g.ReschedulePolicy = &structs.ReschedulePolicy{Attempts: structs.Ptr(0), Unlimited: structs.Ptr(false)}
	})
	register(t, a.Client, j)
	alloc := awaitStatus(t, a.Client, "typo", structs.AllocClientStatusFailed)
	var failure, restart bool
	for _, e := range alloc.TaskStates["t"].Events {
		failure = failure || e.Type == structs.TaskDriverFailure && strings.Contains(e.DisplayMessage, "/no/such/program")
		restart = restart || e.Type == structs.TaskRestarting
	}
	if !failure || !restart {
		t.Errorf("events: %s", describe([]*structs.AllocationListStub{alloc}))
	}
}

func TestUnknownIdsOnTheCommandLine(t *testing.T) {
	a := newAgent(t, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })
	a.Start()
	for _, args := range [][]string{{"job", "stop", "none"}, {"job", "status", "none"}, {"alloc", "status", "0000"}, {"alloc", "logs", "0000"},
		{"node", "status", "0000"}, {"eval", "status", "0000"}, {"job", "inspect", "none"}, {"status", "none"}} {
		out, errs, code := a.cli("", args...)
		if code != 1 || errs == "" || strings.Contains(errs, "goroutine") {
			t.Errorf("%v: exit %d\n%s\n%s", args, code, out, errs)
		}
	}
}
