package clustersim

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/gc"
	"github.com/nomadlite/nomadlite/structs"
)

// later is a chance of something that the seeds of the first form do not have.
func (s *sim) later(p float64) bool { return s.faulty && !s.first && s.chance(p) }

func canBeAway(n *node) bool { return maintainable(n) && n.agent != nil && !n.cut }

// reportAhead has a node go away and come back within its maintenance. What it reports is written before its return is, and
// in between its jobs are looked at.
func (s *sim) reportAhead(n *node) {
	s.tracef("== %s goes away, and its report comes before its return", n.id)
	s.maintainFor(n, 5*time.Minute)
	s.cutOff(n)
	for range 20 {
		if row := n.row(); row == nil || row.Down() || !n.cut {
			break
		}
		s.run(5 * time.Second)
	}
	s.awaitLeader()
	if n.row() == nil || !n.row().Down() || n.agent == nil || !n.cut {
		return // something else has happened to it
	}
	s.leader.beatsHeld = time.Now().Add(s.between(time.Second, 5*time.Second))
	n.cut = false
	delete(s.parked, n.id)
	n.reconnect()
	s.after(s.between(200*time.Millisecond, time.Second), func() {
		if s.leader != nil && n.row() != nil {
			s.apply(fsm.KindEvalUpdate, &fsm.EvalUpdate{Evals: s.nodeEvals(n), Now: time.Now().UnixNano()})
		}
	})
	s.run(6 * time.Second)
}

// nodeEvals are what comes with a node that is gone.
func (s *sim) nodeEvals(n *node) []*structs.Evaluation {
	live := map[string]bool{}
	for _, a := range s.store.AllocsByNode(nil, n.id) {
		live[a.JobID] = live[a.JobID] || !a.ClientTerminal()
	}
	var out []*structs.Evaluation
	for _, p := range s.jobs {
		if live[p.id] {
			e := s.eval(p, structs.EvalTriggerNodeUpdate)
			e.NodeID, e.NodeModifyIndex = n.id, n.row().ModifyIndex
			out = append(out, e)
		}
	}
	return out
}

func (s *sim) deregisterNode(n *node, why string) {
	s.apply(fsm.KindNodeDeregister, &fsm.NodeDeregister{NodeIDs: []string{n.id}, Reason: why, Evals: s.nodeEvals(n),
		Now: time.Now().UnixNano()})
	s.leader.beats.Duty.Forget(n.id)
	s.leader.beatsWake = true
}

// purgeNode takes a node out of the state, whether it lives or not. One that does registers anew.
func (s *sim) purgeNode(n *node) {
	for _, a := range s.store.AllocsByNode(nil, n.id) {
		s.watch.purged[a.ID] = true // its operator says that nothing runs there
	}
	s.watch.disturbance++
	s.deregisterNode(n, "purged by an operator")
}

func canLeave(n *node) bool {
	return n.agent != nil && !n.agent.dying && !n.cut && n.agent.registered && n.row() != nil
}

// leave lets an agent leave for good: what it runs is drained while it is heard, then it deregisters. It may come back as
// another one.
func (s *sim) leave(n *node) {
	s.tracef("== %s leaves", n.id)
	a, deadline := n.agent, s.between(time.Second, 30*time.Second)
	s.apply(fsm.KindNodeDrain, &fsm.NodeDrain{NodeID: n.id, Now: time.Now().UnixNano(), Event: s.nodeEvent("leaves"),
		Strategy: &structs.DrainStrategy{DrainSpec: structs.DrainSpec{Deadline: deadline},
			ForceDeadline: time.Now().Add(deadline).UTC()}})
	for range 90 {
		s.run(time.Second)
		if len(n.sup.sorted()) == 0 || n.agent != a || n.cut {
			break
		}
	}
	s.awaitLeader()
	if n.agent != a || n.cut || a.dying || !registered(n) || len(n.sup.sorted()) > 0 {
		s.tracef("%s could not leave", n.id)
		return
	}
	n.kill()
	n.disk, n.sup.procs = newDisk(), map[string]*process{}
	delete(s.parked, n.id)
	s.deregisterNode(n, "left")
	s.tracef("%s has left", n.id)
}

// collect collects all garbage, thresholds ignored. What is to run must not be taken for garbage.
func (s *sim) collect() {
	wanted := map[*jobPlan]bool{}
	for _, p := range s.jobs {
		// Of a batch job that was drained for good, and lost before it was heard, nobody knows whether it was done.
		wanted[p] = p.running && p.kind != structs.JobTypeBatch && s.watch.least(p, p.count) > 0
	}
	collector := gc.New(gc.Config{Logger: hclog.NewNullLogger(), Raft: s.log, Snapshot: func() gc.State { return s.store.Snapshot() }})
	if err := collector.Force(s.leader.ctx); err != nil {
		s.breaks("duty", "garbage is not collected: %v", err)
	}
	s.notice()
	for _, p := range s.jobs {
		if !p.there || s.store.Job(nil, structs.DefaultNamespace, p.id) != nil {
			continue
		}
		if wanted[p] {
			s.breaks(invAsked, "%s is to run, and was collected as garbage", p.id)
		}
		p.there, p.running = false, false
	}
}
