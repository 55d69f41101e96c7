package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/broker"
	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/plan"
	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

// scripted is a scheduler that does what a test says.
type scripted func(ctx context.Context, cfg scheduler.Config, eval *structs.Evaluation) error

type scriptedScheduler struct {
	do  scripted
	cfg scheduler.Config
}

func (s scriptedScheduler) Process(ctx context.Context, eval *structs.Evaluation) error {
	return s.do(ctx, s.cfg, eval)
}

// rig is a leading broker and applier over a real store, and a pool of workers with a scripted scheduler.
type rig struct {
	*testing.T
	ctx   context.Context
	log   *clustertest.Log
	local *Local
	pool  *Pool
	wg    sync.WaitGroup
}

func withRig(t *testing.T, do scripted, via func(r *rig) (Broker, Leader), test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		log := clustertest.New()
		b := broker.New(broker.Config{}, hclog.NewNullLogger(), uuid.New)
		r := &rig{T: t, ctx: ctx, log: log, local: &Local{Evals: b, Plans: plan.NewQueue(), Raft: log, Store: log.Store}}
		applier := plan.NewApplier(plan.Config{Logger: hclog.NewNullLogger(), Queue: r.local.Plans, Raft: log, Token: b.Token,
			Snapshot: func() plan.State { return log.Store.Snapshot().Scheduler() },
			Alloc:    func(id string) *structs.Allocation { return log.Store.Alloc(nil, id) }, NewID: uuid.New, Now: time.Now})
		r.wg.Go(func() { _ = b.Run(ctx, log.Store, log, func() {}) })
		r.wg.Go(func() { _ = applier.Run(ctx, func() {}) })
		evals, leader := Broker(r.local), Leader(r.local)
		if via != nil {
			evals, leader = via(r)
		}
		r.pool = New(Config{Logger: hclog.NewNullLogger(), Store: log.Store, Broker: evals, Leader: leader, Count: 2,
			Types: []string{structs.JobTypeService}, NewID: uuid.New,
			Factory: func(_ string, cfg scheduler.Config) (scheduler.Scheduler, error) {
				return scriptedScheduler{do, cfg}, nil
			}})
		r.wg.Go(func() { _ = r.pool.Run(ctx) })
		synctest.Wait()
		test(r)
		cancel()
		r.wg.Wait()
	})
}

func (r *rig) apply(kind fsm.Kind, req any) {
	r.Helper()
	if _, _, err := r.log.Apply(r.ctx, kind, req); err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
}

func (r *rig) put(id string) {
	r.Helper()
	r.apply(fsm.KindEvalUpdate, &fsm.EvalUpdate{Now: 1, Evals: []*structs.Evaluation{{ID: id, JobID: "web",
		Namespace: "default", Type: structs.JobTypeService, Priority: 50, Status: structs.EvalStatusPending}}})
}

func (r *rig) pass(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

func (r *rig) status(id string) string { return r.log.Store.Eval(nil, id).Status }

func complete(ctx context.Context, cfg scheduler.Config, eval *structs.Evaluation) error {
	done := eval.Copy()
	done.Status = structs.EvalStatusComplete
	return cfg.Planner.UpdateEval(ctx, done)
}

// overSessions lets the workers reach the leader through the routes, as another server's do.
func overSessions(r *rig) (Broker, Leader) {
	mux, err := route.NewServerSession(route.Config{Routes: Routes(r.local)})
	if err != nil {
		r.Fatal(err)
	}
	remote := &Remote{Do: func(req *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, req)
		return w.Result(), req.Context().Err()
	}}
	return remote, remote
}

