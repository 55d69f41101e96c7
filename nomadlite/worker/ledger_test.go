package worker

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

// slow is a leader that holds the first plan of the evaluation "first" for as long as a test wants.
type slow struct {
	log     *clustertest.Log
	held    chan struct{} // closed when it has that plan
	release chan error    // what becomes of it; nil: it is written
	plans   map[string]*structs.Plan
}

func (s *slow) SubmitPlan(ctx context.Context, plan *structs.Plan) (*structs.PlanResult, error) {
	s.plans[plan.EvalID] = plan
	if plan.EvalID == "first" {
		close(s.held)
		if err := <-s.release; err != nil {
			return nil, err
		}
	}
	_, index, err := s.log.Apply(ctx, fsm.KindPlanApply, &fsm.PlanApply{Plans: []*structs.Plan{plan}, Now: 1})
	return &structs.PlanResult{AllocIndex: index, Places: plan.Places}, err
}

func (s *slow) UpdateEvals(ctx context.Context, _, _ string, evals []*structs.Evaluation) (uint64, error) {
	_, index, err := s.log.Apply(ctx, fsm.KindEvalUpdate, &fsm.EvalUpdate{Evals: evals, Now: 1})
	return index, err
}

func (s *slow) Dequeue(context.Context, []string) (Delivery, error) { return Delivery{}, nil }
func (s *slow) Ack(context.Context, string, string) error           { return nil }
func (s *slow) Nack(context.Context, string, string) error          { return nil }
func (s *slow) Renew(context.Context, string, string) error         { return nil }

// while decides the evaluation "second" while the plan of "first" is under way, on so many nodes with room for one
// allocation each, and then lets the outcome of that plan be known.
func while(t *testing.T, nodes int, outcome error, test func(s *slow, p *Pool)) {
	synctest.Test(t, func(t *testing.T) {
		log := clustertest.New()
		s := &slow{log: log, held: make(chan struct{}), release: make(chan error), plans: map[string]*structs.Plan{}}
		p := New(Config{Logger: hclog.NewNullLogger(), Store: log.Store, Broker: s, Leader: s, NewID: uuid.New, Factory: scheduler.New})
		apply := func(kind fsm.Kind, req any) {
			if _, _, err := log.Apply(t.Context(), kind, req); err != nil {
				t.Fatal(err)
			}
		}
		for i := range nodes {
			id := fmt.Sprint("node-", i)
			apply(fsm.KindNodeRegister, &fsm.NodeRegister{Now: 1, Node: &structs.Node{ID: id, Name: id, SecretID: id, Datacenter: "dc1",
				Status: structs.NodeStatusReady, SchedulingEligibility: structs.NodeEligible, Attributes: map[string]string{"driver.mock_driver": "1"},
				NodeResources: &structs.NodeResources{Cpu: structs.NodeCpuResources{CpuShares: 1000},
					Memory: structs.NodeMemoryResources{MemoryMB: 1000}, Disk: structs.NodeDiskResources{DiskMB: 1000}}}})
		}
		size := 600
		for _, id := range []string{"first", "second"} {
			job := &structs.Job{ID: &id, Type: structs.Ptr("service"), TaskGroups: []*structs.TaskGroup{{
				Name: structs.Ptr("g"), Count: structs.Ptr(1), Update: &structs.UpdateStrategy{MaxParallel: structs.Ptr(0)},
				Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: &size, MemoryMB: &size}}}}}}
			job.Canonicalize()
			apply(fsm.KindJobRegister, &fsm.JobRegister{Job: job, Now: 1, Eval: &structs.Evaluation{ID: id,
				Namespace: "default", JobID: id, Type: "service", Priority: 50, Status: structs.EvalStatusPending}})
		}
		deliver := func(id string) {
			p.Deliver(t.Context(), Delivery{Eval: log.Store.Eval(nil, id), Token: id, Index: log.Store.Index()})
		}
		go deliver("first")
		<-s.held
		go deliver("second")
		synctest.Wait()
		if nodes == 1 && s.plans["second"] != nil {
			t.Error("a plan was made for room that another one may have")
		}
		if e := log.Store.Eval(nil, "second"); nodes == 1 && e.TerminalStatus() {
			t.Errorf("it was %s before it was known whether there is room", e.Status)
		}
		s.release <- outcome
		synctest.Wait()
		test(s, p)
	})
}

func nodeOf(p *structs.Plan) (nodeID string) {
	for nodeID = range p.Places {
	}
	return nodeID
}

func TestPlansUnderWayAreCountedIn(t *testing.T) {
	while(t, 2, nil, func(s *slow, p *Pool) {
		first, second := nodeOf(s.plans["first"]), nodeOf(s.plans["second"])
		if first == "" || second == "" || first == second {
			t.Errorf("planned for nodes %q and %q, want two", first, second)
		}
		if lines, _ := p.ledger.open(s.log.Store.Index()); len(lines) > 0 {
			t.Errorf("%d plans count as under way at the end", len(lines))
		}
	})
}

func TestNothingIsBlockedByAPlanThatFailed(t *testing.T) {
	while(t, 1, structs.ErrNoLeader, func(s *slow, _ *Pool) {
		if e := s.log.Store.Eval(nil, "second"); e.Status != structs.EvalStatusComplete || e.BlockedEval != "" {
			t.Errorf("evaluation is %s, blocked evaluation %q", e.Status, e.BlockedEval)
		}
		if len(s.log.Store.AllocsByJob(nil, "default", "second")) != 1 {
			t.Error("nothing was placed where there is room")
		}
	})
}

func TestWhatAPlanTookIsBlockedOnceItIsWritten(t *testing.T) {
	while(t, 1, nil, func(s *slow, _ *Pool) {
		if e := s.log.Store.Eval(nil, "second"); e.Status != structs.EvalStatusComplete || e.BlockedEval == "" {
			t.Errorf("evaluation is %s, blocked evaluation %q", e.Status, e.BlockedEval)
		}
	})
}

// What schedulers find out about a state by asking its type must not be lost.
func TestAStateWithPlansOnTopKnowsAllThatTheWrittenOneDoes(t *testing.T) {
	optional := []reflect.Type{
		reflect.TypeFor[scheduler.UsageState](), reflect.TypeFor[scheduler.FleetState](), reflect.TypeFor[scheduler.EvalState](),
		reflect.TypeFor[scheduler.PoolState](),
	}
	plain := reflect.TypeOf(clustertest.New().Store.Snapshot().Scheduler())
	for _, want := range optional {
		if !plain.Implements(want) || !reflect.TypeFor[*ahead]().Implements(want) {
			t.Errorf("a state does not offer %s", want)
		}
	}
}

func TestAPatientWindowWidensAfterManyInARow(t *testing.T) {
	w := newWindow(1, 4, 3)
	w.met()
	for range 2 {
		w.fitted()
	}
	if w.size != 2 {
		t.Errorf("it is %d wide after two that fitted", w.size)
	}
	if w.fitted(); w.size != 3 {
		t.Errorf("it is %d wide after three that fitted", w.size)
	}
	w.fitted()
	w.met()
	for range 2 {
		w.fitted()
	}
	if w.size != 1 {
		t.Errorf("it is %d wide after two in a row", w.size)
	}
}
