package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/internal/fakedriver"
	"github.com/nomadlite/nomadlite/client/supervisor"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervisor" {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// disk keeps records as bytes, as the real one does.
type disk struct {
	mu   sync.Mutex
	data []byte
}

func (d *disk) SaveTask(_ string, l *Local, done func(error)) {
	data, err := codec.Marshal(l)
	if err != nil {
		panic(err)
	}
	d.mu.Lock()
	d.data = data
	d.mu.Unlock()
	done(nil)
}

func (d *disk) load(t *testing.T) *Local {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	l := new(Local)
	if err := codec.Unmarshal(d.data, l); err != nil {
		t.Fatal(err)
	}
	return l
}

// trace is a hook with all points.
type trace struct {
	mu    sync.Mutex
	calls []string
	fail  map[hook.Point]error
	hang  map[hook.Point]bool
}

func (h *trace) Name() string { return "trace" }

func (h *trace) at(ctx context.Context, p hook.Point) error {
	h.mu.Lock()
	h.calls = append(h.calls, string(p))
	hang, err := h.hang[p], h.fail[p]
	h.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (h *trace) list() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.calls, " ")
}

func (h *trace) Prestart(ctx context.Context, _ *hook.TaskRequest, _ *hook.TaskResponse) error {
	return h.at(ctx, hook.Prestart)
}
func (h *trace) Poststart(ctx context.Context, _ *hook.TaskRequest, _ *hook.TaskResponse) error {
	return h.at(ctx, hook.Poststart)
}
func (h *trace) Prestop(ctx context.Context, _ *hook.TaskRequest, _ *hook.TaskResponse) error {
	return h.at(ctx, hook.Prestop)
}
func (h *trace) PreKill(ctx context.Context, _ *hook.TaskRequest, _ *hook.TaskResponse) error {
	return h.at(ctx, hook.PreKill)
}
func (h *trace) Exited(ctx context.Context, _ *hook.TaskRequest, _ *hook.TaskResponse) error {
	return h.at(ctx, hook.Exited)
}
func (h *trace) Stop(ctx context.Context, _ *hook.TaskRequest, _ *hook.TaskResponse) error {
	return h.at(ctx, hook.Stop)
}

type rig struct {
	t      *testing.T
	driver *fakedriver.Driver
	disk   *disk
	store  Store // the disk, unless a test set another
	hooks  *trace
	job    *structs.Job
	task   *structs.Task
	runner *Runner
	hold   chan struct{}
	boot   string
	// findless takes it from the driver that it finds tasks by their ids.
	findless bool
	changed  func() // nil: nobody wants to know
	cancel   context.CancelFunc
	done     chan struct{}
}

func newRig(t *testing.T, jobType string) *rig {
	task := &structs.Task{
		Name: "web", Driver: "fake", KillTimeout: structs.Ptr(5 * time.Second),
		RestartPolicy: &structs.RestartPolicy{
			Attempts: structs.Ptr(1), Interval: structs.Ptr(time.Minute), Delay: structs.Ptr(10 * time.Second),
			Mode: structs.Ptr("fail"),
		},
	}
	job := &structs.Job{Type: structs.Ptr(jobType), TaskGroups: []*structs.TaskGroup{{
		Name: structs.Ptr("g"), Tasks: []*structs.Task{task},
	}}}
	return &rig{t: t, driver: fakedriver.New(), disk: &disk{}, hooks: &trace{fail: map[hook.Point]error{}, hang: map[hook.Point]bool{}},
		job: job, task: task, boot: "b1"}
}

