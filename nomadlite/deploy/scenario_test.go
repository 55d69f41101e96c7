package deploy

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/internal/scenariotest"
	"github.com/nomadlite/nomadlite/structs"
)

// TestScenarios plays the files of testdata. Together they must reach every rule.
func TestScenarios(t *testing.T) {
	reached := map[string]bool{}
	scenariotest.Play(t, func(t *testing.T) func(scenariotest.Command) []string {
		w := newWorld(t)
		w.reached = reached
		return w.run
	})
	for i := range rules {
		if !reached[rules[i].name] {
			t.Errorf("no scenario reaches the rule %q", rules[i].name)
		}
	}
}

// world is what the commands of a scenario act on. Time begins at 0 and index at 10.
type world struct {
	*testing.T
	core        *Rollouts
	now         time.Time
	index       uint64
	ids         int
	deployments map[string]*structs.Deployment
	allocs      map[string]*structs.Allocation
	last        map[string]Action // by deployment
	reached     map[string]bool   // rules
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, now: time.Unix(0, 0).UTC(), index: 10, deployments: map[string]*structs.Deployment{},
		allocs: map[string]*structs.Allocation{}, last: map[string]Action{}}
	w.core = NewRollouts(func() string { w.ids++; return fmt.Sprint("e", w.ids) })
	return w
}

func (w *world) run(c scenariotest.Command) []string {
	w.Helper()
	names, a := c.Words, c.Args
	switch w.index++; c.Name {
	case "deployment":
		w.deployment(names[0], a)
	case "status":
		w.edit(names[0], func(d *structs.Deployment) { d.Status = names[1] })
	case "promote":
		w.edit(names[0], func(d *structs.Deployment) {
			g := d.TaskGroups["g"] // its deadline begins anew
			g.Promoted, g.RequireProgressBy = true, w.now.Add(g.ProgressDeadline)
		})
	case "auto-promote":
		w.core.AutoPromote(names[0])
	case "placed-canaries": // DEPLOYMENT ALLOC...
		w.edit(names[0], func(d *structs.Deployment) { d.TaskGroups["g"].PlacedCanaries = names[1:] })
	case "alloc":
		for _, id := range names[1:] {
			w.alloc(names[0], id, a)
		}
	case "gone":
		w.pause(w.allocs[names[0]], nil)
		w.core.Alloc(w.allocs[names[0]], nil)
		delete(w.allocs, names[0])
	case "new-leader":
		w.lead()
	case "evaluated":
		w.core.EvalEnded(names[0], w.seen(a))
	case "under-way":
		w.core.EvalStarted(names[0], names[1], uint64(a.Number(w.T, "index")))
	case "retry":
		w.core.Retry(w.last[names[0]], w.now.Add(a.Duration(w.T, "in")))
	case "spare":
		w.core.Spare(w.now.Add(a.Duration(w.T, "for")))
	case "seen":
		w.core.Seen(names[0], uint64(a.Number(w.T, "index")))
	case "tick":
		w.now = w.now.Add(scenariotest.Duration(w.T, names[0]))
	case "due":
		return w.due()
	default:
		w.Fatalf("unknown command %q", c.Line)
	}
	return nil
}

// seen is the index of a state: seen=alloc is the one that has that allocation's report, before=alloc the one before it.
func (w *world) seen(a scenariotest.Args) uint64 {
	if id := a["seen"]; id != "" {
		return w.allocs[id].DeploymentStatus.ModifyIndex
	}
	if id := a["before"]; id != "" {
		return w.allocs[id].DeploymentStatus.ModifyIndex - 1
	}
	return 0
}

// deployment stores a deployment with one group g: desired, deadline, canaries, revert. Its first deadline counts from now.
func (w *world) deployment(id string, a scenariotest.Args) {
	g := &structs.DeploymentState{DesiredTotal: a.Number(w.T, "desired"), ProgressDeadline: a.Duration(w.T, "deadline"),
		DesiredCanaries: a.Number(w.T, "canaries"), AutoRevert: a["revert"] != ""}
	if g.ProgressDeadline > 0 {
		g.RequireProgressBy = w.now.Add(g.ProgressDeadline)
	}
	d := &structs.Deployment{ID: id, JobID: "job-" + id, Status: structs.DeploymentStatusRunning,
		TaskGroups: map[string]*structs.DeploymentState{"g": g}}
	w.deployments[id] = d
	w.core.Deployment(d)
}

