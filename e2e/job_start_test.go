package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// TestAJobThatIsStartedAgainHasItsDelays stops a real process without its delays, starts the job by the command, and stops
// it as usual: what the first stop was allowed to skip is waited.
func TestAJobThatIsStartedAgainHasItsDelays(t *testing.T) {
	a := courseAgent(t)
	c := newCourse(t, a, "started", func(g *structs.TaskGroup, task *structs.Task) {
		g.ShutdownDelay, task.ShutdownDelay = structs.Ptr(1500*time.Millisecond), 700*time.Millisecond
		g.Update = &structs.UpdateStrategy{MinHealthyTime: structs.Ptr(time.Duration(0))}
	})
	c.run("t")
	a.refused("is not stopped", "job", "start", "started")
	a.refused("No job with id", "job", "start", "nope")

	asked := c.stop("-no-shutdown-delay", "-kill-timeout=5s")
	if d := c.await("t", "term", 1).Sub(asked); d > 1400*time.Millisecond {
		t.Errorf("a stop without delay took %s", d)
	}
	if out := a.ok("job", "start", "started"); !strings.Contains(out, `finished with status "complete"`) {
		t.Errorf("printed %s", out)
	}
	c.await("t", "up", 2)
	alloc := awaitRunning(t, a.Client, "started", 1)[0]
	full, _, err := a.Client.Allocations().Info(limited(t), alloc.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if full.DesiredTransition != (structs.DesiredTransition{}) {
		t.Errorf("the new allocation has %+v", full.DesiredTransition)
	}
	a.refused("is not stopped", "job", "start", "started")

	asked = c.stop()
	c.took("delays after the flag and a start", c.await("t", "term", 2).Sub(asked), 2200*time.Millisecond)
	awaitEnded(t, a.Client, "started", 2)
	// A second stop says so, and changes nothing.
	if out := a.ok("job", "stop", "started"); !strings.Contains(out, "is stopped already") {
		t.Errorf("a second stop printed %s", out)
	}
	job, _, err := a.Client.Jobs().Info(limited(t), "started", nil)
	if err != nil {
		t.Fatal(err)
	}
	if job.Version != 3 || !job.Stop || *job.TaskGroups[0].ShutdownDelay != 1500*time.Millisecond {
		t.Errorf("version %d, stop %t, delay %s", job.Version, job.Stop, *job.TaskGroups[0].ShutdownDelay)
	}
}

// TestAStartRightAfterAStopKeepsNothingOfIt starts the job before the stop without delays has come far: the old allocation
// may skip its own, the new one may not.
func TestAStartRightAfterAStopKeepsNothingOfIt(t *testing.T) {
	a := courseAgent(t)
	c := newCourse(t, a, "hasty", func(g *structs.TaskGroup, task *structs.Task) {
		task.ShutdownDelay = 1500 * time.Millisecond
		g.Update = &structs.UpdateStrategy{MinHealthyTime: structs.Ptr(time.Duration(0))}
	})
	first := c.run("t")
	c.stop("-immediate")
	a.ok("job", "start", "hasty")
	// Either the old allocation was stopped and replaced, or the start came before the scheduler had stopped it.
	var newest *structs.AllocationListStub
	awaitAllocs(t, a.Client, "hasty", "one to run", func(l []*structs.AllocationListStub) bool {
		n := 0
		for _, s := range l {
			if s.DesiredStatus == structs.AllocDesiredStatusRun {
				newest, n = s, n+1
			}
		}
		return n == 1 && newest.ClientStatus == structs.AllocClientStatusRunning
	})
	if newest.ID != first.ID {
		c.await("t", "up", 2)
	}
	full, _, err := a.Client.Allocations().Info(limited(t), newest.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if full.DesiredTransition != (structs.DesiredTransition{}) {
		t.Errorf("an allocation that runs has %+v", full.DesiredTransition)
	}
	before := len(c.said("t", "term"))
	asked := c.stop()
	c.took("the delay", c.await("t", "term", before+1).Sub(asked), 1500*time.Millisecond)
}

// TestScheduleAndTemplateStartAgain stops a periodic and a parameterized job: both can be launched again after a start.
func TestScheduleAndTemplateStartAgain(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	register(t, a.Client, job("cron", "exit 0", func(j *structs.Job, _ *structs.TaskGroup, _ *structs.Task) {
		j.Type, j.Periodic = structs.Ptr(structs.JobTypeBatch), &structs.PeriodicConfig{Spec: structs.Ptr("@yearly")}
	}))
	register(t, a.Client, job("form", "exit 0", func(j *structs.Job, _ *structs.TaskGroup, _ *structs.Task) {
		j.Type, j.ParameterizedJob = structs.Ptr(structs.JobTypeBatch), &structs.ParameterizedJobConfig{}
	}))
	for id, launch := range map[string][]string{"cron": {"job", "periodic", "force", "cron"}, "form": {"job", "dispatch", "form"}} {
		a.refused("is not stopped", "job", "start", id)
		a.ok("job", "stop", id)
		a.refused("stop", launch...)
		if out := a.ok("job", "start", id); !strings.Contains(out, "started") || strings.Contains(out, "next launch") != (id == "cron") {
			t.Errorf("printed %s", out)
		}
		a.ok(launch...)
	}
}
