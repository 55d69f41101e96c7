package taskrunner

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

var errAway = errors.New("supervisor does not start")

// While a driver cannot tell what became of a task, it may run: it is neither given up nor started a second time.
func TestARestartedAgentWaitsForADriverThatCannotTell(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.run()
		r.expect(Running, structs.TaskStateRunning, false)
		r.crash()
		r.driver.Leave(errAway)
		r.start()
		time.Sleep(time.Minute)
		r.expect(Running, structs.TaskStateRunning, false)
		r.driver.Leave(nil)
		time.Sleep(time.Minute)
		r.logged("start a1/web/1")
		if got := r.events(); got != "Received, Started, Reattached" {
			t.Errorf("events %s", got)
		}
		r.driver.End("a1/web/1", 0)
		synctest.Wait()
	})
}

func TestAnInterruptedStartIsNotRepeatedBeforeItIsUndone(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.store = &frozen{disk: r.disk, left: 2} // the attempt and prestart, not that it runs
		r.run()
		r.crash()
		r.store = nil
		if p := r.disk.load(t).Phase; p != Starting && p != Prestart {
			t.Fatalf("phase on disk %q", p)
		}
		r.driver.Leave(errAway)
		r.start()
		r.runner.Release()
		time.Sleep(time.Minute)
		r.driver.Leave(nil)
		time.Sleep(time.Minute)
		r.expect(Running, structs.TaskStateRunning, false)
		if n := len(r.driver.Running()); n != 1 { // and the driver panics when two run at once
			t.Errorf("%d processes", n)
		}
	})
}

// A stop that the driver does not take is repeated; kill_timeout is neither skipped nor begun anew.
func TestAStopIsRepeatedUntilTheDriverTakesIt(t *testing.T) {
	inBubble(t, "service", func(r *rig) {
		r.driver.StopsIn = -1
		r.task.KillTimeout = structs.Ptr(20 * time.Second)
		r.run()
		r.driver.Leave(errAway)
		r.runner.Kill(Order{})
		time.Sleep(8 * time.Second)
		r.driver.Leave(nil)
		time.Sleep(8 * time.Second)
		r.expect(Killing, structs.TaskStateRunning, false)
		time.Sleep(5 * time.Second)
		r.expect(Dead, structs.TaskStateDead, false)
	})
	inBubble(t, "service", func(r *rig) { // also when it comes back only after the time is over
		r.driver.StopsIn = -1
		r.run()
		r.driver.Leave(errAway)
		r.runner.Kill(Order{})
		time.Sleep(time.Minute)
		r.driver.Leave(nil)
		time.Sleep(time.Minute)
		r.expect(Dead, structs.TaskStateDead, false)
	})
}
