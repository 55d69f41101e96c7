package allocrunner

import (
	"context"
	"errors"
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
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type disk struct {
	mu    sync.Mutex
	run   []byte
	tasks map[string][]byte
}

func encode(v any) []byte {
	data, err := codec.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func (d *disk) SaveRun(_ string, l *Local, done func(error)) {
	d.mu.Lock()
	d.run = encode(l)
	d.mu.Unlock()
	done(nil)
}

func (d *disk) SaveTask(_, task string, l *taskrunner.Local, done func(error)) {
	d.mu.Lock()
	if d.tasks == nil {
		d.tasks = map[string][]byte{}
	}
	d.tasks[task] = encode(l)
	d.mu.Unlock()
	done(nil)
}

func (d *disk) load(t *testing.T) (*Local, map[string]*taskrunner.Local) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var run *Local
	if d.run != nil {
		run = new(Local)
		if err := codec.Unmarshal(d.run, run); err != nil {
			t.Fatal(err)
		}
	}
	tasks := map[string]*taskrunner.Local{}
	for name, data := range d.tasks {
		tasks[name] = new(taskrunner.Local)
		if err := codec.Unmarshal(data, tasks[name]); err != nil {
			t.Fatal(err)
		}
	}
	return run, tasks
}

// trace is an alloc hook which writes into the same log as the driver would.
type trace struct {
	mu    sync.Mutex
	name  string // after "trace"
	calls []string
	fail  error
}

func (h *trace) Name() string { return "trace" + h.name }
func (h *trace) note(s string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, s)
	return nil
}
func (h *trace) list() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.calls, " ")
}
func (h *trace) Prerun(context.Context, *hook.AllocRequest, *hook.AllocResponse) error {
	_ = h.note("prerun")
	return h.fail
}
func (h *trace) Prestop(context.Context, *hook.AllocRequest, *hook.AllocResponse) error {
	return h.note("prestop")
}
func (h *trace) PreKill(context.Context, *hook.AllocRequest, *hook.AllocResponse) error {
	return h.note("prekill")
}
func (h *trace) Resume(context.Context, *hook.AllocRequest, *hook.AllocResponse) error {
	_ = h.note("resume")
	return h.fail
}
func (h *trace) Postrun(context.Context, *hook.AllocRequest, *hook.AllocResponse) error {
	return h.note("postrun")
}
func (h *trace) Destroy(context.Context, *hook.AllocRequest, *hook.AllocResponse) error {
	return h.note("destroy")
}

type drivers struct{ d driver.Driver }

func (d drivers) Get(name string) (driver.Driver, bool) { return d.d, name == "fake" }

type rig struct {
	t        *testing.T
	driver   *fakedriver.Driver
	disk     *disk
	store    Store // the disk, unless a test set another
	hooks    *trace
	more     []hook.Hook // after hooks
	perTask  []hook.Hook
	alloc    *structs.Allocation
	previous chan struct{}
	runner   *Runner
	cancel   context.CancelFunc
}

func newTask(name, hookName string, sidecar bool) *structs.Task {
	t := &structs.Task{Name: name, Driver: "fake", KillTimeout: structs.Ptr(5 * time.Second),
		RestartPolicy: &structs.RestartPolicy{Attempts: structs.Ptr(0), Mode: structs.Ptr("fail"),
			Interval: structs.Ptr(time.Minute), Delay: structs.Ptr(time.Second)}}
	if hookName != "" {
		t.Lifecycle = &structs.TaskLifecycle{Hook: hookName, Sidecar: sidecar}
	}
	return t
}

