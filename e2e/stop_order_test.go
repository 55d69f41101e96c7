package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// course is a job whose tasks are real processes that write down what happens to them, and when.
type course struct {
	*agent
	t    *testing.T
	job  *structs.Job
	file string
}

// obeys takes its time to end when it is signalled, ignores does not end, and brief ends by itself.
const (
	obeys   = `trap 'say term; sleep 0.3; say end; exit 0' TERM; say up; sleep 600 & wait`
	ignores = `trap 'say term' TERM; say up; while :; do sleep 600 & wait; done`
	brief   = `trap 'say term' TERM; say up; sleep 0.3; say end`
)

// newCourse gives a job with one task t, which obeys.
func newCourse(t *testing.T, a *agent, id string, change func(*structs.TaskGroup, *structs.Task)) *course {
	t.Helper()
	dir := filepath.Join(a.Dir, "times-"+id) // it outlives the test, as tasks do that the agent stops at last
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	c := &course{agent: &agent{Agent: a.Agent, t: t}, t: t, file: filepath.Join(dir, "times")}
	c.job = job(id, c.script(obeys), func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		task.KillSignal, task.KillTimeout = "SIGTERM", structs.Ptr(10*time.Second)
		if change != nil {
			change(g, task)
		}
	})
	return c
}

func (c *course) script(what string) string {
	return fmt.Sprintf("say() { echo $(date +%%s%%N) $NOMAD_TASK_NAME $1 >> %s; }; ", c.file) + what
}

// add gives the group another task.
func (c *course) add(name, what, hook string, sidecar bool) *structs.Task {
	group := c.job.TaskGroups[0]
	task := *group.Tasks[0]
	task.Name, task.ShutdownDelay, task.Leader, task.Services = name, 0, false, nil
	task.Config = map[string]any{"command": "/bin/sh", "args": []any{"-c", c.script(what)}}
	if hook != "" {
		task.Lifecycle = &structs.TaskLifecycle{Hook: hook, Sidecar: sidecar}
	}
	group.Tasks = append(group.Tasks, &task)
	return &task
}

// run registers the job and waits until the named tasks have said that they are up.
func (c *course) run(tasks ...string) *structs.AllocationListStub {
	c.t.Helper()
	register(c.t, c.Client, c.job)
	alloc := awaitAllocs(c.t, c.Client, *c.job.ID, "running tasks", func(l []*structs.AllocationListStub) bool {
		return len(l) == 1 && !slices.ContainsFunc(tasks, func(name string) bool {
			s := l[0].TaskStates[name]
			return s == nil || s.State != structs.TaskStateRunning
		})
	})[0]
	for _, name := range tasks {
		c.await(name, "up", 1)
	}
	return alloc
}

// said lists when a task has said something.
func (c *course) said(task, what string) []time.Time {
	c.t.Helper()
	raw, err := os.ReadFile(c.file)
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	var out []time.Time
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != task || f[2] != what {
			continue
		}
		nanos, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			c.t.Fatal(err)
		}
		out = append(out, time.Unix(0, nanos))
	}
	return out
}

// await waits until a task has said something n times: the file changes when it does.
func (c *course) await(task, what string, n int) time.Time {
	c.t.Helper()
	var at []time.Time
	awaitFile(c.t, filepath.Dir(c.file), func() bool {
		at = c.said(task, what)
		return len(at) >= n
	})
	return at[n-1]
}

// at is the first time at which a task said something; it must have.
func (c *course) at(task, what string) time.Time {
	c.t.Helper()
	times := c.said(task, what)
	if len(times) == 0 {
		raw, _ := os.ReadFile(c.file)
		c.t.Fatalf("task %s has not said %q:\n%s", task, what, raw)
	}
	return times[0]
}

// inOrder checks that each "task what" was said after the one before it.
func (c *course) inOrder(moments ...string) {
	c.t.Helper()
	for i := 1; i < len(moments); i++ {
		a, b := strings.Fields(moments[i-1]), strings.Fields(moments[i])
		if first, second := c.at(a[0], a[1]), c.at(b[0], b[1]); !first.Before(second) {
			c.t.Errorf("%q came %s before %q", moments[i], first.Sub(second), moments[i-1])
		}
	}
}

