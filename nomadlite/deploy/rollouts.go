package deploy

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Action is one thing that is due: an evaluation of the deployment's job, and before it, when Fail is set, the end of
// the deployment.
type Action struct {
	Deployment *structs.Deployment
	EvalID     string
	Fail       string // description of the failure, empty to evaluate only
	AutoRevert bool   // a group that failed asks for the last stable version
	Promote    bool   // the canaries are to be promoted, instead of a failure
	Rule       string // which rule asked for it
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
	t.deployment, t.promoting = d, false
	r.look(t)
}

// AutoPromote takes in that the job asks for the promotion of a deployment's canaries once all are healthy.
func (r *Rollouts) AutoPromote(deploymentID string) {
	if t := r.byID[deploymentID]; t != nil {
		t.auto = true
		r.look(t)
	}
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
			t.group(before.TaskGroup).drop(before.ID)
			r.look(t)
		}
	}
	if after == nil {
		return
	}
	if t := r.byID[after.DeploymentID]; t != nil {
		t.group(after.TaskGroup).take(before, after, t.deadline(after.TaskGroup))
		r.look(t)
	}
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
			t.promoting = a.Promote
			r.setEval(t, a.EvalID)
			t.covered = max(t.covered, t.newest())
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
	t.covered, t.ending, t.promoting, t.notBefore = 0, false, false, at
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
