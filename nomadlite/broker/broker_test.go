package broker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// rig is a broker that leads over a real store.
type rig struct {
	*testing.T
	ctx    context.Context
	log    *clustertest.Log
	full   atomic.Bool // the broker's own writes fail
	broker *Broker
}

// brokersRaft is how the broker of a rig writes.
type brokersRaft struct{ *rig }

func (b brokersRaft) Apply(ctx context.Context, kind fsm.Kind, req any) (any, uint64, error) {
	if b.full.Load() {
		return nil, 0, errors.New("the disk is full")
	}
	return b.log.Apply(ctx, kind, req)
}

// withRig runs a test in a bubble of virtual time; before is applied to the state before the broker leads.
func withRig(t *testing.T, before, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &rig{T: t, ctx: ctx, log: clustertest.New()}
		ids := 0
		r.broker = New(Config{}, hclog.NewNullLogger(), func() string { ids++; return fmt.Sprint("id", ids) })
		if before != nil {
			before(r)
		}
		done := make(chan error, 1)
		go func() { done <- r.broker.Run(ctx, r.log.Store, brokersRaft{r}, func() {}) }()
		synctest.Wait()
		test(r)
		cancel()
		<-done
		if s := r.broker.Stats(); s["total_ready"] != 0 || s["total_blocked"] != 0 {
			t.Errorf("a broker that does not lead holds %v", s)
		}
	})
}

func (r *rig) apply(kind fsm.Kind, req any) {
	r.Helper()
	if _, _, err := r.log.Apply(r.ctx, kind, req); err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
}

func (r *rig) put(evals ...*structs.Evaluation) {
	r.Helper()
	r.apply(fsm.KindEvalUpdate, &fsm.EvalUpdate{Evals: evals, Now: 1})
}

func (r *rig) eval(id, job, status string) *structs.Evaluation {
	return &structs.Evaluation{ID: id, JobID: job, Namespace: "default", Type: structs.JobTypeService, Priority: 50,
		Status: status, SnapshotIndex: r.log.Store.Index()}
}

// next dequeues without waiting in real time; empty when nothing is ready.
func (r *rig) next() (id, token string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, time.Nanosecond)
	defer cancel()
	eval, token, err := r.broker.Dequeue(ctx, []string{structs.JobTypeService})
	if err != nil {
		return "", ""
	}
	return eval.ID, token
}

func (r *rig) expect(want string) (token string) {
	r.Helper()
	got, token := r.next()
	if got != want {
		r.Fatalf("dequeued %q, want %q", got, want)
	}
	return token
}

func (r *rig) ack(id, token string) {
	r.Helper()
	if err := r.broker.Ack(id, token); err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
}

func (r *rig) node(id, class string) *structs.Node {
	n := &structs.Node{ID: id, SecretID: id, NodeClass: class, Status: structs.NodeStatusInit,
		NodeResources: &structs.NodeResources{}}
	n.Canonicalize()
	n.ComputeClass()
	return n
}

func TestBrokerFollowsTheState(t *testing.T) {
	withRig(t, func(r *rig) {
		r.put(r.eval("before", "j1", structs.EvalStatusPending), r.eval("done", "j2", structs.EvalStatusComplete))
	}, func(r *rig) {
		r.ack("before", r.expect("before"))
		r.expect("")
		r.put(r.eval("after", "j1", structs.EvalStatusPending))
		token := r.expect("after")
		if r.broker.Token("after") != token {
			t.Error("the token of a delivery in flight is not known")
		}
		r.put(r.eval("next", "j1", structs.EvalStatusPending), r.eval("gone", "j3", structs.EvalStatusPending))
		r.apply(fsm.KindEvalDelete, &fsm.EvalDelete{IDs: []string{"gone"}})
		r.expect("")
		r.ack("after", token)
		r.expect("next")
	})
}

func TestBrokerWaitsForAnEvaluation(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		got := make(chan string, 1)
		go func() {
			eval, _, err := r.broker.Dequeue(r.ctx, []string{structs.JobTypeService})
			if err == nil {
				got <- eval.ID
			}
		}()
		synctest.Wait()
		r.put(r.eval("a", "j1", structs.EvalStatusPending))
		if id := <-got; id != "a" {
			t.Errorf("got %s", id)
		}
	})
}

func TestBrokerDelays(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		eval := r.eval("later", "j1", structs.EvalStatusPending)
		eval.WaitUntil = time.Now().Add(time.Minute)
		r.put(eval)
		r.expect("")
		time.Sleep(time.Minute) // virtual
		synctest.Wait()
		r.expect("later")
	})
}

