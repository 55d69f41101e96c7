package drivertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/logs"
	"github.com/nomadlite/nomadlite/structs"
)

// Config is the config block of a task.
type Config = map[string]any

// Suite describes a driver to the tests.
type Suite struct {
	// Open makes the driver as the next agent of the same node would: tasks of the one before are recovered by handle.
	Open func(t *testing.T) driver.Driver
	// Forgets says that what Open makes knows of earlier tasks by handle alone: none runs while no agent does.
	Forgets bool
	// Exit ends at once with a code.
	Exit func(code int) Config
	// Run runs until it is stopped.
	Run func() Config
	// RunFor runs for a while and then ends with a code.
	RunFor func(d time.Duration, code int) Config
	// Stubborn ignores SIGINT and SIGTERM, and writes "ready" to its output when it does.
	Stubborn func() Config
	// OnSignal writes "ready", then ends with a code when SIGUSR1 comes.
	OnSignal func(code int) Config
	// Output writes text to its output and ends.
	Output func(stdout, stderr string) Config
	// Tree makes a child, and a grandchild in a session of its own whose parent has died, writes their process ids to
	// a file, one a line, and stays.
	Tree func(file string) Config
	// Bomb makes processes without end, in sessions of their own and without the task's environment, and makes a directory
	// once it does so.
	Bomb func(dir string) Config
	// Hungry takes more and more memory. It is nil where memory is not limited.
	Hungry func() Config
	// Env writes a variable to its output and ends.
	Env func(name string) Config
	// Missing names a command that does not exist.
	Missing func() Config
	// Bad are config blocks with the faults which must all be told.
	Bad []BadConfig
}

// BadConfig is a faulty config block.
type BadConfig struct {
	Config Config
	Faults []string // parts of the error's text
}

// limit is how long a test waits for what must come.
const limit = 20 * time.Second

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	tests := []struct {
		name string
		able bool
		fn   func(*testing.T, *bench)
	}{
		{"exit codes", s.Exit != nil, testExit},
		{"many starts and stops side by side", s.Run != nil, testConcurrent},
		{"stop", s.Run != nil, testStop},
		{"stop of a stubborn task", s.Stubborn != nil, testStubborn},
		{"shortened stop", s.Stubborn != nil, testShortened},
		{"stop without patience", s.Stubborn != nil, testImmediate},
		{"signal", s.OnSignal != nil, testSignal},
		{"signal that does not exist", s.Run != nil, testBadSignal},
		{"whole tree is killed", s.Tree != nil, testTree},
		{"fork bomb is killed", s.Bomb != nil, testBomb},
		{"memory over the limit", s.Hungry != nil, testHungry},
		{"memory without limit", s.Hungry != nil && s.Exit != nil, testModest},
		{"recover running", s.Run != nil, testRecoverRunning},
		{"recover ended meanwhile", s.RunFor != nil, testRecoverEnded},
		{"recover unknown", s.Run != nil, testRecoverUnknown},
		{"find by id", s.Run != nil && s.RunFor != nil, testFind},
		{"destroy", s.Run != nil, testDestroy},
		{"inspect", s.Run != nil, testInspect},
		{"stats", s.Stubborn != nil, testStats},
		{"output", s.Output != nil, testOutput},
		{"output of two attempts", s.Output != nil, testOutputAgain},
		{"output off", s.Output != nil, testOutputOff},
		{"environment", s.Env != nil, testEnv},
		{"missing command", s.Missing != nil, testMissing},
		{"bad config", len(s.Bad) > 0, testBadConfig},
		{"wait ends with its context", s.Run != nil, testWaitContext},
	}
	for _, tt := range tests {
		if !tt.able {
			continue
		}
		t.Run(tt.name, func(t *testing.T) { tt.fn(t, newBench(t, s)) })
	}
}

// bench is one test's node.
type bench struct {
	t     *testing.T
	ctx   context.Context
	suite Suite
	d     driver.Driver
	alloc *allocdir.Dir
	n     int
}

func newBench(t *testing.T, s Suite) *bench {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	alloc := allocdir.New(t.TempDir(), "11111111-2222-3333-4444-"+fmt.Sprintf("%012d", os.Getpid()))
	t.Cleanup(func() {
		if err := alloc.Destroy(); err != nil {
			t.Error(err)
		}
	})
	if err := alloc.Build(); err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, ctx: ctx, suite: s, d: s.Open(t), alloc: alloc}
}