func (c *course) never(task, what string) {
	c.t.Helper()
	if times := c.said(task, what); len(times) > 0 {
		c.t.Errorf("task %s said %q", task, what)
	}
}

// stop asks by the command line, and gives the time before it did.
func (c *course) stop(flags ...string) time.Time {
	c.t.Helper()
	asked := time.Now()
	c.ok(append(append([]string{"job", "stop", "-detach"}, flags...), *c.job.ID)...)
	return asked
}

// ended waits for the end of the only allocation.
func (c *course) ended() *structs.AllocationListStub {
	c.t.Helper()
	return awaitEnded(c.t, c.Client, *c.job.ID, 1)[0]
}

// waits waits until a task's events tell of a wait of the group ("group shutdown_delay") or of its own.
func (c *course) waits(task, which string) {
	c.t.Helper()
	awaitAllocs(c.t, c.Client, *c.job.ID, which, func(l []*structs.AllocationListStub) bool {
		return slices.ContainsFunc(l, func(a *structs.AllocationListStub) bool {
			s := a.TaskStates[task]
			return s != nil && eventAt(s, structs.TaskWaitingShutdownDelay, "Waiting for "+which) != 0
		})
	})
}

const (
	groupWait = "group shutdown_delay"
	taskWait  = "shutdown_delay"
)

// eventAt is when the newest event of a kind with a text came, 0 when none did.
func eventAt(s *structs.TaskState, kind, text string) int64 {
	for _, e := range slices.Backward(s.Events) {
		if e.Type == kind && strings.Contains(e.DisplayMessage, text) {
			return e.Time
		}
	}
	return 0
}

// took checks how long something took. The upper bound has room for a busy machine.
func (c *course) took(what string, d, least time.Duration) {
	c.t.Helper()
	if d < least || d > least+20*time.Second {
		c.t.Errorf("%s took %s, want about %s", what, d, least)
	}
}

const long = 10 * time.Minute

// courseAgent is an agent for many courses; its max_kill_timeout is out of their way.
func courseAgent(t *testing.T) *agent {
	a := newAgent(t, func(c map[string]any) { c["client"].(map[string]any)["max_kill_timeout"] = "1h" })
	a.Start()
	return a
}

// TestTheOrderOfAStop lets a group of all kinds of tasks write down its end, with and without the flag.
func TestTheOrderOfAStop(t *testing.T) {
	a := courseAgent(t)
	for _, flags := range [][]string{nil, {"-no-shutdown-delay"}} {
		t.Run(fmt.Sprint("flags", flags), func(t *testing.T) {
			group, own := time.Second, 700*time.Millisecond
			if flags != nil {
				group, own = long, long
			}
			c := newCourse(t, a, fmt.Sprint("order", len(flags)), func(g *structs.TaskGroup, task *structs.Task) {
				g.ShutdownDelay, task.ShutdownDelay = &group, own
				task.Name, task.Leader = "leader", true
			})
			c.add("one", obeys, "", false)
			c.add("two", obeys, "", false)
			c.add("side", obeys, "prestart", true)
			c.add("late", obeys, "poststart", true)
			c.add("last", brief, "poststop", false)
			c.add("final", brief, "poststop", false)
			tasks := []string{"leader", "one", "two", "side", "late"}
			c.run(tasks...)
			asked := c.stop(flags...)
			alloc := c.ended()
			// The leader alone; then the others side by side; then the sidecars, side by side; then poststop tasks to their end.
			c.inOrder("leader term", "leader end", "one term", "two end", "side term", "late end", "last up", "final end")
			c.inOrder("leader end", "two term", "one end", "late term", "side end", "final up", "last end")
			c.never("last", "term")
			c.never("final", "term")
			waited := c.at("leader", "term").Sub(asked)
			if flags == nil {
				c.took("both delays", waited, group+own)
			} else {
				c.took("no delay", waited, 0)
			}
			for _, name := range tasks {
				s := alloc.TaskStates[name]
				prestop := eventAt(s, structs.TaskHookMessage, "prestop")
				killing := eventAt(s, structs.TaskKilling, "")
				if prestop == 0 || killing == 0 || prestop > killing {
					t.Errorf("task %s: prestop hooks ran at %d, it was killed at %d", name, prestop, killing)
				}
				wait, skip := eventAt(s, structs.TaskWaitingShutdownDelay, "group"), eventAt(s, structs.TaskSkippingShutdownDelay, "")
				if flags == nil && (wait < prestop || wait > killing) || flags != nil && (wait != 0 || skip == 0) {
					t.Errorf("task %s: waited at %d, skipped at %d, prestop at %d", name, wait, skip, prestop)
				}
			}
			if !strings.Contains(a.Log(), "allocation goes down: alloc="+alloc.ID) {
				t.Error("the allocation's prestop hook did not run")
			}
			if pids := processes(func(_, environ string) bool { return strings.Contains(environ, "NOMAD_ALLOC_ID="+alloc.ID) }); len(pids) > 0 {
				t.Errorf("processes %v are left", pids)
			}
		})
	}
}

