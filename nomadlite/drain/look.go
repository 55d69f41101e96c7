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
	chosen    map[structs.NamespacedID]bool // services that were decided about, for all nodes at once
	concerned map[structs.NamespacedID]bool // jobs in round
}

// forced says that all leaves a node at once.
func (l *look) forced(n *structs.Node) bool {
	s := n.DrainStrategy
	return s.Deadline < 0 || !s.ForceDeadline.IsZero() && !s.ForceDeadline.After(l.now)
}

// node decides what is due on one draining node and gives the jobs that have allocations there.
func (l *look) node(n *structs.Node) []structs.NamespacedID {
	strategy := n.DrainStrategy
	forced := l.forced(n)
	jobs := map[structs.NamespacedID]bool{}
	var system []*structs.Allocation
	services := map[structs.NamespacedID]*structs.Job{} // not marked, by their newest specification
	others, last := 0, 0                                // what is there, stopping or not: system jobs are the last
	for _, a := range l.view.AllocsByNode(n.ID) {
		if a.ClientTerminal() || a.Job == nil || strategy.IgnoreSystemJobs && ofNode(a) {
			continue
		}
		jobs[jobID(a)] = true
		if structs.Val(a.Job.Type) == structs.JobTypeSystem {
			last++
		} else {
			others++
		}
		switch {
		case a.ServerTerminal():
			l.shorten(n, a)
		case a.DesiredTransition.ShouldMigrate(): // marked before, its evaluation is under way
		case forced:
			l.mark(n, a)
		default:
			switch structs.Val(a.Job.Type) {
			case structs.JobTypeSystem:
				system = append(system, a)
			case structs.JobTypeBatch, structs.JobTypeSysBatch: // it is awaited
			default:
				if old := services[jobID(a)]; old == nil || old.JobModifyIndex < a.Job.JobModifyIndex {
					services[jobID(a)] = a.Job
				}
			}
		}
	}
	switch {
	case others+last == 0:
		l.round.Over = append(l.round.Over, n)
	case others == 0:
		for _, a := range system {
			l.mark(n, a)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(services), byID) {
		l.service(id, services[id])
	}
	return slices.SortedFunc(maps.Keys(jobs), byID)
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
		if l.round.Marks[a.ID] == nil { // else it leaves in this round
			groups[a.TaskGroup] = append(groups[a.TaskGroup], a)
		}
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