func newRig(t *testing.T, tasks ...*structs.Task) *rig {
	job := &structs.Job{Type: structs.Ptr("batch"), TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"), Tasks: tasks}}}
	return &rig{t: t, driver: fakedriver.New(), disk: &disk{}, hooks: &trace{},
		alloc: &structs.Allocation{ID: "a1", Job: job, TaskGroup: "g", DesiredStatus: "run"}}
}

func (r *rig) group() *structs.TaskGroup { return r.alloc.Job.TaskGroups[0] }

func (r *rig) run() {
	r.t.Helper()
	store := r.store
	if store == nil {
		store = r.disk
	}
	record, tasks := r.disk.load(r.t)
	runner, err := New(Config{
		Alloc: r.alloc, Drivers: drivers{r.driver}, Hooks: append([]hook.Hook{r.hooks}, r.more...),
		TaskHooks: func(*structs.Task) []hook.Hook { return r.perTask },
		Build: func(_ context.Context, b taskrunner.BuildRequest) (*driver.TaskConfig, error) {
			return &driver.TaskConfig{ID: b.TaskID}, nil
		},
		Store: store, Observed: func(string) {}, Previous: r.before, Clock: boottime.Fake{ID: "b"},
		Random: func() float64 { return 0 },
	}, record, tasks)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.runner, r.cancel = runner, cancel
	go runner.Run(ctx)
	synctest.Wait()
}

// before is the allocation on the node that the rig has the runner wait for.
func (r *rig) before(*structs.Allocation) (string, <-chan struct{}) {
	if r.previous == nil {
		return "", nil
	}
	select {
	case <-r.previous:
		return "", nil
	default:
		return "0123456789", r.previous
	}
}

func (r *rig) crash() {
	r.cancel()
	<-r.runner.Ended()
}

// want changes what the servers want.
func (r *rig) want(f func(a *structs.Allocation)) {
	a := *r.alloc
	f(&a)
	r.alloc = &a
	r.runner.Update(&a)
	synctest.Wait()
}

func (r *rig) stop() { r.want(func(a *structs.Allocation) { a.DesiredStatus = "stop" }) }

func (r *rig) expect(status string, log ...string) {
	r.t.Helper()
	if got := r.runner.Observation().ObservedStatus; got != status {
		r.t.Fatalf("observed %q, want %q", got, status)
	}
	if got := r.driver.Log(); !slices.Equal(got, log) {
		r.t.Fatalf("driver calls\n%q, want\n%q", got, log)
	}
}

func (r *rig) events(task string) string {
	var kinds []string
	for _, e := range r.runner.Observation().TaskStates[task].Events {
		kinds = append(kinds, e.Type)
	}
	return strings.Join(kinds, ", ")
}

func inBubble(t *testing.T, r func(t *testing.T) *rig, f func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		rig := r(t)
		defer func() {
			if rig.cancel != nil {
				rig.crash()
			}
		}()
		f(rig)
	})
}

func one(t *testing.T) *rig { return newRig(t, newTask("a", "", false)) }

func TestBatchAllocationCompletes(t *testing.T) {
	inBubble(t, one, func(r *rig) {
		r.run()
		r.expect("running", "start a1/a/1")
		r.driver.End("a1/a/1", 0)
		synctest.Wait()
		r.expect("complete", "start a1/a/1")
		if !r.runner.Terminal() {
			t.Fatal("not terminal")
		}
		if got := r.hooks.list(); got != "prerun postrun" {
			t.Fatalf("hooks %q", got)
		}
		if err := r.runner.Destroy(context.Background()); err != nil || r.hooks.list() != "prerun postrun destroy" {
			t.Fatalf("hooks %q, error %v", r.hooks.list(), err)
		}
	})
}

func TestFullLifecycleInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		return newRig(t, newTask("main", "", false), newTask("init", "prestart", false), newTask("proxy", "prestart", true),
			newTask("warm", "poststart", false), newTask("clean", "poststop", false))
	}, func(r *rig) {
		r.run()
		slices.Sort(r.driver.Running())
		if got := len(r.driver.Log()); got != 2 {
			t.Fatalf("calls %q", r.driver.Log())
		}
		r.driver.End("a1/init/1", 0)
		synctest.Wait()
		log := r.driver.Log()
		if got := strings.Join(log[2:], " "); got != "start a1/main/1 start a1/warm/1" {
			t.Fatalf("calls %q", got)
		}
		r.driver.End("a1/warm/1", 0)
		synctest.Wait()
		r.driver.End("a1/main/1", 0)
		synctest.Wait()
		log = r.driver.Log()
		if got := strings.Join(log[4:], "|"); got != "stop a1/proxy/1  5s|start a1/clean/1" {
			t.Fatalf("calls %q", got)
		}
		if got := r.events("proxy"); got != "Received, Started, Main Tasks Dead, Killing, Terminated, Killed" {
			t.Fatalf("events %q", got)
		}
		if got := r.runner.Observation().ObservedStatus; got != "running" {
			t.Fatalf("observed %q while poststop runs", got)
		}
		r.driver.End("a1/clean/1", 0)
		synctest.Wait()
		if got := r.runner.Observation().ObservedStatus; got != "complete" {
			t.Fatalf("observed %q", got)
		}
	})
}

func TestStopHasItsOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		lead := newTask("lead", "", false)
		lead.Leader = true
		r := newRig(t, newTask("main", "", false), lead, newTask("proxy", "prestart", true), newTask("clean", "poststop", false))
		r.group().ShutdownDelay = structs.Ptr(30 * time.Second)
		r.driver.StopsIn = time.Second
		return r
	}, func(r *rig) {
		r.run()
		starts := len(r.driver.Log())
		begin := time.Now()
		r.stop()
		if got := r.hooks.list(); got != "prerun prestop prekill" {
			t.Fatalf("hooks %q", got)
		}
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if got := len(r.driver.Log()); got != starts {
			t.Fatalf("calls %q", r.driver.Log())
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := strings.Join(r.driver.Log()[starts:], "|"); got !=
			"stop a1/lead/1  5s|stop a1/main/1  5s|stop a1/proxy/1  5s|start a1/clean/1" {
			t.Fatalf("calls %q", got)
		}
		r.driver.End("a1/clean/1", 0)
		synctest.Wait()
		if took := time.Since(begin); took != 34*time.Second || !r.runner.Terminal() {
			t.Fatalf("took %s, terminal %v", took, r.runner.Terminal())
		}
		want := "Received, Started, Waiting for shutdown delay, Killing, Terminated, Killed"
		if got := r.events("main"); got != want {
			t.Fatalf("events %q", got)
		}
		if got := r.hooks.list(); got != "prerun prestop prekill postrun" {
			t.Fatalf("hooks %q", got)
		}
	})
}

func slow(t *testing.T) *rig {
	a := newTask("a", "", false)
	a.ShutdownDelay, a.KillTimeout = time.Hour, structs.Ptr(20*time.Second)
	r := newRig(t, a)
	r.group().ShutdownDelay = structs.Ptr(time.Hour)
	r.driver.StopsIn = -1
	return r
}

func TestNoShutdownDelayFromTheStart(t *testing.T) {
	inBubble(t, slow, func(r *rig) {
		r.run()
		begin := time.Now()
		r.want(func(a *structs.Allocation) {
			a.DesiredStatus, a.DesiredTransition.NoShutdownDelay = "stop", structs.Ptr(true)
		})
		time.Sleep(20 * time.Second)
		synctest.Wait()
		r.expect("complete", "start a1/a/1", "stop a1/a/1  20s")
		if took := time.Since(begin); took != 20*time.Second {
			t.Fatalf("took %s", took)
		}
		if got := r.hooks.list(); got != "prerun prestop prekill postrun" {
			t.Fatalf("hooks %q", got)
		}
	})
}

func TestTransitionsArrivingLateCutEachWait(t *testing.T) {
	inBubble(t, slow, func(r *rig) {
		r.run()
		r.stop()
		time.Sleep(time.Minute) // within the group's delay
		r.want(func(a *structs.Allocation) { a.DesiredTransition.NoShutdownDelay = structs.Ptr(true) })
		r.expect("running", "start a1/a/1", "stop a1/a/1  20s")
		time.Sleep(5 * time.Second) // within kill_timeout
		r.want(func(a *structs.Allocation) { a.DesiredTransition.KillTimeout = structs.Ptr(time.Duration(0)) })
		r.expect("complete", "start a1/a/1", "stop a1/a/1  20s", "stop a1/a/1  0s")
	})
}

func TestTransitionWithinTheTasksDelay(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		r := slow(t)
		r.group().ShutdownDelay = nil
		return r
	}, func(r *rig) {
		r.run()
		r.stop()
		r.expect("running", "start a1/a/1")
		r.want(func(a *structs.Allocation) { a.DesiredTransition.NoShutdownDelay = structs.Ptr(true) })
		r.expect("running", "start a1/a/1", "stop a1/a/1  20s")
	})
}

