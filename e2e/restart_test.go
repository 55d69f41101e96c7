package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// whole is a group of all kinds of tasks with services and the given delays of group and leader.
func whole(t *testing.T, a *agent, id string, group, own time.Duration) *course {
	c := newCourse(t, a, id, func(g *structs.TaskGroup, task *structs.Task) {
		g.ShutdownDelay, task.ShutdownDelay = &group, own
		g.Services = []*structs.Service{nomadService(id+"-group", "80")}
		task.Name, task.Leader = "leader", true
		task.Services = []*structs.Service{nomadService(id+"-task", "81")}
	})
	c.add("main", obeys, "", false)
	c.add("init", brief, "prestart", false)
	c.add("side", obeys, "prestart", true).Services = []*structs.Service{nomadService(id+"-side", "82")}
	c.add("last", brief, "poststop", false)
	return c
}

var wholeUp = []string{"leader", "main", "side"}

// again waits until the tasks run for the n-th time and all services are offered.
func (c *course) again(n int) {
	c.t.Helper()
	for _, name := range wholeUp {
		c.await(name, "up", n)
	}
	for _, of := range []string{"-group", "-task", "-side"} {
		awaitInstances(c.t, c.Client, *c.job.ID+of, 1)
	}
}

// TestARestartGoesTheWayOfAStop restarts whole allocations by each command: the group's services leave first, then its
// delay, then the leader alone, the others, sidecars; then everything is back, and the job is as it was.
func TestARestartGoesTheWayOfAStop(t *testing.T) {
	a := courseAgent(t)
	for _, tc := range []struct {
		id      string
		command []string
		init    int // how often the prestart task has run afterwards
	}{
		{"alloc", []string{"alloc", "restart", "ALLOC"}, 1},
		{"alltasks", []string{"alloc", "restart", "-all-tasks", "ALLOC"}, 2},
		{"jobs", []string{"job", "restart", "-yes", "JOB"}, 1},
		{"jobsall", []string{"job", "restart", "-yes", "-all-tasks", "JOB"}, 2},
	} {
		t.Run(tc.id, func(t *testing.T) {
			t.Parallel()
			const group, own = 2 * time.Second, time.Second
			c := whole(t, a, tc.id, group, own)
			alloc := c.run(wholeUp...)
			c.again(1)
			before, _, err := a.Client.Jobs().Info(limited(t), tc.id, nil)
			if err != nil {
				t.Fatal(err)
			}
			left := leaving(t, a.Client, tc.id+"-group", tc.id+"-task")
			for i, word := range tc.command {
				tc.command[i] = strings.NewReplacer("ALLOC", alloc.ID, "JOB", tc.id).Replace(word)
			}
			asked := time.Now()
			c.ok(tc.command...)
			if first, second := left(), left(); first.name != tc.id+"-group" {
				t.Errorf("%s left before %s", first.name, second.name)
			}
			c.again(2)
			c.inOrder("leader term", "leader end", "main term", "main end", "side term", "side end")
			c.took("both delays", c.at("leader", "term").Sub(asked), group+own)
			if n := len(c.said("init", "up")); n != tc.init {
				t.Errorf("the prestart task has run %d times, want %d", n, tc.init)
			}
			c.never("last", "up")
			if up := c.said("leader", "up")[1]; up.Before(c.at("side", "end")) {
				t.Error("the leader was up again before all were down")
			}
			after, _, err := a.Client.Jobs().Info(limited(t), tc.id, nil)
			if err != nil {
				t.Fatal(err)
			}
			now, _, err := a.Client.Allocations().Info(limited(t), alloc.ID, nil)
			if err != nil {
				t.Fatal(err)
			}
			if after.JobModifyIndex != before.JobModifyIndex || after.Version != before.Version || now.DesiredTransition != (structs.DesiredTransition{}) {
				t.Errorf("job version %d of %d, transition %+v", after.Version, before.Version, now.DesiredTransition)
			}
			for _, name := range wholeUp {
				if s := now.TaskStates[name]; s.Restarts != 1 || eventAt(s, structs.TaskRestartSignal, "") == 0 {
					t.Errorf("task %s: %+v", name, s)
				}
			}
			// A stop afterwards goes its whole way.
			asked = c.stop()
			c.ended()
			c.took("the delays of the stop", c.said("leader", "term")[1].Sub(asked), group+own)
			c.inOrder("side end", "last up")
		})
	}
}

