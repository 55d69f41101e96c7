package deploy

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Descriptions of a failed deployment, as the public API shows them.
const (
	failedUnhealthy = "Failed due to unhealthy allocations"
	failedDeadline  = "Failed due to progress deadline"
)

// Action is one thing that is due: an evaluation of the deployment's job, and before it, when Fail is set, the end of
// the deployment.
type Action struct {
	Deployment *structs.Deployment
	EvalID     string
	Fail       string // description of the failure, empty to evaluate only
	AutoRevert bool   // a group that failed asks for the last stable version
}

// Rollouts is the pure core: what is known of the deployments that go on.
type Rollouts struct {
	newID  func() string
	byID   map[string]*rollout
	byEval map[string]*rollout // evaluations under way
	queue  lookQueue
}

// NewRollouts makes a core that knows no deployment; newID makes the ids of evaluations.
func NewRollouts(newID func() string) *Rollouts {
	return &Rollouts{newID: newID, byID: map[string]*rollout{}, byEval: map[string]*rollout{}}
}

// Len is the number of deployments that go on.
func (r *Rollouts) Len() int { return len(r.byID) }

// Deployment takes a deployment in as it is stored now.
func (r *Rollouts) Deployment(d *structs.Deployment) {
	if !d.Active() {
		r.RemoveDeployment(d.ID)
		return
	}
	t := r.byID[d.ID]
	if t == nil {
		t = &rollout{groups: map[string]*group{}, pos: -1}
		r.byID[d.ID] = t
	}
	t.deployment = d
	r.look(t)
}

// RemoveDeployment forgets a deployment: it is over or was deleted.
func (r *Rollouts) RemoveDeployment(id string) {
	t := r.byID[id]
	if t == nil {
		return
	}
	delete(r.byID, id)
	delete(r.byEval, t.eval)
	if t.pos >= 0 {
		heap.Remove(&r.queue, t.pos)
	}
}

// Alloc takes a changed allocation in; before is nil for a new one, after for a deleted one.
func (r *Rollouts) Alloc(before, after *structs.Allocation) {
	if before != nil && (after == nil || after.DeploymentID != before.DeploymentID) {
		if t := r.byID[before.DeploymentID]; t != nil {
			delete(t.group(before.TaskGroup).healthy, before.ID)
			r.look(t)
		}
	}
	if after == nil {
		return
	}
	t := r.byID[after.DeploymentID]
	if t == nil {
		return
	}
	s := after.DeploymentStatus
	if s == nil || s.Healthy == nil {
		return
	}
	t.group(after.TaskGroup).take(before, after, t.deadline(after.TaskGroup))
	t.wanted = max(t.wanted, s.ModifyIndex)
	r.look(t)
}

// EvalStarted takes in that an evaluation is under way which will see all that the state holds at index.
func (r *Rollouts) EvalStarted(deploymentID, evalID string, index uint64) {
	if t := r.byID[deploymentID]; t != nil {
		r.setEval(t, evalID)
		t.covered = max(t.covered, index)
		r.look(t)
	}
}

// EvalEnded takes in that an evaluation was decided, or deleted. seen is the index of the state that it looked at, 0
// when it did not.
func (r *Rollouts) EvalEnded(evalID string, seen uint64) {
	if t := r.byEval[evalID]; t != nil {
		r.setEval(t, "")
		t.covered = max(t.covered, seen)
		r.look(t)
	}
}

// Seen takes in that the scheduler has looked at a deployment's job in a state as new as index.
func (r *Rollouts) Seen(deploymentID string, index uint64) {
	if t := r.byID[deploymentID]; t != nil {
		t.covered = max(t.covered, index)
		r.look(t)
	}
}

// Spare lets no deadline that has passed already count before until: nobody was there to take reports of progress.
func (r *Rollouts) Spare(until time.Time) {
	for _, t := range r.byID {
		t.spared = until
		r.look(t)
	}
}

// Due takes out what is due at now, at most limit. Whoever could not carry an action out says so with Retry.
func (r *Rollouts) Due(now time.Time, limit int) []Action {
	var out []Action
	for len(r.queue) > 0 && len(out) < limit && !r.queue[0].at.After(now) {
		t := r.queue[0]
		if a, ok := t.decide(now); ok {
			a.EvalID = r.newID()
			if a.Fail != "" {
				t.ending = true
			}
			r.setEval(t, a.EvalID)
			t.covered = max(t.covered, t.wanted)
			out = append(out, a)
		}
		r.look(t)
	}
	return out
}

// Retry takes back an action that could not be carried out; it is due again at a later time.
func (r *Rollouts) Retry(a Action, at time.Time) {
	t := r.byID[a.Deployment.ID]
	if t == nil || t.eval != a.EvalID {
		return
	}
	r.setEval(t, "")
	t.covered, t.ending, t.notBefore = 0, false, at
	r.look(t)
}

// Next is when something is due next; false when nothing is in sight.
func (r *Rollouts) Next() (time.Time, bool) {
	if len(r.queue) == 0 {
		return time.Time{}, false
	}
	return r.queue[0].at, true
}