func TestBrokerFailsWhatNobodyCanProcess(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.put(r.eval("bad", "j1", structs.EvalStatusPending))
		for range 3 {
			token := r.expect("bad")
			if err := r.broker.Nack("bad", token); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second) // virtual
			synctest.Wait()
		}
		r.expect("")
		bad := r.log.Store.Eval(nil, "bad")
		if bad.Status != structs.EvalStatusFailed || bad.NextEval == "" {
			t.Fatalf("the evaluation is %s, followed by %q", bad.Status, bad.NextEval)
		}
		next := r.log.Store.Eval(nil, bad.NextEval)
		if next == nil || next.TriggeredBy != structs.EvalTriggerFailedFollowUp || next.PreviousEval != "bad" {
			t.Fatalf("the follow-up is %+v", next)
		}
		time.Sleep(2 * time.Minute) // virtual
		synctest.Wait()
		r.expect(next.ID)
	})
}

// TestBrokerRecordsWhatItCouldNotWrite: an evaluation that nobody works on and that nobody ended would be pending for ever.
func TestBrokerRecordsWhatItCouldNotWrite(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.full.Store(true)
		first, second := r.eval("first", "j2", structs.EvalStatusPending), r.eval("second", "j2", structs.EvalStatusPending)
		first.TriggeredBy, second.TriggeredBy = structs.EvalTriggerNodeUpdate, structs.EvalTriggerNodeUpdate
		r.put(r.eval("bad", "j1", structs.EvalStatusPending))
		for range 3 {
			token := r.expect("bad")
			if err := r.broker.Nack("bad", token); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second) // virtual
			synctest.Wait()
		}
		r.put(first, second)
		time.Sleep(10 * time.Second) // virtual
		synctest.Wait()
		status := func(id string) string { return r.log.Store.Eval(nil, id).Status }
		if status("bad") != structs.EvalStatusPending || status("second") != structs.EvalStatusPending {
			t.Fatalf("bad is %s, second is %s: the writes did not fail", status("bad"), status("second"))
		}
		r.full.Store(false)
		time.Sleep(2 * time.Second) // virtual
		synctest.Wait()
		if status("bad") != structs.EvalStatusFailed || status("second") != structs.EvalStatusCancelled {
			t.Errorf("bad is %s, second is %s", status("bad"), status("second"))
		}
		r.expect("first")
	})
}

func TestBrokerGivesAnAbandonedDeliveryBack(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.put(r.eval("a", "j1", structs.EvalStatusPending))
		token := r.expect("a")
		time.Sleep(50 * time.Second) // virtual
		if err := r.broker.Renew("a", token); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second) // virtual
		synctest.Wait()
		r.expect("")
		time.Sleep(15 * time.Second) // virtual
		synctest.Wait()
		r.expect("a")
		if err := r.broker.Ack("a", token); err == nil {
			t.Error("the first delivery could still be acknowledged")
		}
	})
}

