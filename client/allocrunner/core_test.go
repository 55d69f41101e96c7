package allocrunner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/client/service/check"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// tasksOf reads "name:role:state ..." with role main, leader, prestart, prestart+, poststart, poststart+, poststop
// (+ is a sidecar) and state waiting, pending, running, dead, failed, and a trailing ! for one that was asked to end.
func tasksOf(text string) []taskView {
	roles := map[string]role{
		"main": roleMain, "leader": roleMain, "prestart": rolePrestart, "prestart+": rolePrestartSidecar,
		"poststart": rolePoststart, "poststart+": rolePoststartSidecar, "poststop": rolePoststop,
	}
	var out []taskView
	for _, f := range strings.Fields(text) {
		p := strings.Split(f, ":")
		state, stopping := strings.CutSuffix(p[2], "!")
		t := taskView{Name: p[0], Role: roles[p[1]], Leader: p[1] == "leader", Stopping: stopping}
		switch state {
		case "waiting":
			t.Waiting = true
		case "pending":
			t.Process = true
		case "held":
			t.Process, t.Held = true, true
		case "running":
			t.Process, t.Running, t.Ran = true, true, true
		case "dead":
			t.Dead, t.Ran = true, true
		case "failed":
			t.Dead, t.Ran, t.Failed = true, true, true
		case "never":
			t.Dead = true
		default:
			panic(f)
		}
		out = append(out, t)
	}
	return out
}

func restarting(r RestartAll) view { return view{Record: Local{Prerun: true, RestartAll: &r}} }

func delayed(v view, left time.Duration) view {
	v.Delay, v.Left = time.Minute, left
	return v
}

