package state

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/structs"
)

// fill puts at least one row into each table.
func fill(w *world) {
	w.must(func(tx *Txn) error { tx.SetClusterMeta("cluster", 7); return nil })
	w.must(func(tx *Txn) error {
		tx.SetSchedulerConfig(&structs.SchedulerConfiguration{SchedulerAlgorithm: "spread"}, false)
		tx.UpsertNamespace(&structs.Namespace{Name: "apps", Meta: map[string]string{"a": "b"}})
		tx.UpsertRootKey(&structs.RootKey{RootKeyMeta: structs.RootKeyMeta{KeyID: "k", State: "active"}, WrappedKey: []byte{1, 2}}, w.now())
		return tx.UpsertNodePool(&structs.NodePool{Name: "gpu", NodeIdentityTTL: time.Hour})
	})
	w.must(func(tx *Txn) error { return tx.RegisterNode(testNode("n1"), w.now()) })
	w.must(func(tx *Txn) error {
		_, err := tx.RegisterJob(JobRegistration{Job: testJob("web", "service", "g"), Eval: testEval("e1", "web"),
			Submission: &structs.JobSubmission{Source: "job web {}", Format: "hcl2"}, Now: w.now()})
		return err
	})
	plan := w.plan("web")
	alloc := testAlloc("a1", "g", "n1", 20000)
	alloc.DeploymentID = "d1"
	plan.Places["n1"] = []*structs.Allocation{alloc}
	job := w.job("web")
	plan.Deployment = &structs.Deployment{ID: "d1", Namespace: "default", JobID: "web", JobSpecModifyIndex: job.JobModifyIndex,
		JobCreateIndex: job.CreateIndex, Status: structs.DeploymentStatusRunning,
		TaskGroups: map[string]*structs.DeploymentState{"g": {DesiredTotal: 1, ProgressDeadline: time.Minute}}}
	w.must(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
	w.must(func(tx *Txn) error {
		tx.ObserveAlloc(&structs.AllocObservation{AllocID: "a1", ObservedStatus: "running",
			TaskStates:       map[string]*structs.TaskState{"t": {State: "running", StartedAt: time.Unix(5, 123456789).UTC()}},
			DeploymentStatus: &structs.AllocDeploymentStatus{Healthy: structs.Ptr(true)}}, w.now())
		return nil
	})
	w.offer(testService("a1", "web", "blue"))
	w.register(cronJob("cron", false), nil)
	w.must(func(tx *Txn) error {
		_, err := tx.LaunchPeriodic(PeriodicLaunch{Namespace: "default", JobID: "cron", Time: w.now() + 1e9, EvalID: "e9", Now: w.now()})
		return err
	})
	changed := testJob("web", "service", "g")
	changed.Meta = map[string]string{"rev": "2"}
	w.register(changed, testEval("e2", "web"))
	w.must(func(tx *Txn) error {
		_, err := tx.ScaleJob(JobScale{Namespace: "default", JobID: "web", Group: "g", Now: w.now(),
			Event: structs.ScalingEvent{Message: "soon", Meta: map[string]any{"load": 0.5}}})
		return err
	})
}

func TestSnapshotRestoresEachTable(t *testing.T) {
	w := newWorld(t)
	fill(w)
	got := w.restored()
	for _, table := range w.store.tables.list {
		if len(dump(w.store, table.name)) == 0 {
			t.Errorf("table %s has no row in this test, so nothing proves that it is restored", table.name)
		}
	}
	requireSameState(t, w.store, got)
	alloc := got.Alloc(nil, "a1")
	if alloc.Job == nil || alloc.Job != got.JobSpec("default", "web", alloc.JobModifyIndex) {
		t.Error("the allocation does not share its specification row")
	}
	if alloc.Job.Meta["rev"] != "" || alloc.Job.Status != "" {
		t.Errorf("the allocation runs %v with status %q, want the first specification without a status", alloc.Job.Meta, alloc.Job.Status)
	}
}

func TestSpecificationIsInASnapshotOnce(t *testing.T) {
	w := newWorld(t)
	w.must(func(tx *Txn) error { return tx.RegisterNode(testNode("n1"), w.now()) })
	job := testJob("web", "service", "g")
	job.Meta = map[string]string{"mark": "find-me-once"}
	w.register(job, nil)
	for i := range 20 {
		w.place("web", testAlloc(string(rune('a'+i)), "g", "n1", 20000+i))
	}
	var buf bytes.Buffer
	if err := w.store.Snapshot().Persist(&buf); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(buf.String(), "find-me-once"); n != 1 {
		t.Errorf("the specification is in the snapshot %d times", n)
	}
}

func TestRestoreRefusesWhatItCannotRead(t *testing.T) {
	w := newWorld(t)
	fill(w)
	var whole bytes.Buffer
	if err := w.store.Snapshot().Persist(&whole); err != nil {
		t.Fatal(err)
	}
	newer := encode(t, snapshotHeader{Magic: snapshotMagic, Format: SnapshotFormat + 1, Version: "9.9.9"})
	stranger := append(encode(t, snapshotHeader{Magic: snapshotMagic, Format: SnapshotFormat}), encode(t, "volumes")...)
	for _, tc := range []struct {
		name, want string
		data       []byte
	}{
		{"empty", "no snapshot of the state", nil},
		{"other file", "no snapshot of the state", []byte("hello")},
		{"newer format", "newer version (9.9.9)", newer},
		{"unknown table", "newer version", stranger},
		{"cut off", "unexpected EOF", whole.Bytes()[:whole.Len()/2]},
		{"cut at the end", "records", whole.Bytes()[:whole.Len()-1]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := w.store.Index()
			err := w.store.Restore(bytes.NewReader(tc.data))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want an error with %q", err, tc.want)
			}
			if w.store.Index() != before || w.store.Alloc(nil, "a1") == nil {
				t.Error("the state did not stay as it was")
			}
		})
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := codec.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRestoreAtRunTimeWakesEveryone(t *testing.T) {
	w := newWorld(t)
	fill(w)
	var buf bytes.Buffer
	if err := w.store.Snapshot().Persist(&buf); err != nil {
		t.Fatal(err)
	}
	epoch, sub := w.store.Epoch(), w.store.Subscribe(8)
	defer sub.Close()
	ws := memdb.NewWatchSet()
	w.store.Job(ws, "default", "no such job")
	old := w.store.Snapshot()
	if err := w.store.Restore(&buf); err != nil {
		t.Fatal(err)
	}
	if err := ws.WatchCtx(t.Context()); err != nil {
		t.Errorf("the watch did not fire: %v", err)
	}
	if _, err := sub.Next(t.Context()); err != structs.ErrLagged {
		t.Errorf("the subscriber got %v", err)
	}
	if w.store.Epoch() == epoch {
		t.Error("the epoch is the same")
	}
	if other := w.restored(); other.Epoch() != w.store.Epoch() {
		t.Errorf("after a restart the epoch is %s, was %s", other.Epoch(), w.store.Epoch())
	}
	if old.Alloc(nil, "a1") == nil || old.Epoch() != epoch {
		t.Error("an old snapshot lost its rows")
	}
	late := memdb.NewWatchSet()
	old.Job(late, "default", "web")
	if err := late.WatchCtx(t.Context()); err != nil {
		t.Errorf("a watch on an abandoned snapshot did not fire: %v", err)
	}
}

func TestTablesAreRegisteredOnce(t *testing.T) {
	if _, err := newRegistry(append(tables(), evalsTable())); err == nil {
		t.Error("a table of a taken name was registered")
	}
	forgotten := evalsTable()
	forgotten.name, forgotten.save = "other", nil
	if _, err := newRegistry(append(tables(), forgotten)); err == nil {
		t.Error("a table that is not saved was registered")
	}
}
