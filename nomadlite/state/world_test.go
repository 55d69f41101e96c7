package state

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/structs"
)

// world drives a store as raft would: each write has the next index and its own time.
type world struct {
	t     testing.TB
	store *Store
	index uint64
}

func newWorld(t testing.TB) *world {
	return &world{t: t, store: New(Config{}), index: 1}
}

func (w *world) now() int64 { return int64(w.index) * 1e9 }

// write runs fn as one entry and gives its error.
func (w *world) write(fn func(*Txn) error) error {
	w.t.Helper()
	w.index++
	_, err := w.store.Write(w.index, 0, func(tx *Txn) (any, error) { return nil, fn(tx) })
	return err
}

func (w *world) must(fn func(*Txn) error) {
	w.t.Helper()
	if err := w.write(fn); err != nil {
		w.t.Fatal(err)
	}
}

func testJob(id, kind string, groups ...string) *structs.Job {
	job := &structs.Job{ID: &id, Name: &id, Namespace: structs.Ptr("default"), Type: &kind, Priority: structs.Ptr(50),
		NodePool: structs.Ptr("default"), Region: structs.Ptr("global")}
	for _, name := range groups {
		job.TaskGroups = append(job.TaskGroups, &structs.TaskGroup{Name: structs.Ptr(name), Count: structs.Ptr(1),
			Tasks: []*structs.Task{{Name: "t", Driver: "mock", Config: map[string]any{"run_for": "1s", "n": int64(3)}}}})
	}
	return job
}

func testNode(id string) *structs.Node {
	return &structs.Node{ID: id, Name: id, SecretID: "secret-" + id, Status: structs.NodeStatusReady,
		NodeResources: &structs.NodeResources{}, Attributes: map[string]string{"cpu.arch": "amd64"}}
}

func testEval(id, job string) *structs.Evaluation {
	return &structs.Evaluation{ID: id, Namespace: "default", JobID: job, Status: structs.EvalStatusPending, Type: "service",
		TriggeredBy: structs.EvalTriggerJobRegister, Priority: 50}
}

func testAlloc(id, group, node string, port int) *structs.Allocation {
	return &structs.Allocation{ID: id, Name: "x." + group + "[0]", TaskGroup: group, NodeID: node, EvalID: "eval-" + node,
		AllocatedResources: &structs.AllocatedResources{
			Tasks: map[string]*structs.AllocatedTaskResources{"t": {
				Cpu: structs.AllocatedCpuResources{CpuShares: 100}, Memory: structs.AllocatedMemoryResources{MemoryMB: 64}}},
			Shared: structs.AllocatedSharedResources{DiskMB: 10, Ports: []structs.PortMapping{{Label: "http", Value: port}}}}}
}

func (w *world) register(job *structs.Job, eval *structs.Evaluation) *structs.Job {
	w.t.Helper()
	w.must(func(tx *Txn) error {
		_, err := tx.RegisterJob(JobRegistration{Job: job, Eval: eval, Now: w.now()})
		return err
	})
	return w.job(structs.Val(job.ID))
}

func (w *world) job(id string) *structs.Job { return w.store.Job(nil, "default", id) }

// plan gives an empty plan for the job as it is.
func (w *world) plan(job string) *structs.Plan {
	p := &structs.Plan{EvalID: "eval", Namespace: "default", JobID: job, Places: map[string][]*structs.Allocation{},
		Stops: map[string][]*structs.AllocStop{}, Preemptions: map[string][]*structs.AllocStop{}}
	if row := w.job(job); row != nil {
		p.JobModifyIndex = row.JobModifyIndex
	}
	return p
}

func (w *world) place(job string, allocs ...*structs.Allocation) {
	w.t.Helper()
	plan := w.plan(job)
	for _, alloc := range allocs {
		plan.Places[alloc.NodeID] = append(plan.Places[alloc.NodeID], alloc)
	}
	w.must(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
}

func (w *world) observe(id, status string) {
	w.t.Helper()
	w.must(func(tx *Txn) error {
		tx.ObserveAlloc(&structs.AllocObservation{AllocID: id, ObservedStatus: status}, w.now())
		return nil
	})
}

func (w *world) alloc(id string) *structs.Allocation {
	w.t.Helper()
	alloc := w.store.Alloc(nil, id)
	if alloc == nil {
		w.t.Fatalf("allocation %s is not there", id)
	}
	return alloc
}

// restored gives a store with the state that a snapshot of this one holds.
func (w *world) restored() *Store {
	w.t.Helper()
	var buf bytes.Buffer
	if err := w.store.Snapshot().Persist(&buf); err != nil {
		w.t.Fatal(err)
	}
	other := New(Config{})
	if err := other.Restore(&buf); err != nil {
		w.t.Fatal(err)
	}
	return other
}

// dump gives all rows of a table, derived ones too, in a form that reflect.DeepEqual compares.
func dump(s *Store, table string) []any {
	var out []any
	if table == TableAllocs {
		for alloc := range s.Allocs(nil, structs.AllNamespaces) {
			out = append(out, alloc)
		}
		return out
	}
	for row := range scan[any](s.head(), nil, table, indexID, "") {
		if row, ok := row.(*allocRow); ok {
			out = append(out, []any{row.key, row.count, row.live, row.list()})
			continue
		}
		out = append(out, row)
	}
	return out
}

func requireSameState(t rapid.TB, want, got *Store) {
	t.Helper()
	for _, table := range want.tables.list {
		a, b := dump(want, table.name), dump(got, table.name)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("table %s: restored\n%s\nwas\n%s", table.name, show(b), show(a))
		}
	}
	if want.Index() != got.Index() {
		t.Errorf("index is %d, want %d", got.Index(), want.Index())
	}
}

func show(rows []any) string {
	var buf bytes.Buffer
	for _, row := range rows {
		fmt.Fprintf(&buf, "  %+v\n", row)
	}
	return buf.String()
}