// start makes a runner, from the disk when there is something on it, and runs it.
func (r *rig) start() {
	store := r.store
	if store == nil {
		store = r.disk
	}
	var drv driver.Driver = r.driver
	if r.findless {
		drv = findless{drv}
	}
	changed := r.changed
	if changed == nil {
		changed = func() {}
	}
	r.runner = New(Config{
		Alloc: &structs.Allocation{ID: "a1", Job: r.job, TaskGroup: "g"}, Task: r.task, Driver: drv,
		Hooks: []hook.Hook{r.hooks}, Store: store, Changed: changed, Saved: func() {},
		Clock: boottime.Fake{ID: r.boot}, Random: func() float64 { return 0 }, Hold: r.hold,
		Build: func(_ context.Context, b BuildRequest) (*driver.TaskConfig, error) {
			return &driver.TaskConfig{ID: b.TaskID}, nil
		},
	}, r.record())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r.cancel, r.done = cancel, done
	go func() {
		defer close(done)
		r.runner.Run(ctx)
	}()
}

// record is what is on the disk, nil for nothing.
func (r *rig) record() *Local {
	if r.disk.data == nil {
		return nil
	}
	return r.disk.load(r.t)
}

// crash ends the runner as an agent's end does: the process stays.
func (r *rig) crash() {
	r.cancel()
	<-r.done
}

func (r *rig) run() {
	r.start()
	r.runner.Release()
	synctest.Wait()
}

func (r *rig) events() string {
	var kinds []string
	for _, e := range r.runner.View().State.Events {
		kinds = append(kinds, e.Type)
	}
	return strings.Join(kinds, ", ")
}

func (r *rig) expect(phase Phase, state string, failed bool) {
	r.t.Helper()
	v := r.runner.View()
	if v.Phase != phase || v.State.State != state || v.State.Failed != failed {
		r.t.Fatalf("phase %q, state %q, failed %v; want %q, %q, %v; events: %s",
			v.Phase, v.State.State, v.State.Failed, phase, state, failed, r.events())
	}
}

func (r *rig) logged(want ...string) {
	r.t.Helper()
	if got := r.driver.Log(); !slices.Equal(got, want) {
		r.t.Fatalf("driver calls %q, want %q", got, want)
	}
}

func inBubble(t *testing.T, jobType string, f func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, jobType)
		defer func() {
			if r.cancel != nil {
				r.crash()
			}
		}()
		f(r)
	})
}

func TestBatchRunsToItsEnd(t *testing.T) {
	inBubble(t, "batch", func(r *rig) {
		r.run()
		r.expect(Running, "running", false)
		r.driver.End("a1/web/1", 0)
		synctest.Wait()
		r.expect(Dead, "dead", false)
		if got := r.hooks.list(); got != "prestart poststart exited stop" {
			t.Fatalf("hooks %q", got)
		}
		if got := r.events(); got != "Received, Started, Terminated" {
			t.Fatalf("events %q", got)
		}
		if len(r.driver.Running()) != 0 {
			t.Fatalf("still running %v", r.driver.Running())
		}
	})
}

func TestFailureRestartsWithinPolicyThenFails(t *testing.T) {
	inBubble(t, "batch", func(r *rig) {
		r.run()
		r.driver.End("a1/web/1", 3)
		synctest.Wait()
		r.expect(Backoff, "pending", false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.expect(Running, "running", false)
		if n := r.runner.View().State.Restarts; n != 1 {
			t.Fatalf("%d restarts", n)
		}
		r.driver.End("a1/web/2", 4)
		synctest.Wait()
		r.expect(Dead, "dead", true)
		want := "Received, Started, Terminated, Restarting, Started, Terminated, Not Restarting"
		if got := r.events(); got != want {
			t.Fatalf("events %q", got)
		}
		events := r.runner.View().State.Events
		if e := events[2]; e.DisplayMessage != "Exit Code: 3" || e.Details["exit_code"] != "3" {
			t.Fatalf("event %+v", e)
		}
		if e := events[3]; e.DisplayMessage != "Task restarting in 10s" {
			t.Fatalf("event %+v", e)
		}
		if e := events[6]; e.DisplayMessage != `Exceeded allowed attempts 1 in interval 1m0s and mode is "fail"` {
			t.Fatalf("event %+v", e)
		}
	})
}

func TestStartFailureIsToldAndRetried(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.driver.StartErr = func(*driver.TaskConfig) error { return errors.New("no such file: /bin/nothing") }
		r.run()
		r.expect(Backoff, "pending", false)
		if got := r.events(); got != "Received, Driver Failure, Restarting" {
			t.Fatalf("events %q", got)
		}
		if e := r.runner.View().State.Events[1]; e.DriverError != "no such file: /bin/nothing" || e.DisplayMessage != e.DriverError {
			t.Fatalf("event %+v", e)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.expect(Dead, "dead", true)
	})
}

