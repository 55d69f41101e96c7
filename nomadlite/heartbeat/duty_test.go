package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// rig is a duty over a real store with nodes n1 (allocation a1 of job plain, a2 of job patient) and n2 (nothing).
type rig struct {
	*testing.T
	log  *clustertest.Log
	duty *Duty
	end  func()
}

func withRig(t *testing.T, group *structs.TaskGroup, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, log: clustertest.New()}
		ids := 0
		r.duty = New(Config{Logger: hclog.NewNullLogger(), Store: r.log.Store, Raft: r.log,
			NewID: func() string { ids++; return fmt.Sprint("id", ids) }})
		for _, id := range []string{"n1", "n2"} {
			n := &structs.Node{ID: id, Name: id, SecretID: id}
			n.Canonicalize()
			r.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: n, Now: 1})
			r.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1, Updates: []fsm.NodeStatusUpdate{{NodeID: id, Status: structs.NodeStatusReady}}})
		}
		r.run("a1", "plain", &structs.TaskGroup{Name: structs.Ptr("g")})
		if group != nil {
			r.run("a2", "patient", group)
		}
		r.lead()
		test(r)
		r.end()
	})
}

func (r *rig) apply(kind fsm.Kind, req any) {
	r.Helper()
	if _, _, err := r.log.Apply(context.Background(), kind, req); err != nil {
		r.Fatal(err)
	}
}

// run places an allocation on n1 and lets the node report that it runs.
func (r *rig) run(id, job string, group *structs.TaskGroup) {
	r.Helper()
	j := &structs.Job{ID: &job, Namespace: structs.Ptr("default"), Type: structs.Ptr(structs.JobTypeService),
		Priority: structs.Ptr(50), TaskGroups: []*structs.TaskGroup{group}}
	r.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: j, Now: 1})
	r.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: 1, Plans: []*structs.Plan{{Namespace: "default", JobID: job,
		JobModifyIndex: r.log.Store.Job(nil, "default", job).JobModifyIndex,
		Places: map[string][]*structs.Allocation{"n1": {{ID: id, Namespace: "default", JobID: job, NodeID: "n1",
			TaskGroup: "g", Name: job + ".g[0]", DesiredStatus: structs.AllocDesiredStatusRun,
			ClientStatus: structs.AllocClientStatusPending}}}}}})
	r.apply(fsm.KindAllocObserve, &fsm.AllocObserve{Now: 1, Observations: []*structs.AllocObservation{
		{AllocID: id, ObservedStatus: structs.AllocClientStatusRunning}}})
}

// lead runs the duty until r.end.
func (r *rig) lead() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.duty.Run(ctx, func() {}) }()
	synctest.Wait()
	r.end = func() { cancel(); <-done }
}

func (r *rig) pass(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

func (r *rig) beat(node string, fresh bool) time.Duration {
	r.Helper()
	ttl, err := r.duty.Beat(r.Context(), node, fresh)
	if err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
	return ttl
}

func (r *rig) expect(what, got, want string) {
	r.Helper()
	if got != want {
		r.Errorf("%s is %q, want %q", what, got, want)
	}
}

func (r *rig) node(id string) string  { return r.log.Store.Node(nil, id).Status }
func (r *rig) alloc(id string) string { return r.log.Store.Alloc(nil, id).ClientStatus }

// evals counts the evaluations of a job by what triggered them.
func (r *rig) evals(job string) map[string]int {
	out := map[string]int{}
	for _, e := range r.log.Store.EvalsByJob(nil, "default", job) {
		out[e.TriggeredBy]++
	}
	return out
}

func TestMissedHeartbeat(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		ttl := r.beat("n1", true)
		if ttl < 10*time.Second || ttl > 12*time.Second {
			t.Errorf("ttl %v", ttl)
		}
		r.pass(ttl + 9*time.Second)
		r.expect("n1", r.node("n1"), structs.NodeStatusReady)
		r.pass(2 * time.Second)
		r.expect("n1", r.node("n1"), structs.NodeStatusDown)
		r.expect("n2", r.node("n2"), structs.NodeStatusReady)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusLost)
		r.expect("what the node said", r.log.Store.Alloc(nil, "a1").ObservedStatus, structs.AllocClientStatusRunning)
		if n := r.evals("plain"); n[structs.EvalTriggerNodeUpdate] != 1 {
			t.Errorf("evaluations %v", n)
		}
		// It comes back: first it must report.
		r.beat("n1", false)
		r.expect("n1 before its report", r.node("n1"), structs.NodeStatusInit)
		r.expect("a1, which was given up", r.alloc("a1"), structs.AllocClientStatusLost)
		r.beat("n1", true)
		r.expect("n1 after its report", r.node("n1"), structs.NodeStatusReady)
	})
}

