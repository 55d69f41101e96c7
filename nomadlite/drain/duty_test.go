package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a duty over a real store with two nodes, in virtual time.
type rig struct {
	*testing.T
	log     *clustertest.Log
	fail    atomic.Pointer[error] // of the next write
	mu      sync.Mutex
	entries []fsm.Kind // that the duty wrote
	ids     int
	done    chan error
	end     context.CancelFunc
}

func withRig(t *testing.T, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, log: clustertest.New()}
		for _, id := range []string{"n1", "n2"} {
			n := &structs.Node{ID: id, Name: id, SecretID: id, Status: structs.NodeStatusReady}
			n.Canonicalize()
			r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: n, Now: 1})
		}
		r.lead()
		test(r)
		r.end()
		<-r.done
	})
}

// Apply is the duty's log: it refuses once when fail is set.
func (r *rig) Apply(ctx context.Context, kind fsm.Kind, req any) (any, uint64, error) {
	if err := r.fail.Swap(nil); err != nil {
		return nil, 0, *err
	}
	r.mu.Lock()
	r.entries = append(r.entries, kind)
	r.mu.Unlock()
	return r.log.Apply(ctx, kind, req)
}

// wrote gives what the duty has written.
func (r *rig) wrote() []fsm.Kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.entries)
}

func (r *rig) apply(kind fsm.Kind, req any) {
	r.Helper()
	if _, _, err := r.log.Apply(context.Background(), kind, req); err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
}

// lead begins a term; a duty that runs already is stopped before.
func (r *rig) lead() {
	if r.end != nil {
		r.end()
		<-r.done
	}
	ctx, cancel := context.WithCancel(context.Background())
	duty := New(Config{Logger: hclog.NewNullLogger(), Store: r.log.Store, Raft: r,
		NewID: func() string { r.ids++; return fmt.Sprint("own", r.ids) }})
	done := make(chan error, 2)
	go func() { done <- duty.Run(ctx, func() {}); close(done) }()
	r.done, r.end = done, cancel
	synctest.Wait()
}

func (r *rig) pass(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

// run registers a job and places allocations of it on a node, which then run.
func (r *rig) run(id, kind, node string, allocs ...string) {
	r.Helper()
	j := &structs.Job{ID: &id, Namespace: structs.Ptr("default"), Type: &kind, Priority: structs.Ptr(70),
		TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"), Count: structs.Ptr(len(allocs))}}}
	r.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: j, Now: 1})
	stored := r.log.Store.Job(nil, "default", id)
	plan := &structs.Plan{Namespace: "default", JobID: id, JobModifyIndex: stored.JobModifyIndex, Places: map[string][]*structs.Allocation{}}
	for i, alloc := range allocs {
		plan.Places[node] = append(plan.Places[node], &structs.Allocation{ID: alloc, NodeID: node, TaskGroup: "g",
			Name: structs.AllocName(id, "g", i), DesiredStatus: structs.AllocDesiredStatusRun})
	}
	r.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: 1, Plans: []*structs.Plan{plan}})
	for _, alloc := range allocs {
		r.observe(alloc, structs.AllocClientStatusRunning)
	}
}

func (r *rig) observe(alloc, status string) {
	r.Helper()
	o := &structs.AllocObservation{AllocID: alloc, ObservedStatus: status}
	if status == structs.AllocClientStatusRunning {
		o.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: structs.Ptr(true)}
	}
	r.apply(fsm.KindAllocObserve, &fsm.AllocObserve{Now: time.Now().UnixNano(), Observations: []*structs.AllocObservation{o}})
}

func (r *rig) drain(node string, spec structs.DrainSpec) {
	r.Helper()
	s := &structs.DrainStrategy{DrainSpec: spec}
	if spec.Deadline > 0 {
		s.ForceDeadline = time.Now().Add(spec.Deadline)
	}
	r.apply(fsm.KindNodeDrain, &fsm.NodeDrain{NodeID: node, Strategy: s, Now: time.Now().UnixNano()})
}