func TestUnrecoverableStartFailsAtOnce(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.driver.StartErr = func(*driver.TaskConfig) error { return fmt.Errorf("%w: bad image", driver.ErrUnrecoverable) }
		r.run()
		r.expect(Dead, "dead", true)
		if got := r.events(); got != "Received, Driver Failure, Not Restarting" {
			t.Fatalf("events %q", got)
		}
	})
}

func TestStopWaitsDelayThenSignalsThenKills(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.task.ShutdownDelay, r.task.KillSignal = 7*time.Second, "SIGTERM"
		r.driver.StopsIn = -1 // ignores its signal
		r.run()
		begin := time.Now()
		r.runner.Kill(Order{})
		synctest.Wait()
		r.expect(Delaying, "running", false)
		if got := r.hooks.list(); got != "prestart poststart prekill" {
			t.Fatalf("hooks %q", got)
		}
		time.Sleep(7 * time.Second)
		synctest.Wait()
		r.expect(Killing, "running", false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		r.expect(Dead, "dead", false)
		if took := time.Since(begin); took != 12*time.Second {
			t.Fatalf("took %s", took)
		}
		r.logged("start a1/web/1", "stop a1/web/1 SIGTERM 5s")
		if got := r.events(); got != "Received, Started, Waiting for shutdown delay, Killing, Terminated, Killed" {
			t.Fatalf("events %q", got)
		}
		for i, want := range map[int]string{
			2: "Waiting for shutdown_delay of 7s before killing the task.",
			3: "Sent SIGTERM. Waiting 5s before force killing",
			4: "Exit Code: 137, Signal: 9",
			5: "Task successfully killed",
		} {
			if got := r.runner.View().State.Events[i].DisplayMessage; got != want {
				t.Errorf("event %d says %q, want %q", i, got, want)
			}
		}
	})
}

func TestMaxKillTimeoutCapsTheTasksOwn(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.task.KillTimeout = structs.Ptr(time.Hour)
		r.run()
		r.runner.Kill(Order{})
		synctest.Wait()
		r.logged("start a1/web/1", "stop a1/web/1  30s")
	})
}

func TestNoShutdownDelaySkipsTheWaitNotTheHooks(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.task.ShutdownDelay = time.Hour
		r.run()
		begin := time.Now()
		r.runner.Kill(Order{NoShutdownDelay: true})
		synctest.Wait()
		r.expect(Dead, "dead", false)
		if time.Since(begin) != 0 {
			t.Fatalf("took %s", time.Since(begin))
		}
		if got := r.hooks.list(); got != "prestart poststart prekill exited stop" {
			t.Fatalf("hooks %q", got)
		}
		if got := r.events(); got != "Received, Started, Skipping shutdown delay, Killing, Terminated, Killed" {
			t.Fatalf("events %q", got)
		}
	})
}

func TestLateTransitionsCutWaitsUnderWay(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.task.ShutdownDelay, r.task.KillTimeout = time.Hour, structs.Ptr(20*time.Second)
		r.driver.StopsIn = -1
		r.run()
		r.runner.Kill(Order{})
		time.Sleep(time.Minute)
		r.runner.Kill(Order{NoShutdownDelay: true})
		synctest.Wait()
		r.expect(Killing, "running", false)
		time.Sleep(5 * time.Second)
		// A longer or equal timeout changes nothing, a shorter one applies at once.
		r.runner.Kill(Order{KillTimeout: structs.Ptr(time.Minute)})
		synctest.Wait()
		begin := time.Now()
		r.runner.Kill(Order{KillTimeout: structs.Ptr(2 * time.Second)})
		synctest.Wait()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.expect(Dead, "dead", false)
		if took := time.Since(begin); took != 2*time.Second {
			t.Fatalf("took %s", took)
		}
		r.logged("start a1/web/1", "stop a1/web/1  20s", "stop a1/web/1  2s")
	})
}