// task makes the configuration of a new task.
func (b *bench) task(config Config) *driver.TaskConfig {
	b.n++
	name := fmt.Sprintf("task%d", b.n)
	return b.attempt(name, 0, config)
}

func (b *bench) attempt(name string, attempt int, config Config) *driver.TaskConfig {
	b.t.Helper()
	if err := b.alloc.BuildTask(allocdir.Task{Name: name}); err != nil {
		b.t.Fatal(err)
	}
	allocID := filepath.Base(b.alloc.Path)
	return &driver.TaskConfig{
		ID: fmt.Sprintf("%s/%s/%d", allocID, name, attempt), AllocID: allocID, JobID: "job", Group: "group", Task: name, Namespace: "default",
		Env:    map[string]string{"PATH": os.Getenv("PATH"), "NOMAD_ALLOC_ID": allocID, "NOMAD_TASK_NAME": name, "GREETING": "hello"},
		Config: config, Resources: &structs.AllocatedTaskResources{},
		AllocDir: b.alloc.SharedDir(), TaskDir: b.alloc.TaskDir(name),
		StdoutPath: logs.FIFOPath(b.alloc.LogDir(), name, logs.Stdout), StderrPath: logs.FIFOPath(b.alloc.LogDir(), name, logs.Stderr),
		MaxLogFiles: 3, LogFileBytes: 1 << 20,
	}
}

// start starts a task, and sees to it that it is gone after the test.
func (b *bench) start(cfg *driver.TaskConfig) *driver.Handle {
	b.t.Helper()
	h, err := b.d.Start(b.ctx, cfg)
	if err != nil {
		b.t.Fatalf("start: %v", err)
	}
	d := b.d
	b.t.Cleanup(func() {
		if err := d.Destroy(context.Background(), cfg.ID, true); err != nil && !errors.Is(err, driver.ErrTaskNotFound) {
			b.t.Errorf("destroy: %v", err)
		}
	})
	return h
}

func (b *bench) wait(id string) *driver.ExitResult {
	b.t.Helper()
	r, err := b.d.Wait(b.ctx, id)
	if err != nil {
		b.t.Fatalf("wait: %v", err)
	}
	return r
}

// awaitOutput reads a task's output until it holds text.
func (b *bench) awaitOutput(task, text string) {
	b.t.Helper()
	s, err := logs.Open(b.alloc, task, logs.Stdout, logs.OriginStart, 0, true)
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.Close()
	var got strings.Builder
	for !strings.Contains(got.String(), text) {
		f, err := s.Next(b.ctx)
		if err != nil {
			b.t.Fatalf("waiting for %q in output: %v; got %q", text, err, got.String())
		}
		got.Write(f.Data)
	}
}

// output is all of a task's output so far.
func (b *bench) output(task, kind string) string {
	b.t.Helper()
	s, err := logs.Open(b.alloc, task, kind, logs.OriginStart, 0, false)
	if structs.ErrorCode(err) == structs.CodeNotFound {
		return ""
	}
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.Close()
	var got strings.Builder
	for {
		f, err := s.Next(b.ctx)
		if err != nil {
			return got.String()
		}
		got.Write(f.Data)
	}
}

func testExit(t *testing.T, b *bench) {
	for _, code := range []int{0, 1, 42, 255} {
		cfg := b.task(b.suite.Exit(code))
		b.start(cfg)
		r := b.wait(cfg.ID)
		if !r.Known || r.ExitCode != code || r.Signal != 0 || r.Successful() != (code == 0) {
			t.Errorf("exit %d: got %+v", code, r)
		}
		if again := b.wait(cfg.ID); again.ExitCode != code {
			t.Errorf("second wait: got %+v", again)
		}
	}
}

func testConcurrent(t *testing.T, b *bench) {
	var wg sync.WaitGroup
	for range 20 {
		cfg := b.task(b.suite.Run())
		wg.Go(func() {
			if _, err := b.d.Start(b.ctx, cfg); err != nil {
				t.Errorf("start: %v", err)
				return
			}
			if err := b.d.Stop(b.ctx, cfg.ID, "SIGTERM", limit); err != nil {
				t.Errorf("stop: %v", err)
			}
			if _, err := b.d.Wait(b.ctx, cfg.ID); err != nil {
				t.Errorf("wait: %v", err)
			}
			if err := b.d.Destroy(b.ctx, cfg.ID, false); err != nil {
				t.Errorf("destroy: %v", err)
			}
		})
	}
	wg.Wait()
}