func TestDecide(t *testing.T) {
	down := RestartAll{Prestopped: true, PreKilled: true}
	began := Local{Prerun: true}
	ending := Local{Prerun: true, Cause: Stopped, Prestopped: true, PreKilled: true, Delayed: true}
	delaying := ending
	delaying.Delayed, delaying.Delay = false, boottime.Deadline{BootID: "b", At: 1}
	noDelayYet := ending
	noDelayYet.Delayed = false
	after := func(urged uint64) Local {
		l := ending
		l.Poststop = &urged
		return l
	}
	for _, c := range []struct {
		name  string
		v     view
		tasks string
		want  decision
	}{
		{"prerun first", view{}, "a:main:waiting", decision{Act: runPrerun}},
		{"the replaced allocation still runs", view{Previous: true}, "a:main:waiting", decision{Act: wait}},
		{"stopped while it waits for that", view{Previous: true, Stop: true}, "a:main:waiting", decision{Act: endTasks, Cause: Stopped}},
		{"all main tasks at once", view{Record: began}, "a:main:waiting b:main:waiting", decision{Act: release, Tasks: []string{"a", "b"}}},
		{"prestart first", view{Record: began}, "a:main:waiting p:prestart:waiting s:prestart+:waiting",
			decision{Act: release, Tasks: []string{"p", "s"}}},
		{"prestart must succeed", view{Record: began}, "a:main:waiting p:prestart:running s:prestart+:running", decision{Act: wait}},
		{"prestart sidecar must run", view{Record: began}, "a:main:waiting p:prestart:dead s:prestart+:pending", decision{Act: wait}},
		{"then main", view{Record: began}, "a:main:waiting p:prestart:dead s:prestart+:running x:poststart:waiting",
			decision{Act: release, Tasks: []string{"a"}}},
		{"prestart failed", view{Record: began}, "a:main:waiting p:prestart:failed", decision{Act: endTasks, Cause: TaskFailed, Task: "p"}},
		{"poststart after all main", view{Record: began}, "a:main:running b:main:pending x:poststart:waiting", decision{Act: wait}},
		{"poststart", view{Record: began}, "a:main:running b:main:running x:poststart:waiting y:poststart+:waiting",
			decision{Act: release, Tasks: []string{"x", "y"}}},
		{"poststop waits", view{Record: began}, "a:main:running z:poststop:waiting", decision{Act: wait}},
		{"a main task is done, another runs", view{Record: began}, "a:main:dead b:main:running", decision{Act: wait}},
		{"a sibling failed", view{Record: began}, "a:main:failed b:main:running", decision{Act: endTasks, Cause: TaskFailed, Task: "a"}},
		{"the leader ended", view{Record: began}, "a:leader:dead b:main:running", decision{Act: endTasks, Cause: LeaderDead}},
		{"main tasks ended", view{Record: began}, "a:main:dead s:prestart+:running", decision{Act: endTasks, Cause: MainDead}},

		{"prestop before all", view{Record: Local{Prerun: true, Cause: Stopped}, NoDelay: true}, "a:main:running", decision{Act: runPrestop}},
		{"then discovery", view{Record: Local{Prerun: true, Cause: Stopped, Prestopped: true}}, "a:main:running", decision{Act: runPreKill}},
		{"nothing was prepared", view{Record: Local{Cause: Stopped}}, "a:main:waiting", decision{Act: kill, Tasks: []string{"a"}}},
		{"shutdown_delay begins", view{Record: noDelayYet, Delay: time.Minute}, "a:main:running", decision{Act: beginDelay}},
		{"shutdown_delay", view{Record: delaying, Delay: time.Minute, Left: 9}, "a:main:running", decision{Act: wait, Left: 9}},
		{"shutdown_delay is over", view{Record: delaying, Delay: time.Minute, Left: -1}, "a:main:running", decision{Act: endDelay}},
		{"shutdown_delay is cut", view{Record: delaying, Delay: time.Minute, Left: 9, NoDelay: true}, "a:main:running", decision{Act: endDelay}},
		{"no process, no delay", view{Record: noDelayYet, Delay: time.Minute}, "a:main:waiting", decision{Act: kill, Tasks: []string{"a"}}},
		{"the leader first", view{Record: ending}, "a:main:running l:leader:running s:prestart+:running", decision{Act: kill, Tasks: []string{"l"}}},
		{"alone", view{Record: ending}, "a:main:running l:leader:running!", decision{Act: wait}},
		{"then the others", view{Record: ending}, "a:main:running b:main:pending l:leader:dead s:prestart+:running",
			decision{Act: kill, Tasks: []string{"a", "b"}}},
		{"sidecars wait", view{Record: ending}, "a:main:running! s:prestart+:running", decision{Act: wait}},
		{"then sidecars", view{Record: ending}, "a:main:dead s:prestart+:running t:poststart+:running z:poststop:waiting",
			decision{Act: kill, Tasks: []string{"s", "t"}}},
		{"then poststop", view{Record: ending}, "a:main:dead z:poststop:waiting", decision{Act: release, Tasks: []string{"z"}}},
		{"poststop runs", view{Record: ending}, "a:main:dead z:poststop:running", decision{Act: wait}},
		{"poststop outlasts what was asked before it", view{Record: after(7), Urged: 7}, "a:main:dead z:poststop:running", decision{Act: wait}},
		{"poststop is urged", view{Record: after(7), Urged: 8}, "a:main:dead y:poststop:dead z:poststop:running",
			decision{Act: kill, Tasks: []string{"z"}}},
		{"poststop is urged while it restarts", view{Record: after(0), Urged: 8}, "a:main:dead z:poststop:pending",
			decision{Act: kill, Tasks: []string{"z"}}},
		{"urged poststop ends", view{Record: after(7), Urged: 9}, "a:main:dead z:poststop:running!", decision{Act: wait}},
		{"urged before poststop", view{Record: ending, Urged: 7}, "a:main:dead z:poststop:waiting",
			decision{Act: release, Tasks: []string{"z"}}},
		{"poststop urged before it began, told by an agent of before", view{Record: ending, Urged: 7}, "a:main:dead z:poststop:running",
			decision{Act: wait}},
		{"nothing to run after", view{Record: ending}, "a:main:never z:poststop:waiting", decision{Act: kill, Tasks: []string{"z"}}},
		{"a leaving agent waits for no poststop", view{Record: ending, Leave: true}, "a:main:dead z:poststop:running",
			decision{Act: kill, Tasks: []string{"z"}}},
		{"postrun", view{Record: ending}, "a:main:dead z:poststop:dead", decision{Act: runPostrun}},
		{"over", view{Record: Local{Done: true}}, "a:main:dead", decision{Act: finished}},

		{"restart: prestop first", restarting(RestartAll{}), "a:main:running", decision{Act: runPrestop}},
		{"restart: then discovery", restarting(RestartAll{Prestopped: true}), "a:main:running", decision{Act: runPreKill}},
		{"restart: then the delay", delayed(restarting(down), 0), "a:main:running", decision{Act: beginDelay}},
		{"restart: the delay is cut", view{Record: restarting(down).Record, Delay: time.Minute, NoDelay: true}, "a:main:running",
			decision{Act: endDelay}},
		{"restart: no process, no delay", delayed(restarting(down), 0), "a:main:waiting", decision{Act: runResume}},
		{"restart: the leader first", restarting(down), "l:leader:running a:main:running p:prestart:dead",
			decision{Act: park, Tasks: []string{"l"}}},
		{"restart: then the others", restarting(down), "l:leader:waiting a:main:running s:prestart+:running",
			decision{Act: park, Tasks: []string{"a"}}},
		{"restart: only what ran", restarting(RestartAll{Prestopped: true, PreKilled: true, Tasks: []string{"b"}}),
			"a:main:pending b:main:running", decision{Act: park, Tasks: []string{"b"}}},
		{"restart: all are down", restarting(down), "a:main:waiting p:prestart:dead z:poststop:waiting", decision{Act: runResume}},
		{"restart: begin anew", restarting(RestartAll{Resumed: true}), "a:main:waiting p:prestart:dead z:poststop:waiting",
			decision{Act: resetTasks}},
		{"restart: what is held has not begun", restarting(RestartAll{}), "a:main:held", decision{Act: runResume}},
		{"restart before anything was prepared", view{Record: Local{RestartAll: &RestartAll{}}}, "a:main:waiting",
			decision{Act: resetTasks}},
		{"restart all gives way to a stop", view{Record: Local{Prerun: true, RestartAll: &RestartAll{}}, Stop: true},
			"a:main:dead", decision{Act: endTasks, Cause: Stopped}},
	} {
		c.v.Tasks = tasksOf(c.tasks)
		if got := decide(c.v); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Whatever the group and whatever happens, the allocation comes to its end, tasks start and end in lifecycle order,
// and no task is asked to end before the hooks ran.
func TestEveryCourseEndsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := []role{roleMain, rolePrestart, rolePrestartSidecar, rolePoststart, rolePoststartSidecar, rolePoststop}
		v := view{Delay: time.Second, Tasks: []taskView{{Name: "t0", Role: roleMain, Leader: rapid.Bool().Draw(t, "leader"), Waiting: true}}}
		for i := range rapid.IntRange(0, 5).Draw(t, "more tasks") {
			v.Tasks = append(v.Tasks, taskView{
				Name: fmt.Sprintf("t%d", i+1), Role: rapid.SampledFrom(roles).Draw(t, "role"), Waiting: true,
			})
		}
		for range 400 {
			d := decide(v)
			if d.Act == finished {
				return
			}
			step(t, &v, d)
		}
		t.Fatalf("no end: %+v", v)
	})
}

