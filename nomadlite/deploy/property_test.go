package deploy

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/structs"
)

// fleet is a deployment of one group that is rolled out by a dumb scheduler, which acts on evaluations only: it places
// at most parallel allocations whose health is not known, and ends the deployment when all are healthy.
type fleet struct {
	core     *Rollouts
	d        *structs.Deployment
	index    uint64
	allocs   []*structs.Allocation
	parallel int
	open     []string // evaluations of the core's
	seen     uint64   // the state at which the scheduler looked for the open one, 0 before it did
	made     int
	reports  int
}

func newFleet(desired, parallel int) *fleet {
	f := &fleet{parallel: parallel, index: 1}
	ids := 0
	f.core = NewRollouts(func() string { ids++; return fmt.Sprint("e", ids) })
	f.d = &structs.Deployment{ID: "d", Status: structs.DeploymentStatusRunning, TaskGroups: map[string]*structs.DeploymentState{
		"g": {DesiredTotal: desired, ProgressDeadline: time.Hour, RequireProgressBy: time.Unix(1<<30, 0)}}}
	f.core.Deployment(f.d)
	f.schedule() // the job's registration
	return f
}

func (f *fleet) byHealth() (count [3]int) {
	for _, a := range f.allocs {
		if !a.TerminalStatus() {
			count[healthOf(a)]++
		}
	}
	return count
}

func (f *fleet) schedule() {
	f.index++
	count := f.byHealth()
	desired := f.d.TaskGroups["g"].DesiredTotal
	if count[healthy] >= desired {
		done := f.d.Copy()
		done.Status = structs.DeploymentStatusSuccessful
		f.d = done
		f.core.Deployment(done)
		return
	}
	if count[unhealthy] > 0 {
		return
	}
	for missing := desired - count[healthy] - count[awaited]; missing > 0 && count[awaited] < f.parallel; missing-- {
		a := &structs.Allocation{ID: fmt.Sprint("a", len(f.allocs)), DeploymentID: "d", TaskGroup: "g",
			DesiredStatus: structs.AllocDesiredStatusRun, ClientStatus: structs.AllocClientStatusPending}
		f.allocs = append(f.allocs, a)
		f.core.Alloc(nil, a)
		count[awaited]++
	}
}

// due takes out what is due. When nothing is, there must be nothing for the scheduler to do.
func (f *fleet) due(t *rapid.T) {
	for _, a := range f.core.Due(time.Unix(1, 0), 10) {
		if a.Fail != "" || len(f.open) > 0 {
			t.Fatalf("%s %q while %v are open", a.EvalID, a.Fail, f.open)
		}
		f.open = append(f.open, a.EvalID)
		f.made++
	}
	count, desired := f.byHealth(), f.d.TaskGroups["g"].DesiredTotal
	room := count[unhealthy] == 0 && count[awaited] < f.parallel && count[healthy]+count[awaited] < desired
	if f.d.Active() && len(f.open) == 0 && (room || count[healthy] >= desired) {
		t.Fatalf("no evaluation though the scheduler could go on: %v of %d, %d at a time", count, desired, f.parallel)
	}
}

// change reports something of an allocation that is still awaited.
func (f *fleet) change(i int, how string) {
	f.index++
	f.reports++
	before := f.allocs[i]
	after := before.Copy()
	switch how {
	case "healthy", "unhealthy":
		after.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: structs.Ptr(how == "healthy"), ModifyIndex: f.index}
	case "fails":
		after.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: structs.Ptr(false), ModifyIndex: f.index}
		after.ClientStatus = structs.AllocClientStatusFailed
	case "lost":
		after.ClientStatus = structs.AllocClientStatusLost
	}
	f.allocs[i] = after
	f.core.Alloc(before, after)
	if after.TerminalStatus() {
		f.schedule() // whoever sees an allocation end makes an evaluation
	}
}

// TestNothingIsForgotten rolls out in any order of reports and evaluations, reports between the scheduler's look and its
// evaluation's end included: when nothing is awaited any more, the deployment has ended, or an unhealthy allocation holds
// it up.
func TestNothingIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(rapid.IntRange(1, 8).Draw(t, "desired"), rapid.IntRange(1, 8).Draw(t, "parallel"))
		ends := rapid.IntRange(0, 6).Draw(t, "ends")
		for {
			f.due(t)
			var waiting []int
			for i, a := range f.allocs {
				if !a.TerminalStatus() && healthOf(a) == awaited {
					waiting = append(waiting, i)
				}
			}
			if len(f.open) == 0 && len(waiting) == 0 {
				break
			}
			if len(f.open) > 0 && (len(waiting) == 0 || rapid.Bool().Draw(t, "decide")) {
				if f.seen == 0 {
					f.seen = f.index
					f.schedule()
				} else { // more may have been reported since
					f.core.EvalEnded(f.open[0], f.seen)
					f.open, f.seen = nil, 0
				}
				continue
			}
			how := "healthy"
			if ends > 0 {
				how = rapid.SampledFrom([]string{"healthy", "healthy", "healthy", "unhealthy", "fails", "lost"}).Draw(t, "how")
			}
			if how != "healthy" {
				ends--
			}
			f.change(rapid.SampledFrom(waiting).Draw(t, "which"), how)
		}
		if f.made > f.reports {
			t.Fatalf("%d evaluations for %d reports", f.made, f.reports)
		}
		if f.d.Active() && f.byHealth()[unhealthy] == 0 {
			t.Fatalf("the roll-out stands still: %v", f.byHealth())
		}
	})
}
