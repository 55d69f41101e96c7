package allocrunner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// lingering has a poststop task that does not end by itself.
func lingering(t *testing.T) *rig {
	return newRig(t, newTask("a", "", false), newTask("clean", "poststop", false))
}

// urge is a request to end within d, which the servers have at an index.
func (r *rig) urge(index uint64, d time.Duration) {
	r.want(func(a *structs.Allocation) {
		a.DesiredStatus = structs.AllocDesiredStatusStop
		a.DesiredTransition.Merge(&structs.DesiredTransition{NoShutdownDelay: structs.Ptr(true), KillTimeout: &d})
		a.DesiredTransition.Urged = index
	})
}

func TestAPoststopTaskRunsAsLongAsItLikes(t *testing.T) {
	inBubble(t, lingering, func(r *rig) {
		r.run()
		r.urge(7, 0)
		began := []string{"start a1/a/1", "stop a1/a/1  0s", "start a1/clean/1"}
		pass(24 * time.Hour)
		r.expect("running", began...)
		// What does not shorten kill_timeout means nothing to it, nor does a restart of the agent.
		r.want(func(a *structs.Allocation) { a.DesiredTransition.Reschedule = structs.Ptr(true) })
		r.crash()
		r.run()
		pass(time.Hour)
		r.expect("running", began...)
		r.driver.End("a1/clean/1", 0)
		synctest.Wait()
		r.expect("complete", began...)
	})
}

// A further request ends it, also when it asks for no more than the one before; whatever ended the other tasks.
func TestAPoststopTaskThatIsUrgedEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(r *rig)
		first  string
		within time.Duration
	}{
		{"asked the same before", func(r *rig) { r.urge(7, 0) }, "stop a1/a/1  0s", 0},
		{"an ordinary stop before", func(r *rig) { r.stop() }, "stop a1/a/1  5s", 2 * time.Second},
		{"no more than its kill_timeout", func(r *rig) { r.stop() }, "stop a1/a/1  5s", time.Hour},
		{"ended by itself", func(r *rig) { r.driver.End("a1/a/1", 0); synctest.Wait() }, "", time.Second},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " crash ", crash), func(t *testing.T) {
				inBubble(t, lingering, func(r *rig) {
					r.run()
					c.before(r)
					want := []string{"start a1/a/1", c.first, "start a1/clean/1"}
					if c.first == "" {
						want = slices.Delete(want, 1, 2)
					}
					r.expect("running", want...)
					if crash { // the request comes while the agent is away
						r.crash()
						stopped := *r.alloc
						stopped.DesiredStatus = structs.AllocDesiredStatusStop
						stopped.DesiredTransition = structs.DesiredTransition{KillTimeout: &c.within, Urged: 9}
						r.alloc = &stopped
						r.run()
					} else {
						r.urge(9, c.within)
					}
					r.expect("complete", append(want, fmt.Sprintf("stop a1/clean/1  %s", min(c.within, 5*time.Second)))...)
					if got := r.events("clean"); !strings.Contains(got, "Killing") || !strings.Contains(got, "Killed") {
						t.Errorf("events %q", got)
					}
				})
			})
		}
	}
}

// While it is being ended it may be hastened as any task.
func TestTheEndOfAPoststopTaskIsHastened(t *testing.T) {
	inBubble(t, func(t *testing.T) *rig {
		r := lingering(t)
		r.driver.StopsIn = time.Hour
		return r
	}, func(r *rig) {
		r.run()
		r.driver.End("a1/a/1", 0)
		synctest.Wait()
		r.urge(7, 3*time.Second)
		pass(time.Second)
		r.urge(8, 0)
		pass(time.Millisecond)
		r.expect("complete", "start a1/a/1", "start a1/clean/1", "stop a1/clean/1  3s", "stop a1/clean/1  0s")
	})
}
