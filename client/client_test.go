package client

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/gc"
	"github.com/nomadlite/nomadlite/client/supervisor"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervisor" {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

type agent struct {
	t       testing.TB
	cfg     Config
	servers *fakeServers
	prepare func(*Client) // is given each new client first, when it is not nil
	client  *Client
	cancel  context.CancelFunc
	done    chan error
}

func newAgent(t testing.TB) *agent {
	t.Helper()
	a := &agent{t: t, servers: newFakeServers(t), cfg: Config{
		DataDir: t.TempDir(), NetworkInterface: "lo", NoCgroups: true,
		Drivers: map[string]DriverConfig{"raw_exec": {Enabled: structs.Ptr(true)}, "mock_driver": {Enabled: structs.Ptr(true)}},
	}}
	if os.Getenv("TEST_LOG") != "" {
		a.cfg.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug})
	}
	t.Cleanup(func() {
		a.end()
		a.endSupervisor()
		a.unmount()
	})
	return a
}

// start begins a life of the agent on its data dir.
func (a *agent) start() *agent {
	a.t.Helper()
	c, err := New(a.cfg)
	if err != nil {
		a.t.Fatal(err)
	}
	c.conn = a.servers
	if a.prepare != nil {
		a.prepare(c)
	}
	a.servers.connected = c.connected
	ctx, cancel := context.WithCancel(context.Background())
	a.client, a.cancel, a.done = c, cancel, make(chan error, 1)
	if err := c.Start(ctx); err != nil {
		a.t.Fatal(err)
	}
	go func() { a.done <- c.Run(ctx) }()
	return a
}

// end ends this life, as SIGTERM does.
func (a *agent) end() {
	if a.cancel == nil {
		return
	}
	a.cancel()
	if err := <-a.done; err != nil {
		a.t.Errorf("client ended with %v", err)
	}
	a.cancel = nil
}

// unmount removes the allocations' directories, whose secrets are mounts.
func (a *agent) unmount() {
	root := filepath.Join(a.cfg.DataDir, "alloc")
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		if err := allocdir.New(root, e.Name()).Destroy(); err != nil {
			a.t.Error(err)
		}
	}
}

func (a *agent) endSupervisor() {
	c := supervisor.NewClient(supervisor.Config{Dir: filepath.Join(a.cfg.DataDir, "client", "supervisor")})
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if entries, _ := os.ReadDir(filepath.Join(a.cfg.DataDir, "client", "supervisor")); len(entries) > 0 {
		tasks, _ := c.List(ctx)
		for _, t := range tasks {
			_ = c.Destroy(ctx, t.ID, true)
		}
		_ = c.Shutdown(ctx)
	}
}

func jobOf(id, kind string, tasks ...*structs.Task) *structs.Job {
	j := &structs.Job{
		ID: structs.Ptr(id), Name: structs.Ptr(id), Type: structs.Ptr(kind),
		TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"), Tasks: tasks}},
	}
	j.Canonicalize()
	for _, t := range tasks {
		t.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(0), Mode: structs.Ptr("fail"),
			Interval: structs.Ptr(time.Minute), Delay: structs.Ptr(time.Second)}
	}
	return j
}

func mockTask(config map[string]any) *structs.Task {
	return &structs.Task{Name: "t", Driver: "mock_driver", Config: config}
}

func shell(script string) *structs.Task {
	return &structs.Task{Name: "t", Driver: "raw_exec", KillTimeout: structs.Ptr(2 * time.Second),
		Config: map[string]any{"command": "/bin/sh", "args": []any{"-c", script}}}
}

func TestNodeRegistersReadyAndFresh(t *testing.T) {
	a := newAgent(t).start()
	a.servers.until("a fresh heartbeat", func() bool { return slices.Contains(a.servers.beats, true) })
	node := a.servers.nodes[0]
	if node.ID != a.client.NodeID() || node.SecretID == "" || node.Status != "initializing" || node.ComputedClass == "" {
		t.Fatalf("registered %+v", node)
	}
	for _, name := range []string{"driver.raw_exec", "driver.mock_driver"} {
		if node.Attributes[name] != "1" {
			t.Errorf("attribute %s is %q", name, node.Attributes[name])
		}
	}
	if err := a.client.Healthy(); err != nil {
		t.Error(err)
	}
	id := a.client.NodeID()
	a.end()
	if a.start(); a.client.NodeID() != id {
		t.Fatal("the node changed its id")
	}
}