func TestWorkerCompletes(t *testing.T) {
	for name, via := range map[string]func(r *rig) (Broker, Leader){"leader": nil, "follower": overSessions} {
		t.Run(name, func(t *testing.T) {
			withRig(t, func(ctx context.Context, cfg scheduler.Config, eval *structs.Evaluation) error {
				if cfg.State.Index() < eval.ModifyIndex {
					t.Errorf("the state is of index %d, the evaluation of %d", cfg.State.Index(), eval.ModifyIndex)
				}
				return complete(ctx, cfg, eval)
			}, via, func(r *rig) {
				r.put("a")
				r.put("b")
				if r.status("a") != structs.EvalStatusComplete || r.status("b") != structs.EvalStatusComplete {
					t.Errorf("a is %s, b is %s", r.status("a"), r.status("b"))
				}
				if n := r.local.Evals.Stats()["total_unacked"]; n != 0 {
					t.Errorf("%v in flight", n)
				}
			})
		})
	}
}

func TestWorkerPlaces(t *testing.T) {
	for name, via := range map[string]func(r *rig) (Broker, Leader){"leader": nil, "follower": overSessions} {
		t.Run(name, func(t *testing.T) {
			var refreshed bool
			withRig(t, func(ctx context.Context, cfg scheduler.Config, eval *structs.Evaluation) error {
				job := cfg.State.Job("default", "web")
				p := &structs.Plan{Namespace: "default", JobID: "web", JobModifyIndex: job.JobModifyIndex, Places: map[string][]*structs.Allocation{}}
				for _, node := range []string{"n1", "nowhere"} {
					p.Places[node] = []*structs.Allocation{{ID: node + "-a", Namespace: "default", JobID: "web", NodeID: node, EvalID: eval.ID,
						TaskGroup: "g", Name: "web.g[0]", DesiredStatus: structs.AllocDesiredStatusRun}}
				}
				result, state, err := cfg.Planner.SubmitPlan(ctx, p)
				if err != nil {
					return err
				}
				refreshed = len(result.Places["n1"]) == 1 && len(result.RejectedNodes) == 1 && state != nil &&
					len(state.AllocsByNode("n1")) == 1
				return complete(ctx, cfg, eval)
			}, via, func(r *rig) {
				n := &structs.Node{ID: "n1", Name: "n1", SecretID: "s"}
				n.Canonicalize()
				r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: n, Now: 1})
				r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1, Updates: []fsm.NodeStatusUpdate{{NodeID: "n1", Status: structs.NodeStatusReady}}})
				r.apply(fsm.KindJobRegister, &fsm.JobRegister{Now: 1, Job: &structs.Job{ID: structs.Ptr("web"), Namespace: structs.Ptr("default"),
					Type: structs.Ptr("service"), TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g")}}}})
				r.put("a")
				if !refreshed || r.log.Store.Alloc(nil, "n1-a") == nil || r.log.Store.Alloc(nil, "nowhere-a") != nil {
					t.Error("what fits is placed, and the scheduler looks at a newer state for the rest")
				}
			})
		})
	}
}

// TestWorkerStoresTogether: an evaluation and the one that is blocked for it are one entry; nothing of an evaluation that
// failed is stored.
func TestWorkerStoresTogether(t *testing.T) {
	withRig(t, func(ctx context.Context, cfg scheduler.Config, eval *structs.Evaluation) error {
		blocked := eval.Copy()
		blocked.ID, blocked.Status, blocked.JobID = eval.ID+"-blocked", structs.EvalStatusBlocked, "other"
		if err := cfg.Planner.CreateEval(ctx, blocked); err != nil {
			return err
		}
		if eval.ID == "bad" {
			return errors.New("no")
		}
		return complete(ctx, cfg, eval)
	}, nil, func(r *rig) {
		r.put("good")
		r.put("bad")
		done, blocked := r.log.Store.Eval(nil, "good"), r.log.Store.Eval(nil, "good-blocked")
		if blocked == nil || done.ModifyIndex != blocked.CreateIndex {
			t.Errorf("stored apart: %+v, %+v", done, blocked)
		}
		if r.log.Store.Eval(nil, "bad-blocked") != nil {
			t.Error("an evaluation that failed left another one behind")
		}
	})
}

