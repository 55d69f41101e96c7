package allocrunner

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/structs"
)

// whole is a group of all kinds of tasks with delays.
func whole(t *testing.T) *rig {
	lead := newTask("lead", "", false)
	lead.Leader, lead.ShutdownDelay = true, 3*time.Second
	r := newRig(t, newTask("main", "", false), lead, newTask("init", "prestart", false), newTask("proxy", "prestart", true),
		newTask("clean", "poststop", false))
	r.group().ShutdownDelay = structs.Ptr(10 * time.Second)
	r.driver.StopsIn = time.Second
	return r
}

// up runs the group until all tasks do that should.
func (r *rig) up() (calls int) {
	r.run()
	r.driver.End("a1/init/1", 0)
	synctest.Wait()
	return len(r.driver.Log())
}

func (r *rig) restart(f func(Terms) error, terms Terms) {
	r.t.Helper()
	if err := f(terms); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
}

func (r *rig) calls(from int, want string) {
	r.t.Helper()
	if got := strings.Join(r.driver.Log()[from:], "|"); got != want {
		r.t.Fatalf("after %d calls\n%q, want\n%q", from, got, want)
	}
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

const wholeDown = "stop a1/lead/1  5s|stop a1/main/1  5s|stop a1/proxy/1  5s|"

func TestRestartGoesDownInTheOrderOfAStop(t *testing.T) {
	for _, all := range []bool{false, true} {
		inBubble(t, whole, func(r *rig) {
			n := r.up()
			ask := r.runner.RestartRunning
			if all {
				ask = r.runner.RestartAll
			}
			r.restart(ask, Terms{})
			if got := r.hooks.list(); got != "prerun prestop prekill" {
				t.Fatalf("hooks %q", got)
			}
			after(10*time.Second + 2999*time.Millisecond)
			r.calls(n, "")
			after(time.Millisecond + 3*time.Second)
			if all {
				// The log's order of what starts side by side is not determined.
				r.driver.End("a1/init/2", 0)
				synctest.Wait()
			}
			calls := strings.Join(r.driver.Log()[n:], "|")
			rest, down := strings.CutPrefix(calls, wholeDown)
			if !down || strings.Contains(rest, "init/2") != all || strings.Contains(rest, "clean") {
				t.Fatalf("calls %q", calls)
			}
			for _, start := range []string{"start a1/lead/2", "start a1/main/2", "start a1/proxy/2"} {
				if !strings.Contains(rest, start) {
					t.Errorf("no %q in %q", start, rest)
				}
			}
			if got := r.hooks.list(); got != "prerun prestop prekill resume" {
				t.Fatalf("hooks %q", got)
			}
			want := "Received, Started, Restart Signaled, Waiting for shutdown delay, Killing, Terminated, Restarting, Started"
			if got := r.events("main"); got != want {
				t.Errorf("events %q", got)
			}
			if s := r.runner.Observation().TaskStates["lead"]; s.Restarts != 1 {
				t.Errorf("restarts %d", s.Restarts)
			}
			// The next one does it all again, and so does a stop.
			r.restart(r.runner.RestartRunning, Terms{NoShutdownDelay: true})
			after(3 * time.Second)
			if got := r.hooks.list(); got != "prerun prestop prekill resume prestop prekill resume" {
				t.Fatalf("hooks %q", got)
			}
			r.stop()
			if got := r.hooks.list(); got != "prerun prestop prekill resume prestop prekill resume prestop prekill" {
				t.Fatalf("hooks %q", got)
			}
			n = len(r.driver.Log())
			after(10*time.Second + 2999*time.Millisecond)
			r.calls(n, "") // the flag was that restart's alone
		})
	}
}

func TestASecondRestartCutsTheWaitsOfTheFirst(t *testing.T) {
	for _, c := range []struct {
		name      string
		passed    time.Duration // since the first request
		crash     bool
		remaining string
	}{
		{"in the group's delay", time.Second, false, wholeDown},
		{"in the group's delay, another agent", time.Second, true, wholeDown},
		{"in a task's delay", 11 * time.Second, false, wholeDown},
		{"in a task's delay, another agent", 11 * time.Second, true, wholeDown},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, whole, func(r *rig) {
				n := r.up()
				r.restart(r.runner.RestartRunning, Terms{})
				after(c.passed)
				r.calls(n, "")
				if c.crash {
					r.crash()
					r.run()
					after(time.Second)
					r.calls(n, "")
				}
				r.restart(r.runner.RestartRunning, Terms{NoShutdownDelay: true})
				after(3 * time.Second)
				if got := strings.Join(r.driver.Log()[n:], "|"); !strings.HasPrefix(got, c.remaining) || strings.Count(got, "start") != 3 {
					t.Fatalf("calls %q", got)
				}
			})
		})
	}
}

func TestARestartWaitsTheRestUnderAnotherAgent(t *testing.T) {
	inBubble(t, whole, func(r *rig) {
		n := r.up()
		r.restart(r.runner.RestartAll, Terms{})
		after(4 * time.Second)
		r.crash()
		time.Sleep(2 * time.Second)
		r.run()
		after(3999*time.Millisecond + 2999*time.Millisecond)
		r.calls(n, "")
		after(5 * time.Second)
		if got := strings.Join(r.driver.Log()[n:], "|"); !strings.HasPrefix(got, wholeDown) {
			t.Fatalf("calls %q", got)
		}
	})
}

