package gc

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/nomadlite/cluster/clustertest"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

var epoch = time.Unix(1_000_000, 0)

// world is a store that a test fills; everything happens at epoch.
type world struct {
	*testing.T
	log *clustertest.Log
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, log: clustertest.New()}
	for _, id := range []string{"n1", "n2"} {
		n := &structs.Node{ID: id, Name: id, SecretID: id}
		n.Canonicalize()
		w.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: n, Now: epoch.UnixNano()})
		w.nodeStatus(id, structs.NodeStatusReady, nil)
	}
	return w
}

func (w *world) apply(kind fsm.Kind, req any) {
	w.Helper()
	if _, _, err := w.log.Apply(context.Background(), kind, req); err != nil {
		w.Fatal(err)
	}
}

func (w *world) nodeStatus(id, status string, conditions map[string]structs.Condition) {
	w.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: epoch.UnixNano(),
		Updates: []fsm.NodeStatusUpdate{{NodeID: id, Status: status, Conditions: conditions}}})
}

// job registers a job with a finished evaluation "eval-<id>".
func (w *world) job(id, typ string) {
	j := &structs.Job{ID: &id, Namespace: structs.Ptr("default"), Type: &typ, Priority: structs.Ptr(50),
		TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"), Count: structs.Ptr(1)}}}
	w.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: j, Now: epoch.UnixNano(), Eval: &structs.Evaluation{ID: "eval-" + id,
		Namespace: "default", JobID: id, Type: typ, Status: structs.EvalStatusPending}})
}

func (w *world) endEval(job, typ string) {
	w.apply(fsm.KindEvalUpdate, &fsm.EvalUpdate{Now: epoch.UnixNano(), Evals: []*structs.Evaluation{{ID: "eval-" + job,
		Namespace: "default", JobID: job, Type: typ, Status: structs.EvalStatusComplete}}})
}

func (w *world) place(job, node string) {
	id := "alloc-" + job
	w.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: epoch.UnixNano(), Plans: []*structs.Plan{{EvalID: "eval-" + job,
		Namespace: "default", JobID: job, JobModifyIndex: w.log.Store.Job(nil, "default", job).JobModifyIndex,
		Places: map[string][]*structs.Allocation{node: {{ID: id, Namespace: "default", JobID: job, NodeID: node, TaskGroup: "g",
			EvalID: "eval-" + job, Name: job + ".g[0]", DesiredStatus: structs.AllocDesiredStatusRun,
			JobVersion: w.log.Store.Job(nil, "default", job).Version}}}}}})
}

func (w *world) observe(job, status string) {
	w.apply(fsm.KindAllocObserve, &fsm.AllocObserve{Now: epoch.UnixNano(), Observations: []*structs.AllocObservation{
		{AllocID: "alloc-" + job, ObservedStatus: status}}})
}

func (w *world) stopJob(id string) {
	w.apply(fsm.KindJobDeregister, &fsm.JobDeregister{Namespace: "default", JobID: id, Now: epoch.UnixNano()})
}

func (w *world) stopAlloc(job, node string) {
	w.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: epoch.UnixNano(), Plans: []*structs.Plan{{Stops: map[string][]*structs.AllocStop{
		node: {{ID: "alloc-" + job, DesiredStatus: structs.AllocDesiredStatusStop}}}}}})
}