func TestTransitionAfterARestartOfTheAgent(t *testing.T) {
	inBubble(t, slow, func(r *rig) {
		r.run()
		r.stop()
		r.crash()
		time.Sleep(time.Minute)
		r.run()
		r.expect("running", "start a1/a/1")
		r.want(func(a *structs.Allocation) { a.DesiredTransition.NoShutdownDelay = structs.Ptr(true) })
		r.expect("running", "start a1/a/1", "stop a1/a/1  20s")
		if got := r.hooks.list(); got != "prerun prestop prekill" {
			t.Fatalf("hooks %q", got)
		}
	})
}

func TestTransitionDoesNothingToAnAllocationThatIsToRun(t *testing.T) {
	inBubble(t, slow, func(r *rig) {
		r.run()
		r.want(func(a *structs.Allocation) { a.DesiredTransition.NoShutdownDelay = structs.Ptr(true) })
		r.want(func(a *structs.Allocation) {
			a.DesiredStatus, a.DesiredTransition.NoShutdownDelay = "stop", nil
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		r.expect("running", "start a1/a/1")
	})
}

func TestGroupDelaySurvivesARestartOfTheAgent(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		r := one(t)
		r.group().ShutdownDelay = structs.Ptr(60 * time.Second)
		return r
	}, func(r *rig) {
		r.run()
		r.stop()
		time.Sleep(20 * time.Second)
		r.crash()
		time.Sleep(20 * time.Second)
		r.run()
		time.Sleep(19 * time.Second)
		synctest.Wait()
		r.expect("running", "start a1/a/1")
		time.Sleep(time.Second)
		synctest.Wait()
		r.expect("complete", "start a1/a/1", "stop a1/a/1  5s")
	})
}

func TestStopOfAnAllocationThatHasNotStarted(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		r := newRig(t, newTask("a", "", false), newTask("clean", "poststop", false))
		r.group().ShutdownDelay = structs.Ptr(time.Hour)
		r.previous = make(chan struct{})
		return r
	}, func(r *rig) {
		r.run()
		r.expect("pending")
		r.stop()
		r.expect("complete")
	})
}

func TestReplacementStartsAfterThePreviousOne(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		r := one(t)
		r.previous = make(chan struct{})
		return r
	}, func(r *rig) {
		r.run()
		r.expect("pending")
		if got := r.events("a"); got != "Received, Waiting for previous allocation" {
			t.Fatalf("events %q", got)
		}
		close(r.previous)
		synctest.Wait()
		r.expect("running", "start a1/a/1")
	})
}

// awaiting has the allocation wait for one on another node.
func awaiting(t *testing.T) *rig {
	r := one(t)
	r.alloc.NodeID, r.alloc.NodeName = "n2", "two"
	r.alloc.Awaits = []structs.AwaitedAlloc{{ID: "0123456789", NodeID: "n1", NodeName: "one"}}
	return r
}

func TestReplacementWaitsForAnEndOnAnotherNode(t *testing.T) {
	inBubble(t, awaiting, func(r *rig) {
		r.run()
		r.expect("pending")
		r.crash()
		r.run()
		r.want(func(a *structs.Allocation) { a.DesiredTransition.Migrate = structs.Ptr(false) })
		r.expect("pending")
		events := r.runner.Observation().TaskStates["a"].Events
		if len(events) != 2 || events[1].DisplayMessage != "Waiting for previous allocation 01234567 on node one to stop" {
			t.Fatalf("%s", r.events("a")) // told once, whatever the agent goes through
		}
		if got := r.hooks.list(); got != "" {
			t.Fatalf("hooks %q", got)
		}
		r.want(func(a *structs.Allocation) { a.Awaits = nil })
		r.expect("running", "start a1/a/1")
	})
}

func TestWaitingReplacementIsStopped(t *testing.T) {
	inBubble(t, awaiting, func(r *rig) {
		r.run()
		r.stop()
		r.expect("complete")
	})
}

func TestOneThatHasBegunWaitsForNobody(t *testing.T) {
	inBubble(t, one, func(r *rig) {
		r.run()
		r.expect("running", "start a1/a/1")
		r.want(func(a *structs.Allocation) { a.Awaits = awaiting(t).alloc.Awaits })
		r.driver.End("a1/a/1", 0)
		synctest.Wait()
		r.expect("complete", "start a1/a/1")
	})
}

func TestFailedSiblingEndsTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		return newRig(t, newTask("a", "", false), newTask("b", "", false))
	}, func(r *rig) {
		r.run()
		r.driver.End("a1/a/1", 1)
		synctest.Wait()
		o := r.runner.Observation()
		if o.ObservedStatus != "failed" || o.TaskStates["b"].Failed || !o.TaskStates["a"].Failed {
			t.Fatalf("observation %+v", o)
		}
		if got := r.events("b"); got != "Received, Started, Sibling Task Failed, Killing, Terminated, Killed" {
			t.Fatalf("events %q", got)
		}
	})
}

func TestPrerunFailureFailsTheAllocation(t *testing.T) {
	inBubble(t, one, func(r *rig) {
		r.hooks.fail = errors.New("disk full")
		r.run()
		r.expect("failed")
		events := r.runner.Observation().TaskStates["a"].Events
		if e := events[1]; e.Type != "Setup Failure" || !strings.Contains(e.DisplayMessage, `prerun hook "trace" failed: disk full`) {
			t.Fatalf("event %+v", e)
		}
	})
}

func TestUnknownDriverFailsTheAllocation(t *testing.T) {
	inBubble(t, one, func(r *rig) {
		r.group().Tasks[0].Driver = "nothing"
		r.run()
		r.expect("failed")
	})
}

func TestRestartRequests(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		return newRig(t, newTask("a", "", false), newTask("init", "prestart", false))
	}, func(r *rig) {
		r.run()
		if err := r.runner.RestartTask("a", Terms{}); !errors.Is(err, taskrunner.ErrNotRunning) {
			t.Fatalf("error %v", err)
		}
		if err := r.runner.RestartTask("nobody", Terms{}); structs.ErrorCode(err) != structs.CodeNotFound {
			t.Fatalf("error %v", err)
		}
		r.driver.End("a1/init/1", 0)
		synctest.Wait()
		if err := errors.Join(r.runner.RestartTask("a", Terms{}), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := r.runner.RestartRunning(Terms{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.expect("running", "start a1/init/1", "start a1/a/1", "stop a1/a/1  5s", "start a1/a/2", "stop a1/a/2  5s", "start a1/a/3")
		if err := r.runner.RestartAll(Terms{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := strings.Join(r.driver.Log()[6:], "|"); got != "stop a1/a/3  5s|start a1/init/2" {
			t.Fatalf("calls %q", got)
		}
		r.driver.End("a1/init/2", 0)
		synctest.Wait()
		if got := strings.Join(r.driver.Log()[8:], "|"); got != "start a1/a/4" {
			t.Fatalf("calls %q", got)
		}
		r.stop()
		if err := r.runner.RestartAll(Terms{}); !errors.Is(err, taskrunner.ErrNotRunning) {
			t.Fatalf("error %v", err)
		}
	})
}

func TestHealthIsObserved(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		r := one(t)
		r.alloc.DeploymentID = "d1"
		r.alloc.DeploymentStatus = &structs.AllocDeploymentStatus{Canary: true}
		r.group().Update = &structs.UpdateStrategy{MinHealthyTime: structs.Ptr(3 * time.Second)}
		return r
	}, func(r *rig) {
		r.run()
		if h := r.runner.Observation().DeploymentStatus; h != nil {
			t.Fatalf("health %+v", h)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if h := r.runner.Observation().DeploymentStatus; h == nil || !*h.Healthy || !h.Canary {
			t.Fatalf("health %+v", h)
		}
	})
}

// Without a deployment health is judged by the migrate block, and anew for the deployment that an update brings.
func TestHealthIsObservedForDrainsAndForEachDeployment(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		r := one(t)
		r.group().Migrate = &structs.MigrateStrategy{MinHealthyTime: structs.Ptr(5 * time.Second)}
		return r
	}, func(r *rig) {
		r.run()
		time.Sleep(5*time.Second - time.Millisecond)
		synctest.Wait()
		if h := r.runner.Observation().DeploymentStatus; h != nil {
			t.Fatalf("health %+v too early", h)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		first := r.runner.Observation().DeploymentStatus
		if first == nil || !*first.Healthy {
			t.Fatalf("health %+v", first)
		}
		time.Sleep(time.Second)
		updated := r.alloc.Copy()
		updated.DeploymentID = "d1"
		r.runner.Update(updated)
		time.Sleep(defaultMinHealthyTime)
		synctest.Wait()
		if h := r.runner.Observation().DeploymentStatus; h == nil || !h.Timestamp.After(first.Timestamp) {
			t.Fatalf("health %+v is still that of before the deployment", h)
		}
	})
}

func TestHealthThatNobodyAsksForIsNotJudged(t *testing.T) {
	for name, change := range map[string]func(r *rig){
		"no migrate block": func(*rig) {},
		"manual": func(r *rig) {
			r.alloc.DeploymentID = "d1"
			r.group().Update = &structs.UpdateStrategy{HealthCheck: structs.Ptr(structs.HealthCheckManual)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) *rig {
				r := one(t)
				change(r)
				return r
			}, func(r *rig) {
				r.run()
				time.Sleep(time.Hour)
				synctest.Wait()
				if h := r.runner.Observation().DeploymentStatus; h != nil {
					t.Fatalf("health %+v", h)
				}
			})
		})
	}
}

