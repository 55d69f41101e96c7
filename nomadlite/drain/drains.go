package drain

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// View is the state that a look is about.
type View interface {
	Node(id string) *structs.Node
	Job(namespace, id string) *structs.Job
	AllocsByNode(nodeID string) []*structs.Allocation
	AllocsByJob(namespace, id string) []*structs.Allocation
}

// Round is what is due: marks with the jobs that are to be evaluated for them, which go into one entry, and drains that
// are over.
type Round struct {
	Marks map[string]*structs.DesiredTransition // by allocation id
	Jobs  []Concerned
	Over  []*structs.Node // as they were when nothing was left
}

// Concerned is a job with marked allocations, and one of the nodes which they leave.
type Concerned struct {
	Job  *structs.Job
	Node *structs.Node
}

// Empty says that nothing is due.
func (r *Round) Empty() bool { return len(r.Marks) == 0 && len(r.Over) == 0 }

// Drains is the pure core: which nodes drain, and which of them are to be looked at.
type Drains struct {
	draining map[string]*draining
	byJob    map[structs.NamespacedID]map[string]bool // draining nodes with allocations of a job
}

// draining is what is known of one node.
type draining struct {
	forceAt time.Time // its deadline, zero for none or when it has passed
	look    bool
	after   time.Time // not before; after a failed write
	jobs    []structs.NamespacedID
}

// NewDrains makes a core that knows no node.
func NewDrains() *Drains {
	return &Drains{draining: map[string]*draining{}, byJob: map[structs.NamespacedID]map[string]bool{}}
}

// Len is the number of nodes that drain.
func (d *Drains) Len() int { return len(d.draining) }

// Node takes a node in as it is stored now.
func (d *Drains) Node(n *structs.Node) {
	if n.DrainStrategy == nil {
		d.RemoveNode(n.ID)
		return
	}
	known := d.draining[n.ID]
	if known == nil {
		known = &draining{}
		d.draining[n.ID] = known
	}
	known.look, known.forceAt = true, n.DrainStrategy.ForceDeadline
}

// RemoveNode forgets a node: it does not drain any more or was removed.
func (d *Drains) RemoveNode(id string) {
	if known := d.draining[id]; known != nil {
		d.link(id, known, nil)
		delete(d.draining, id)
	}
}

// Alloc takes in that an allocation is new, changed or gone: the node that it is on is concerned, and those that have
// others of its job.
func (d *Drains) Alloc(a *structs.Allocation) {
	if known := d.draining[a.NodeID]; known != nil {
		known.look = true
	}
	for id := range d.byJob[structs.NamespacedID{Namespace: a.Namespace, ID: a.JobID}] {
		d.draining[id].look = true
	}
}

// Retry looks at a node again at a later time: what was due could not be written.
func (d *Drains) Retry(id string, at time.Time) {
	if known := d.draining[id]; known != nil {
		known.look, known.after = true, at
	}
}

// Next is when something is due next; false when only a change can make it so.
func (d *Drains) Next() (time.Time, bool) {
	var next time.Time
	for _, known := range d.draining {
		for _, at := range known.times() {
			if next.IsZero() || at.Before(next) {
				next = at
			}
		}
	}
	return next, !next.IsZero()
}

// times are when a node is to be looked at.
func (k *draining) times() []time.Time {
	var out []time.Time
	if k.look {
		out = append(out, cmp.Or(k.after, time.Unix(0, 1)))
	}
	if !k.forceAt.IsZero() {
		out = append(out, k.forceAt)
	}
	return out
}

// Due looks at the nodes that are to be looked at, until there are about limit marks; the rest is left for the next
// call. Call it only when what was due before is in view, or was given back by Retry.
func (d *Drains) Due(now time.Time, view View, limit int) *Round {
	l := &look{view: view, now: now, round: &Round{Marks: map[string]*structs.DesiredTransition{}},
		chosen: map[structs.NamespacedID]bool{}, concerned: map[structs.NamespacedID]bool{}}
	for _, n := range d.toLook(l) {
		if len(l.round.Marks) >= limit {
			break
		}
		known := d.draining[n.ID]
		known.look, known.after = false, time.Time{}
		if !known.forceAt.After(now) {
			known.forceAt = time.Time{}
		}
		d.link(n.ID, known, l.node(n))
	}
	return l.round
}

// toLook gives the nodes that are to be looked at now. Those which all leaves by force come first: what leaves them counts
// for the allowance of the others.
func (d *Drains) toLook(l *look) []*structs.Node {
	var forced, others []*structs.Node
	for _, id := range slices.Sorted(maps.Keys(d.draining)) {
		known := d.draining[id]
		passed := !known.forceAt.IsZero() && !known.forceAt.After(l.now)
		n := l.view.Node(id)
		switch {
		case !passed && (!known.look || known.after.After(l.now)):
		case n == nil || n.DrainStrategy == nil: // the news of it is under way
			known.look, known.after, known.forceAt = false, time.Time{}, time.Time{}
		case l.forced(n):
			forced = append(forced, n)
		default:
			others = append(others, n)
		}
	}
	return append(forced, others...)
}

// link notes the jobs which a draining node has allocations of.
func (d *Drains) link(id string, known *draining, jobs []structs.NamespacedID) {
	for _, job := range known.jobs {
		delete(d.byJob[job], id)
		if len(d.byJob[job]) == 0 {
			delete(d.byJob, job)
		}
	}
	for _, job := range jobs {
		if d.byJob[job] == nil {
			d.byJob[job] = map[string]bool{}
		}
		d.byJob[job][id] = true
	}
	known.jobs = jobs
}
