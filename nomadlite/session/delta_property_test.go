package session

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/structs"
)

// fakeSnap is a snapshot at an index.
type fakeSnap uint64

func (s fakeSnap) Index() uint64 { return uint64(s) }
func (s fakeSnap) JobSpec(_, id string, index uint64) *structs.Job {
	return &structs.Job{ID: structs.Ptr(id), Namespace: structs.Ptr("default"), JobModifyIndex: index}
}

// Whatever happens on the servers, what they forget, and whatever the node loses: one answer later the node has the
// assigned set, in the newest form of each allocation, and a node that missed nothing gets no complete set.
func TestEveryAnswerLeadsToTheAssignedSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index := uint64(10)
		epoch := "e1"
		assigned := map[string]*structs.Allocation{}
		var removed removals
		var h held
		seen := map[string]uint64{} // the form which the node has of each
		undisturbed := false        // since the last answer
		made := 0
		ask := func(t *rapid.T) {
			var list []*structs.Allocation
			for _, a := range assigned {
				list = append(list, a)
			}
			slices.SortFunc(list, func(a, b *structs.Allocation) int { return int(a.CreateIndex) - int(b.CreateIndex) })
			res, news := makeDelta(fakeSnap(index), list, removed.since("n", h.index), epoch,
				&structs.AssignmentsRequest{NodeID: "n", Epoch: h.epoch, Index: h.index, Digest: h.digest()})
			if res.Complete && undisturbed {
				t.Fatalf("complete set for a node that missed nothing: %+v", res)
			}
			if !res.Complete && res.AppliesTo != h.index {
				t.Fatalf("delta from %d to a node at %d", res.AppliesTo, h.index)
			}
			before := fmt.Sprint(seen)
			if res.Complete {
				h.ids, seen = map[string]bool{}, map[string]uint64{}
			}
			for _, a := range res.Upsert {
				h.ids[a.ID], seen[a.ID] = true, a.AllocModifyIndex
			}
			for _, id := range res.Remove {
				delete(h.ids, id)
				delete(seen, id)
			}
			h.epoch, h.index = res.Epoch, res.ResultsIn
			if len(seen) != len(assigned) || h.digest() != res.Digest {
				t.Fatalf("node has %v, assigned are %v", seen, assigned)
			}
			for id, a := range assigned {
				if seen[id] != a.AllocModifyIndex {
					t.Fatalf("%s is known at %d, not at %d", id, seen[id], a.AllocModifyIndex)
				}
			}
			if !news && before != fmt.Sprint(seen) {
				t.Fatalf("an answer without news changed %s to %v", before, seen)
			}
			undisturbed = true
		}
		pick := func(t *rapid.T) string {
			var ids []string
			for id := range assigned {
				ids = append(ids, id)
			}
			if len(ids) == 0 {
				t.Skip("nothing is assigned")
			}
			slices.Sort(ids)
			return rapid.SampledFrom(ids).Draw(t, "id")
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask": ask,
			"place": func(*rapid.T) {
				index++
				made++
				id := fmt.Sprint("a", made)
				assigned[id] = &structs.Allocation{ID: id, CreateIndex: index, AllocModifyIndex: index}
			},
			"change": func(t *rapid.T) {
				index++
				a := *assigned[pick(t)]
				a.AllocModifyIndex = index
				assigned[a.ID] = &a
			},
			"remove": func(t *rapid.T) {
				id := pick(t)
				index++
				removed.add("n", removal{index: index, created: assigned[id].CreateIndex, id: id})
				delete(assigned, id)
			},
			"forget removals": func(*rapid.T) { removed.reset(); undisturbed = false },
			"restore":         func(*rapid.T) { epoch += "x"; index += 5; undisturbed = false },
			"node loses": func(*rapid.T) {
				for id := range h.ids {
					delete(h.ids, id)
					delete(seen, id)
					undisturbed = false
					return
				}
			},
		})
		ask(t)
	})
}