func TestStopInPrestartInterruptsIt(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.hooks.hang[hook.Prestart] = true
		r.run()
		r.expect(Prestart, "pending", false)
		r.runner.Kill(Order{})
		synctest.Wait()
		r.expect(Dead, "dead", false)
		r.logged()
		if got := r.hooks.list(); got != "prestart stop" {
			t.Fatalf("hooks %q", got)
		}
	})
}

func TestStopWithinBackoffIsImmediate(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.task.ShutdownDelay = time.Hour
		r.run()
		r.driver.End("a1/web/1", 1)
		synctest.Wait()
		begin := time.Now()
		r.runner.Kill(Order{})
		synctest.Wait()
		r.expect(Dead, "dead", false)
		if time.Since(begin) != 0 {
			t.Fatalf("took %s", time.Since(begin))
		}
	})
}

func TestRequestedRestartIgnoresThePolicy(t *testing.T) {
	inBubble(t, "batch", func(r *rig) {
		r.task.RestartPolicy.Attempts = structs.Ptr(0)
		r.task.ShutdownDelay = time.Hour
		r.run()
		for n := range 3 {
			if _, err := r.runner.Restart(Order{NoShutdownDelay: true, Reason: "User requested task to restart"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			r.expect(Running, "running", false)
			if got := r.runner.View().Attempt; got != uint64(n+2) {
				t.Fatalf("attempt %d", got)
			}
		}
		// The option was for those restarts alone.
		r.runner.Kill(Order{})
		synctest.Wait()
		r.expect(Delaying, "running", false)
	})
}

func TestRestartNeedsARunningTask(t *testing.T) {
	inBubble(t, "batch", func(r *rig) {
		r.start()
		synctest.Wait()
		if _, err := r.runner.Restart(Order{}); !errors.Is(err, ErrNotRunning) {
			t.Fatalf("error %v", err)
		}
		if err := r.runner.Signal(context.Background(), "SIGHUP", ""); !errors.Is(err, ErrNotRunning) {
			t.Fatalf("error %v", err)
		}
	})
}

func TestSignal(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.run()
		if err := r.runner.Signal(context.Background(), "SIGHUP", ""); err != nil {
			t.Fatal(err)
		}
		if err := r.runner.Signal(context.Background(), "SIGNONE", ""); structs.ErrorCode(err) != structs.CodeInvalid {
			t.Fatalf("error %v", err)
		}
		r.logged("start a1/web/1", "signal a1/web/1 SIGHUP")
	})
}

func TestAgentRestartTakesTheTaskOver(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.run()
		r.crash()
		r.start()
		synctest.Wait()
		r.expect(Running, "running", false)
		r.logged("start a1/web/1")
		if got := r.hooks.list(); got != "prestart poststart" {
			t.Fatalf("hooks %q", got)
		}
		// An end while nobody looked keeps its code.
		r.crash()
		r.driver.End("a1/web/1", 42)
		r.start()
		synctest.Wait()
		r.expect(Backoff, "pending", false)
		if got := r.events(); !strings.HasSuffix(got, "Terminated, Restarting") {
			t.Fatalf("events %q", got)
		}
		events := r.runner.View().State.Events
		if e := events[len(events)-2]; e.ExitCode != 42 {
			t.Fatalf("event %+v", e)
		}
	})
}

func TestAgentRestartInTheMiddleOfEachWait(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.task.ShutdownDelay, r.task.KillTimeout = 60*time.Second, structs.Ptr(20*time.Second)
		r.driver.StopsIn = -1
		r.run()
		begin := time.Now()
		r.runner.Kill(Order{})
		time.Sleep(25 * time.Second)
		r.crash()
		time.Sleep(25 * time.Second)
		r.start()
		synctest.Wait()
		r.expect(Delaying, "running", false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.expect(Killing, "running", false)
		time.Sleep(5 * time.Second)
		r.crash()
		time.Sleep(5 * time.Second)
		r.start()
		synctest.Wait()
		r.expect(Killing, "running", false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.expect(Dead, "dead", false)
		if took := time.Since(begin); took != 80*time.Second {
			t.Fatalf("took %s", took)
		}
		if got := r.hooks.list(); got != "prestart poststart prekill exited stop" {
			t.Fatalf("hooks %q", got)
		}
	})
}

