package allocrunner

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/structs"
)

// frozen makes the disk lose everything from its n-th write on, as a crash of the agent does.
type frozen struct {
	*disk
	left atomic.Int64
}

func (f *frozen) SaveRun(id string, l *Local, done func(error)) {
	if f.left.Add(-1) >= 0 {
		f.disk.SaveRun(id, l, done)
	}
}

func (f *frozen) SaveTask(id, task string, l *taskrunner.Local, done func(error)) {
	if f.left.Add(-1) >= 0 {
		f.disk.SaveTask(id, task, l, done)
	}
}

// Whichever write an agent dies before, whatever the tasks do and whenever the stop and its terms arrive: what is
// reported never moves back, no task has two processes (the fake driver panics), and the stop ends everything.
func TestCrashBeforeAnyWrite(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { crashCourse(t, rand.New(rand.NewPCG(seed, 2))) })
		})
	}
}

func randomGroup(t *testing.T, rnd *rand.Rand) *rig {
	tasks := []*structs.Task{newTask("main", "", false)}
	tasks[0].Leader = rnd.IntN(2) == 0
	tasks[0].ShutdownDelay = time.Duration(rnd.IntN(2)) * 5 * time.Second
	for i, hook := range []string{"", "prestart", "poststart", "poststop"} {
		if rnd.IntN(2) == 0 {
			tasks = append(tasks, newTask(fmt.Sprintf("t%d", i), hook, rnd.IntN(2) == 0 && hook != "poststop" && hook != ""))
		}
	}
	r := newRig(t, tasks...)
	r.group().ShutdownDelay = structs.Ptr(time.Duration(rnd.IntN(3)) * 5 * time.Second)
	r.driver.StopsIn = time.Duration(rnd.IntN(8)-1) * time.Second
	return r
}

func crashCourse(t *testing.T, rnd *rand.Rand) {
	r := randomGroup(t, rnd)
	status := structs.AllocClientStatusPending
	look := func() {
		synctest.Wait()
		now := r.runner.Observation().ObservedStatus
		if now != status && !structs.ObservedTransitionLegal(status, now) {
			t.Errorf("observed %s after %s", now, status)
		}
		status = now
	}
	for range 1 + rnd.IntN(3) {
		f := &frozen{disk: r.disk}
		f.left.Store(1 + rnd.Int64N(40))
		r.store = f
		r.run()
		look()
		for range rnd.IntN(6) {
			happen(r, rnd)
			time.Sleep(time.Duration(rnd.IntN(8)) * time.Second)
			look()
		}
		r.crash()
	}
	r.store = nil
	r.run()
	look()
	r.want(func(a *structs.Allocation) {
		a.DesiredStatus, a.DesiredTransition.NoShutdownDelay = "stop", structs.Ptr(true)
	})
	for range 20 { // poststop tasks end by themselves
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for _, id := range r.driver.Running() {
			r.driver.End(id, 0)
		}
	}
	look()
	if !r.runner.Terminal() || len(r.driver.Running()) > 0 {
		t.Errorf("terminal %v, running %v, record %+v, tasks %+v", r.runner.Terminal(), r.driver.Running(), r.runner.local, r.runner.taskViews())
	}
	r.crash()
}

// happen lets one thing happen from outside.
func happen(r *rig, rnd *rand.Rand) {
	switch rnd.IntN(6) {
	case 0, 1:
		if ids := r.driver.Running(); len(ids) > 0 {
			r.driver.End(ids[rnd.IntN(len(ids))], rnd.IntN(3)/2)
		}
	case 2:
		r.stop()
	case 3:
		terms := Terms{NoShutdownDelay: rnd.IntN(2) == 0}
		go func() { _ = r.runner.RestartAll(terms) }() // it waits for the disk, which may be gone
	case 4:
		go func() { _ = r.runner.RestartRunning(Terms{}) }()
	case 5:
		r.want(func(a *structs.Allocation) {
			if a.DesiredStatus == "stop" {
				a.DesiredTransition.NoShutdownDelay = structs.Ptr(true)
			}
		})
	}
}