// TestARestartOfOneTask leaves the group and the other tasks as they are.
func TestARestartOfOneTask(t *testing.T) {
	a := courseAgent(t)
	for _, tc := range []struct {
		id    string
		flags []string
		delay time.Duration
	}{{"waits", nil, time.Second}, {"skips", []string{"-no-shutdown-delay"}, 0}, {"now", []string{"-immediate"}, 0}} {
		t.Run(tc.id, func(t *testing.T) {
			own := tc.delay
			if tc.flags != nil {
				own = long
			}
			c := whole(t, a, tc.id, long, own)
			alloc := c.run(wholeUp...)
			c.again(1)
			group, side := awaitInstances(t, a.Client, tc.id+"-group", 1)[0], awaitInstances(t, a.Client, tc.id+"-side", 1)[0]
			asked := time.Now()
			c.ok(append(append([]string{"alloc", "restart"}, tc.flags...), alloc.ID, "leader")...)
			up := c.await("leader", "up", 2)
			c.took("the restart", up.Sub(asked), tc.delay)
			awaitInstances(t, a.Client, tc.id+"-task", 1)
			for _, was := range []*structs.ServiceRegistration{group, side} {
				if is := awaitInstances(t, a.Client, was.ServiceName, 1)[0]; is.ModifyIndex != was.ModifyIndex || is.CreateIndex != was.CreateIndex {
					t.Errorf("service %s changed", was.ServiceName)
				}
			}
			c.never("main", "term")
			c.never("side", "term")
		})
	}
}

// TestTermsOfARestart cuts the waits of a restart from its beginning and while they last, also when the agent is killed
// (-9) in the middle; the rest of a wait that nobody cuts is waited by the next agent.
func TestTermsOfARestart(t *testing.T) {
	a := courseAgent(t)
	restart := func(c *course, id string, flags ...string) time.Time {
		t.Helper()
		asked := time.Now()
		c.ok(append(append([]string{"alloc", "restart"}, flags...), id)...)
		return asked
	}
	t.Run("from the beginning", func(t *testing.T) {
		c := whole(t, a, "begin", long, long)
		alloc := c.run(wholeUp...)
		c.again(1)
		asked := restart(c, alloc.ID, "-no-shutdown-delay")
		c.again(2)
		c.took("a restart without delay", time.Since(asked), 0)
		c.inOrder("leader term", "leader end", "main term", "main end", "side term")
		// It held for that one alone.
		restartAsync(t, a, alloc.ID, api.RestartOptions{})
		c.waits("leader", groupWait)
		if n := len(c.said("leader", "term")); n != 1 {
			t.Errorf("signalled %d times", n)
		}
	})
	t.Run("immediate", func(t *testing.T) {
		c := newCourse(t, a, "immediate", func(g *structs.TaskGroup, task *structs.Task) {
			g.ShutdownDelay, task.ShutdownDelay, task.KillTimeout = structs.Ptr(long), long, structs.Ptr(long)
		})
		c.job.TaskGroups[0].Tasks[0].Config["args"] = []any{"-c", c.script(ignores)}
		alloc := c.run("t")
		asked := restart(c, alloc.ID, "-immediate")
		c.took("an immediate restart", c.await("t", "up", 2).Sub(asked), 0)
	})
	t.Run("kill timeout under way", func(t *testing.T) {
		c := newCourse(t, a, "killtimeout", func(_ *structs.TaskGroup, task *structs.Task) { task.KillTimeout = structs.Ptr(long) })
		c.job.TaskGroups[0].Tasks[0].Config["args"] = []any{"-c", c.script(ignores)}
		alloc := c.run("t")
		restartAsync(t, a, alloc.ID, api.RestartOptions{})
		c.await("t", "term", 1)
		asked := restart(c, alloc.ID, "-kill-timeout=200ms")
		c.took("the restart", c.await("t", "up", 2).Sub(asked), 200*time.Millisecond)
	})
}