func TestBlockedIsWokenByWhatCouldHelp(t *testing.T) {
	place := func(r *rig, id, node string) {
		r.apply(fsm.KindJobRegister, &fsm.JobRegister{Now: 1, Job: &structs.Job{ID: structs.Ptr("other"),
			Namespace: structs.Ptr("default"), Type: structs.Ptr(structs.JobTypeService),
			TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g")}}}})
		job := r.log.Store.Job(nil, "default", "other")
		r.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: 1, Plans: []*structs.Plan{{Namespace: "default", JobID: "other",
			JobModifyIndex: job.JobModifyIndex, Places: map[string][]*structs.Allocation{node: {{ID: id, Namespace: "default",
				JobID: "other", NodeID: node, TaskGroup: "g", Name: "other.g[0]", DesiredStatus: structs.AllocDesiredStatusRun,
				ClientStatus: structs.AllocClientStatusPending}}}}}})
	}
	for _, tc := range []struct {
		name  string
		event func(r *rig)
		wakes bool
	}{
		{"a node of a class that it can use becomes ready", func(r *rig) {
			r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: r.node("n2", "good"), Now: 1})
			r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1, Updates: []fsm.NodeStatusUpdate{{NodeID: "n2", Status: structs.NodeStatusReady}}})
		}, true},
		{"a node that is not ready yet registers", func(r *rig) {
			r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: r.node("n2", "good"), Now: 1})
		}, false},
		{"a node of a class that it cannot use becomes ready", func(r *rig) {
			r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: r.node("n2", "bad"), Now: 1})
			r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1, Updates: []fsm.NodeStatusUpdate{{NodeID: "n2", Status: structs.NodeStatusReady}}})
		}, false},
		{"a node becomes eligible", func(r *rig) {
			r.apply(fsm.KindNodeEligibility, &fsm.NodeEligibility{NodeID: "n0", Eligibility: structs.NodeEligible, Now: 1})
		}, true},
		{"an allocation is observed to end", func(r *rig) {
			r.apply(fsm.KindAllocObserve, &fsm.AllocObserve{Now: 1, Observations: []*structs.AllocObservation{
				{AllocID: "a1", ObservedStatus: structs.AllocClientStatusComplete}}})
		}, true},
		{"an allocation begins to run", func(r *rig) {
			r.apply(fsm.KindAllocObserve, &fsm.AllocObserve{Now: 1, Observations: []*structs.AllocObservation{
				{AllocID: "a1", ObservedStatus: structs.AllocClientStatusRunning}}})
		}, false},
		{"the plan to stop an allocation is no room yet", func(r *rig) {
			r.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: 1, Plans: []*structs.Plan{{Stops: map[string][]*structs.AllocStop{
				"n1": {{ID: "a1", DesiredStatus: structs.AllocDesiredStatusStop}}}}}})
		}, false},
		{"the scheduler's configuration changes", func(r *rig) {
			r.apply(fsm.KindSchedulerConfig, &fsm.SchedulerConfig{Config: &structs.SchedulerConfiguration{SchedulerAlgorithm: "spread"}})
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withRig(t, func(r *rig) {
				for _, id := range []string{"n0", "n1"} {
					r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: r.node(id, "good"), Now: 1})
					r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1, Updates: []fsm.NodeStatusUpdate{{NodeID: id, Status: structs.NodeStatusReady}}})
				}
				r.apply(fsm.KindNodeEligibility, &fsm.NodeEligibility{NodeID: "n0", Eligibility: structs.NodeIneligible, Now: 1})
				place(r, "a1", "n1")
			}, func(r *rig) {
				eval := r.eval("blocked", "j1", structs.EvalStatusBlocked)
				eval.ClassEligibility = map[string]bool{r.node("", "good").ComputedClass: true, r.node("", "bad").ComputedClass: false}
				r.put(eval)
				r.expect("")
				tc.event(r)
				want := ""
				if tc.wakes {
					want = "blocked"
				}
				r.expect(want)
			})
		})
	}
}

// TestRoomOfAnAbandonedDeliveryIsForOthers: who was woken for it does not keep it while nobody works on him.
func TestRoomOfAnAbandonedDeliveryIsForOthers(t *testing.T) {
	withRig(t, func(r *rig) {
		for _, id := range []string{"j1", "j2"} {
			r.apply(fsm.KindJobRegister, &fsm.JobRegister{Now: 1, Job: &structs.Job{ID: &id, Namespace: structs.Ptr("default"),
				Type: structs.Ptr(structs.JobTypeService), TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"), Tasks: []*structs.Task{
					{Name: "t", Resources: &structs.Resources{MemoryMB: structs.Ptr(80)}}}}}}})
		}
	}, func(r *rig) {
		for i, id := range []string{"first", "second"} {
			eval := r.eval(id, []string{"j1", "j2"}[i], structs.EvalStatusBlocked)
			eval.FailedTGAllocs = map[string]*structs.AllocationMetric{"g": {}}
			r.put(eval)
		}
		n := r.node("n1", "good")
		n.NodeResources.Memory.MemoryMB = 100
		r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: n, Now: 1})
		r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1, Updates: []fsm.NodeStatusUpdate{{NodeID: "n1", Status: structs.NodeStatusReady}}})
		r.expect("first")
		r.expect("") // there is room for one
		time.Sleep(time.Minute)
		synctest.Wait()
		r.expect("second")
	})
}

func TestBlockedOnceMoreAfterAChangeOfLeader(t *testing.T) {
	withRig(t, func(r *rig) {
		r.put(r.eval("blocked", "j1", structs.EvalStatusBlocked))
		r.put(r.eval("fresh", "j2", structs.EvalStatusPending))
	}, func(r *rig) {
		r.expect("fresh")
		token := r.expect("blocked")
		again := r.eval("blocked", "j1", structs.EvalStatusBlocked)
		r.put(again) // still no room
		r.ack("blocked", token)
		r.expect("")
		if n := r.broker.Stats()["total_blocked"]; n != 1 {
			t.Errorf("%v blocked", n)
		}
	})
}

