package taskrunner

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// frozen makes the disk lose everything from its n-th write on, as a crash of the agent does.
type frozen struct {
	*disk
	left int
}

func (f *frozen) SaveTask(task string, l *Local, done func(error)) {
	if f.left <= 0 {
		return // never durable
	}
	f.left--
	f.disk.SaveTask(task, l, done)
}

// Whichever write an agent dies before, and whatever the task does meanwhile: there are never two processes of a task
// (the fake driver panics), no attempt runs twice, no start collides with an earlier one, and a stop ends everything.
func TestCrashBeforeAnyWrite(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { crashCourse(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func crashCourse(t *testing.T, rnd *rand.Rand) {
	r := newRig(t, []string{"batch", "service"}[rnd.IntN(2)])
	r.task.ShutdownDelay = time.Duration(rnd.IntN(3)) * 5 * time.Second
	r.task.RestartPolicy.Attempts = structs.Ptr(rnd.IntN(4))
	r.driver.StopsIn = time.Duration(rnd.IntN(8)-1) * time.Second
	for range 1 + rnd.IntN(3) {
		r.store = &frozen{disk: r.disk, left: 1 + rnd.IntN(12)}
		r.start()
		r.runner.Release()
		for range rnd.IntN(5) {
			switch rnd.IntN(4) {
			case 0:
				for _, id := range r.driver.Running() {
					r.driver.End(id, rnd.IntN(2))
				}
			case 1:
				r.runner.Kill(Order{NoShutdownDelay: rnd.IntN(2) == 0})
			case 2:
				_, _ = r.runner.Restart(Order{})
			}
			time.Sleep(time.Duration(rnd.IntN(12)) * time.Second)
		}
		r.crash()
	}
	r.store = nil
	r.start()
	r.runner.Release()
	time.Sleep(time.Duration(rnd.IntN(30)) * time.Second)
	r.runner.Kill(Order{NoShutdownDelay: true})
	time.Sleep(time.Minute)
	synctest.Wait()
	if v := r.runner.View(); v.Phase != Dead {
		t.Errorf("phase %q, state %+v", v.Phase, v.State)
	}
	if left := r.driver.Running(); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	if strings.Contains(r.events(), "Driver Failure") {
		t.Errorf("events %s", r.events())
	}
	starts := map[string]bool{}
	for _, call := range r.driver.Log() {
		if strings.HasPrefix(call, "start ") && starts[call] {
			t.Errorf("an attempt ran twice: %s", call)
		}
		starts[call] = true
	}
	r.crash()
}
