package state

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/nomadlite/nomadlite/structs"
)

// TestEqualPartsAreHeldOnce: rows of one entry share what is equal in them, and nothing in them changes by that.
func TestEqualPartsAreHeldOnce(t *testing.T) {
	w := newWorld(t)
	w.register(testJob("web", "service", "g"), nil)
	make1 := func(id, scored string, score float64) *structs.Allocation {
		a := testAlloc(id, "g", strings.Clone("n1"), 0)
		a.AllocatedResources.Shared.Ports = nil
		a.Metrics = &structs.AllocationMetric{NodePool: strings.Clone("default"), AllocationTime: time.Duration(len(id)),
			NodesAvailable: map[string]int{"dc1": 1},
			ScoreMetaData:  []*structs.NodeScoreMeta{{NodeID: scored, NormScore: score, Scores: map[string]float64{"binpack": score}}, nil}}
		return a
	}
	allocs := []*structs.Allocation{make1("a", "n1", 0.5), make1("bb", "n1", 0.5), make1("c", "n1", 0.7), make1("d", "n2", 0.5)}
	allocs[3].AllocatedResources.Tasks["t"].Cpu.CpuShares++
	var want []structs.Allocation
	for _, a := range allocs {
		want = append(want, *a)
	}
	w.place("web", allocs...)
	var got []*structs.Allocation
	for i := range want {
		a := w.alloc(want[i].ID)
		if !reflect.DeepEqual(a.Metrics, want[i].Metrics) || !reflect.DeepEqual(a.AllocatedResources, want[i].AllocatedResources) {
			t.Errorf("allocation %s became %+v", a.ID, a)
		}
		got = append(got, a)
	}
	meta := func(i int) *structs.NodeScoreMeta { return got[i].Metrics.ScoreMetaData[0] }
	if meta(0) != meta(1) || meta(1) == meta(2) || meta(0) == meta(3) {
		t.Error("scores are not shared where they are equal, or where they are not")
	}
	if got[0].AllocatedResources != got[1].AllocatedResources || got[2].AllocatedResources == got[3].AllocatedResources {
		t.Error("resources are not shared where they are equal, or where they are not")
	}
	if unsafe.StringData(got[0].NodeID) != unsafe.StringData(got[1].NodeID) {
		t.Error("two allocations hold the id of their node twice")
	}
	if unsafe.StringData(got[0].Metrics.NodePool) != unsafe.StringData(got[1].Metrics.NodePool) {
		t.Error("two allocations hold the name of their node's pool twice")
	}
}

// TestEventsOfTasksAreHeldPacked: they stay what they were through reports and snapshots, as does what an earlier version
// wrote, and nodes cannot pack.
func TestEventsOfTasksAreHeldPacked(t *testing.T) {
	w := newWorld(t)
	w.register(testJob("web", "service", "g"), nil)
	w.place("web", testAlloc("a", "g", "n1", 0), testAlloc("b", "g", "n1", 0))
	report := func() *structs.TaskState {
		return &structs.TaskState{State: "running", Events: []*structs.TaskEvent{
			{Type: "Received", Time: 5, DisplayMessage: "Task received by client", Details: map[string]string{}},
			{Type: "Driver", Time: 9, DisplayMessage: "pulled", Details: map[string]string{"image": "redis"}}}}
	}
	w.must(func(tx *Txn) error {
		tx.ObserveAlloc(&structs.AllocObservation{AllocID: "a", ObservedStatus: "running",
			TaskStates: map[string]*structs.TaskState{"t": report(), "gone": nil}}, w.now())
		tx.ObserveAlloc(&structs.AllocObservation{AllocID: "b", ObservedStatus: "running",
			TaskStates: map[string]*structs.TaskState{"t": {State: "running", Packed: []byte{1, 3, 0}}}}, w.now())
		return nil
	})
	for name, store := range map[string]*Store{"reported": w.store, "restored": w.restored()} {
		held := store.Alloc(nil, "a").TaskStates["t"]
		if held.Events != nil || !reflect.DeepEqual(held.Unpacked(), report()) {
			t.Errorf("%s: held as %+v", name, held)
		}
		if held := store.Alloc(nil, "b").TaskStates["t"]; held.Packed != nil {
			t.Errorf("%s: a node's own packed events were taken: %v", name, held.Packed)
		}
	}
	requireSameState(t, w.store, w.restored())
	w.must(func(tx *Txn) error { // as a snapshot of an earlier version has it
		old := *tx.alloc("a")
		old.TaskStates = map[string]*structs.TaskState{"t": report()}
		return allocsTable().restore(tx, func(record any) error { *record.(**structs.Allocation) = &old; return nil })
	})
	if held := w.alloc("a").TaskStates["t"]; held.Events != nil || !reflect.DeepEqual(held.Unpacked(), report()) {
		t.Errorf("held as %+v", held)
	}
}