// found lists what Find gives after the time, as "kind:id".
func (w *world) found(after time.Duration) []string {
	g := Find(w.log.Store.Snapshot(), DefaultThresholds(), epoch.Add(after))
	var out []string
	for _, list := range [][]Unit{g.Jobs, g.Evals, g.Deployments, g.Nodes} {
		for _, u := range list {
			for _, j := range u.Jobs {
				out = append(out, "job:"+j.ID)
			}
			for kind, ids := range map[string][]string{"eval": u.Evals, "alloc": u.Allocs, "deployment": u.Deployments, "node": u.Nodes} {
				for _, id := range ids {
					out = append(out, kind+":"+id)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestFind(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fill  func(w *world)
		after time.Duration
		want  []string
	}{
		{"a stopped job after its time", func(w *world) {
			w.job("web", "service")
			w.place("web", "n1")
			w.endEval("web", "service")
			w.stopJob("web")
			w.stopAlloc("web", "n1")
			w.observe("web", "complete")
		}, 4 * time.Hour, []string{"alloc:alloc-web", "eval:eval-web", "job:web"}},
		{"only its evaluation before that", func(w *world) {
			w.job("web", "service")
			w.place("web", "n1")
			w.endEval("web", "service")
			w.stopJob("web")
			w.stopAlloc("web", "n1")
			w.observe("web", "complete")
		}, 2 * time.Hour, []string{"alloc:alloc-web", "eval:eval-web"}},
		{"nothing that may still run", func(w *world) {
			w.job("web", "service")
			w.place("web", "n1")
			w.endEval("web", "service")
			w.stopJob("web")
			w.stopAlloc("web", "n1")
			w.observe("web", "running")
		}, 1000 * time.Hour, nil},
		{"an evaluation that is not finished", func(w *world) { w.job("web", "service") }, 1000 * time.Hour, nil},
		{"a failed allocation that may be rescheduled", func(w *world) {
			w.job("web", "service")
			w.place("web", "n1")
			w.endEval("web", "service")
			w.observe("web", "failed")
		}, 2 * time.Hour, nil},
		{"what its group is to get again", func(w *world) {
			w.job("web", "service")
			w.place("web", "n1")
			w.endEval("web", "service")
			w.apply(fsm.KindAllocTransition, &fsm.AllocTransition{Now: epoch.UnixNano(),
				Transitions: map[string]*structs.DesiredTransition{"alloc-web": {Migrate: structs.Ptr(true)}}})
			w.stopAlloc("web", "n1")
			w.observe("web", "complete")
			w.apply(fsm.KindEvalUpdate, &fsm.EvalUpdate{Evals: []*structs.Evaluation{{ID: "waits", Namespace: "default", JobID: "web",
				Type: "service", Status: structs.EvalStatusBlocked}}})
		}, 1000 * time.Hour, nil},
		{"a batch job that is done, after 24 h of evaluation time and 4 h of its own", func(w *world) {
			w.job("sum", "batch")
			w.place("sum", "n1")
			w.endEval("sum", "batch")
			w.observe("sum", "complete")
		}, 5 * time.Hour, []string{"alloc:alloc-sum", "eval:eval-sum", "job:sum"}},
		{"a node that is down, with its orphans", func(w *world) {
			w.job("web", "service")
			w.place("web", "n1")
			w.observe("web", "running")
			w.nodeStatus("n1", structs.NodeStatusDown, map[string]structs.Condition{"alloc-web": {Status: structs.ConditionLost}})
			w.stopAlloc("web", "n1")
			w.stopJob("web")
		}, 25 * time.Hour, []string{"alloc:alloc-web", "node:n1"}},
		{"not while what it ran waits to be replaced", func(w *world) {
			w.job("web", "service")
			w.place("web", "n1")
			w.observe("web", "running")
			w.nodeStatus("n1", structs.NodeStatusDown, map[string]structs.Condition{"alloc-web": {Status: structs.ConditionLost}})
			w.stopAlloc("web", "n1")
		}, 25 * time.Hour, nil},
		{"not before its time", func(w *world) { w.nodeStatus("n1", structs.NodeStatusDown, nil) }, 23 * time.Hour, nil},
		{"not while an allocation on it may come back", func(w *world) {
			w.job("web", "service")
			w.place("web", "n1")
			w.observe("web", "running")
			w.nodeStatus("n1", structs.NodeStatusDown, map[string]structs.Condition{"alloc-web": {Status: structs.ConditionUnknown}})
		}, 25 * time.Hour, nil},
		{"not while nothing has replaced what it ran", func(w *world) {
			w.job("web", "service")
			w.place("web", "n1")
			w.observe("web", "running")
			w.nodeStatus("n1", structs.NodeStatusDown, map[string]structs.Condition{"alloc-web": {Status: structs.ConditionLost}})
		}, 25 * time.Hour, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			tc.fill(w)
			if got := w.found(tc.after); !slices.Equal(got, tc.want) {
				t.Errorf("found %v, want %v", got, tc.want)
			}
		})
	}
}

func TestForce(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		id := fmt.Sprint("web", i)
		w.job(id, "service")
		w.place(id, "n1")
		w.endEval(id, "service")
		w.stopJob(id)
		w.stopAlloc(id, "n1")
		w.observe(id, "complete")
	}
	w.nodeStatus("n2", structs.NodeStatusDown, nil)
	c := New(Config{Logger: hclog.NewNullLogger(), Raft: w.log, Snapshot: func() State { return w.log.Store.Snapshot() }})
	if err := c.Force(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := w.log.Store
	if s.Job(nil, "default", "web0") != nil || s.Eval(nil, "eval-web0") != nil || s.Alloc(nil, "alloc-web0") != nil || s.Node(nil, "n2") != nil {
		t.Error("something was left")
	}
	if s.Node(nil, "n1") == nil {
		t.Error("a living node was collected")
	}
}

func TestPartition(t *testing.T) {
	var units []Unit
	for i := range 3 * rowsPerEntry / 2 {
		units = append(units, Unit{Evals: []string{fmt.Sprint("e", i)}, Allocs: []string{fmt.Sprint("a", i)}})
	}
	reqs := partition(units, "test", epoch)
	total := 0
	for _, r := range reqs {
		n := len(r.Evals) + len(r.Allocs)
		total += n
		if n > rowsPerEntry || len(r.Evals) != len(r.Allocs) {
			t.Errorf("an entry of %d rows", n)
		}
	}
	if total != 2*len(units) || len(reqs) != 3 {
		t.Errorf("%d rows in %d entries", total, len(reqs))
	}
}