func TestKillTimeoutOfARestart(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		r := one(t)
		r.driver.StopsIn = -1
		return r
	}, func(r *rig) {
		r.run()
		r.restart(r.runner.RestartRunning, Terms{KillTimeout: structs.Ptr(time.Hour)}) // it never lengthens
		after(time.Second)
		r.restart(r.runner.RestartRunning, Terms{KillTimeout: structs.Ptr(time.Second)})
		after(time.Second)
		r.calls(1, "stop a1/a/1  5s|stop a1/a/1  1s|start a1/a/2")
		r.restart(r.runner.RestartRunning, Terms{})
		after(5 * time.Second)
		r.calls(4, "stop a1/a/2  5s|start a1/a/3")
	})
}

func TestRestartOfOneTaskLeavesTheGroupAlone(t *testing.T) {
	inBubble(t, whole, func(r *rig) {
		n := r.up()
		r.restart(func(terms Terms) error { return r.runner.RestartTask("lead", terms) }, Terms{})
		after(2999 * time.Millisecond) // its own delay
		r.calls(n, "")
		after(time.Second + time.Millisecond)
		r.calls(n, "stop a1/lead/1  5s|start a1/lead/2")
		if got := r.hooks.list(); got != "prerun" {
			t.Fatalf("hooks %q", got)
		}
	})
}

// A stop that comes into a restart goes on where that is, and what the restart was told does not hold for the stop.
func TestAStopTakesARestartOver(t *testing.T) {
	for _, c := range []struct {
		name   string
		passed time.Duration
		left   time.Duration // until the last task has ended
	}{
		{"in the group's delay", 4 * time.Second, 6*time.Second + 3*time.Second + 3*time.Second},
		{"in a task's delay", 11 * time.Second, 2*time.Second + 3*time.Second},
		{"between two tasks", 14*time.Second + 500*time.Millisecond, 500*time.Millisecond + time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, whole, func(r *rig) {
				n := r.up()
				r.restart(r.runner.RestartAll, Terms{})
				after(c.passed)
				r.stop()
				after(c.left)
				r.calls(n, wholeDown+"start a1/clean/1")
				r.driver.End("a1/clean/1", 0)
				synctest.Wait()
				if got := r.hooks.list(); got != "prerun prestop prekill postrun" || !r.runner.Terminal() {
					t.Fatalf("hooks %q, terminal %t", got, r.runner.Terminal())
				}
			})
		})
	}
}

func TestATaskThatDoesNotRunIsDownAtOnce(t *testing.T) {
	inBubble(t, whole, func(r *rig) {
		r.run() // init runs, its successors wait
		n := len(r.driver.Log())
		r.restart(r.runner.RestartAll, Terms{NoShutdownDelay: true})
		after(2 * time.Second)
		calls := strings.Join(r.driver.Log()[n:], "|")
		if !strings.HasPrefix(calls, "stop a1/init/1  5s|stop a1/proxy/1  5s|") || strings.Count(calls, "start") != 2 {
			t.Fatalf("calls %q", calls)
		}
	})
}

// A restart whose resume hooks fail ends the allocation from where it had come to: what has happened for the restart
// does not happen again, but what a hook has brought back already leaves once more, before poststop tasks run.
func TestAFailedResumeKeepsHowFarTheEndHadCome(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		r := whole(t)
		r.more = []hook.Hook{&trace{name: " of more"}}
		return r
	}, func(r *rig) {
		last := r.more[0].(*trace)
		n := r.up()
		last.fail = errors.New("no luck")
		r.restart(r.runner.RestartAll, Terms{})
		after(16 * time.Second)
		r.calls(n, wholeDown+"start a1/clean/1")
		if got := r.hooks.list(); got != "prerun prestop prekill resume prekill" {
			t.Errorf("hooks that resumed: %q", got)
		}
		if got := last.list(); got != "prerun prestop prekill resume" {
			t.Errorf("hooks that did not: %q", got)
		}
		r.driver.End("a1/clean/1", 0)
		synctest.Wait()
		if o := r.runner.Observation(); !r.runner.Terminal() || o.ObservedStatus != structs.AllocClientStatusFailed {
			t.Errorf("terminal %t, %+v", r.runner.Terminal(), o)
		}
	})
}

// What stands in the record after a failed resume is what stood there before.
func TestAFailedResumeKeepsItsRecord(t *testing.T) {
	inBubble(t, whole, func(r *rig) {
		r.up()
		r.hooks.fail = errors.New("no luck")
		r.restart(r.runner.RestartAll, Terms{})
		after(16 * time.Second)
		if l, _ := r.disk.load(t); !l.Prestopped || !l.PreKilled || !l.Delayed || l.Delay.IsZero() || l.Cause != PrerunFailed {
			t.Errorf("record %+v", l)
		}
	})
}
