package nomadlite

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

// obey stands for the nodes: what is to run does so and is well, what is to stop does so. It ends with the test.
func (r rollout) obey() {
	r.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	sub := r.s.store.Subscribe(1024)
	var wg sync.WaitGroup
	r.Cleanup(func() { cancel(); wg.Wait() })
	wg.Go(func() {
		defer sub.Close()
		for {
			if _, err := sub.Next(ctx); err != nil && !errors.Is(err, structs.ErrLagged) {
				return
			}
			if req := r.observations(); len(req.Observations) > 0 {
				if _, _, err := r.s.lead.Apply(ctx, fsm.KindAllocObserve, req); err != nil && ctx.Err() == nil {
					r.Error(err)
				}
			}
		}
	})
}

// observations are what the nodes have to say.
func (r rollout) observations() *fsm.AllocObserve {
	req := &fsm.AllocObserve{Now: time.Now().UnixNano()}
	for a := range r.s.store.Allocs(nil, structs.AllNamespaces) {
		o := &structs.AllocObservation{AllocID: a.ID, ObservedStatus: structs.AllocClientStatusRunning,
			DeploymentStatus: &structs.AllocDeploymentStatus{Healthy: structs.Ptr(true)}}
		switch {
		case a.ObservedTerminal(), !a.ServerTerminal() && a.ObservedStatus == structs.AllocClientStatusRunning:
			continue
		case a.ServerTerminal():
			o.ObservedStatus, o.DeploymentStatus = structs.AllocClientStatusComplete, nil
		}
		req.Observations = append(req.Observations, o)
	}
	return req
}

func (r rollout) node(id string) {
	r.Helper()
	node := schedtest.Node(id)
	node.SecretID = id
	r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: node, Now: 1})
	r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1,
		Updates: []fsm.NodeStatusUpdate{{NodeID: node.ID, Status: structs.NodeStatusReady}}})
}

func (r rollout) runJob(id, kind string, count int, change func(*structs.TaskGroup)) {
	r.Helper()
	j := schedtest.Job(id, kind, count)
	if change != nil {
		change(j.TaskGroups[0])
	}
	j.Canonicalize()
	r.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: j, Now: time.Now().UnixNano(), Eval: &structs.Evaluation{
		ID: "eval-" + id, Namespace: "default", JobID: id, Type: kind, Priority: 50,
		TriggeredBy: structs.EvalTriggerJobRegister, Status: structs.EvalStatusPending}})
}

// running counts the allocations of a job that run on a node, or on all when none is named.
func (r rollout) running(job, node string) int {
	n := 0
	for _, a := range r.s.store.AllocsByJob(nil, "default", job) {
		if !a.TerminalStatus() && a.ClientStatus == structs.AllocClientStatusRunning && (node == "" || a.NodeID == node) {
			n++
		}
	}
	return n
}