func TestTransitionAfterAnAgentRestartCutsTheWait(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.task.ShutdownDelay = time.Hour
		r.run()
		r.runner.Kill(Order{})
		synctest.Wait()
		r.crash()
		r.start()
		synctest.Wait()
		r.expect(Delaying, "running", false)
		begin := time.Now()
		r.runner.Kill(Order{NoShutdownDelay: true})
		synctest.Wait()
		r.expect(Dead, "dead", false)
		if time.Since(begin) != 0 {
			t.Fatalf("took %s", time.Since(begin))
		}
	})
}

func TestLostTaskIsNeverASuccess(t *testing.T) {
	inBubble(t, "batch", func(r *rig) {
		r.run()
		r.crash()
		r.driver.Lose("a1/web/1")
		r.boot = "b2"
		r.start()
		synctest.Wait()
		r.expect(Backoff, "pending", false)
		events := r.runner.View().State.Events
		if e := events[len(events)-2]; e.ExitCode == 0 || !strings.HasPrefix(e.DisplayMessage, "Exit Code: unknown") {
			t.Fatalf("event %+v", e)
		}
	})
}

// findless hides that a driver finds tasks by their ids.
type findless struct{ driver.Driver }

// diesAfterStart brings the task to the moment after the driver's start and before the next write, and ends the agent.
func (r *rig) diesAfterStart() {
	r.store = &frozen{disk: r.disk, left: 3} // the attempt, its prestart hook, and that it is starting
	r.run()
	r.crash()
	r.store = nil
	if l := r.disk.load(r.t); l.Phase != Starting || l.Handle != nil || len(r.driver.Running()) != 1 {
		r.t.Fatalf("on disk: %+v; running: %v", l, r.driver.Running())
	}
}

// A process that was started but not written down is taken over: an attempt runs once.
func TestAProcessThatWasNotWrittenDownIsTakenOver(t *testing.T) {
	for _, jobType := range []string{"batch", "service"} {
		inBubble(t, jobType, func(r *rig) {
			r.diesAfterStart()
			r.hold = make(chan struct{})
			r.start()
			synctest.Wait()
			r.expect(Running, "running", false)
			if got := r.events(); got != "Received, Started, Reattached" {
				t.Errorf("events %s", got)
			}
			r.driver.End("a1/web/1", 0)
			synctest.Wait()
			close(r.hold)
			r.logged("start a1/web/1")
		})
	}
}

// One that has ended since is not repeated either: how it ended decides.
func TestTheExitOfAProcessThatWasNotWrittenDownCounts(t *testing.T) {
	for _, tt := range []struct {
		code  int
		phase Phase
		state string
	}{{0, Dead, "dead"}, {3, Backoff, "pending"}} {
		inBubble(t, "batch", func(r *rig) {
			r.diesAfterStart()
			r.driver.End("a1/web/1", tt.code)
			r.run()
			r.expect(tt.phase, tt.state, false)
			r.logged("start a1/web/1")
			if got := r.hooks.list(); !strings.HasPrefix(got, "prestart poststart exited") { // poststart only by the agent whose word is lost
				t.Errorf("hooks %s", got)
			}
		})
	}
}

// A stop that comes while nobody knew of the process ends it in the order of a stop.
func TestAProcessThatWasNotWrittenDownIsStoppedInOrder(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.diesAfterStart()
		r.start()
		r.runner.Kill(Order{})
		synctest.Wait()
		r.expect(Dead, "dead", false)
		r.logged("start a1/web/1", "stop a1/web/1  5s")
	})
}