func step(t *rapid.T, v *view, d decision) {
	switch d.Act {
	case wait:
		happens(t, v)
	case endTasks:
		v.Record.Cause = d.Cause
	case runPrerun:
		v.Record.Prerun = true
	case release:
		for i := range v.Tasks {
			if slices.Contains(d.Tasks, v.Tasks[i].Name) {
				v.Tasks[i].Waiting, v.Tasks[i].Process = false, true
				if v.Tasks[i].Role == rolePoststop && slices.ContainsFunc(v.Tasks, func(o taskView) bool { return !o.Dead && o.Role != rolePoststop }) {
					t.Fatalf("poststop task %s starts while others live: %+v", v.Tasks[i].Name, v)
				}
			}
		}
	case runPrestop:
		v.Record.Prestopped = true
	case runPreKill:
		v.Record.PreKilled = true
	case beginDelay:
		v.Record.Delay, v.Left = boottime.Deadline{BootID: "b"}, time.Second
	case endDelay:
		v.Record.Delayed = true
	case kill:
		if v.Record.Prerun && !v.Record.PreKilled && slices.ContainsFunc(v.Tasks, func(t taskView) bool { return t.Process }) {
			t.Fatalf("asked to end before the hooks: %+v", v)
		}
		for i := range v.Tasks {
			if slices.Contains(d.Tasks, v.Tasks[i].Name) {
				v.Tasks[i].Stopping, v.Tasks[i].Waiting, v.Tasks[i].Process = true, false, true
			}
		}
	case runPostrun:
		v.Record.Done = true
	default:
		t.Fatalf("unexpected %+v", d)
	}
}

