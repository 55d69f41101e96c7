package state

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

func TestFeedTellsEachEntryOnceInOrder(t *testing.T) {
	w := newWorld(t)
	sub := w.store.Subscribe(100)
	defer sub.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	from := w.index
	fill(w)
	items := map[string]int{}
	for index := from + 1; index <= w.index; index++ {
		change, err := sub.Next(ctx)
		if err != nil || change.Index != index {
			t.Fatalf("got %d, %v; want %d", change.Index, err, index)
		}
		for _, item := range change.Items {
			items[item.Table]++
			if item.Before == nil && item.After == nil {
				t.Errorf("an item of %s says nothing", item.Table)
			}
		}
	}
	for _, table := range []string{TableJobs, TableJobVersions, TableJobSpecs, TableSummaries, TableNodes, TableAllocs, TableEvals,
		TableDeployments, TableNodePools, TableNamespaces, TableConfig, TableKeys, TableJobSubmissions, TableServices} {
		if items[table] == 0 {
			t.Errorf("nothing was heard of %s", table)
		}
	}
	for _, table := range []string{tableIndexes, tableAllocRows, tableUsage} {
		if items[table] != 0 {
			t.Errorf("%s is no one's business", table)
		}
	}
}

func TestFeedItemsHaveBothSides(t *testing.T) {
	w := oneAlloc(t)
	sub := w.store.Subscribe(4)
	defer sub.Close()
	w.observe("a1", "running")
	change, err := sub.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range change.Items {
		if item.Table == TableAllocs {
			before, after := item.Before.(*structs.Allocation), item.After.(*structs.Allocation)
			if before.ClientStatus != "pending" || after.ClientStatus != "running" {
				t.Errorf("from %s to %s", before.ClientStatus, after.ClientStatus)
			}
			return
		}
	}
	t.Error("the allocation is not in the change")
}

func TestFeedCutsOffWhoLags(t *testing.T) {
	w := newWorld(t)
	sub := w.store.Subscribe(2)
	defer sub.Close()
	for range 5 {
		w.register(testJob("web", "service", "g"), nil)
	}
	if _, err := sub.Next(t.Context()); !errors.Is(err, structs.ErrLagged) {
		t.Fatalf("got %v", err)
	}
	// having read the whole state, it goes on
	index := w.store.Snapshot().Index()
	w.register(testJob("web", "service", "g"), nil)
	if change, err := sub.Next(t.Context()); err != nil || change.Index != index+1 {
		t.Errorf("got %d, %v", change.Index, err)
	}
}

func TestFeedEndsWithItsContextAndClose(t *testing.T) {
	w := newWorld(t)
	sub := w.store.Subscribe(2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sub.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := sub.Next(context.Background())
		done <- err
	}()
	sub.Close()
	sub.Close()
	if err := <-done; err == nil {
		t.Error("Next did not end")
	}
	if n := w.store.Stats().Subscribers; n != 0 {
		t.Errorf("%d subscribers are left", n)
	}
}

func TestARefusedEntryChangesNothingButTheIndex(t *testing.T) {
	w := newWorld(t)
	sub := w.store.Subscribe(2)
	defer sub.Close()
	refused := errors.New("refused")
	err := w.write(func(tx *Txn) error {
		tx.UpsertNamespace(&structs.Namespace{Name: "half"})
		return refused
	})
	if !errors.Is(err, refused) || w.store.Namespace(nil, "half") != nil || w.store.Index() != w.index {
		t.Errorf("got %v", err)
	}
	if w.store.TableIndex(TableNamespaces) != 1 {
		t.Error("the table's index moved")
	}
	w.must(func(tx *Txn) error { tx.UpsertNamespace(&structs.Namespace{Name: "whole"}); return nil })
	if change, err := sub.Next(t.Context()); err != nil || change.Index != w.index {
		t.Errorf("got %+v, %v", change, err)
	}
}

func TestWaitIndex(t *testing.T) {
	w := newWorld(t)
	done := make(chan error)
	target := w.index + 2
	go func() { done <- w.store.WaitIndex(t.Context(), target) }()
	for w.index < target {
		w.must(func(tx *Txn) error { return nil })
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := w.store.WaitIndex(ctx, w.index+1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestWatchesAreNarrow: a reader hears of what it asked for and of nothing else, or of an allocation whose id begins alike.
func TestWatchesAreNarrow(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"web", "db"} {
		w.register(testJob(id, "service", "g"), testEval("first-"+id, id))
		w.place(id, testAlloc(id+"-a", "g", "node-"+id, 1))
	}
	reads := map[string]func(ws memdb.WatchSet, id string){
		"job":            func(ws memdb.WatchSet, id string) { w.store.Job(ws, "default", id) },
		"allocation":     func(ws memdb.WatchSet, id string) { w.store.Alloc(ws, id+"-a") },
		"job's allocs":   func(ws memdb.WatchSet, id string) { w.store.AllocsByJob(ws, "default", id) },
		"node's allocs":  func(ws memdb.WatchSet, id string) { w.store.AllocsByNode(ws, "node-"+id) },
		"eval's allocs":  func(ws memdb.WatchSet, id string) { w.store.AllocsByEval(ws, "eval-node-"+id) },
		"summary":        func(ws memdb.WatchSet, id string) { w.store.JobSummary(ws, "default", id) },
		"job's evals":    func(ws memdb.WatchSet, id string) { w.store.EvalsByJob(ws, "default", id) },
		"job's versions": func(ws memdb.WatchSet, id string) { w.store.JobVersions(ws, "default", id) },
	}
	sets := map[string][2]memdb.WatchSet{}
	for name, read := range reads {
		mine, other := memdb.NewWatchSet(), memdb.NewWatchSet()
		read(mine, "web")
		read(other, "db")
		sets[name] = [2]memdb.WatchSet{mine, other}
	}
	w.must(func(tx *Txn) error {
		changed := testJob("web", "service", "g", "h")
		if _, err := tx.RegisterJob(JobRegistration{Job: changed, Eval: testEval("e", "web"), Now: w.now()}); err != nil {
			return err
		}
		tx.ObserveAlloc(&structs.AllocObservation{AllocID: "web-a", ObservedStatus: "running"}, w.now())
		return nil
	})
	for name, set := range sets {
		if !fired(set[0]) {
			t.Errorf("%s: the change was not heard", name)
		}
		if fired(set[1]) {
			t.Errorf("%s: another one's change was heard", name)
		}
	}
}

func fired(ws memdb.WatchSet) bool {
	for ch := range ws {
		select {
		case <-ch:
			return true
		default:
		}
	}
	return false
}

// TestAWatchOnNothingHearsItCome: rows that do not exist yet can be waited for.
func TestAWatchOnNothingHearsItCome(t *testing.T) {
	w := newWorld(t)
	job, allocs := memdb.NewWatchSet(), memdb.NewWatchSet()
	w.store.Job(job, "default", "web")
	w.store.AllocsByNode(allocs, "n1")
	w.register(testJob("web", "service", "g"), nil)
	w.place("web", testAlloc("a1", "g", "n1", 1))
	if !fired(job) || !fired(allocs) {
		t.Errorf("job %t, allocations %t", fired(job), fired(allocs))
	}
}
