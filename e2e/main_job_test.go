package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// TestRunServeLogStop takes a real web server from its jobspec to its stop by the command line.
func TestRunServeLogStop(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	hello := filepath.Join(a.Dir, "hello")
	if out, err := exec.Command("go", "build", "-o", hello, "github.com/nomadlite/nomadlite/examples/hello").CombinedOutput(); err != nil {
		t.Fatalf("build hello: %v\n%s", err, out)
	}
	spec, err := filepath.Abs("../examples/hello.nomad.hcl")
	if err != nil {
		t.Fatal(err)
	}
	out, errs, code := a.cli("", "job", "run", "-var", "hello="+hello, "-var", "greeting=Servus", spec)
	if code != 0 || !strings.Contains(out, "Monitoring evaluation") {
		t.Fatalf("job run: exit %d\n%s\n%s", code, out, errs)
	}
	stub := awaitRunning(t, a.Client, "hello", 1)[0]
	alloc, _, err := a.Client.Allocations().Info(limited(t), stub.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(alloc.AllocatedResources.Shared.Ports) != 1 {
		t.Fatalf("ports: %+v", alloc.AllocatedResources.Shared.Ports)
	}
	port := alloc.AllocatedResources.Shared.Ports[0]
	url := fmt.Sprintf("http://%s:%d/", port.HostIP, port.Value)
	if a.followLog(alloc.ID, "listening on"); !strings.Contains(get(t, url), "Servus from server") {
		t.Fatalf("page: %s", get(t, url))
	}
	a.followLog(alloc.ID, "request GET /") // the output reaches its file on its own way
	out, errs, code = a.cli("", "alloc", "logs", alloc.ID[:8])
	if code != 0 || !strings.Contains(out, "request GET /") {
		t.Fatalf("alloc logs: exit %d\n%s\n%s", code, out, errs)
	}
	out, _, code = a.cli("", "job", "status", "hello")
	if code != 0 || !strings.Contains(out, alloc.ID[:8]) || !strings.Contains(out, "running") {
		t.Fatalf("job status: exit %d\n%s", code, out)
	}
	out, _, code = a.cli("", "alloc", "status", alloc.ID[:8])
	if code != 0 || !strings.Contains(out, "Task started by client") {
		t.Fatalf("alloc status: exit %d\n%s", code, out)
	}
	begin := time.Now()
	if out, errs, code = a.cli("", "job", "stop", "-no-shutdown-delay", "hello"); code != 0 {
		t.Fatalf("job stop: exit %d\n%s\n%s", code, out, errs)
	}
	awaitStatus(t, a.Client, "hello", structs.AllocClientStatusComplete)
	if took := time.Since(begin); took > 10*time.Second { // the group's shutdown_delay is 20 s
		t.Errorf("stop took %s although its shutdown delay was to be skipped", took)
	}
	if _, err := http.Get(url); err == nil {
		t.Error("the page still answers after the stop")
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// followLog follows a task's output until it holds text.
func (a *agent) followLog(allocID, text string) {
	a.t.Helper()
	task := "t"
	if alloc, _, err := a.Client.Allocations().Info(limited(a.t), allocID, nil); err == nil {
		task = alloc.Job.LookupTaskGroup(alloc.TaskGroup).Tasks[0].Name
	}
	frames, err := a.Client.AllocFS().Logs(limited(a.t), allocID, api.LogOptions{Task: task, Follow: true}, nil)
	if err != nil {
		a.t.Fatalf("follow log: %v", err)
	}
	defer frames.Close()
	seen := ""
	buf := make([]byte, 4096)
	for !strings.Contains(seen, text) {
		n, err := frames.Read(buf)
		seen += string(buf[:n])
		if err != nil {
			a.t.Fatalf("follow log: %v; seen %q, want %q", err, seen, text)
		}
	}
}

func TestBatchJobWithItsExitCode(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	for _, c := range []struct {
		id, script string
		status     string
		code       string
	}{
		{"good", "echo done", structs.AllocClientStatusComplete, "0"},
		{"bad", "exit 7", structs.AllocClientStatusFailed, "7"},
	} {
		j := job(c.id, c.script, func(j *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
			j.Type = structs.Ptr("batch")
			g.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(0), Mode: structs.Ptr("fail")}
			g.ReschedulePolicy = &structs.ReschedulePolicy{Attempts: structs.Ptr(0), Unlimited: structs.Ptr(false)}
		})
		register(t, a.Client, j)
		stub := awaitStatus(t, a.Client, c.id, c.status)
		if got := exitCode(stub.TaskStates["t"]); got != c.code {
			t.Errorf("%s: exit code %s, want %s: %s", c.id, got, c.code, describe([]*structs.AllocationListStub{stub}))
		}
	}
	for _, id := range []string{"good", "bad"} { // once the evaluation of its end is decided
		awaitJobStatus(t, a.Client, id, structs.JobStatusDead)
	}
}

// exitCode finds the exit code in a task's events.
func exitCode(s *structs.TaskState) string {
	if s == nil {
		return "no state"
	}
	for _, e := range s.Events {
		if e.Type == structs.TaskTerminated {
			return fmt.Sprint(e.ExitCode)
		}
	}
	return "none"
}

func TestAFullClusterBlocksAJobAndPlacesItOnceThereIsRoom(t *testing.T) {
	a := newAgent(t, func(c map[string]any) {
		c["client"] = map[string]any{"enabled": true, "memory_total_mb": 1000, "cpu_total_compute": 4000}
	})
	a.Start()
	sized := func(id string, mb int) *structs.Job {
		return job(id, "exec sleep 600", func(_ *structs.Job, _ *structs.TaskGroup, task *structs.Task) {
			task.Resources.MemoryMB = structs.Ptr(mb)
		})
	}
	register(t, a.Client, sized("first", 700))
	awaitRunning(t, a.Client, "first", 1)
	answer := register(t, a.Client, sized("second", 700))
	eval := awaitEval(t, a.Client, answer.EvalID)
	metric := eval.FailedTGAllocs["g"]
	if metric == nil || metric.DimensionExhausted["memory"] != 1 || eval.BlockedEval == "" {
		t.Fatalf("evaluation does not explain itself: %+v, blocked %q", metric, eval.BlockedEval)
	}
	out, _, _ := a.cli("", "job", "status", "second")
	if !strings.Contains(out, `Dimension "memory" exhausted on 1 nodes`) {
		t.Errorf("job status does not explain the failure:\n%s", out)
	}
	if _, _, err := a.Client.Jobs().Deregister(limited(t), "first", nil, nil); err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, a.Client, "second", 1)
	blocked, _, err := a.Client.Evaluations().Info(limited(t), eval.BlockedEval, nil)
	if err != nil {
		t.Fatal(err)
	}
	if blocked.Status != structs.EvalStatusComplete {
		t.Errorf("blocked evaluation is %s", blocked.Status)
	}
}

// TestTheOfficialClient drives the main path through the ecosystem's own Go client.
func TestTheOfficialClient(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	client, err := nomad.NewClient(&nomad.Config{Address: a.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	source, err := os.ReadFile("testdata/official.nomad.hcl")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := client.Jobs().ParseHCL(string(source), true)
	if err != nil {
		t.Fatal(err)
	}
	answer, _, err := client.Jobs().Register(parsed, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.EvalID == "" {
		t.Fatal("no evaluation")
	}
	alloc := awaitRunning(t, a.Client, "official", 1)[0]
	info, meta, err := client.Allocations().Info(alloc.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if info.Job == nil || *info.Job.ID != "official" || meta.LastIndex == 0 || !meta.KnownLeader {
		t.Fatalf("allocation %+v, meta %+v", info, meta)
	}
	a.followLog(alloc.ID, "ready")
	cancel := make(chan struct{})
	defer close(cancel)
	frames, failed := client.AllocFS().Logs(info, false, "t", "stdout", "start", 0, cancel, nil)
	select {
	case f := <-frames:
		if !strings.Contains(string(f.Data), "ready") {
			t.Errorf("log frame %q", f.Data)
		}
	case err := <-failed:
		t.Fatal(err)
	case <-time.After(waitLimit):
		t.Fatal("no log frame")
	}
	if err := client.Allocations().Signal(info, nil, "t", "SIGUSR1"); err != nil {
		t.Fatal(err)
	}
	a.followLog(alloc.ID, "got USR1")
	list, _, err := client.Allocations().List(&nomad.QueryOptions{Prefix: alloc.ID[:8]})
	if err != nil || len(list) != 1 {
		t.Fatalf("list by prefix: %v %v", list, err)
	}
	nodes, _, err := client.Nodes().List(nil)
	if err != nil || len(nodes) != 1 || nodes[0].Status != "ready" {
		t.Fatalf("nodes: %+v %v", nodes, err)
	}
	if _, _, err := client.Jobs().Deregister("official", true, nil); err != nil {
		t.Fatal(err)
	}
}
