package deploy

import (
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Descriptions of a failed deployment, as the public API shows them.
const (
	failedUnhealthy = "Failed due to unhealthy allocations"
	failedDeadline  = "Failed due to progress deadline"
)

// rollout is one deployment that goes on.
type rollout struct {
	deployment *structs.Deployment
	groups     map[string]*group
	covered    uint64    // up to which reports are in the hands of the scheduler
	eval       string    // of ours, under way
	ending     bool      // its failure is being written
	auto       bool      // its canaries are promoted once all of them are healthy
	promoting  bool      // that is being written
	notBefore  time.Time // after a write that failed
	spared     time.Time // no deadline counts before

	at  time.Time // next look
	pos int       // in the queue, -1 when it is not there
}

func (t *rollout) group(name string) *group {
	g := t.groups[name]
	if g == nil {
		g = &group{live: map[string]health{}}
		t.groups[name] = g
	}
	return g
}

// deadline is a group's progress deadline, 0 for none.
func (t *rollout) deadline(name string) time.Duration {
	if s := t.deployment.TaskGroups[name]; s != nil {
		return s.ProgressDeadline
	}
	return 0
}

// next is when the rollout is to be looked at; false for not before something changes.
func (t *rollout) next() (time.Time, bool) {
	if t.ending {
		return time.Time{}, false
	}
	if t.unheeded() || len(t.unhealthy()) > 0 || t.promotable() {
		return t.notBefore, true
	}
	var first time.Time
	for _, by := range t.deadlines() {
		if first.IsZero() || by.Before(first) {
			first = by
		}
	}
	if first.IsZero() {
		return first, false
	}
	return latest(first, t.notBefore), true
}

// rule is one reason to do something about a rollout.
type rule struct {
	name string
	// due fills in what is to be done at now; false when the rule does not apply.
	due func(t *rollout, now time.Time, a *Action) bool
}

// rules decide what is done about a rollout; the first that applies does. Failing goes first: its evaluation is the
// last one.
var rules = []rule{
	{"unhealthy without a progress deadline", func(t *rollout, _ time.Time, a *Action) bool {
		return t.fail(a, failedUnhealthy, t.unhealthy())
	}},
	{"progress deadline passed", func(t *rollout, now time.Time, a *Action) bool {
		var late []string
		for name, by := range t.deadlines() {
			if !by.After(now) {
				late = append(late, name)
			}
		}
		return t.fail(a, failedDeadline, late)
	}},
	{"canaries healthy, nobody is asked", func(t *rollout, _ time.Time, a *Action) bool {
		a.Promote = t.promotable()
		return a.Promote
	}},
	{"health that no evaluation has seen", func(t *rollout, _ time.Time, _ *Action) bool { return t.unheeded() }},
}

func (t *rollout) decide(now time.Time) (Action, bool) {
	for i := range rules {
		a := Action{Deployment: t.deployment, Rule: rules[i].name}
		if rules[i].due(t, now, &a) {
			return a, true
		}
	}
	return Action{}, false
}

// fail makes an action a failure because of the groups named, if there are any.
func (t *rollout) fail(a *Action, why string, groups []string) bool {
	if len(groups) == 0 {
		return false
	}
	a.Fail, a.AutoRevert = why, t.deployment.AutoReverts(groups...)
	return true
}

// promotable says that all canaries which wait for their promotion are healthy and that nobody has to be asked.
func (t *rollout) promotable() bool {
	if !t.auto || t.promoting || t.deployment.Status != structs.DeploymentStatusRunning {
		return false
	}
	waiting := false
	for name, s := range t.deployment.TaskGroups {
		if s.DesiredCanaries == 0 || s.Promoted {
			continue
		}
		waiting = true
		well := 0
		for _, id := range s.PlacedCanaries {
			if g := t.groups[name]; g != nil && g.live[id] == healthy {
				well++
			}
		}
		if well < s.DesiredCanaries {
			return false
		}
	}
	return waiting
}

// unheeded says that there are reports which no evaluation has seen or will see, that none is under way for whose end
// they could wait, and that the scheduler could do something about them.
func (t *rollout) unheeded() bool {
	if t.eval != "" {
		return false
	}
	for name, s := range t.deployment.TaskGroups {
		if g := t.groups[name]; g != nil && g.reported > t.covered && !g.waits(needed(s)) {
			return true
		}
	}
	return false
}

// newest is the index of the newest report.
func (t *rollout) newest() uint64 {
	var index uint64
	for _, g := range t.groups {
		index = max(index, g.reported)
	}
	return index
}

// unhealthy names the groups that tolerate no unhealthy allocation and have one.
func (t *rollout) unhealthy() []string {
	var out []string
	for name, s := range t.deployment.TaskGroups {
		if s.ProgressDeadline == 0 && s.UnhealthyAllocs > 0 {
			out = append(out, name)
		}
	}
	return out
}

// deadlines gives the time by which each unfinished group must make progress. A deployment that is paused, a group with
// allocations on nodes that are expected back, and a group
// whose canaries wait for their promotion, have all the time.
func (t *rollout) deadlines() map[string]time.Time {
	if t.deployment.Status != structs.DeploymentStatusRunning {
		return nil
	}
	var out map[string]time.Time
	for name, s := range t.deployment.TaskGroups {
		if s.ProgressDeadline == 0 || s.RequireProgressBy.IsZero() || t.group(name).count[healthy] >= needed(s) {
			continue
		}
		by, counts := s.Extend(latest(s.RequireProgressBy, t.group(name).extended), s.ProgressDeadline)
		by = latest(by, t.spared)
		if !counts {
			continue
		}
		if out == nil {
			out = map[string]time.Time{}
		}
		out[name] = by
	}
	return out
}

func latest(first time.Time, others ...time.Time) time.Time {
	for _, other := range others {
		if other.After(first) {
			first = other
		}
	}
	return first
}
