package broker

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/structs"
)

// TestBlockedMissesNothing lets evaluations block and room appear in any order and checks the one promise: no
// evaluation stays blocked although room that could help it appeared after it looked.
func TestBlockedMissesNothing(t *testing.T) {
	type event struct {
		class string
		index uint64
	}
	rapid.Check(t, func(rt *rapid.T) {
		b := NewBlocked(0)
		blocked := map[string]*structs.Evaluation{} // by job
		var events []event
		index := uint64(1)
		class := rapid.SampledFrom([]string{"c0", "c1", "c2"})
		remove := func(evals ...*structs.Evaluation) {
			for _, e := range evals {
				if e != nil && blocked[e.JobID] != nil && blocked[e.JobID].ID == e.ID {
					delete(blocked, e.JobID)
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"block": func(rt *rapid.T) {
				index++
				// It looked at some state of the past, up to now.
				eval := &structs.Evaluation{ID: fmt.Sprint("e", index), JobID: fmt.Sprint("j", rapid.IntRange(0, 5).Draw(rt, "job")),
					Type: structs.JobTypeService, CreateIndex: index, SnapshotIndex: index - uint64(rapid.IntRange(0, int(min(index, 5))).Draw(rt, "age")),
					EscapedComputedClass: rapid.Bool().Draw(rt, "escaped"), ClassEligibility: map[string]bool{}}
				for _, c := range []string{"c0", "c1", "c2"} {
					if rapid.Bool().Draw(rt, "seen") {
						eval.ClassEligibility[c] = rapid.Bool().Draw(rt, "eligible")
					}
				}
				wake, superseded := b.Block(eval)
				remove(superseded)
				if !wake && (superseded == nil || superseded.ID != eval.ID) {
					blocked[eval.JobID] = eval
				}
			},
			"room": func(rt *rapid.T) {
				index++
				e := event{class.Draw(rt, "class"), index}
				events = append(events, e)
				remove(b.Room("n-"+e.class, e.class, e.index)...)
			},
			"wake all": func(*rapid.T) {
				index++
				remove(b.WakeAll(index)...)
			},
			"": func(rt *rapid.T) {
				if n, _ := b.Len(); n != len(blocked) {
					rt.Fatalf("holds %d, want %d", n, len(blocked))
				}
				for _, eval := range blocked {
					for _, e := range events {
						eligible, seen := eval.ClassEligibility[e.class]
						if e.index > eval.SnapshotIndex && (eval.EscapedComputedClass || eligible || !seen) {
							rt.Fatalf("%s stays blocked although %s got room at %d", eval.ID, e.class, e.index)
						}
					}
				}
			},
		})
	})
}