func TestDrainOnARunningServer(t *testing.T) {
	s := start(t, Config{Name: "dev", DevMode: true})
	await(t, "start", s.Ready())
	r := rollout{t, s}
	r.node("n1")
	r.obey()
	r.runJob("web", structs.JobTypeService, 4, func(g *structs.TaskGroup) {
		g.Migrate = &structs.MigrateStrategy{MaxParallel: structs.Ptr(2)}
	})
	r.runJob("work", structs.JobTypeBatch, 1, nil)
	until(t, s.store, "start of the jobs", func() bool { return r.running("web", "n1") == 4 && r.running("work", "n1") == 1 })
	r.node("n2")
	r.runJob("agent", structs.JobTypeSystem, 1, nil)
	until(t, s.store, "system job", func() bool { return r.running("agent", "n1") == 1 && r.running("agent", "n2") == 1 })

	r.apply(fsm.KindNodeDrain, &fsm.NodeDrain{NodeID: "n1", Now: time.Now().UnixNano(),
		Strategy: &structs.DrainStrategy{DrainSpec: structs.DrainSpec{NoShutdownDelay: true}}})
	least := 4
	until(t, s.store, "move of the service", func() bool {
		least = min(least, r.running("web", ""))
		return r.running("web", "n2") == 4
	})
	if least < 2 {
		t.Errorf("only %d of 4 ran while 2 at a time were moved", least)
	}
	if r.running("work", "n1") != 1 || r.running("agent", "n1") != 1 {
		t.Error("batch work or a system job left before the deadline")
	}
	for _, a := range s.store.AllocsByJob(nil, "default", "web") {
		if stamped := structs.Val(a.DesiredTransition.NoShutdownDelay); stamped != (a.NodeID == "n1") {
			t.Errorf("allocation on %s, desired %s: no shutdown delay is %v", a.NodeID, a.DesiredStatus, stamped)
		}
	}

	// Its deadline has come: all the rest leaves, batch work for good.
	r.apply(fsm.KindNodeDrain, &fsm.NodeDrain{NodeID: "n1", Now: time.Now().UnixNano(),
		Strategy: &structs.DrainStrategy{DrainSpec: structs.DrainSpec{Deadline: -1}}})
	until(t, s.store, "end of the drain", func() bool { return s.store.Node(nil, "n1").DrainStrategy == nil })
	if n := s.store.Node(nil, "n1"); n.LastDrain.Status != "complete" || n.SchedulingEligibility != structs.NodeIneligible {
		t.Errorf("drain is %+v, the node %s", n.LastDrain, n.SchedulingEligibility)
	}
	until(t, s.store, "evaluations", func() bool {
		for e := range s.store.Evals(nil, "default") {
			if !e.TerminalStatus() && e.Status != structs.EvalStatusBlocked {
				return false
			}
		}
		return true
	})
	if n := len(s.store.AllocsByJob(nil, "default", "work")); n != 1 || r.running("agent", "n2") != 1 || r.running("agent", "n1") != 0 {
		t.Errorf("%d allocations of the batch job, %d system jobs on the drained node", n, r.running("agent", "n1"))
	}
	if n := r.running("web", "n2"); n != 4 {
		t.Errorf("%d of 4 run after the drain", n)
	}
}

// TestADrainOutlivesItsLeader ends the leader when the first allocation has been told to move: the next leader moves each
// of the others once.
func TestADrainOutlivesItsLeader(t *testing.T) {
	c := startTrio(t)
	first := leaderOf(t, c.servers...)
	r := rollout{t, first}
	r.node("n1")
	r.runJob("web", structs.JobTypeService, 4, func(g *structs.TaskGroup) {
		g.Migrate = &structs.MigrateStrategy{MaxParallel: structs.Ptr(1)}
		g.Update = &structs.UpdateStrategy{MaxParallel: structs.Ptr(0)}
	})
	until(t, first.store, "placement", func() bool { return len(first.store.AllocsByJob(nil, "default", "web")) == 4 })
	r.apply(fsm.KindAllocObserve, r.observations())
	r.node("n2")
	r.apply(fsm.KindNodeDrain, &fsm.NodeDrain{NodeID: "n1", Now: time.Now().UnixNano(),
		Strategy: &structs.DrainStrategy{DrainSpec: structs.DrainSpec{NoShutdownDelay: true}}})
	until(t, first.store, "the first move", func() bool { return len(first.store.AllocsByNode(nil, "n2")) == 1 })
	if n := r.running("web", "n1"); n != 3 {
		t.Errorf("%d allocations stay while the first one moves, not 3", n)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := leaderOf(t, c.without(first)...)
	r = rollout{t, second}
	r.obey()
	r.apply(fsm.KindAllocObserve, r.observations())
	until(t, second.store, "end of the drain", func() bool {
		return second.store.Node(nil, "n1").DrainStrategy == nil && r.running("web", "n2") == 4
	})
	for _, a := range second.store.AllocsByJob(nil, "default", "web") {
		if stamped := structs.Val(a.DesiredTransition.NoShutdownDelay); stamped != (a.NodeID == "n1") || a.NodeID == "n1" && a.NextAllocation == "" {
			t.Errorf("allocation on %s, desired %s: no shutdown delay %v, followed by %q", a.NodeID, a.DesiredStatus, stamped, a.NextAllocation)
		}
	}
	if n := len(second.store.AllocsByJob(nil, "default", "web")); n != 8 {
		t.Errorf("%d allocations were made for 4 that moved once", n)
	}
}