func TestUnknownNodeRegistersAgain(t *testing.T) {
	a := newAgent(t)
	a.servers.forget = true
	a.start()
	a.servers.until("a second registration", func() bool { return len(a.servers.nodes) == 2 })
}

func TestBatchTaskRunsToItsEnd(t *testing.T) {
	a := newAgent(t).start()
	a.servers.assign("a1", jobOf("j", "batch", mockTask(map[string]any{"run_for": "20ms", "exit_code": 0})), nil)
	o := a.servers.untilStatus("a1", "complete")
	if got := a.servers.statuses["a1"]; got[len(got)-1] != "complete" {
		t.Fatalf("statuses %v", got)
	}
	var kinds []string
	for _, e := range o.TaskStates["t"].Events {
		kinds = append(kinds, e.Type)
	}
	if got := strings.Join(kinds, ", "); got != "Received, Task Setup, Started, Terminated" {
		t.Fatalf("events %q", got)
	}
}

func TestFailedTaskFailsTheAllocation(t *testing.T) {
	a := newAgent(t).start()
	a.servers.assign("a1", jobOf("j", "batch", mockTask(map[string]any{"exit_code": 7})), nil)
	a.servers.assign("a2", jobOf("k", "batch", shell("exit 5")), nil)
	a.servers.assign("a3", jobOf("l", "batch", &structs.Task{Name: "t", Driver: "raw_exec",
		Config: map[string]any{"command": "no-such-command-anywhere"}}), nil)
	a.servers.assign("a4", jobOf("m", "batch", &structs.Task{Name: "t", Driver: "raw_exec", Config: map[string]any{"comand": 1}}), nil)
	for id, want := range map[string]string{
		"a1": "Exit Code: 7", "a2": "Exit Code: 5", "a3": "no-such-command-anywhere", "a4": `"command" is missing`,
	} {
		o := a.servers.untilStatus(id, "failed")
		var texts []string
		for _, e := range o.TaskStates["t"].Events {
			texts = append(texts, e.DisplayMessage)
		}
		if all := strings.Join(texts, "\n"); !strings.Contains(all, want) {
			t.Errorf("%s: events do not tell %q:\n%s", id, want, all)
		}
	}
}

func TestReportIsRepeatedUntilTaken(t *testing.T) {
	a := newAgent(t)
	a.servers.fail = errUnwilling
	a.start()
	a.servers.assign("a1", jobOf("j", "batch", mockTask(nil)), nil)
	a.servers.untilStatus("a1", "complete")
}

func TestMisfitLeadsBackToTheCompleteSet(t *testing.T) {
	a := newAgent(t).start()
	a.servers.assign("a1", jobOf("j", "service", mockTask(map[string]any{"run_for": "1h"})), nil)
	a.servers.untilStatus("a1", "running")
	a.servers.mu.Lock()
	a.servers.lie = true
	a.servers.mu.Unlock()
	a.servers.assign("a2", jobOf("k", "batch", mockTask(nil)), nil)
	a.servers.untilStatus("a2", "complete")
	if a.servers.complete < 2 {
		t.Fatalf("%d complete sets", a.servers.complete)
	}
}