// TestCutsOfARestartUnderWay also kills the agent (-9) in the middle of the wait.
func TestCutsOfARestartUnderWay(t *testing.T) {
	a := courseAgent(t)
	for i, crash := range []string{"", "kill, then the flag", "the flag, then kill"} {
		t.Run("under way, agent "+crash, func(t *testing.T) {
			id := fmt.Sprint("cut", i)
			inGroup, inTask := whole(t, a, id+"g", long, 0), whole(t, a, id+"t", 0, long)
			courses := []*course{inGroup, inTask}
			var allocs []string
			for _, c := range courses {
				allocs = append(allocs, c.run(wholeUp...).ID)
				c.again(1)
			}
			for _, alloc := range allocs {
				restartAsync(t, a, alloc, api.RestartOptions{})
			}
			inGroup.waits("leader", groupWait)
			inTask.waits("leader", taskWait)
			if crash == "kill, then the flag" {
				a.Kill()
				a.Start()
			}
			asked := time.Now()
			for _, alloc := range allocs {
				if err := a.Client.Allocations().Restart(limited(t), alloc, api.RestartOptions{NoShutdownDelay: true}, nil); err != nil {
					t.Fatal(err)
				}
			}
			if crash == "the flag, then kill" {
				a.Kill()
				a.Start()
			}
			for _, c := range courses {
				c.again(2)
				c.took("the rest of the restart", time.Since(asked), 0)
				c.inOrder("leader term", "leader end", "main term", "main end", "side term")
			}
		})
	}
	t.Run("the rest after a kill", func(t *testing.T) {
		c := whole(t, a, "rest", 6*time.Second, time.Second)
		alloc := c.run(wholeUp...)
		c.again(1)
		restartAsync(t, a, alloc.ID, api.RestartOptions{AllTasks: true})
		asked := time.Now()
		c.waits("leader", groupWait)
		awaitInstances(t, a.Client, "rest-group", 0)
		a.Kill()
		a.Start()
		c.again(2)
		c.took("the delays", c.at("leader", "term").Sub(asked), 7*time.Second-200*time.Millisecond)
		if n := len(c.said("init", "up")); n != 2 {
			t.Errorf("the prestart task has run %d times", n)
		}
		if s := awaitRunning(t, a.Client, "rest", 1)[0].TaskStates["leader"]; s.Restarts != 1 {
			t.Errorf("%d restarts", s.Restarts)
		}
	})
	t.Run("a stop takes it over", func(t *testing.T) {
		c := whole(t, a, "over", 3*time.Second, 0)
		alloc := c.run(wholeUp...)
		c.again(1)
		restartAsync(t, a, alloc.ID, api.RestartOptions{NoShutdownDelay: false})
		asked := time.Now()
		c.waits("leader", groupWait)
		c.stop()
		c.ended()
		if d := c.at("leader", "term").Sub(asked); d < 2900*time.Millisecond || d > 5500*time.Millisecond {
			t.Errorf("the leader was signalled after %s, the group's delay of 3s is waited once", d)
		}
		for _, name := range wholeUp {
			if n := len(c.said(name, "up")); n != 1 {
				t.Errorf("task %s has run %d times", name, n)
			}
		}
		c.inOrder("side end", "last up", "last end")
	})
}

// restartAsync asks for a restart and does not wait for it, as the API does not.
func restartAsync(t *testing.T, a *agent, id string, opts api.RestartOptions) {
	t.Helper()
	if err := a.Client.Allocations().Restart(limited(t), id, opts, nil); err != nil {
		t.Fatal(err)
	}
}

// TestBadRestarts changes nothing.
func TestBadRestarts(t *testing.T) {
	a := courseAgent(t)
	c := whole(t, a, "bad", 0, 0)
	alloc := c.run(wholeUp...)
	for what, args := range map[string][]string{
		"negative":  {"-kill-timeout=-1s", alloc.ID},
		"duration":  {"-kill-timeout=soon", alloc.ID},
		"nobody":    {alloc.ID, "nobody"},
		"last":      {alloc.ID, "last"},
		"not found": {"00000000-aaaa-bbbb-cccc-000000000000"},
	} {
		out, errs, code := a.cli("", append([]string{"alloc", "restart"}, args...)...)
		if code == 0 {
			t.Errorf("%s: %v was accepted\n%s", what, args, out)
		}
		if errs == "" {
			t.Errorf("%s: nothing is said", what)
		}
	}
	for _, name := range wholeUp {
		c.never(name, "term")
	}
	now := awaitRunning(t, a.Client, "bad", 1)[0]
	if slices.ContainsFunc(wholeUp, func(name string) bool { return now.TaskStates[name].Restarts > 0 }) {
		t.Errorf("restarted: %s", describe([]*structs.AllocationListStub{now}))
	}
}