func testStop(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Run())
	b.start(cfg)
	if err := b.d.Stop(b.ctx, cfg.ID, "SIGTERM", limit); err != nil {
		t.Fatal(err)
	}
	if r := b.wait(cfg.ID); !r.Known || (r.Signal != int(syscall.SIGTERM) && r.ExitCode == 0 && r.Signal == 0 && r.Err != nil) {
		t.Errorf("got %+v", r)
	}
	if err := b.d.Stop(b.ctx, cfg.ID, "SIGTERM", limit); err != nil {
		t.Errorf("stop of a task that has ended: %v", err)
	}
	if err := b.d.Stop(b.ctx, "nobody", "SIGTERM", 0); !errors.Is(err, driver.ErrTaskNotFound) {
		t.Errorf("stop of an unknown task: %v", err)
	}
}

func testStubborn(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Stubborn())
	b.start(cfg)
	b.awaitOutput(cfg.Task, "ready")
	const patience = 300 * time.Millisecond
	began := time.Now()
	if err := b.d.Stop(b.ctx, cfg.ID, "SIGTERM", patience); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < patience {
		t.Errorf("killed after %v, before its time", took)
	}
	if r := b.wait(cfg.ID); r.Signal != int(syscall.SIGKILL) {
		t.Errorf("got %+v", r)
	}
}

func testShortened(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Stubborn())
	b.start(cfg)
	b.awaitOutput(cfg.Task, "ready")
	first := make(chan error, 1)
	go func() { first <- b.d.Stop(b.ctx, cfg.ID, "SIGTERM", time.Hour) }()
	if err := b.d.Stop(b.ctx, cfg.ID, "SIGTERM", 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Errorf("first stop: %v", err)
	}
	if r := b.wait(cfg.ID); r.Signal != int(syscall.SIGKILL) {
		t.Errorf("got %+v", r)
	}
}

func testImmediate(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Stubborn())
	b.start(cfg)
	if err := b.d.Stop(b.ctx, cfg.ID, "SIGTERM", 0); err != nil {
		t.Fatal(err)
	}
	if r := b.wait(cfg.ID); r.Signal != int(syscall.SIGKILL) {
		t.Errorf("got %+v", r)
	}
}

func testSignal(t *testing.T, b *bench) {
	cfg := b.task(b.suite.OnSignal(7))
	b.start(cfg)
	b.awaitOutput(cfg.Task, "ready")
	if err := b.d.Signal(b.ctx, cfg.ID, "SIGUSR1"); err != nil {
		t.Fatal(err)
	}
	if r := b.wait(cfg.ID); r.ExitCode != 7 || !r.Known {
		t.Errorf("got %+v", r)
	}
}

func testBadSignal(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Run())
	b.start(cfg)
	if err := b.d.Signal(b.ctx, cfg.ID, "SIGNONSENSE"); err == nil {
		t.Error("no error")
	}
	if err := b.d.Signal(b.ctx, "nobody", "SIGHUP"); !errors.Is(err, driver.ErrTaskNotFound) {
		t.Errorf("unknown task: %v", err)
	}
	if s, err := b.d.Inspect(b.ctx, cfg.ID); err != nil || !s.Running {
		t.Errorf("task does not run on: %+v %v", s, err)
	}
}

func testTree(t *testing.T, b *bench) {
	file := filepath.Join(b.alloc.SharedDir(), "pids")
	cfg := b.task(b.suite.Tree(file))
	b.start(cfg)
	b.awaitOutput(cfg.Task, "ready")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, f := range strings.Fields(string(data)) {
		var pid int
		fmt.Sscan(f, &pid)
		pids = append(pids, pid)
		if syscall.Kill(pid, 0) != nil {
			t.Fatalf("process %d of the tree does not run", pid)
		}
	}
	if len(pids) < 2 {
		t.Fatalf("got %q", data)
	}
	if err := b.d.Stop(b.ctx, cfg.ID, "SIGTERM", limit); err != nil {
		t.Fatal(err)
	}
	b.wait(cfg.ID)
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d outlived its task", pid)
		}
	}
}

// alive: a zombie that its parent has not looked after yet is none of our business.
func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(data), ") Z ")
}