func TestAgentRestartKeepsTheProcess(t *testing.T) {
	a := newAgent(t).start()
	dir := t.TempDir()
	// The task writes its pid, waits for a file, and ends with a code.
	a.servers.assign("a1", jobOf("j", "batch", shell(
		`echo $$ >"`+dir+`/pid"; while [ ! -e "`+dir+`/go" ]; do sleep 0.02; done; exit 42`)), nil)
	a.servers.untilStatus("a1", "running")
	a.end()
	pid := waitFile(t, filepath.Join(dir, "pid"))
	a.start()
	o := a.servers.untilStatus("a1", "running")
	a.servers.until("reattached", func() bool {
		o = a.servers.seen["a1"]
		return slices.ContainsFunc(o.TaskStates["t"].Events, func(e *structs.TaskEvent) bool { return e.Type == "Reattached" })
	})
	if again := waitFile(t, filepath.Join(dir, "pid")); again != pid {
		t.Fatalf("pid was %s, is %s", pid, again)
	}
	a.end()
	// It ends while no agent looks.
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waitGone(t, pid)
	a.start()
	o = a.servers.untilStatus("a1", "failed")
	events := o.TaskStates["t"].Events
	if !slices.ContainsFunc(events, func(e *structs.TaskEvent) bool { return e.Type == "Terminated" && e.ExitCode == 42 }) {
		t.Fatalf("events %+v", events)
	}
}

// waitFile waits for a file that another process writes.
func waitFile(t *testing.T, path string) string {
	t.Helper()
	return poll(t, path, func() (string, bool) {
		data, _ := os.ReadFile(path)
		return strings.TrimSpace(string(data)), len(data) > 0
	})
}

func waitGone(t *testing.T, pid string) {
	t.Helper()
	poll(t, "the end of "+pid, func() (string, bool) {
		data, err := os.ReadFile("/proc/" + pid + "/stat")
		return "", err != nil || strings.Contains(string(data), ") Z ")
	})
}

// poll is for what other processes do, which cannot be awaited as an event.
func poll(t *testing.T, what string, f func() (string, bool)) string {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); <-tick.C {
		if v, ok := f(); ok {
			return v
		}
	}
	t.Fatalf("waited in vain for %s", what)
	return ""
}

func TestStopWhileTheAgentIsAway(t *testing.T) {
	a := newAgent(t).start()
	a.servers.assign("a1", jobOf("j", "service", shell("exec sleep 1000")), nil)
	a.servers.untilStatus("a1", "running")
	a.end()
	a.servers.stop("a1")
	a.start()
	a.servers.untilStatus("a1", "complete")
}

func TestVanishedAssignmentIsStoppedAndForgotten(t *testing.T) {
	a := newAgent(t).start()
	a.servers.assign("a1", jobOf("j", "service", shell("exec sleep 1000")), nil)
	a.servers.untilStatus("a1", "running")
	a.servers.remove("a1")
	// Its end may be reported or not: it is forgotten at once, and the servers do not know it any more.
	poll(t, "the end of its directory", func() (string, bool) {
		_, err := os.Stat(filepath.Join(a.cfg.DataDir, "alloc", "a1"))
		return "", os.IsNotExist(err)
	})
	a.end()
	a.start()
	if n := len(a.client.held); n != 0 {
		t.Fatalf("%d allocations are still held", n)
	}
}

func TestStoppedAllocationThatNeverBeganIsReported(t *testing.T) {
	a := newAgent(t)
	a.servers.assign("a1", jobOf("j", "service", mockTask(nil)), func(al *structs.Allocation) { al.DesiredStatus = "stop" })
	a.start()
	a.servers.untilStatus("a1", "complete")
}

func TestReplacementWaitsForItsPredecessor(t *testing.T) {
	a := newAgent(t).start()
	old := mockTask(map[string]any{"run_for": "1h", "kill_after": "50ms"})
	a.servers.assign("a1", jobOf("j", "service", old), nil)
	a.servers.untilStatus("a1", "running")
	a.servers.assign("a2", jobOf("j2", "service", mockTask(map[string]any{"run_for": "1h"})),
		func(al *structs.Allocation) { al.PreviousAllocation = "a1" })
	a.servers.stop("a1")
	first := a.servers.untilStatus("a1", "complete")
	second := a.servers.untilStatus("a2", "running")
	if ended, began := first.TaskStates["t"].FinishedAt, second.TaskStates["t"].StartedAt; began.Before(ended) {
		t.Fatalf("began at %s, before %s", began, ended)
	}
}

