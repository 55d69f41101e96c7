package scheduler

import (
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// sortedUsages is a State of which only the usages are asked.
type sortedUsages struct {
	State
	of map[string]*structs.NodeUsage
}

func (s sortedUsages) NodeUsages() iter.Seq2[string, *structs.NodeUsage] {
	return func(yield func(string, *structs.NodeUsage) bool) {
		for _, id := range slices.Sorted(maps.Keys(s.of)) {
			if !yield(id, s.of[id]) {
				return
			}
		}
	}
}

// TestUsagesInAnyOrder: nodes are asked for in the order of their ids nearly always, but the answer does not depend on it.
func TestUsagesInAnyOrder(t *testing.T) {
	of := map[string]*structs.NodeUsage{"b": {CPU: 2}, "d": {CPU: 4}, "e": {CPU: 5}}
	planned := &structs.Allocation{AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{
		"t": {Cpu: structs.AllocatedCpuResources{CpuShares: 100}}}}}
	s := &generic{state: sortedUsages{of: of}, plan: &structs.Plan{Places: map[string][]*structs.Allocation{"d": {planned}, "f": {planned}}}}
	usage := s.usages()
	want := map[string]int64{"a": 0, "b": 2, "c": 0, "d": 104, "e": 5, "f": 100}
	for _, order := range []string{"abcdef", "fedcba", "bbddee", "facebdafd"} {
		for _, id := range order {
			var got int64
			if u := usage(&structs.Node{ID: string(id)}); u != nil {
				got = u.CPU
			}
			if got != want[string(id)] {
				t.Errorf("order %s: node %c holds %d MHz, want %d", order, id, got, want[string(id)])
			}
		}
	}
	if of["d"].CPU != 4 {
		t.Error("what is kept in the state was changed")
	}
}