func testRecoverRunning(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Run())
	h := b.start(cfg)
	before, err := b.d.Inspect(b.ctx, cfg.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.d = b.suite.Open(t)
	if err := b.d.Recover(b.ctx, h); err != nil {
		t.Fatal(err)
	}
	after, err := b.d.Inspect(b.ctx, cfg.ID)
	if err != nil || !after.Running || fmt.Sprint(after.PIDs) != fmt.Sprint(before.PIDs) || !after.StartedAt.Equal(before.StartedAt) {
		t.Errorf("before %+v after %+v: %v", before, after, err)
	}
	if err := b.d.Stop(b.ctx, cfg.ID, "SIGTERM", limit); err != nil {
		t.Fatal(err)
	}
	if r := b.wait(cfg.ID); !r.Known {
		t.Errorf("got %+v", r)
	}
}

func testRecoverEnded(t *testing.T, b *bench) {
	cfg := b.task(b.suite.RunFor(50*time.Millisecond, 9))
	h := b.start(cfg)
	b.wait(cfg.ID) // but the agent dies before it tells anybody
	b.d = b.suite.Open(t)
	if err := b.d.Recover(b.ctx, h); err != nil {
		t.Fatal(err)
	}
	if r := b.wait(cfg.ID); !r.Known || r.ExitCode != 9 {
		t.Errorf("got %+v", r)
	}
}

func testRecoverUnknown(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Run())
	h := b.start(cfg)
	if err := b.d.Destroy(b.ctx, cfg.ID, true); err != nil {
		t.Fatal(err)
	}
	other := *h
	other.TaskID = "nobody"
	other.Driver = "another_driver"
	if err := b.d.Recover(b.ctx, &other); !errors.Is(err, driver.ErrTaskNotFound) {
		t.Errorf("got %v", err)
	}
}

// testFind holds drivers that find tasks by id to it; for those which do not there is nothing to test.
func testFind(t *testing.T, b *bench) {
	if _, ok := b.d.(driver.Finder); !ok {
		return
	}
	find := func(id string) (*driver.Handle, error) { return b.d.(driver.Finder).Find(b.ctx, id) }
	if _, err := find("nobody"); !errors.Is(err, driver.ErrTaskNotFound) {
		t.Errorf("find of an unknown task: %v", err)
	}
	runs, ends := b.task(b.suite.Run()), b.task(b.suite.RunFor(50*time.Millisecond, 9))
	before := []*driver.Handle{b.start(runs), b.start(ends)}
	b.wait(ends.ID)
	if !b.suite.Forgets {
		b.d = b.suite.Open(t) // the agent has died before it wrote a handle down
	}
	for i, id := range []string{runs.ID, ends.ID} {
		if h, err := find(id); err != nil || !reflect.DeepEqual(h, before[i]) {
			t.Errorf("find %s: %+v, %v; want %+v", id, h, err, before[i])
		}
	}
	if h, err := b.d.Start(b.ctx, runs); err != nil || !reflect.DeepEqual(h, before[0]) {
		t.Errorf("start of what runs: %+v, %v; want %+v", h, err, before[0])
	}
	if s, err := b.d.Inspect(b.ctx, runs.ID); err != nil || !s.Running {
		t.Errorf("found task: %+v, %v", s, err)
	}
	if r := b.wait(ends.ID); !r.Known || r.ExitCode != 9 {
		t.Errorf("found task ended: %+v", r)
	}
	if err := b.d.Stop(b.ctx, runs.ID, "SIGTERM", limit); err != nil {
		t.Error(err)
	}
}

func testDestroy(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Run())
	b.start(cfg)
	if err := b.d.Destroy(b.ctx, cfg.ID, false); err == nil {
		t.Error("a running task was destroyed without force")
	}
	if err := b.d.Destroy(b.ctx, cfg.ID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := b.d.Inspect(b.ctx, cfg.ID); !errors.Is(err, driver.ErrTaskNotFound) {
		t.Errorf("inspect: %v", err)
	}
	if _, err := b.d.Wait(b.ctx, cfg.ID); !errors.Is(err, driver.ErrTaskNotFound) {
		t.Errorf("wait: %v", err)
	}
	if err := b.d.Destroy(b.ctx, cfg.ID, true); !errors.Is(err, driver.ErrTaskNotFound) {
		t.Errorf("second destroy: %v", err)
	}
}