func TestWorkerContainsAPanic(t *testing.T) {
	var mu sync.Mutex
	runs := 0
	withRig(t, func(ctx context.Context, cfg scheduler.Config, eval *structs.Evaluation) error {
		mu.Lock()
		runs++
		first := runs == 1
		mu.Unlock()
		if first {
			panic("boom")
		}
		return complete(ctx, cfg, eval)
	}, nil, func(r *rig) {
		r.put("a")
		if r.status("a") != structs.EvalStatusPending {
			t.Errorf("a is %s", r.status("a"))
		}
		r.pass(2 * time.Second)
		if r.status("a") != structs.EvalStatusComplete {
			t.Errorf("a is %s after it was tried again", r.status("a"))
		}
	})
}

func TestWorkerGivesUpAfterTheDeliveryLimit(t *testing.T) {
	withRig(t, func(context.Context, scheduler.Config, *structs.Evaluation) error { return errors.New("no") }, overSessions,
		func(r *rig) {
			r.put("a")
			r.pass(30 * time.Second)
			if r.status("a") != structs.EvalStatusFailed {
				t.Errorf("a is %s", r.status("a"))
			}
		})
}

func TestALongEvaluationKeepsItsDelivery(t *testing.T) {
	var mu sync.Mutex
	runs := 0
	withRig(t, func(ctx context.Context, cfg scheduler.Config, eval *structs.Evaluation) error {
		mu.Lock()
		runs++
		mu.Unlock()
		select {
		case <-time.After(10 * time.Minute): // virtual
		case <-ctx.Done():
			return fmt.Errorf("taken away: %w", ctx.Err())
		}
		return complete(ctx, cfg, eval)
	}, overSessions, func(r *rig) {
		r.put("a")
		r.pass(11 * time.Minute)
		if r.status("a") != structs.EvalStatusComplete || runs != 1 {
			t.Errorf("a is %s after %d runs", r.status("a"), runs)
		}
	})
}

func TestAStaleWorkerWritesNothing(t *testing.T) {
	withRig(t, complete, nil, func(r *rig) {
		_, err := r.local.UpdateEvals(r.ctx, "a", "old token", []*structs.Evaluation{{ID: "a"}})
		if !errors.Is(err, structs.ErrStaleToken) || r.log.Store.Eval(nil, "a") != nil {
			t.Errorf("stored: %v", err)
		}
		remote, leader := overSessions(r)
		if err := remote.Ack(r.ctx, "a", "old token"); !errors.Is(err, structs.ErrStaleToken) {
			t.Error(err)
		}
		if _, err := leader.UpdateEvals(r.ctx, "a", "old token", nil); !errors.Is(err, structs.ErrStaleToken) {
			t.Error(err)
		}
	})
}

func TestWorkersChangeWhileTheyWork(t *testing.T) {
	for name, via := range map[string]func(r *rig) (Broker, Leader){"leader": nil, "follower": overSessions} {
		t.Run(name, func(t *testing.T) {
			var hold chan struct{} // made in the bubble
			withRig(t, func(ctx context.Context, cfg scheduler.Config, eval *structs.Evaluation) error {
				if eval.ID == "slow" {
					<-hold
				}
				return complete(ctx, cfg, eval)
			}, via, func(r *rig) {
				hold = make(chan struct{})
				r.put("slow")
				if w := r.pool.Workers(); len(w) != 2 || w[0].Busy == w[1].Busy {
					t.Fatalf("workers are %+v", w)
				}
				r.pool.Set([]string{structs.JobTypeBatch}, 3)
				synctest.Wait()
				r.put("a")
				if r.status("a") != structs.EvalStatusPending {
					t.Errorf("a is %s though no worker is for services", r.status("a"))
				}
				close(hold)
				synctest.Wait()
				if r.status("slow") != structs.EvalStatusComplete {
					t.Errorf("the evaluation under way is %s", r.status("slow"))
				}
				r.pool.Set([]string{structs.JobTypeService}, 1)
				synctest.Wait()
				if r.status("a") != structs.EvalStatusComplete {
					t.Errorf("a is %s", r.status("a"))
				}
				if types, n := r.pool.Setting(); n != 1 || len(r.pool.Workers()) != 1 || types[0] != structs.JobTypeService {
					t.Errorf("setting is %v, %d", types, n)
				}
			})
		})
	}
}