func TestThirdGenerationWaitsForTheFirstOnItsNode(t *testing.T) {
	a := newAgent(t).start()
	a.servers.assign("a1", jobOf("j", "service", mockTask(map[string]any{"run_for": "1h", "kill_after": "100ms"})),
		func(al *structs.Allocation) { al.CreateIndex = 1 })
	a.servers.untilStatus("a1", "running")
	follows := func(id string, index uint64) func(al *structs.Allocation) {
		return func(al *structs.Allocation) { al.PreviousAllocation, al.CreateIndex = id, index }
	}
	a.servers.assign("a2", jobOf("j2", "service", mockTask(map[string]any{"run_for": "1h"})), follows("a1", 2))
	a.servers.assign("a3", jobOf("j3", "service", mockTask(map[string]any{"run_for": "1h"})), follows("a2", 3))
	a.servers.stop("a2") // it has not begun and ends at once
	a.servers.untilStatus("a2", "complete")
	a.servers.stop("a1")
	first := a.servers.untilStatus("a1", "complete")
	third := a.servers.untilStatus("a3", "running")
	if ended, began := first.TaskStates["t"].FinishedAt, third.TaskStates["t"].StartedAt; began.Before(ended) {
		t.Fatalf("began at %s, before %s", began, ended)
	}
}

func TestGarbageIsCollectedAndStaysForgotten(t *testing.T) {
	a := newAgent(t)
	a.cfg.GC = gc.Limits{MaxAllocs: 1}
	a.start()
	for _, id := range []string{"a1", "a2", "a3"} {
		a.servers.assign(id, jobOf("j"+id, "batch", mockTask(nil)), nil)
		a.servers.untilStatus(id, "complete")
	}
	poll(t, "that the node knows its reports to have arrived", func() (string, bool) {
		known, tracked := a.client.candidates()
		return "", len(known) == tracked
	})
	a.client.CollectAll(context.Background())
	for _, id := range []string{"a1", "a2", "a3"} {
		if _, err := os.Stat(filepath.Join(a.cfg.DataDir, "alloc", id)); !os.IsNotExist(err) {
			t.Errorf("directory of %s is still there", id)
		}
	}
	// They are still assigned. A restarted agent must not run them again.
	a.end()
	before := len(a.servers.statuses["a1"])
	a.start()
	a.servers.until("fresh again", func() bool { return len(a.servers.beats) > 0 && a.servers.beats[len(a.servers.beats)-1] })
	if after := len(a.servers.statuses["a1"]); after != before || a.servers.seen["a1"].ObservedStatus != "complete" {
		t.Fatalf("statuses %v", a.servers.statuses["a1"])
	}
}

func TestDevAgentTakesItsTasksAlong(t *testing.T) {
	a := newAgent(t)
	a.cfg.DevMode = true
	a.start()
	dir := t.TempDir()
	task := shell(`trap "" INT TERM; echo $$ >"` + dir + `/pid"; while :; do sleep 0.1; done`)
	task.ShutdownDelay, task.KillTimeout = time.Hour, structs.Ptr(time.Hour)
	a.servers.assign("a1", jobOf("j", "service", task), nil)
	a.servers.untilStatus("a1", "running")
	pid := waitFile(t, filepath.Join(dir, "pid"))
	a.end()
	waitGone(t, pid)
}

func TestNewerStateIsRefused(t *testing.T) {
	a := newAgent(t).start()
	a.end()
	path := filepath.Join(a.cfg.DataDir, "client", "state.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("version"), []byte{0, 0, 0, 0, 0, 0, 1, 0})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := New(a.cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "newer version") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("error %v", err)
	}
}

func TestBadConfigurationIsToldAtOnce(t *testing.T) {
	_, err := New(Config{MinDynamicPort: 70000, Reserved: Config{}.Reserved, NodePool: "all"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"data_dir", "70000", "node_pool"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %s: %v", want, err)
		}
	}
	c, err := New(Config{DataDir: t.TempDir(), Drivers: map[string]DriverConfig{
		"raw_exec": {Enabled: structs.Ptr(true), Options: map[string]any{"no_such_key": 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(context.Background()); err == nil || !strings.Contains(err.Error(), "no_such_key") {
		t.Fatalf("error %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