// An agent that ends in the middle of a start waits a while for it, and does not take back what has begun.
func TestAnAgentThatEndsLeavesItsStartToTheNext(t *testing.T) {
	inBubble(t, "batch", func(r *rig) {
		r.driver.StartHangs = true
		r.run()
		r.crash()
		r.driver.StartHangs = false
		r.run()
		r.expect(Running, "running", false)
		r.logged("start a1/web/1")
	})
}

func TestInterruptedStartIsUndoneAndRepeated(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.diesAfterStart()
		r.findless = true
		r.hold = make(chan struct{})
		r.start()
		synctest.Wait()
		r.expect(Prestart, "pending", false)
		if got := r.driver.Running(); len(got) != 0 {
			t.Fatalf("still running %v", got)
		}
		// What it should run is known now.
		close(r.hold)
		synctest.Wait()
		r.expect(Running, "running", false)
		r.logged("start a1/web/1", "start a1/web/1")
	})
}

// TestAStopDuringTheStartIsAnOrdinaryOne: the process that the driver had made by then gets its signal and its time.
func TestAStopDuringTheStartIsAnOrdinaryOne(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.driver.StartHangs = true
		r.run()
		r.runner.Kill(Order{})
		synctest.Wait()
		r.expect(Dead, "dead", false)
		r.logged("start a1/web/1", "stop a1/web/1  5s")
	})
}

// TestAStartThatIsGivenUpIsUndone: the driver had got as far as a process when the task was to stop, or to go down, and
// cannot tell.
func TestAStartThatIsGivenUpIsUndone(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.driver.StartHangs, r.findless = true, true
		r.run()
		r.runner.Kill(Order{})
		synctest.Wait()
		r.expect(Dead, "dead", false)
		if running := r.driver.Running(); len(running) > 0 {
			t.Errorf("the task is over, and %v run", running)
		}
	})
	inBubble(t, "service", func(r *rig) {
		r.driver.StartHangs, r.findless = true, true
		r.run()
		r.runner.Park(Order{})
		synctest.Wait()
		if running := r.driver.Running(); len(running) > 0 || !r.runner.View().Parked {
			t.Errorf("the task is down (%v), and %v run", r.runner.View().Parked, running)
		}
		r.driver.StartHangs = false
		r.runner.Release()
		synctest.Wait()
		r.expect(Running, "running", false)
	})
}

func TestResetGivesADeadTaskAnotherLife(t *testing.T) {
	inBubble(t, "batch", func(r *rig) {
		r.run()
		if r.runner.Reset("") {
			t.Fatal("a running task was reset")
		}
		r.driver.End("a1/web/1", 0)
		synctest.Wait()
		<-r.done
		if !r.runner.Reset("User requested all tasks to restart") {
			t.Fatal("a dead task was not reset")
		}
		r.expect(Waiting, "pending", false)
		r.crash()
		r.run()
		r.expect(Running, "running", false)
		if got := r.hooks.list(); got != "prestart poststart exited stop prestart poststart" {
			t.Fatalf("hooks %q", got)
		}
	})
}

func TestUpdateCountsFromTheNextDecision(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.run()
		changed := r.task.Copy()
		changed.KillTimeout = structs.Ptr(time.Second)
		job := r.job.Copy()
		job.TaskGroups[0].Tasks[0] = changed
		alloc := &structs.Allocation{ID: "a1", Job: job, TaskGroup: "g"}
		if err := r.runner.Update(context.Background(), alloc, changed); err != nil {
			t.Fatal(err)
		}
		r.runner.Kill(Order{})
		synctest.Wait()
		r.logged("start a1/web/1", "stop a1/web/1  1s")
	})
}

// TestWhoWaitsForARestoredTaskIsTold once it is known what became of it: no change of its state may come after that.
func TestWhoWaitsForARestoredTaskIsTold(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.run()
		r.crash()
		told := false
		r.changed = func() {
			select {
			case <-r.runner.Settled():
				told = true
			default:
			}
		}
		r.start()
		synctest.Wait()
		r.expect(Running, "running", false)
		if !told {
			t.Error("the task is settled, and nobody was told")
		}
	})
}