func (w *world) edit(id string, how func(*structs.Deployment)) {
	d := w.deployments[id].Copy()
	how(d)
	w.deployments[id] = d
	w.core.Deployment(d)
}

// alloc stores an allocation of a deployment's group g as the state would, counts included: health=healthy|unhealthy,
// ended=yes, away=yes|no.
func (w *world) alloc(deployment, id string, a scenariotest.Args) {
	before := w.allocs[id]
	after := &structs.Allocation{ID: id, TaskGroup: "g", DesiredStatus: structs.AllocDesiredStatusRun,
		ClientStatus: structs.AllocClientStatusRunning}
	if before != nil {
		after = before.Copy()
	}
	if after.DeploymentID != deployment {
		after.DeploymentID, after.DeploymentStatus = deployment, nil
	}
	after.ModifyTime = w.now.UnixNano()
	switch a["away"] {
	case "yes":
		after.Condition = structs.Condition{Status: structs.ConditionAway, Since: w.now}
	case "no":
		after.Condition = structs.Condition{Status: structs.ConditionOK, Since: w.now}
	}
	if a["ended"] != "" {
		after.ClientStatus = structs.AllocClientStatusFailed
	}
	if h := a["health"]; h != "" {
		after.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: structs.Ptr(h == "healthy"), ModifyIndex: w.index}
		w.edit(deployment, func(d *structs.Deployment) {
			g := d.TaskGroups["g"]
			if h != "healthy" {
				g.UnhealthyAllocs++
				return
			}
			g.HealthyAllocs++
			if g.ProgressDeadline > 0 {
				g.RequireProgressBy = w.now.Add(g.ProgressDeadline)
			}
		})
	}
	w.allocs[id] = after
	w.pause(before, after)
	w.core.Alloc(before, after)
}

// pause counts those that are away as the state does.
func (w *world) pause(before, after *structs.Allocation) {
	away := func(a *structs.Allocation) bool {
		return a != nil && a.Condition.Status == structs.ConditionAway && !a.TerminalStatus()
	}
	if was, is := away(before), away(after); was && !is {
		w.edit(before.DeploymentID, func(d *structs.Deployment) { d.TaskGroups["g"].AllocBack(w.now) })
	} else if is && !was {
		w.edit(after.DeploymentID, func(d *structs.Deployment) { d.TaskGroups["g"].AllocAway(after.Condition.Since) })
	}
}

// lead makes a core that knows what is stored, and no more.
func (w *world) lead() {
	w.core = NewRollouts(w.core.newID)
	for _, id := range slices.Sorted(maps.Keys(w.deployments)) {
		w.core.Deployment(w.deployments[id])
	}
	for _, id := range slices.Sorted(maps.Keys(w.allocs)) {
		w.core.Alloc(nil, w.allocs[id])
	}
}

func (w *world) due() []string {
	var out []string
	for _, a := range w.core.Due(w.now, 10) {
		w.last[a.Deployment.ID] = a
		w.reached[a.Rule] = true
		line := fmt.Sprintf("%s: evaluate as %s", a.Deployment.ID, a.EvalID)
		if a.Fail != "" {
			line = fmt.Sprintf("%s: %s, evaluate as %s", a.Deployment.ID, a.Fail, a.EvalID)
		}
		if a.AutoRevert {
			line += ", revert"
		}
		if a.Promote {
			line += ", promote"
		}
		out = append(out, line)
	}
	switch next, ok := w.core.Next(); {
	case ok:
		out = append(out, fmt.Sprintf("next in %s", next.Sub(w.now)))
	default:
		out = append(out, "nothing next")
	}
	return out
}