// happens lets one thing happen from outside: time passes, a task starts or ends, a stop arrives.
func happens(t *rapid.T, v *view) {
	v.Left -= time.Second
	if rapid.IntRange(0, 20).Draw(t, "stop arrives") == 0 {
		v.Stop = true
	}
	if rapid.IntRange(0, 9).Draw(t, "impatience") == 0 {
		v.NoDelay = true
	}
	i := rapid.IntRange(0, len(v.Tasks)-1).Draw(t, "task")
	task := &v.Tasks[i]
	switch {
	case !task.Process:
	case !task.Running && !task.Stopping:
		task.Running, task.Ran = true, true
	default:
		task.Running, task.Process, task.Dead = false, false, true
		task.Failed = !task.Stopping && rapid.IntRange(0, 3).Draw(t, "fails") == 0
	}
}

func TestJudge(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)
	yes, no := true, false
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, c := range []struct {
		name    string
		tasks   string
		started []time.Duration
		begun   time.Duration
		healthy *bool
		again   time.Duration
	}{
		{"ran long enough", "a:main:running", []time.Duration{10 * time.Second}, time.Minute, &yes, 0},
		{"a little longer", "a:main:running", []time.Duration{4 * time.Second}, time.Minute, nil, 6 * time.Second},
		{"the youngest counts", "a:main:running b:main:running", []time.Duration{time.Minute, time.Second}, time.Minute, nil, 9 * time.Second},
		{"not started", "a:main:pending", []time.Duration{0}, time.Minute, nil, 4 * time.Minute},
		{"a task failed", "a:main:running b:main:failed", []time.Duration{time.Minute, time.Minute}, time.Minute, &no, 0},
		{"a task ended", "a:main:running b:main:dead", []time.Duration{time.Minute, time.Minute}, time.Minute, &no, 0},
		{"too late", "a:main:pending", []time.Duration{0}, 5 * time.Minute, &no, 0},
		{"would be too late", "a:main:running", []time.Duration{time.Second}, 4*time.Minute + 55*time.Second, nil, 5 * time.Second},
		{"prestart is over, poststop waits", "p:prestart:dead a:main:running z:poststop:waiting",
			[]time.Duration{0, time.Minute, 0}, 2 * time.Minute, &yes, 0},
		{"poststart still runs", "a:main:running p:poststart:running", []time.Duration{time.Minute, time.Minute}, 2 * time.Minute, nil, 3 * time.Minute},
	} {
		v := healthView{MinHealthyTime: 10 * time.Second, HealthyDeadline: 5 * time.Minute, Begun: ago(c.begun), Tasks: tasksOf(c.tasks)}
		for _, s := range c.started {
			v.StartedAt = append(v.StartedAt, ago(s))
		}
		got := judge(v, now)
		healthy, again := got.Healthy, got.Again
		if (healthy == nil) != (c.healthy == nil) || structs.Val(healthy) != structs.Val(c.healthy) || again != c.again {
			t.Errorf("%s: healthy %v, again in %s", c.name, healthy, again)
		}
	}
}