// expectMarked checks which allocations were asked to leave.
func (r *rig) expectMarked(want ...string) {
	r.Helper()
	var got []string
	for a := range r.log.Store.Allocs(nil, structs.AllNamespaces) {
		if a.DesiredTransition.ShouldMigrate() {
			got = append(got, a.ID)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.Errorf("marked are %v, want %v", got, want)
	}
}

func (r *rig) expectStatus(node, status string) {
	r.Helper()
	n := r.log.Store.Node(nil, node)
	if n.LastDrain == nil || n.LastDrain.Status != status || (n.DrainStrategy != nil) != (status == "draining") {
		r.Errorf("drain is %+v, strategy %+v, want %s", n.LastDrain, n.DrainStrategy, status)
	}
}

func TestMarksAndEvaluationsAreOneEntry(t *testing.T) {
	withRig(t, func(r *rig) {
		r.run("web", structs.JobTypeService, "n1", "a", "b")
		r.run("work", structs.JobTypeBatch, "n1", "c")
		r.drain("n1", structs.DrainSpec{Deadline: time.Hour})
		r.expectMarked("a")
		a := r.log.Store.Alloc(nil, "a")
		evals := r.log.Store.EvalsByJob(nil, "default", "web")
		if len(r.wrote()) != 1 || len(evals) != 1 {
			t.Fatalf("entries %v, evaluations %v", r.wrote(), evals)
		}
		if e := evals[0]; e.CreateIndex != a.ModifyIndex || e.TriggeredBy != structs.EvalTriggerNodeDrain || e.NodeID != "n1" ||
			e.Priority != 70 || e.Status != structs.EvalStatusPending || e.Type != structs.JobTypeService {
			t.Errorf("evaluation %+v of an entry that is not %d", e, a.ModifyIndex)
		}
		r.pass(time.Hour - time.Second)
		r.expectMarked("a")
		r.pass(time.Second)
		r.expectMarked("a", "b", "c")
		if got := r.wrote(); len(got) != 2 {
			t.Errorf("the deadline took entries %v", got)
		}
		for _, id := range []string{"a", "b", "c"} {
			r.observe(id, structs.AllocClientStatusComplete)
		}
		r.expectStatus("n1", "complete")
		n := r.log.Store.Node(nil, "n1")
		if last := n.Events[len(n.Events)-1]; last.Message != "Node drain complete" || last.Subsystem != "Drain" {
			t.Errorf("event %+v", last)
		}
		if n.SchedulingEligibility != structs.NodeIneligible {
			t.Errorf("a drained node is %s", n.SchedulingEligibility)
		}
	})
}

// TestADrainTellsOfOrphans: what is lost holds up no drain, and nobody knows whether it has ended.
func TestADrainTellsOfOrphans(t *testing.T) {
	withRig(t, func(r *rig) {
		r.run("web", structs.JobTypeService, "n1", "a", "b")
		lost := structs.Condition{Status: structs.ConditionLost, Reason: "node down"}
		r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1, Updates: []fsm.NodeStatusUpdate{{NodeID: "n1", Status: structs.NodeStatusDown,
			Conditions: map[string]structs.Condition{"a": lost, "b": lost}}}})
		r.observe("b", structs.AllocClientStatusComplete)
		r.drain("n1", structs.DrainSpec{Deadline: time.Hour})
		r.expectStatus("n1", "complete")
		n := r.log.Store.Node(nil, "n1")
		if last := n.Events[len(n.Events)-1]; last.Message != "Node drain complete; 1 allocation is an orphan: it may still run there" ||
			last.Details["orphans"] != "1" {
			t.Errorf("event %+v", last)
		}
	})
}

func TestAnEmptyNodeIsDrainedAtOnce(t *testing.T) {
	withRig(t, func(r *rig) {
		r.drain("n2", structs.DrainSpec{})
		r.expectStatus("n2", "complete")
	})
}

