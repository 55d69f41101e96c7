package allocrunner

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/structs"
)

func limited(limit time.Duration, tasks ...*structs.Task) func(t *testing.T) *rig {
	return func(t *testing.T) *rig {
		r := newRig(t, tasks...)
		r.group().MaxRunDuration = &limit
		return r
	}
}

func pass(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

func TestAnAllocationEndsAtItsLimit(t *testing.T) {
	inBubble(t, limited(time.Minute, newTask("a", "", false), newTask("clean", "poststop", false)), func(r *rig) {
		r.run()
		pass(40 * time.Second)
		r.crash() // an agent that was away does not begin anew
		pass(10 * time.Second)
		r.run()
		pass(9 * time.Second)
		r.expect("running", "start a1/a/1")
		pass(time.Second)
		r.expect("complete", "start a1/a/1", "stop a1/a/1  5s")
		o := r.runner.Observation()
		if o.ClientDescription != "allocation exceeded max_run_duration" || o.TaskStates["a"].Failed || !r.runner.Terminal() {
			t.Errorf("observed %+v, task %+v", o, o.TaskStates["a"])
		}
		if got := r.events("a"); !strings.HasSuffix(got, "Killing, Killing, Terminated, Killed") {
			t.Errorf("events %q", got)
		}
		if got := r.hooks.list(); got != "prerun prestop prekill postrun" {
			t.Errorf("hooks %q", got)
		}
	})
}

func TestWorkThatEndsInTimeIsNotConcerned(t *testing.T) {
	inBubble(t, limited(time.Minute, newTask("a", "", false), newTask("clean", "poststop", false)), func(r *rig) {
		r.run()
		pass(59 * time.Second)
		r.driver.End("a1/a/1", 0)
		synctest.Wait()
		pass(time.Hour) // the poststop task has the time that it needs
		r.expect("running", "start a1/a/1", "start a1/clean/1")
		r.driver.End("a1/clean/1", 0)
		synctest.Wait()
		if o := r.runner.Observation(); o.ObservedStatus != "complete" || o.ClientDescription != descComplete {
			t.Errorf("observed %+v", o)
		}
	})
}

func TestRestartsUseTheSameTime(t *testing.T) {
	task := newTask("a", "", false)
	task.RestartPolicy.Attempts, task.RestartPolicy.Interval = structs.Ptr(5), structs.Ptr(time.Hour)
	inBubble(t, limited(time.Minute, task), func(r *rig) {
		r.run()
		pass(50 * time.Second)
		r.driver.End("a1/a/1", 1)
		pass(5 * time.Second)
		pass(5 * time.Second)
		r.expect("complete", "start a1/a/1", "start a1/a/2", "stop a1/a/2  5s")
	})
}

func TestALimitThatChangesCountsFromTheSameStart(t *testing.T) {
	inBubble(t, limited(time.Hour, newTask("a", "", false)), func(r *rig) {
		r.run()
		pass(10 * time.Minute)
		r.want(func(a *structs.Allocation) {
			job := a.Job.Copy()
			job.TaskGroups[0].MaxRunDuration = structs.Ptr(11 * time.Minute)
			a.Job, a.JobModifyIndex = job, a.JobModifyIndex+1
		})
		pass(59 * time.Second)
		r.expect("running", "start a1/a/1")
		pass(time.Second)
		r.expect("complete", "start a1/a/1", "stop a1/a/1  5s")
	})
}

// hanging is a hook that never comes to its end by itself.
type hanging struct{}

func (hanging) Name() string { return "hanging" }

func (hanging) Prerun(ctx context.Context, _ *hook.AllocRequest, _ *hook.AllocResponse) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestPreparingCounts(t *testing.T) {
	inBubble(t, limited(time.Minute, newTask("a", "", false)), func(r *rig) {
		r.more = []hook.Hook{hanging{}}
		r.run()
		pass(59 * time.Second)
		r.expect("pending")
		pass(time.Second)
		r.expect("complete")
	})
}

func TestDecideAtTheLimit(t *testing.T) {
	over := view{Record: Local{Prerun: true}, Overdue: true}
	for _, c := range []struct {
		name, tasks string
		v           view
		want        decision
	}{
		{"all tasks end", "a:main:running", over, decision{Act: endTasks, Cause: RanTooLong}},
		{"before it was prepared", "a:main:waiting", view{Overdue: true}, decision{Act: endTasks, Cause: RanTooLong}},
		{"the work is done", "a:main:dead", over, decision{Act: endTasks, Cause: MainDead}},
		{"no poststop task", "a:main:dead p:poststop:waiting", view{Record: Local{Prerun: true, Cause: RanTooLong}},
			decision{Act: kill, Tasks: []string{"p"}}},
	} {
		c.v.Tasks = tasksOf(c.tasks)
		if got := decide(c.v); got.Act != c.want.Act || got.Cause != c.want.Cause || !slices.Equal(got.Tasks, c.want.Tasks) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
