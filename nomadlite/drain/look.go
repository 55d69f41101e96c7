package drain

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// look is one round under way.
type look struct {
	view      View
	now       time.Time
	round     *Round
	chosen    map[structs.NamespacedID]bool // services that were looked at, all their nodes at once
	concerned map[structs.NamespacedID]bool // jobs in round
}

// remaining is what a node still has: what moves by its migrate block, and what goes last.
type remaining struct {
	services map[structs.NamespacedID]*structs.Job // with allocations that are not marked, by their newest specification
	system   []*structs.Allocation                 // not marked
	others   int                                   // everything but system jobs, stopping ones included
	last     int                                   // system jobs, stopping ones included
}

// node decides what is due on one draining node and gives the jobs that have allocations there.
func (l *look) node(n *structs.Node) []structs.NamespacedID {
	strategy := n.DrainStrategy
	forced := strategy.Deadline < 0 || !strategy.ForceDeadline.IsZero() && !strategy.ForceDeadline.After(l.now)
	jobs := map[structs.NamespacedID]bool{}
	left := remaining{services: map[structs.NamespacedID]*structs.Job{}}
	for _, a := range l.view.AllocsByNode(n.ID) {
		if a.ClientTerminal() || a.Job == nil || strategy.IgnoreSystemJobs && ofNode(a) {
			continue
		}
		jobs[jobID(a)] = true
		if structs.Val(a.Job.Type) == structs.JobTypeSystem {
			left.last++
		} else {
			left.others++
		}
		switch {
		case a.ServerTerminal():
			l.shorten(n, a)
		case a.DesiredTransition.ShouldMigrate(): // marked before, its evaluation is under way
		case forced:
			l.mark(n, a)
		default:
			left.add(a)
		}
	}
	switch {
	case left.others+left.last == 0:
		l.round.Over = append(l.round.Over, n)
	case left.others == 0:
		for _, a := range left.system {
			l.mark(n, a)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(left.services), byID) {
		l.service(id, left.services[id])
	}
	return slices.SortedFunc(maps.Keys(jobs), byID)
}

func (r *remaining) add(a *structs.Allocation) {
	switch structs.Val(a.Job.Type) {
	case structs.JobTypeSystem:
		r.system = append(r.system, a)
	case structs.JobTypeBatch, structs.JobTypeSysBatch:
		// It is awaited.
	default:
		if old := r.services[jobID(a)]; old == nil || old.JobModifyIndex < a.Job.JobModifyIndex {
			r.services[jobID(a)] = a.Job
		}
	}
}

// service marks what may leave now of a service job, on all nodes that drain: its groups have one allowance each.
func (l *look) service(id structs.NamespacedID, spec *structs.Job) {
	if l.chosen[id] {
		return
	}
	l.chosen[id] = true
	if current := l.view.Job(id.Namespace, id.ID); current != nil {
		if current.Stopped() {
			return // all of it ends anyway
		}
		spec = current
	}
	groups := map[string][]*structs.Allocation{}
	for _, a := range l.view.AllocsByJob(id.Namespace, id.ID) {
		groups[a.TaskGroup] = append(groups[a.TaskGroup], a)
	}
	for _, group := range spec.TaskGroups {
		for _, a := range choose(group, groups[structs.Val(group.Name)], l.leaving) {
			l.mark(l.view.Node(a.NodeID), a)
		}
	}
}

// leaving says that an allocation is on a node that drains.
func (l *look) leaving(a *structs.Allocation) bool {
	n := l.view.Node(a.NodeID)
	return n != nil && n.DrainStrategy != nil
}

// mark makes an allocation leave, with an evaluation of its job. Work that was to end by itself is not begun anew.
func (l *look) mark(n *structs.Node, a *structs.Allocation) {
	t := &structs.DesiredTransition{Migrate: structs.Ptr(true)}
	switch structs.Val(a.Job.Type) {
	case structs.JobTypeBatch, structs.JobTypeSysBatch:
		t.MigrateDisablePlacement = structs.Ptr(true)
	}
	l.round.Marks[a.ID] = t
	if id := jobID(a); !l.concerned[id] {
		l.concerned[id] = true
		job := l.view.Job(id.Namespace, id.ID)
		if job == nil {
			job = a.Job // it was purged
		}
		l.round.Jobs = append(l.round.Jobs, Concerned{Job: job, Node: n})
	}
}

// shorten gives the options of the drain to an allocation that stops for it already: the drain got them later.
func (l *look) shorten(n *structs.Node, a *structs.Allocation) {
	have, want := &a.DesiredTransition, n.DrainStrategy
	if !have.ShouldMigrate() {
		return // it stops for another reason
	}
	var t structs.DesiredTransition
	if want.NoShutdownDelay && !structs.Val(have.NoShutdownDelay) {
		t.NoShutdownDelay = structs.Ptr(true)
	}
	if want.KillTimeout != nil && (have.KillTimeout == nil || *want.KillTimeout < *have.KillTimeout) {
		t.KillTimeout = want.KillTimeout
	}
	if t != (structs.DesiredTransition{}) {
		l.round.Marks[a.ID] = &t
	}
}

// ofNode says that an allocation belongs to its node: it is of a system or sysbatch job.
func ofNode(a *structs.Allocation) bool {
	kind := structs.Val(a.Job.Type)
	return kind == structs.JobTypeSystem || kind == structs.JobTypeSysBatch
}

func jobID(a *structs.Allocation) structs.NamespacedID {
	return structs.NamespacedID{Namespace: a.Namespace, ID: a.JobID}
}

func byID(a, b structs.NamespacedID) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
}