func TestUnhealthyWhenATaskFails(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		r := one(t)
		r.alloc.DeploymentID = "d1"
		return r
	}, func(r *rig) {
		r.run()
		r.driver.End("a1/a/1", 1)
		synctest.Wait()
		if h := r.runner.Observation().DeploymentStatus; h == nil || *h.Healthy {
			t.Fatalf("health %+v", h)
		}
	})
}

// slowExit is a task hook that takes its time once the process has ended, as the leaving of services may.
type slowExit struct{}

func (slowExit) Name() string { return "slow exit" }
func (slowExit) Exited(context.Context, *hook.TaskRequest, *hook.TaskResponse) error {
	time.Sleep(time.Minute)
	return nil
}

// A process that has ended is not well, though what becomes of its task is not decided yet.
func TestUnhealthyOnceTheProcessHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		r := one(t)
		r.alloc.DeploymentID = "d1"
		r.group().Update = &structs.UpdateStrategy{MinHealthyTime: structs.Ptr(3 * time.Second)}
		r.perTask = []hook.Hook{slowExit{}}
		return r
	}, func(r *rig) {
		r.run()
		time.Sleep(time.Second)
		r.driver.End("a1/a/1", 1)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if h := r.runner.Observation().DeploymentStatus; h != nil {
			t.Fatalf("health %+v while the task is between its end and a restart", h)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if h := r.runner.Observation().DeploymentStatus; h == nil || *h.Healthy {
			t.Fatalf("health %+v", h)
		}
	})
}

func TestLeavingEndsEverythingAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		r := slow(t)
		r.group().Tasks = append(r.group().Tasks, newTask("clean", "poststop", false))
		return r
	}, func(r *rig) {
		r.run()
		begin := time.Now()
		r.runner.Leave()
		synctest.Wait()
		r.expect("complete", "start a1/a/1", "stop a1/a/1  0s")
		if time.Since(begin) != 0 {
			t.Fatalf("took %s", time.Since(begin))
		}
	})
}

func TestRestoredEndIsSilent(t *testing.T) {
	inBubble(t, one, func(r *rig) {
		r.run()
		r.driver.End("a1/a/1", 0)
		synctest.Wait()
		r.crash()
		r.run()
		r.expect("complete", "start a1/a/1")
		if got := r.hooks.list(); got != "prerun postrun" {
			t.Fatalf("hooks %q", got)
		}
	})
}

func TestInPlaceUpdate(t *testing.T) {
	inBubble(t, one, func(r *rig) {
		r.run()
		r.want(func(a *structs.Allocation) {
			a.Job = a.Job.Copy()
			a.JobModifyIndex = 9
			a.Job.TaskGroups[0].Tasks[0].KillTimeout = structs.Ptr(time.Second)
		})
		r.stop()
		r.expect("complete", "start a1/a/1", "stop a1/a/1  1s")
	})
}