func TestToleratedDisconnection(t *testing.T) {
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Disconnect: &structs.DisconnectStrategy{LostAfter: structs.Ptr(time.Hour)}}
	withRig(t, group, func(r *rig) {
		ttl := r.beat("n1", true)
		r.pass(ttl + 11*time.Second)
		r.expect("n1", r.node("n1"), structs.NodeStatusDisconnected)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusLost)
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusUnknown)
		// A change of leader forgets none of it.
		r.end()
		r.lead()
		r.pass(59 * time.Minute)
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusUnknown)
		r.pass(2 * time.Minute)
		r.expect("a2 after its time", r.alloc("a2"), structs.AllocClientStatusLost)
		r.expect("n1 after that time", r.node("n1"), structs.NodeStatusDown)
		if n := r.evals("patient"); n[structs.EvalTriggerMaxDisconnect] != 1 {
			t.Errorf("evaluations %v", n)
		}
	})
}

func TestReconnectedInTime(t *testing.T) {
	group := &structs.TaskGroup{Name: structs.Ptr("g"), MaxClientDisconnect: structs.Ptr(time.Hour)}
	withRig(t, group, func(r *rig) {
		r.pass(r.beat("n1", true) + 11*time.Second)
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusUnknown)
		r.beat("n1", true)
		r.expect("n1", r.node("n1"), structs.NodeStatusReady)
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusRunning)
		if n := r.evals("patient"); n[structs.EvalTriggerReconnect] != 1 {
			t.Errorf("evaluations %v", n)
		}
		for range 300 { // keeps beating past the hour
			r.pass(r.beat("n1", true))
		}
		r.expect("a2 later", r.alloc("a2"), structs.AllocClientStatusRunning)
	})
}

// TestFence: a group that its node kills when contact is lost is given up only when that has surely happened.
func TestFence(t *testing.T) {
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Tasks: []*structs.Task{{Name: "t", KillTimeout: structs.Ptr(10 * time.Second)}},
		Disconnect: &structs.DisconnectStrategy{StopOnClientAfter: structs.Ptr(90 * time.Second)}}
	withRig(t, group, func(r *rig) {
		ttl := r.beat("n1", true)
		r.pass(ttl + 11*time.Second)
		r.expect("a1", r.alloc("a1"), structs.AllocClientStatusLost)
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusUnknown)
		r.pass(103*time.Second - ttl - 11*time.Second) // lease 90 s + kill 10 s + 2 % + 2 s = 104 s after the last beat
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusUnknown)
		r.pass(2 * time.Second)
		r.expect("a2", r.alloc("a2"), structs.AllocClientStatusLost)
	})
}

func TestAChangeOfLeaderExpiresNoNode(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.pass(r.beat("n1", true) + 5*time.Second)
		r.end()
		if _, err := r.duty.Beat(r.Context(), "n1", true); !errors.Is(err, structs.ErrNoLeader) {
			t.Errorf("a follower takes heartbeats: %v", err)
		}
		r.pass(time.Hour)
		r.lead()
		r.pass(4*time.Minute + 59*time.Second)
		r.expect("n1", r.node("n1"), structs.NodeStatusReady)
		r.pass(2 * time.Second)
		r.expect("n1", r.node("n1"), structs.NodeStatusDown)
	})
}

func TestUnknownNodeMustRegister(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		if _, err := r.duty.Beat(r.Context(), "nobody", true); !errors.Is(err, structs.ErrNodeNotFound) {
			t.Error(err)
		}
		r.beat("n1", true)
		r.duty.Forget("n1")
		r.pass(time.Hour)
		r.expect("a forgotten node", r.node("n1"), structs.NodeStatusReady)
	})
}

func TestManyNodesShareTheRate(t *testing.T) {
	withRig(t, nil, func(r *rig) {
		r.duty.cfg.MaxPerSecond = 0.1 // two nodes: one heartbeat in 20 s each
		if ttl := r.beat("n1", true); ttl < 20*time.Second || ttl > 24*time.Second {
			t.Errorf("ttl %v", ttl)
		}
	})
}
