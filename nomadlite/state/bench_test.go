package state

import (
	"fmt"
	"io"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

const benchNodes = 100

func benchNode(i int) string { return fmt.Sprintf("node-%03d", i%benchNodes) }

// benchWorld has n running allocations of one job on benchNodes nodes.
func benchWorld(b *testing.B, n int) *world {
	w := newWorld(b)
	for i := range benchNodes {
		w.must(func(tx *Txn) error { return tx.RegisterNode(testNode(benchNode(i)), w.now()) })
	}
	w.register(testJob("web", "service", "g"), nil)
	for at := 0; at < n; at += 1000 {
		w.must(func(tx *Txn) error { return tx.ApplyPlan(benchPlan(w, "present", at, min(1000, n-at)), w.now()) })
	}
	w.must(func(tx *Txn) error { benchObserve(tx, n, "running"); return nil })
	return w
}

func benchPlan(w *world, prefix string, from, n int) *structs.Plan {
	plan := w.plan("web")
	for i := from; i < from+n; i++ {
		alloc := testAlloc(benchID(prefix, i), "g", benchNode(i), 20000+i%10000)
		alloc.EvalID = prefix
		plan.Places[alloc.NodeID] = append(plan.Places[alloc.NodeID], alloc)
	}
	return plan
}

// benchID scatters ids, as uuids are.
func benchID(prefix string, i int) string {
	return fmt.Sprintf("%08x-%s-%d", uint32(i)*2654435761, prefix, i)
}

func benchObserve(tx *Txn, n int, status string) {
	for i := range n {
		tx.ObserveAlloc(&structs.AllocObservation{AllocID: benchID("present", i), ObservedStatus: status,
			TaskStates: map[string]*structs.TaskState{"t": {State: status}}}, int64(tx.index))
	}
}

// BenchmarkPlanOf1000 commits a plan of 1,000 new allocations where some are present.
func BenchmarkPlanOf1000(b *testing.B) {
	for _, present := range []int{10_000, 1_000_000} {
		var w *world
		b.Run(fmt.Sprint("present=", present), func(b *testing.B) {
			if w == nil { // once for all rounds
				w = benchWorld(b, present)
			}
			benchmarkPlan(b, w)
		})
	}
}

func benchmarkPlan(b *testing.B, w *world) {
	plan := benchPlan(w, "new", 0, 1000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		w.must(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
		b.StopTimer()
		w.must(func(tx *Txn) error {
			for i := range 1000 {
				tx.deleteAlloc(tx.alloc(benchID("new", i)))
			}
			return nil
		})
		b.StartTimer()
	}
}

// BenchmarkObserve5000 commits one entry with the observations of 5,000 allocations.
func BenchmarkObserve5000(b *testing.B) {
	w := benchWorld(b, 5_000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		w.must(func(tx *Txn) error { benchObserve(tx, 5_000, "running"); return nil })
	}
}

// BenchmarkObserveOne commits one entry with one observation, among 10,000 allocations.
func BenchmarkObserveOne(b *testing.B) {
	w := benchWorld(b, 10_000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		w.must(func(tx *Txn) error { benchObserve(tx, 1, "running"); return nil })
	}
}

// BenchmarkRegister commits new jobs with their evaluations.
func BenchmarkRegister(b *testing.B) {
	w := newWorld(b)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		id := fmt.Sprintf("job-%d", i)
		w.register(testJob(id, "service", "g"), testEval("eval-"+id, id))
	}
}

// BenchmarkSnapshot streams a state with 10,000 allocations.
func BenchmarkSnapshot(b *testing.B) {
	w := benchWorld(b, 10_000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if err := w.store.Snapshot().Persist(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRestore reads a state with 10,000 allocations.
func BenchmarkRestore(b *testing.B) {
	w := benchWorld(b, 10_000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		w.restored()
	}
}

// BenchmarkAllocsByJob reads 10,000 allocations of a job.
func BenchmarkAllocsByJob(b *testing.B) {
	w := benchWorld(b, 10_000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if n := len(w.store.AllocsByJob(nil, "default", "web")); n != 10_000 {
			b.Fatal(n)
		}
	}
}

// BenchmarkReplace1000 commits a plan that replaces 1,000 running allocations by ones on other nodes, and the entry
// with the ends of the old ones, where 10,000 are present.
func BenchmarkReplace1000(b *testing.B) {
	w := benchWorld(b, 10_000)
	old := "present"
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		prefix := fmt.Sprintf("next%d", i)
		plan := benchPlan(w, prefix, 0, 1000)
		for node, places := range plan.Places {
			var n int
			_, _ = fmt.Sscanf(node, "node-%d", &n)
			to := fmt.Sprintf("node-%03d", (n+i+1)%benchNodes)
			for _, a := range places {
				a.NodeID = to
			}
		}
		moved := map[string][]*structs.Allocation{}
		for j := range 1000 {
			id := benchID(old, j)
			plan.Stops["n"] = append(plan.Stops["n"], &structs.AllocStop{ID: id, DesiredStatus: "stop"})
		}
		for _, places := range plan.Places {
			for _, a := range places {
				var j int
				_, _ = fmt.Sscanf(a.ID[9:], prefix+"-%d", &j)
				a.PreviousAllocation = benchID(old, j)
				moved[a.NodeID] = append(moved[a.NodeID], a)
			}
		}
		plan.Places = moved
		b.StartTimer()
		w.must(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
		w.must(func(tx *Txn) error {
			for j := range 1000 {
				tx.ObserveAlloc(&structs.AllocObservation{AllocID: benchID(old, j), ObservedStatus: "complete"}, int64(tx.index))
			}
			return nil
		})
		b.StopTimer()
		w.must(func(tx *Txn) error {
			for j := range 1000 {
				tx.deleteAlloc(tx.alloc(benchID(old, j)))
			}
			return nil
		})
		old = prefix
		b.StartTimer()
	}
}