// slowLog is a leader that answers no plan until it is let go, and counts those that wait.
type slowLog struct {
	Leader
	mu      sync.Mutex
	waiting int
	answer  chan struct{}
	refresh bool
}

func (l *slowLog) SubmitPlan(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	l.mu.Lock()
	l.waiting++
	l.mu.Unlock()
	select {
	case <-l.answer:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	result := &structs.PlanResult{}
	if l.refresh {
		result.RefreshIndex = 1
	}
	return result, nil
}

// TestAWorkerGoesOnWhileAPlanIsWritten: two workers decide about as many evaluations as may be under way, not only about two.
// Those whose plan did not fit decide again, two at a time.
func TestAWorkerGoesOnWhileAPlanIsWritten(t *testing.T) {
	var slow *slowLog
	var mu sync.Mutex
	deciding, most, again := 0, 0, 0
	hold := func(by int) {
		mu.Lock()
		deciding += by
		most = max(most, deciding)
		mu.Unlock()
	}
	withRig(t, func(ctx context.Context, cfg scheduler.Config, eval *structs.Evaluation) error {
		hold(1)
		time.Sleep(time.Millisecond) // virtual: it decides
		hold(-1)
		_, newer, err := cfg.Planner.SubmitPlan(ctx, &structs.Plan{})
		if err != nil {
			return err
		}
		if newer != nil {
			mu.Lock()
			again++
			mu.Unlock()
			hold(1)
			time.Sleep(time.Millisecond) // virtual
			hold(-1)
		}
		return complete(ctx, cfg, eval)
	}, func(r *rig) (Broker, Leader) {
		slow = &slowLog{Leader: r.local, answer: make(chan struct{}), refresh: true}
		return r.local, slow
	}, func(r *rig) {
		const all = 2*flightsPerWorker + 5
		var evals []*structs.Evaluation
		for i := range all {
			evals = append(evals, &structs.Evaluation{ID: fmt.Sprint(i), JobID: fmt.Sprint(i), Namespace: "default",
				Type: structs.JobTypeService, Priority: 50, Status: structs.EvalStatusPending})
		}
		r.apply(fsm.KindEvalUpdate, &fsm.EvalUpdate{Now: 1, Evals: evals})
		r.pass(time.Second)
		if slow.waiting != 2*flightsPerWorker || most != 2 {
			t.Errorf("%d plans wait, at most %d were made at once", slow.waiting, most)
		}
		for _, w := range r.pool.Workers() {
			if w.Busy {
				t.Errorf("worker %s is busy with waiting", w.ID)
			}
		}
		most = 0
		close(slow.answer)
		r.pass(time.Second)
		if again != all || most > 4 {
			t.Errorf("%d of %d planned again, %d decided at once", again, all, most)
		}
		for _, e := range evals {
			if r.status(e.ID) != structs.EvalStatusComplete {
				t.Errorf("evaluation %s is %s", e.ID, r.status(e.ID))
			}
		}
	})
}

func TestTheWindowNarrowsWherePlansMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow(2, 16, 1)
		fits := func() (n int) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for w.enter(ctx) == nil {
				n++
			}
			for range n {
				w.exit()
			}
			return n
		}
		for _, want := range []int{16, 8, 4, 2, 2} {
			if got := fits(); got != want {
				t.Errorf("%d are under way, want %d", got, want)
			}
			w.met()
		}
		for range 2 {
			if err := w.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		entered := make(chan error, 1)
		go func() { entered <- w.enter(t.Context()) }()
		synctest.Wait()
		select {
		case <-entered:
			t.Fatal("one more is under way than may be")
		default:
		}
		w.fitted()
		if err := <-entered; err != nil {
			t.Error(err)
		}
		for range 3 {
			w.exit()
		}
		for range 20 {
			w.fitted()
		}
		if got := fits(); got != 16 {
			t.Errorf("%d are under way at last", got)
		}
	})
}
