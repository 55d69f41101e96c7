package clustersim

import (
	"time"

	"github.com/nomadlite/nomadlite/client/allocrunner"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// operation is something that an operator, or fate, does. do is called when can says so, or can is nil.
type operation struct {
	name string
	can  func(s *sim) bool
	do   func(s *sim)
	// later says that the seeds of the first form do not have it.
	later bool
}

var (
	ordinary  = stopTerms{}
	noDelay   = stopTerms{noDelay: true}
	shortKill = stopTerms{kill: ptr(time.Second)}
	immediate = stopTerms{noDelay: true, kill: ptr(time.Duration(0))}
)

// operations lists all of them. Each ordered pair comes in the long form.
func operations() []operation {
	stopJob := func(name string, terms stopTerms) operation {
		return operation{name: name, can: some(isThere), do: func(s *sim) {
			p := pick(s, s.plansThat(isThere))
			s.tracef("== %s %s", name, p.id)
			s.deregister(p, false, terms)
		}}
	}
	stopAlloc := func(name string, terms stopTerms) operation {
		return operation{name: name, can: anyAlloc, do: func(s *sim) { s.stopAlloc(name, terms) }}
	}
	drains := func(name string, spec structs.DrainSpec) operation {
		return operation{name: name, can: someNode(registered), do: func(s *sim) { s.drain(name, spec) }}
	}
	return []operation{
		stopJob("job stop", ordinary), stopJob("job stop -no-shutdown-delay", noDelay),
		stopJob("job stop -kill-timeout", shortKill), stopJob("job stop -immediate", immediate),
		stopAlloc("alloc stop", ordinary), stopAlloc("alloc stop -no-shutdown-delay", noDelay),
		stopAlloc("alloc stop -kill-timeout", shortKill), stopAlloc("alloc stop -immediate", immediate),
		{name: "alloc restart", do: func(s *sim) { s.restartAlloc("alloc restart", allocrunner.Terms{}) }},
		{name: "alloc restart -no-shutdown-delay", do: func(s *sim) {
			s.restartAlloc("alloc restart -no-shutdown-delay", allocrunner.Terms{NoShutdownDelay: true})
		}},
		drains("drain with deadline", structs.DrainSpec{Deadline: 25 * time.Second}),
		drains("drain without deadline", structs.DrainSpec{}),
		drains("drain -force", structs.DrainSpec{Deadline: -1}),
		drains("drain -no-shutdown-delay", structs.DrainSpec{Deadline: 40 * time.Second, NoShutdownDelay: true}),
		{name: "drain -disable", can: someNode(draining), do: func(s *sim) { s.endDrain(pick(s, s.nodesThat(draining))) }},
		{name: "maintenance", can: someNode(maintainable), do: func(s *sim) { s.maintain(pick(s, s.nodesThat(maintainable))) }},
		{name: "maintenance expires", can: someNode(maintained), do: (*sim).expireMaintenance},
		{name: "maintenance -disable", can: someNode(maintained), do: func(s *sim) { s.endMaintenance(pick(s, s.nodesThat(maintained))) }},
		{name: "node loss", can: someNode(connected), do: func(s *sim) { s.cutOff(pick(s, s.nodesThat(connected))) }},
		{name: "node return", can: someNode(isCut), do: func(s *sim) { s.heal(pick(s, s.nodesThat(isCut))) }},
		{name: "agent kill", can: someNode(hasAgent), do: func(s *sim) { s.killAgent(pick(s, s.nodesThat(hasAgent))) }},
		{name: "agent start", can: someNode(noAgent), do: func(s *sim) { s.startAgent(pick(s, s.nodesThat(noAgent))) }},
		{name: "machine crash", do: func(s *sim) { s.crash(pick(s, s.nodes)) }},
		{name: "leader change", do: func(s *sim) { s.nextLeader(s.leader, "by itself") }},
		{name: "purge", can: some(isThere), do: func(s *sim) {
			p := pick(s, s.plansThat(isThere))
			s.tracef("== purge %s", p.id)
			s.deregister(p, true, ordinary)
		}},
		{name: "purge and run again", can: some(isThere), do: func(s *sim) {
			p := pick(s, s.plansThat(isThere))
			s.tracef("== purge %s and run it again", p.id)
			s.deregister(p, true, pick(s, []stopTerms{ordinary, noDelay}))
			s.run(s.between(0, 3*time.Second))
			s.awaitLeader()
			s.register(p)
		}},
		{name: "job run", can: some(func(p *jobPlan) bool { return !p.running }), do: func(s *sim) {
			p := pick(s, s.plansThat(func(p *jobPlan) bool { return !p.running }))
			s.tracef("== run %s", p.id)
			s.register(p)
		}},
		{name: "job update", can: some(isRunning), do: func(s *sim) {
			p := pick(s, s.plansThat(isRunning))
			p.version++
			s.tracef("== update %s to %d", p.id, p.version)
			s.register(p)
		}},
		{name: "job scale", can: some(scalable), do: (*sim).scale},
		{name: "garbage collection", later: true, do: func(s *sim) {
			s.tracef("== garbage collection")
			s.collect()
		}},
		{name: "node purge", later: true, can: someNode(registered), do: func(s *sim) {
			n := pick(s, s.nodesThat(registered))
			s.tracef("== purge of node %s", n.id)
			s.purgeNode(n)
		}},
		{name: "report ahead of a return", later: true, can: someNode(canBeAway), do: func(s *sim) {
			s.reportAhead(pick(s, s.nodesThat(canBeAway)))
		}},
		{name: "node leaves", later: true, can: someNode(canLeave), do: func(s *sim) { s.leave(pick(s, s.nodesThat(canLeave))) }},
	}
}

func isThere(p *jobPlan) bool   { return p.there }
func isRunning(p *jobPlan) bool { return p.running }
func scalable(p *jobPlan) bool {
	return p.running && p.kind == structs.JobTypeService && p.priority == 0
}

func some(that func(*jobPlan) bool) func(*sim) bool {
	return func(s *sim) bool { return len(s.plansThat(that)) > 0 }
}

func (s *sim) plansThat(that func(*jobPlan) bool) []*jobPlan {
	var out []*jobPlan
	for _, p := range s.jobs {
		if that(p) {
			out = append(out, p)
		}
	}
	return out
}

func someNode(that func(*node) bool) func(*sim) bool {
	return func(s *sim) bool { return len(s.nodesThat(that)) > 0 }
}

func (s *sim) nodesThat(that func(*node) bool) []*node {
	var out []*node
	for _, n := range s.nodes {
		if that(n) {
			out = append(out, n)
		}
	}
	return out
}

func (n *node) row() *structs.Node { return n.s.store.Node(nil, n.id) }

func registered(n *node) bool { return n.row() != nil }
func draining(n *node) bool   { return n.row() != nil && n.row().DrainStrategy != nil }
func maintained(n *node) bool { return n.row() != nil && n.row().Maintenance != nil }
func maintainable(n *node) bool {
	return n.row() != nil && n.row().DrainStrategy == nil && !n.row().Down()
}
func connected(n *node) bool { return !n.cut }
func isCut(n *node) bool     { return n.cut }
func hasAgent(n *node) bool  { return n.agent != nil }
func noAgent(n *node) bool   { return n.agent == nil }

// liveAllocs are those that are wanted and have not ended, in the order of their age.
func (s *sim) liveAllocs() []*structs.Allocation {
	var out []*structs.Allocation
	for a := range s.store.AllocsByCreate(nil, structs.AllNamespaces, false) {
		if !a.TerminalStatus() {
			out = append(out, a)
		}
	}
	return out
}

func anyAlloc(s *sim) bool { return len(s.liveAllocs()) > 0 }

func (s *sim) stopAlloc(name string, terms stopTerms) {
	alloc := pick(s, s.liveAllocs())
	s.tracef("== %s %s (%s)", name, alloc.ID, alloc.Name)
	want := &structs.DesiredTransition{Migrate: ptr(true), KillTimeout: terms.kill}
	if terms.noDelay {
		want.NoShutdownDelay = ptr(true)
	}
	now := time.Now().UnixNano()
	eval := &structs.Evaluation{ID: s.newID(), Namespace: alloc.Namespace, JobID: alloc.JobID, Type: structs.Val(alloc.Job.Type),
		Priority: structs.Val(alloc.Job.Priority), TriggeredBy: structs.EvalTriggerAllocStop, JobModifyIndex: alloc.JobModifyIndex,
		Status: structs.EvalStatusPending, CreateTime: now, ModifyTime: now}
	s.apply(fsm.KindAllocTransition, &fsm.AllocTransition{
		Transitions: map[string]*structs.DesiredTransition{alloc.ID: want}, Evals: []*structs.Evaluation{eval}, Now: now})
	s.watch.stopAsked[alloc.ID] = true
}

// restartAlloc asks an agent; there may be nothing to restart.
func (s *sim) restartAlloc(name string, terms allocrunner.Terms) {
	type target struct {
		a  *agent
		h  *held
		id string
	}
	var targets []target
	for _, n := range s.nodes {
		if n.agent == nil || n.cut {
			continue
		}
		for _, id := range sortedKeys(n.agent.held) {
			if h := n.agent.held[id]; h.runner != nil && !h.runner.Terminal() {
				targets = append(targets, target{n.agent, h, id})
			}
		}
	}
	if len(targets) == 0 {
		s.tracef("== %s: there is nothing to restart", name)
		return
	}
	t := pick(s, targets)
	s.tracef("== %s %s", name, t.id)
	all := s.chance(0.3)
	s.call(t.a.n, func() {
		if all {
			_ = t.h.runner.RestartAll(terms)
		} else {
			_ = t.h.runner.RestartRunning(terms)
		}
	})
	t.a.dirty = true
}

func (s *sim) nodeEvent(message string) *structs.NodeEvent {
	return &structs.NodeEvent{Message: message, Subsystem: "Cluster", Timestamp: time.Now().UTC()}
}

func (s *sim) drain(name string, spec structs.DrainSpec) {
	n := pick(s, s.nodesThat(registered))
	s.tracef("== %s %s", name, n.id)
	cmd := &fsm.NodeDrain{NodeID: n.id, Strategy: &structs.DrainStrategy{DrainSpec: spec}, Now: time.Now().UnixNano(),
		Event: s.nodeEvent("drain")}
	if spec.Deadline > 0 {
		cmd.Strategy.ForceDeadline = time.Now().Add(spec.Deadline).UTC()
	}
	if old := n.row().DrainStrategy; old != nil {
		cmd.Strategy.StartedAt = old.StartedAt
	}
	s.apply(fsm.KindNodeDrain, cmd)
}

// systemEvals are what comes with a node that takes allocations again.
func (s *sim) systemEvals(n *node) []*structs.Evaluation {
	var out []*structs.Evaluation
	for _, job := range s.store.Snapshot().SystemJobs(n.row()) {
		for _, p := range s.jobs {
			if p.id == structs.Val(job.ID) {
				e := s.eval(p, structs.EvalTriggerNodeUpdate)
				e.NodeID, e.NodeModifyIndex, e.JobModifyIndex = n.id, n.row().ModifyIndex, job.JobModifyIndex
				out = append(out, e)
			}
		}
	}
	return out
}

func (s *sim) endDrain(n *node) {
	s.tracef("== drain -disable %s", n.id)
	s.apply(fsm.KindNodeDrain, &fsm.NodeDrain{NodeID: n.id, MarkEligible: true, Evals: s.systemEvals(n),
		Event: s.nodeEvent("no drain"), Now: time.Now().UnixNano()})
}

func (s *sim) eligible(n *node) {
	s.apply(fsm.KindNodeEligibility, &fsm.NodeEligibility{NodeID: n.id, Eligibility: structs.NodeEligible, Evals: s.systemEvals(n),
		Event: s.nodeEvent("eligible"), Now: time.Now().UnixNano()})
}

func (s *sim) maintain(n *node) { s.maintainFor(n, s.between(10*time.Second, 2*time.Minute)) }

func (s *sim) maintainFor(n *node, d time.Duration) {
	now := time.Now()
	until := now.Add(d)
	s.tracef("== maintenance of %s for %s", n.id, until.Sub(now))
	m := &structs.NodeMaintenance{Since: now.UTC(), Until: until.UTC(), Reason: "kernel"}
	if old := n.row().Maintenance; old != nil {
		m.Since = old.Since
	}
	s.apply(fsm.KindNodeMaintenance, &fsm.NodeMaintenance{NodeID: n.id, Maintenance: m, Now: now.UnixNano(),
		Event: s.nodeEvent("maintenance")})
	s.leader.beats.Duty.Reconsider(n.id)
	s.leader.beatsWake = true
}

func (s *sim) endMaintenance(n *node) {
	s.tracef("== maintenance -disable %s", n.id)
	now := time.Now()
	cmd := &fsm.NodeMaintenance{NodeID: n.id, Now: now.UnixNano(), Event: s.nodeEvent("maintenance ended")}
	if row := n.row(); row.Down() {
		ended := *row.Maintenance
		ended.Until = now.UTC()
		cmd.Maintenance = &ended
	} else {
		cmd.Evals = s.systemEvals(n)
	}
	s.apply(fsm.KindNodeMaintenance, cmd)
	s.leader.beats.Duty.Reconsider(n.id)
	s.leader.beatsWake = true
}

func (s *sim) expireMaintenance() {
	n := pick(s, s.nodesThat(maintained))
	s.tracef("== maintenance of %s expires", n.id)
	s.run(max(0, time.Until(n.row().Maintenance.Until)) + time.Second)
}

func (s *sim) cutOff(n *node) {
	s.tracef("== %s is lost", n.id)
	n.cut = true
	if a := n.agent; a != nil {
		s.after(sessionUp, func() {
			if n.cut && n.agent == a {
				n.reconnect()
			}
		})
	}
}

func (s *sim) heal(n *node) {
	s.tracef("== %s is back", n.id)
	n.cut = false
	delete(s.parked, n.id)
	if a := n.agent; a != nil {
		s.after(s.between(0, 2*time.Second), func() {
			if n.agent == a {
				n.reconnect()
			}
		})
	}
}

// killAgent kills an agent now, or while it waits for its disk.
func (s *sim) killAgent(n *node) {
	s.tracef("== agent of %s is killed", n.id)
	if a := n.agent; s.chance(0.5) {
		a.dying = true
		s.after(15*time.Second, func() {
			if n.agent == a {
				n.kill()
			}
		})
		return
	}
	n.kill()
}

func (s *sim) startAgent(n *node) {
	s.tracef("== agent of %s begins", n.id)
	n.start()
}

func (s *sim) crash(n *node) {
	s.tracef("== machine %s crashes", n.id)
	n.crash()
	if s.chance(0.5) {
		s.after(s.between(5*time.Second, 90*time.Second), func() {
			if n.agent == nil {
				n.start()
			}
		})
	}
}

func (s *sim) scale() {
	p := pick(s, s.plansThat(scalable))
	count := 1 + s.rng.IntN(3)
	job := s.store.Job(nil, structs.DefaultNamespace, p.id)
	d := s.store.LatestDeployment(nil, structs.DefaultNamespace, p.id)
	if d != nil && d.Active() {
		// Scaling is refused; another specification is not.
		s.tracef("== scale %s to %d, by its specification", p.id, count)
		p.count = count
		s.register(p)
		return
	}
	terms := pick(s, []stopTerms{ordinary, noDelay, immediate})
	s.tracef("== scale %s to %d %+v", p.id, count, terms.noDelay)
	p.count = count
	eval := s.eval(p, structs.EvalTriggerScaling)
	eval.NoShutdownDelay, eval.KillTimeout = terms.noDelay, terms.kill
	s.apply(fsm.KindJobScale, &fsm.JobScale{Namespace: structs.DefaultNamespace, JobID: p.id, Group: "g", Count: ptr(int64(count)),
		JobModifyIndex: job.JobModifyIndex, Eval: eval, Now: time.Now().UnixNano()})
}