func (r *Rollouts) setEval(t *rollout, id string) {
	delete(r.byEval, t.eval)
	if t.eval = id; id != "" {
		r.byEval[id] = t
	}
}

// look files a rollout under the time at which it is to be looked at next.
func (r *Rollouts) look(t *rollout) {
	at, ok := t.next()
	switch {
	case !ok && t.pos >= 0:
		heap.Remove(&r.queue, t.pos)
	case ok && t.pos >= 0:
		t.at = at
		heap.Fix(&r.queue, t.pos)
	case ok:
		t.at = at
		heap.Push(&r.queue, t)
	}
}

// rollout is one deployment that goes on.
type rollout struct {
	deployment *structs.Deployment
	groups     map[string]*group
	wanted     uint64    // the newest index at which health was reported
	covered    uint64    // up to which reports are in the hands of the scheduler
	eval       string    // of ours, under way
	ending     bool      // its failure is being written
	notBefore  time.Time // after a write that failed
	spared     time.Time // no deadline counts before

	at  time.Time // next look
	pos int       // in the queue, -1 when it is not there
}

// group is what is known of a group's allocations in a rollout.
type group struct {
	healthy  map[string]struct{} // ids of those that are healthy and live
	extended time.Time           // the deadline of a replacement for one that was healthy
}

func (t *rollout) group(name string) *group {
	g := t.groups[name]
	if g == nil {
		g = &group{healthy: map[string]struct{}{}}
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

// take counts a judged allocation. One that was healthy and ended leaves its group unfinished again, perhaps long after
// the group's deadline: what replaces it has the deadline's time from there.
func (g *group) take(before, after *structs.Allocation, deadline time.Duration) {
	healthy := *after.DeploymentStatus.Healthy
	if healthy && !after.TerminalStatus() {
		g.healthy[after.ID] = struct{}{}
		return
	}
	_, was := g.healthy[after.ID]
	delete(g.healthy, after.ID)
	if !was && (before != nil || !healthy) {
		return
	}
	if by := time.Unix(0, after.ModifyTime).UTC().Add(deadline); by.After(g.extended) {
		g.extended = by
	}
}

// next is when the rollout is to be looked at; false for not before something changes.
func (t *rollout) next() (time.Time, bool) {
	if t.ending {
		return time.Time{}, false
	}
	if t.unheeded() || len(t.unhealthy()) > 0 {
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

// decide says what is to be done now. Failing goes first: its evaluation is the last one.
func (t *rollout) decide(now time.Time) (Action, bool) {
	a := Action{Deployment: t.deployment}
	if names := t.unhealthy(); len(names) > 0 {
		a.Fail = failedUnhealthy
		a.AutoRevert = t.autoRevert(names)
		return a, true
	}
	var late []string
	for name, by := range t.deadlines() {
		if !by.After(now) {
			late = append(late, name)
		}
	}
	if len(late) > 0 {
		a.Fail = failedDeadline
		a.AutoRevert = t.autoRevert(late)
		return a, true
	}
	return a, t.unheeded()
}

// unheeded says that there are reports which no evaluation has seen or will see, and that none is under way for whose
// end they could wait.
func (t *rollout) unheeded() bool { return t.wanted > t.covered && t.eval == "" }

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

// deadlines gives the time by which each unfinished group must make progress. A deployment that is paused, and a group
// whose canaries wait for their promotion, have all the time.
func (t *rollout) deadlines() map[string]time.Time {
	if t.deployment.Status != structs.DeploymentStatusRunning {
		return nil
	}
	var out map[string]time.Time
	for name, s := range t.deployment.TaskGroups {
		needed := s.DesiredTotal
		if s.DesiredCanaries > 0 && !s.Promoted {
			needed = s.DesiredCanaries
		}
		if s.ProgressDeadline == 0 || s.RequireProgressBy.IsZero() || len(t.group(name).healthy) >= needed {
			continue
		}
		if out == nil {
			out = map[string]time.Time{}
		}
		out[name] = latest(s.RequireProgressBy, t.group(name).extended, t.spared)
	}
	return out
}

func (t *rollout) autoRevert(groups []string) bool {
	return slices.ContainsFunc(groups, func(name string) bool { return t.deployment.TaskGroups[name].AutoRevert })
}

func latest(first time.Time, others ...time.Time) time.Time {
	for _, other := range others {
		if other.After(first) {
			first = other
		}
	}
	return first
}

// lookQueue is a heap of rollouts by the time of their next look.
type lookQueue []*rollout

func (q lookQueue) Len() int { return len(q) }
func (q lookQueue) Less(i, j int) bool {
	return cmp.Or(q[i].at.Compare(q[j].at), cmp.Compare(q[i].deployment.ID, q[j].deployment.ID)) < 0
}
func (q lookQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].pos, q[j].pos = i, j
}

// Push adds a rollout; for container/heap.
func (q *lookQueue) Push(x any) {
	t := x.(*rollout)
	t.pos = len(*q)
	*q = append(*q, t)
}

// Pop takes the last rollout; for container/heap.
func (q *lookQueue) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	t.pos = -1
	return t
}