func TestJudgeByChecks(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)
	view := healthView{MinHealthyTime: 10 * time.Second, HealthyDeadline: 5 * time.Minute, Begun: now.Add(-time.Minute),
		Tasks: tasksOf("a:main:running"), StartedAt: []time.Time{now.Add(-time.Minute)}}
	passing := func(since time.Duration) checkView {
		return checkView{"web", "up", check.Standing{Passing: now.Add(-since), Status: structs.CheckSuccess}}
	}
	failing := checkView{"web", "ready", check.Standing{Status: structs.CheckFailure, Output: "no database"}}
	for _, c := range []struct {
		name    string
		checks  []checkView
		begun   time.Duration
		healthy *bool
		again   time.Duration
		reason  string
	}{
		{"passing for long enough", []checkView{passing(10 * time.Second)}, time.Minute, structs.Ptr(true), 0, ""},
		{"the youngest counts", []checkView{passing(time.Minute), passing(time.Second)}, time.Minute, nil, 9 * time.Second, ""},
		{"one fails", []checkView{passing(time.Minute), failing}, time.Minute, nil, 4 * time.Minute, ""},
		{"one fails until the deadline", []checkView{passing(time.Minute), failing}, 5 * time.Minute, structs.Ptr(false), 0,
			`Check "ready" of service "web" not passing for min_healthy_time of 10s by healthy_deadline of 5m0s: it is failure: no database`},
		{"one that is not asked", []checkView{{Service: "web", Name: "up"}}, 5 * time.Minute, structs.Ptr(false), 0,
			`Check "up" of service "web" not passing for min_healthy_time of 10s by healthy_deadline of 5m0s: it is not asked, since its task does not run`},
		{"too late", []checkView{passing(time.Second)}, 5 * time.Minute, structs.Ptr(false), 0,
			"Not healthy for min_healthy_time of 10s by healthy_deadline of 5m0s: well only since 2026-01-01T00:09:59Z"},
	} {
		v := view
		v.Begun, v.Checks = now.Add(-c.begun), c.checks
		got := judge(v, now)
		if (got.Healthy == nil) != (c.healthy == nil) || structs.Val(got.Healthy) != structs.Val(c.healthy) || got.Again != c.again {
			t.Errorf("%s: healthy %v, again in %s", c.name, got.Healthy, got.Again)
		}
		if got.Reason != c.reason {
			t.Errorf("%s: %s", c.name, got.Reason)
		}
	}
}

// TestARestartByChecksObeysThePolicy: a task that its policy has failed meanwhile ends the allocation, and is not reset.
func TestARestartByChecksObeysThePolicy(t *testing.T) {
	for unhealthy, want := range map[bool]act{true: endTasks, false: resetTasks} {
		v := view{Record: Local{Prerun: true, RestartAll: &RestartAll{Unhealthy: unhealthy, Prestopped: true, PreKilled: true, Resumed: true}},
			Tasks: tasksOf("a:main:failed")}
		if d := decide(v); d.Act != want {
			t.Errorf("unhealthy %v: %+v", unhealthy, d)
		}
	}
}

func TestObserve(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fresh := &structs.TaskState{State: "pending"}
	ran := &structs.TaskState{State: "dead", StartedAt: at}
	failed := &structs.TaskState{State: "dead", StartedAt: at, Failed: true}
	for _, c := range []struct {
		done   bool
		states map[string]*structs.TaskState
		want   string
	}{
		{false, map[string]*structs.TaskState{"a": fresh}, "pending"},
		{false, map[string]*structs.TaskState{"a": fresh, "p": ran}, "running"},
		{false, map[string]*structs.TaskState{"a": failed, "b": ran}, "running"},
		{true, map[string]*structs.TaskState{"a": failed, "b": ran}, "failed"},
		{true, map[string]*structs.TaskState{"a": ran}, "complete"},
		{true, map[string]*structs.TaskState{"a": fresh}, "complete"},
	} {
		if got, _ := observe(c.done, c.states); got != c.want {
			t.Errorf("done %v: %q, want %q", c.done, got, c.want)
		}
	}
}