func testInspect(t *testing.T, b *bench) {
	began := time.Now()
	cfg := b.task(b.suite.Run())
	b.start(cfg)
	s, err := b.d.Inspect(b.ctx, cfg.ID)
	if err != nil || s.ID != cfg.ID || !s.Running || s.Exit != nil {
		t.Fatalf("got %+v: %v", s, err)
	}
	if s.StartedAt.Before(began.Add(-time.Second)) || s.StartedAt.After(time.Now()) {
		t.Errorf("started at %v", s.StartedAt)
	}
	b.d.Stop(b.ctx, cfg.ID, "SIGTERM", limit)
	s, err = b.d.Inspect(b.ctx, cfg.ID)
	if err != nil || s.Running || s.Exit == nil || len(s.PIDs) > 0 {
		t.Errorf("after its end: %+v: %v", s, err)
	}
}

func testStats(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Stubborn())
	b.start(cfg)
	b.awaitOutput(cfg.Task, "ready") // by then it has memory of its own
	u, err := b.d.Stats(b.ctx, cfg.ID)
	if err != nil || u.ResourceUsage == nil || u.ResourceUsage.MemoryStats == nil || u.ResourceUsage.CpuStats == nil || u.Timestamp == 0 {
		t.Fatalf("got %+v: %v", u, err)
	}
	if len(u.Pids) > 0 && u.ResourceUsage.MemoryStats.RSS == 0 {
		t.Errorf("processes without memory: %+v", u.ResourceUsage.MemoryStats)
	}
	if _, err := b.d.Stats(b.ctx, "nobody"); !errors.Is(err, driver.ErrTaskNotFound) {
		t.Errorf("unknown task: %v", err)
	}
}

func testOutput(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Output("to out\n", "to err\n"))
	b.start(cfg)
	b.wait(cfg.ID)
	// All of it is in the files by the time the task counts as ended.
	if out, errs := b.output(cfg.Task, logs.Stdout), b.output(cfg.Task, logs.Stderr); out != "to out\n" || errs != "to err\n" {
		t.Errorf("got %q and %q", out, errs)
	}
}

func testOutputAgain(t *testing.T, b *bench) {
	for i, text := range []string{"first\n", "second\n"} {
		cfg := b.attempt("again", i, b.suite.Output(text, ""))
		b.start(cfg)
		b.wait(cfg.ID)
	}
	if out := b.output("again", logs.Stdout); out != "first\nsecond\n" {
		t.Errorf("got %q", out)
	}
}

func testOutputOff(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Output("to out\n", "to err\n"))
	cfg.LogsDisabled = true
	b.start(cfg)
	if r := b.wait(cfg.ID); !r.Successful() {
		t.Errorf("got %+v", r)
	}
	if entries, _ := os.ReadDir(b.alloc.LogDir()); len(entries) > 0 {
		t.Errorf("there are logs: %v", entries)
	}
}

func testEnv(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Env("GREETING"))
	b.start(cfg)
	b.wait(cfg.ID)
	if out := strings.TrimSpace(b.output(cfg.Task, logs.Stdout)); out != "hello" {
		t.Errorf("got %q", out)
	}
}

func testMissing(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Missing())
	_, err := b.d.Start(b.ctx, cfg)
	if err == nil {
		t.Fatal("no error")
	}
	if !strings.Contains(err.Error(), "executable file not found") || errors.Is(err, driver.ErrUnrecoverable) {
		t.Errorf("got %v", err)
	}
	if _, err := b.d.Inspect(b.ctx, cfg.ID); !errors.Is(err, driver.ErrTaskNotFound) {
		t.Errorf("it left a task behind: %v", err)
	}
	cfg.Config = b.suite.Exit(0)
	b.start(cfg) // the same id may be tried again
	b.wait(cfg.ID)
}

func testBadConfig(t *testing.T, b *bench) {
	for _, bad := range b.suite.Bad {
		err := b.d.Validate(bad.Config)
		if err == nil {
			t.Errorf("%v: no fault found", bad.Config)
			continue
		}
		for _, f := range bad.Faults {
			if !strings.Contains(err.Error(), f) {
				t.Errorf("%v: %q is not told in: %v", bad.Config, f, err)
			}
		}
		if _, err := b.d.Start(b.ctx, b.task(bad.Config)); !errors.Is(err, driver.ErrUnrecoverable) {
			t.Errorf("%v: start says %v", bad.Config, err)
		}
	}
}

func testWaitContext(t *testing.T, b *bench) {
	cfg := b.task(b.suite.Run())
	b.start(cfg)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := b.d.Wait(ctx, cfg.ID); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