func TestANewLeaderGoesOnFromTheState(t *testing.T) {
	withRig(t, func(r *rig) {
		r.run("web", structs.JobTypeService, "n1", "a", "b")
		r.run("work", structs.JobTypeBatch, "n1", "c")
		r.drain("n1", structs.DrainSpec{Deadline: time.Hour})
		r.end()
		<-r.done
		r.pass(2 * time.Hour) // nobody leads
		r.expectMarked("a")
		r.lead()
		r.expectMarked("a", "b", "c")
		entries := len(r.wrote())
		r.lead() // what is marked is not marked again
		if got := r.wrote(); len(got) != entries {
			t.Errorf("a third leader wrote %v", got[entries:])
		}
	})
}

func TestAFailedWriteIsTriedAgainAndAnEndOfLeadershipEndsTheDuty(t *testing.T) {
	withRig(t, func(r *rig) {
		r.run("web", structs.JobTypeService, "n1", "a")
		broken := errors.New("disk full")
		r.fail.Store(&broken)
		r.drain("n1", structs.DrainSpec{})
		r.expectMarked()
		r.pass(retryAfter)
		r.expectMarked("a")
		lost := error(structs.ErrNoLeader)
		r.fail.Store(&lost)
		r.observe("a", structs.AllocClientStatusComplete)
		if err := <-r.done; !errors.Is(err, structs.ErrNoLeader) {
			t.Errorf("the duty ended with %v", err)
		}
		r.expectStatus("n1", "draining")
		r.lead()
		r.expectStatus("n1", "complete")
	})
}

// A drain that is changed while its end is being written goes on.
func TestACompleteDrainIsOneOfTheNodeAsItWas(t *testing.T) {
	withRig(t, func(r *rig) {
		r.run("agent", structs.JobTypeSystem, "n1", "y")
		r.end()
		<-r.done
		r.drain("n1", structs.DrainSpec{IgnoreSystemJobs: true})
		found := r.log.Store.Node(nil, "n1").ModifyIndex
		r.drain("n1", structs.DrainSpec{Deadline: time.Hour})
		r.apply(fsm.KindNodeDrain, &fsm.NodeDrain{NodeID: "n1", Complete: true, NodeModifyIndex: found, Now: 1})
		r.expectStatus("n1", "draining")
		r.lead()
		r.expectMarked("y")
	})
}

func TestCancellingTakesTheOptionsFromWhatStays(t *testing.T) {
	withRig(t, func(r *rig) {
		r.run("web", structs.JobTypeService, "n1", "a", "b")
		r.drain("n1", structs.DrainSpec{NoShutdownDelay: true, KillTimeout: structs.Ptr(time.Second)})
		r.expectMarked("a")
		if a := r.log.Store.Alloc(nil, "a"); a.DesiredTransition.NoShutdownDelay != nil {
			t.Error("an allocation that still is to run has an option of its stop")
		}
		// The plan stamps them, here one that came later than the options.
		r.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: 1, Plans: []*structs.Plan{{Namespace: "default", JobID: "web",
			Stops: map[string][]*structs.AllocStop{"n1": {{ID: "a", DesiredStatus: structs.AllocDesiredStatusStop}}}}}})
		a := r.log.Store.Alloc(nil, "a")
		if !structs.Val(a.DesiredTransition.NoShutdownDelay) || structs.Val(a.DesiredTransition.KillTimeout) != time.Second {
			t.Errorf("a stop that was planned before has %+v", a.DesiredTransition)
		}
		r.apply(fsm.KindNodeDrain, &fsm.NodeDrain{NodeID: "n1", MarkEligible: true, Now: 1})
		r.expectStatus("n1", "canceled")
		r.observe("a", structs.AllocClientStatusComplete)
		r.expectMarked("a")
	})
}