// TestDelaysAreWaitedWithoutServicesAndComeBack: a group without any service waits all the same. Stopped with the flag
// and started again the job has its delays.
func TestDelaysAreWaitedWithoutServicesAndComeBack(t *testing.T) {
	a := courseAgent(t)
	c := newCourse(t, a, "again", func(g *structs.TaskGroup, task *structs.Task) {
		g.ShutdownDelay, task.ShutdownDelay = structs.Ptr(1500*time.Millisecond), 700*time.Millisecond
	})
	first := c.run("t")
	asked := c.stop()
	c.ended()
	c.took("delays without services", c.await("t", "term", 1).Sub(asked), 2200*time.Millisecond)

	again := func(n int) {
		t.Helper()
		register(t, a.Client, c.job)
		awaitRunning(t, a.Client, "again", 1)
		c.await("t", "up", n)
	}
	again(2)
	asked = c.stop("-no-shutdown-delay")
	if d := c.await("t", "term", 2).Sub(asked); d > 1400*time.Millisecond {
		t.Errorf("a stop without delay took %s", d)
	}
	awaitEnded(t, a.Client, "again", 2)
	again(3)
	j, _, err := a.Client.Jobs().Info(limited(t), "again", nil)
	if err != nil {
		t.Fatal(err)
	}
	if g := j.TaskGroups[0]; *g.ShutdownDelay != 1500*time.Millisecond || g.Tasks[0].ShutdownDelay != 700*time.Millisecond {
		t.Errorf("the job's delays have become %s and %s", *g.ShutdownDelay, g.Tasks[0].ShutdownDelay)
	}
	asked = c.stop()
	c.took("delays after the flag and a start", c.await("t", "term", 3).Sub(asked), 2200*time.Millisecond)
	awaitEnded(t, a.Client, "again", 3)

	// On an allocation that has ended the flag does nothing.
	before, _, err := a.Client.Allocations().Info(limited(t), first.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.ok("job", "stop", "-detach", "-immediate", "again")
	after, _, err := a.Client.Allocations().Info(limited(t), first.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if after.ModifyIndex != before.ModifyIndex || after.DesiredTransition != before.DesiredTransition {
		t.Errorf("an ended allocation changed from %d %+v to %d %+v", before.ModifyIndex, before.DesiredTransition, after.ModifyIndex, after.DesiredTransition)
	}
}

// TestCutsOfWaitsUnderWay cuts each wait by a later flag, also when the agent is killed (-9) in the middle, with the flag
// before or after that.
func TestCutsOfWaitsUnderWay(t *testing.T) {
	for _, crash := range []string{"", "kill, then the flag", "the flag, then kill"} {
		t.Run("agent "+crash, func(t *testing.T) {
			t.Parallel()
			a := courseAgent(t)
			// Another job's stop waits its own time meanwhile, and a third job goes on.
			other := newCourse(t, a, "other", func(g *structs.TaskGroup, _ *structs.Task) { g.ShutdownDelay = structs.Ptr(8 * time.Second) })
			third := newCourse(t, a, "third", nil)
			inGroup := newCourse(t, a, "group", func(g *structs.TaskGroup, _ *structs.Task) { g.ShutdownDelay = structs.Ptr(long) })
			inTask := newCourse(t, a, "task", func(_ *structs.TaskGroup, task *structs.Task) { task.ShutdownDelay = long })
			inKill := newCourse(t, a, "kill", func(_ *structs.TaskGroup, task *structs.Task) { task.KillTimeout = structs.Ptr(long) })
			inKill.job.TaskGroups[0].Tasks[0].Config["args"] = []any{"-c", inKill.script(ignores)}
			all := []*course{other, third, inGroup, inTask, inKill}
			for _, c := range all {
				c.run("t")
			}
			otherAsked := other.stop()
			for _, c := range []*course{inGroup, inTask, inKill} {
				c.stop()
			}
			inGroup.waits("t", groupWait)
			inTask.waits("t", taskWait)
			inKill.await("t", "term", 1)
			if crash == "kill, then the flag" {
				a.Kill()
				a.Start()
			}
			asked := inGroup.stop("-no-shutdown-delay")
			inTask.stop("-no-shutdown-delay")
			inKill.stop("-kill-timeout=100ms")
			if crash == "the flag, then kill" {
				a.Kill()
				a.Start()
			}
			for _, c := range []*course{inGroup, inTask, inKill} {
				c.ended()
				c.took(*c.job.ID+" after the flag", time.Since(asked), 0)
			}
			inGroup.at("t", "term")
			inTask.at("t", "term")
			other.ended()
			other.took("another job's delay", other.at("t", "term").Sub(otherAsked), 8*time.Second)
			third.never("t", "term")
			if n := awaitRunning(t, a.Client, "third", 1)[0].TaskStates["t"].Restarts; n != 0 {
				t.Errorf("another job's task was restarted %d times", n)
			}
		})
	}
}

// TestTheFlagWhateverTheAllocationIsDoing stops allocations that have not come to run, or have ceased to.
func TestTheFlagWhateverTheAllocationIsDoing(t *testing.T) {
	a := courseAgent(t)
	delays := func(g *structs.TaskGroup, task *structs.Task) {
		g.ShutdownDelay, task.ShutdownDelay = structs.Ptr(long), long
	}
	stopped := func(t *testing.T, c *course) {
		t.Helper()
		asked := c.stop("-no-shutdown-delay")
		c.ended()
		c.took("the stop", time.Since(asked), 0)
	}
	t.Run("prestart", func(t *testing.T) {
		c := newCourse(t, a, "prestart", delays)
		c.add("pre", obeys, "prestart", false).ShutdownDelay = long
		c.run("pre")
		stopped(t, c)
		c.inOrder("pre up", "pre term", "pre end")
		c.never("t", "up")
	})
	t.Run("backoff", func(t *testing.T) {
		c := newCourse(t, a, "backoff", delays)
		task := c.job.TaskGroups[0].Tasks[0]
		task.Config["args"] = []any{"-c", c.script("say up; exit 1")}
		task.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(5), Interval: structs.Ptr(24 * time.Hour), Delay: structs.Ptr(time.Hour),
			Mode: structs.Ptr("delay")}
		register(t, a.Client, c.job)
		awaitAllocs(t, a.Client, "backoff", "the wait for a restart", func(l []*structs.AllocationListStub) bool {
			return len(l) == 1 && l[0].TaskStates["t"] != nil && hasEvent(l[0].TaskStates["t"], structs.TaskRestarting)
		})
		stopped(t, c)
		if n := len(c.said("t", "up")); n != 1 {
			t.Errorf("it was started %d times", n)
		}
	})
	t.Run("poststart", func(t *testing.T) {
		c := newCourse(t, a, "poststart", delays)
		c.add("post", obeys, "poststart", false).ShutdownDelay = long
		c.run("t", "post")
		stopped(t, c)
		c.at("t", "end")
		c.at("post", "end")
	})
	t.Run("pending", func(t *testing.T) {
		// Placed on this node, and waits for the one that it replaces, whose stop waits.
		c := newCourse(t, a, "pending", func(g *structs.TaskGroup, _ *structs.Task) {
			g.ShutdownDelay = structs.Ptr(long)
			g.Count = structs.Ptr(1)
		})
		c.run("t")
		next := *c.job
		group := *c.job.TaskGroups[0]
		task := *group.Tasks[0]
		task.Env = map[string]string{"NEW": "1"}
		group.Tasks, next.TaskGroups = []*structs.Task{&task}, []*structs.TaskGroup{&group}
		register(t, a.Client, &next)
		awaitAllocs(t, a.Client, "pending", "the one that waits", func(l []*structs.AllocationListStub) bool {
			return len(l) == 2 && len(withStatus(l, structs.AllocClientStatusPending)) == 1
		})
		c.waits("t", groupWait)
		asked := c.stop("-no-shutdown-delay")
		awaitEnded(t, a.Client, "pending", 2)
		c.took("the stop", time.Since(asked), 0)
		if n := len(c.said("t", "up")); n != 1 {
			t.Errorf("%d tasks have run", n)
		}
	})
}

// TestTheFlagReachesANodeThatIsAway stops an allocation whose node is not heard; back again it does so without delay.
func TestTheFlagReachesANodeThatIsAway(t *testing.T) {
	p := preparePair(t, nil)
	node := p.nodes[0]
	node.Start()
	c := newCourse(t, p.server, "away", func(g *structs.TaskGroup, task *structs.Task) {
		g.ShutdownDelay, task.ShutdownDelay = structs.Ptr(long), long
		g.Disconnect = &structs.DisconnectStrategy{LostAfter: structs.Ptr(time.Hour), Replace: structs.Ptr(false)}
	})
	c.run("t")
	node.Kill()
	awaitStatus(t, p.server.Client, "away", structs.AllocClientStatusUnknown)
	c.stop("-no-shutdown-delay")
	c.never("t", "term")
	back := time.Now()
	node.Start()
	c.ended()
	c.took("the stop after the return", c.at("t", "term").Sub(back), 0)
}

// TestKillTimeouts shows by times which of the limits between kill_signal and SIGKILL counts.
func TestKillTimeouts(t *testing.T) {
	a := newAgent(t, func(c map[string]any) { c["client"].(map[string]any)["max_kill_timeout"] = "3s" })
	a.Start()
	for _, tc := range []struct {
		id    string
		own   time.Duration
		delay time.Duration
		flags []string
		want  time.Duration
	}{
		{"own", time.Second, 0, nil, time.Second},
		{"capped", long, 0, nil, 3 * time.Second},
		{"shortened", long, 0, []string{"-kill-timeout=500ms"}, 500 * time.Millisecond},
		{"notlengthened", time.Second, 0, []string{"-kill-timeout=30m"}, time.Second},
		{"immediate", long, long, []string{"-immediate"}, 0},
	} {
		t.Run(tc.id, func(t *testing.T) {
			t.Parallel()
			c := newCourse(t, a, tc.id, func(g *structs.TaskGroup, task *structs.Task) {
				g.ShutdownDelay, task.ShutdownDelay = &tc.delay, tc.delay
				g.Services = []*structs.Service{nomadService(tc.id, "80")}
				task.KillTimeout = &tc.own
			})
			c.job.TaskGroups[0].Tasks[0].Config["args"] = []any{"-c", c.script(ignores)}
			c.add("last", brief, "poststop", false)
			c.run("t")
			awaitInstances(t, a.Client, tc.id, 1)
			c.stop(tc.flags...)
			alloc := c.ended()
			s := alloc.TaskStates["t"]
			killing, gone := eventAt(s, structs.TaskKilling, ""), eventAt(s, structs.TaskTerminated, "")
			if d := time.Duration(gone - killing); d < tc.want || d > tc.want+1500*time.Millisecond {
				t.Errorf("between kill_signal and the end were %s, want %s", d, tc.want)
			}
			c.inOrder("last up", "last end")
			c.never("last", "term")
			awaitInstances(t, a.Client, tc.id, 0)
		})
	}
}

// TestAStopOfOneAllocationHasItsOwnTerms stops one of two with the flag: the other's transition stays empty, and the
// replacement has none.
func TestAStopOfOneAllocationHasItsOwnTerms(t *testing.T) {
	a := courseAgent(t)
	c := newCourse(t, a, "two", func(g *structs.TaskGroup, task *structs.Task) {
		g.Count, g.ShutdownDelay = structs.Ptr(2), structs.Ptr(long)
	})
	register(t, a.Client, c.job)
	allocs := awaitRunning(t, a.Client, "two", 2)
	c.await("t", "up", 2)
	asked := time.Now()
	a.ok("alloc", "stop", "-detach", "-no-shutdown-delay", allocs[0].ID)
	c.await("t", "up", 3)
	c.took("the replacement", time.Since(asked), 0)
	for _, alloc := range awaitRunning(t, a.Client, "two", 2) {
		whole, _, err := a.Client.Allocations().Info(limited(t), alloc.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if structs.Val(whole.DesiredTransition.NoShutdownDelay) || whole.DesiredTransition.KillTimeout != nil {
			t.Errorf("an allocation that is to run has %+v", whole.DesiredTransition)
		}
	}
	deregister(t, a.Client, "two", &api.DeregisterOptions{NoShutdownDelay: true})
	awaitEnded(t, a.Client, "two", 3)
}

// TestAPoststopTaskThatHangs runs on through a stop, whatever that was asked to skip, and ends when it is asked for once
// more with a kill timeout; so it is with an agent that was killed meanwhile.
func TestAPoststopTaskThatHangs(t *testing.T) {
	a := courseAgent(t)
	for _, tc := range []struct {
		id    string
		first []string
		crash bool
		again []string
		least time.Duration
	}{
		{"shorter", nil, false, []string{"-kill-timeout=700ms"}, 700 * time.Millisecond},
		{"repeated", []string{"-immediate"}, false, []string{"-immediate"}, 0},
		{"crashed", []string{"-kill-timeout=300ms"}, true, []string{"-kill-timeout=300ms"}, 300 * time.Millisecond},
	} {
		t.Run(tc.id, func(t *testing.T) {
			c := newCourse(t, a, "hangs-"+tc.id, func(g *structs.TaskGroup, _ *structs.Task) { g.ShutdownDelay = structs.Ptr(time.Duration(0)) })
			c.add("last", ignores, "poststop", false).KillTimeout = structs.Ptr(long)
			c.run("t")
			c.stop(tc.first...)
			c.await("last", "up", 1)
			if tc.crash {
				a.Kill()
				a.Start()
			}
			c.stop("-no-shutdown-delay") // it has no delay: this is nothing to it
			c.awaitTask("last", structs.TaskStateRunning)
			c.never("last", "term")
			asked := c.stop(tc.again...)
			s := c.ended().TaskStates["last"]
			if s.Failed || s.State != structs.TaskStateDead {
				t.Errorf("the poststop task is %s, failed %t", s.State, s.Failed)
			}
			c.took("the end of the poststop task", time.Duration(eventAt(s, structs.TaskTerminated, "")-asked.UnixNano()), tc.least)
			if told := len(c.said("last", "term")); told != 1 && tc.least > 0 {
				t.Errorf("it was signalled %d times", told)
			}
		})
	}
}

// awaitTask waits until the only allocation shows a task in a state.
func (c *course) awaitTask(name, state string) {
	c.t.Helper()
	awaitAllocs(c.t, c.Client, *c.job.ID, name+" "+state, func(l []*structs.AllocationListStub) bool {
		return len(l) == 1 && l[0].TaskStates[name] != nil && l[0].TaskStates[name].State == state
	})
}
