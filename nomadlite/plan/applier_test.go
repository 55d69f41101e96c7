package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slowRaft holds each entry back until it is released; entries are released in their order, as a log commits them.
type slowRaft struct {
	mu       sync.Mutex
	cluster  *cluster
	entries  [][]*structs.Plan
	evals    []*structs.Evaluation
	proposed chan struct{}
	release  chan error
	last     chan struct{} // closed when the newest entry is through
	// fit, when not nil, leaves out of a plan what no longer holds when its entry is applied.
	fit func(*structs.Plan) *structs.PlanVerdict
}

func (r *slowRaft) Propose(_ fsm.Kind, req any) func(ctx context.Context) (any, uint64, error) {
	apply := req.(*fsm.PlanApply)
	r.mu.Lock()
	r.entries = append(r.entries, apply.Plans)
	r.evals = append(r.evals, apply.Evals...)
	before, through := r.last, make(chan struct{})
	r.last = through
	r.mu.Unlock()
	r.proposed <- struct{}{}
	return func(ctx context.Context) (any, uint64, error) {
		defer close(through)
		if before != nil {
			<-before
		}
		select {
		case err := <-r.release:
			if err != nil {
				return nil, 0, err
			}
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		allocs := map[string]*structs.Allocation{}
		for id, a := range r.cluster.allocs {
			allocs[id] = a
		}
		result := fsm.PlanApplyResult{Errors: make([]error, len(apply.Plans))}
		for _, p := range apply.Plans {
			if r.fit != nil {
				v := r.fit(p)
				if result.Fitted = append(result.Fitted, v); v != nil {
					p = v.Plan
				}
			}
			for _, list := range p.Places {
				for _, a := range list {
					allocs[a.ID] = a
				}
			}
		}
		next := *r.cluster
		next.allocs, next.index = allocs, r.cluster.index+1
		r.cluster = &next
		return result, next.index, nil
	}
}

func (r *slowRaft) snapshot() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cluster
}

func startApplier(t *testing.T) (*slowRaft, *Queue, context.CancelFunc) {
	raft := &slowRaft{cluster: newCluster("n1", "n2"), proposed: make(chan struct{}, 100), release: make(chan error)}
	queue := NewQueue()
	ids := 0
	a := NewApplier(Config{Logger: hclog.NewNullLogger(), Queue: queue, Raft: raft, Snapshot: raft.snapshot,
		Token: func(evalID string) string { return "token-" + evalID }, Now: time.Now,
		Alloc: func(id string) *structs.Allocation { return raft.cluster.allocs[id] },
		NewID: func() string { ids++; return fmt.Sprint("id", ids) }})
	ctx, cancel := context.WithCancel(context.Background())
	done, ready := make(chan error, 1), make(chan struct{})
	go func() { done <- a.Run(ctx, func() { close(ready) }) }()
	<-ready
	t.Cleanup(func() { cancel(); <-done })
	return raft, queue, cancel
}

type answer struct {
	result *structs.PlanResult
	err    error
}

func submit(q *Queue, evalID string, plan *structs.Plan) chan answer {
	plan.EvalID, plan.EvalToken = evalID, "token-"+evalID
	ch := make(chan answer, 1)
	go func() {
		r, err := q.Submit(context.Background(), plan)
		ch <- answer{r, err}
	}()
	return ch
}

func TestApplierVerifiesOnTopOfWhatIsInFlight(t *testing.T) {
	raft, q, _ := startApplier(t)
	first := submit(q, "e1", planOf(alloc("a", "n1", 6)))
	<-raft.proposed // in flight, not in the state
	second := submit(q, "e2", planOf(alloc("b", "n1", 6), alloc("c", "n2", 6)))
	<-raft.proposed
	raft.release <- nil
	if a := <-first; a.err != nil || a.result.RefreshIndex != 0 || a.result.AllocIndex != 101 {
		t.Fatalf("%+v %v", a.result, a.err)
	}
	raft.release <- nil
	a := <-second
	if a.err != nil || len(a.result.RejectedNodes) != 1 || a.result.RejectedNodes[0] != "n1" || len(a.result.Places["n2"]) != 1 {
		t.Fatalf("%+v %v", a.result, a.err)
	}
	if a.result.RefreshIndex < 101 {
		t.Errorf("refresh at %d shows nothing of the plan that was in the way", a.result.RefreshIndex)
	}
}

func TestApplierAnswersARejectedPlanOnlyWhenItsReasonCanBeSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raft, q, _ := startApplier(t)
		first := submit(q, "e1", planOf(alloc("a", "n1", 6)))
		<-raft.proposed
		second := submit(q, "e2", planOf(alloc("b", "n1", 6))) // nothing of it fits: no entry
		synctest.Wait()
		select {
		case a := <-second:
			t.Fatalf("answered too early: %+v", a.result)
		default:
		}
		raft.release <- nil
		<-first
		if a := <-second; a.err != nil || a.result.RefreshIndex != 101 || a.result.AllocIndex != 0 {
			t.Fatalf("%+v %v", a.result, a.err)
		}
	})
}

func TestApplierFoldsWaitingPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raft, q, _ := startApplier(t)
		var answers []chan answer
		answers = append(answers, submit(q, "e0", planOf(alloc("a0", "n1", 1))))
		<-raft.proposed
		answers = append(answers, submit(q, "e1", planOf(alloc("a1", "n1", 1))))
		<-raft.proposed // the pipeline is full: what comes now waits
		for i := 2; i < 8; i++ {
			answers = append(answers, submit(q, fmt.Sprint("e", i), planOf(alloc(fmt.Sprint("a", i), "n1", 1))))
		}
		synctest.Wait() // all of them are submitted
		for range 3 {
			raft.release <- nil
		}
		for _, ch := range answers {
			if a := <-ch; a.err != nil || a.result.AllocIndex == 0 {
				t.Errorf("%+v %v", a.result, a.err)
			}
		}
		if n := len(raft.entries); n != 3 || len(raft.entries[2]) != 6 {
			t.Errorf("%d entries for 8 plans", n)
		}
	})
}

func TestApplierRefuses(t *testing.T) {
	raft, q, cancel := startApplier(t)
	stale := planOf(alloc("a", "n1", 1))
	stale.EvalID, stale.EvalToken = "e1", "another"
	if _, err := q.Submit(context.Background(), stale); !errors.Is(err, structs.ErrStaleToken) {
		t.Errorf("a stale token: %v", err)
	}
	failed := submit(q, "e2", planOf(alloc("b", "n1", 1)))
	<-raft.proposed
	raft.release <- errors.New("disk full")
	if a := <-failed; a.err == nil {
		t.Error("a failed entry was acknowledged")
	}
	hanging := submit(q, "e3", planOf(alloc("c", "n1", 1)))
	<-raft.proposed
	cancel() // leadership is lost
	if a := <-hanging; a.err == nil {
		t.Error("an entry that was not committed was acknowledged")
	}
}

func TestQueueIsClosedOnFollowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue()
		if _, err := q.Submit(context.Background(), planOf()); !errors.Is(err, structs.ErrNoLeader) {
			t.Error(err)
		}
		q.setOpen(true)
		waiting := submit(q, "e", planOf())
		synctest.Wait() // it is submitted
		q.setOpen(false)
		if a := <-waiting; !errors.Is(a.err, structs.ErrNoLeader) {
			t.Error(a.err)
		}
	})
}

func TestPreemptionMakesEvaluations(t *testing.T) {
	raft, q, _ := startApplier(t)
	victim := alloc("v", "n1", 6)
	victim.Job = &structs.Job{Type: structs.Ptr("batch"), Priority: structs.Ptr(10)}
	victim.JobID = "low"
	raft.cluster.allocs["v"] = victim
	a := alloc("a", "n1", 8)
	a.PreemptedAllocations = []string{"v"}
	p := planOf(a)
	p.Preemptions = map[string][]*structs.AllocStop{"n1": {{ID: "v", DesiredStatus: structs.AllocDesiredStatusEvict}}}
	done := submit(q, "e1", p)
	<-raft.proposed
	raft.release <- nil
	<-done
	if len(raft.evals) != 1 || raft.evals[0].JobID != "low" || raft.evals[0].TriggeredBy != structs.EvalTriggerPreemption {
		t.Errorf("evaluations %+v", raft.evals)
	}
}

// TestAPlanThatIsOvertaken: its worker is told what was left out when the entry was applied, and to look again.
func TestAPlanThatIsOvertaken(t *testing.T) {
	raft, queue, _ := startApplier(t)
	raft.fit = func(p *structs.Plan) *structs.PlanVerdict {
		if p.Places["n2"] == nil {
			return nil
		}
		rejected := map[string]string{"n2": "the node takes no new allocations"}
		return &structs.PlanVerdict{Plan: p.Keep(rejected), Rejected: rejected}
	}
	first := submit(queue, "e1", planOf(alloc("a", "n1", 1), alloc("b", "n2", 1)))
	<-raft.proposed
	second := submit(queue, "e2", planOf(alloc("c", "n1", 1), alloc("d", "n1", 1)))
	raft.release <- nil
	got := <-first
	if got.err != nil || len(got.result.Places) != 1 || len(got.result.Places["n1"]) != 1 ||
		!slices.Equal(got.result.RejectedNodes, []string{"n2"}) || got.result.RefreshIndex == 0 || got.result.AllocIndex == 0 {
		t.Errorf("%+v, %v", got.result, got.err)
	}
	<-raft.proposed
	raft.release <- nil
	if got := <-second; got.err != nil || len(got.result.Places["n1"]) != 2 || got.result.RefreshIndex != 0 {
		t.Errorf("%+v, %v", got.result, got.err)
	}
}