func TestBlockedMissesNothingWhileItIsBeingMade(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.put(r.eval("a", "j1", structs.EvalStatusPending))
		token := r.expect("a")
		blocked := r.eval("a", "j1", structs.EvalStatusBlocked) // the scheduler's snapshot is from here
		r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: r.node("n1", "c"), Now: 1})
		r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1, Updates: []fsm.NodeStatusUpdate{{NodeID: "n1", Status: structs.NodeStatusReady}}})
		r.put(blocked)
		r.expect("")
		r.ack("a", token)
		r.expect("a")
	})
}

func TestSupersededBlockedIsCancelled(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.put(r.eval("old", "j1", structs.EvalStatusBlocked))
		r.put(r.eval("new", "j1", structs.EvalStatusBlocked))
		if s := r.log.Store.Eval(nil, "old").Status; s != structs.EvalStatusCancelled {
			t.Errorf("the older one is %s", s)
		}
		done := r.eval("done", "j1", structs.EvalStatusComplete)
		r.put(done)
		if s := r.log.Store.Eval(nil, "new").Status; s != structs.EvalStatusCancelled {
			t.Errorf("what another evaluation placed is still %s", s)
		}
	})
}

func TestBrokerPauses(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.apply(fsm.KindSchedulerConfig, &fsm.SchedulerConfig{Config: &structs.SchedulerConfiguration{PauseEvalBroker: true}})
		r.put(r.eval("a", "j1", structs.EvalStatusPending))
		r.expect("")
		r.apply(fsm.KindSchedulerConfig, &fsm.SchedulerConfig{Config: &structs.SchedulerConfiguration{}})
		r.expect("a")
	})
}

// TestOneEvaluationLooksAfterAllNodesOfAJob: what another one will see that has not begun is cancelled, and only that.
func TestOneEvaluationLooksAfterAllNodesOfAJob(t *testing.T) {
	lost := func(r *rig, id, job string, change func(*structs.Evaluation)) *structs.Evaluation {
		e := r.eval(id, job, structs.EvalStatusPending)
		e.TriggeredBy = structs.EvalTriggerNodeUpdate
		if change != nil {
			change(e)
		}
		return e
	}
	withRig(t, func(r *rig) {
		r.put(lost(r, "before-1", "old", nil))
		r.put(lost(r, "before-2", "old", nil))
	}, func(r *rig) {
		status := func(want string, ids ...string) {
			t.Helper()
			for _, id := range ids {
				if e := r.log.Store.Eval(nil, id); e.Status != want || (e.StatusDescription == byOthers) != (want == structs.EvalStatusCancelled) {
					t.Errorf("%s is %s (%s), want %s", id, e.Status, e.StatusDescription, want)
				}
			}
		}
		status(structs.EvalStatusPending, "before-1")
		status(structs.EvalStatusCancelled, "before-2") // a new leader reads both
		r.put(lost(r, "a1", "a", nil), lost(r, "a2", "a", nil), lost(r, "b1", "b", nil))
		status(structs.EvalStatusPending, "a1", "b1")
		status(structs.EvalStatusCancelled, "a2")
		delay := time.Second
		r.put(lost(r, "a-options", "a", func(e *structs.Evaluation) { e.NoShutdownDelay = true }),
			lost(r, "a-kill", "a", func(e *structs.Evaluation) { e.KillTimeout = &delay }),
			lost(r, "a-later", "a", func(e *structs.Evaluation) { e.WaitUntil = time.Now().Add(time.Hour) }),
			lost(r, "a-other", "a", func(e *structs.Evaluation) { e.TriggeredBy = structs.EvalTriggerJobRegister }),
			lost(r, "a-urgent", "a", func(e *structs.Evaluation) { e.Priority = 90 }),
			lost(r, "a-system", "a", func(e *structs.Evaluation) { e.Type = structs.JobTypeSystem }))
		status(structs.EvalStatusPending, "a-options", "a-kill", "a-later", "a-other", "a-urgent", "a-system")
		for {
			eval, token, err := r.broker.Dequeue(r.ctx, []string{structs.JobTypeService})
			if err != nil {
				t.Fatal(err)
			}
			if eval.ID != "a1" {
				done := eval.Copy()
				done.Status = structs.EvalStatusComplete
				r.put(done)
				if err := r.broker.Ack(eval.ID, token); err != nil {
					t.Fatal(err)
				}
				continue
			}
			r.put(lost(r, "a3", "a", nil), lost(r, "a4", "a", nil)) // a1 may have looked already
			status(structs.EvalStatusPending, "a3")
			status(structs.EvalStatusCancelled, "a4")
			break
		}
	})
}
