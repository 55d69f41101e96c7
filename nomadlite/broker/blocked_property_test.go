package broker

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/structs"
)

// yard is a cluster of a few nodes as blocked evaluations meet it, and the dumb rule of what must not stay blocked.
type yard struct {
	blocked *Blocked
	index   uint64
	free    memory            // of each node
	event   map[string]uint64 // newest at which each node got room; "" when all were woken
	waits   map[string]*structs.Evaluation
	asks    map[string]int64
	active  map[string]*structs.Evaluation // woken, not done
	awaken  int
}

// failing is a test, be it one of rapid's.
type failing interface {
	Fatalf(format string, args ...any)
}

var yardClasses = []string{"c0", "c1", "c2"}

func (y *yard) helps(e *structs.Evaluation, node string) bool {
	eligible, seen := e.ClassEligibility["c"+node[1:]]
	return e.EscapedComputedClass || eligible || !seen
}

func (y *yard) block(rt failing, e *structs.Evaluation) {
	var asks []Ask
	if n := y.asks[e.JobID]; n > 0 {
		asks = []Ask{{Size: Size{MemoryMB: n}, Count: 1}}
	}
	wake, superseded := y.blocked.Block(e, asks)
	if wake {
		rt.Fatalf("%s is woken although all is known", e.ID)
	}
	if superseded != nil {
		delete(y.waits, superseded.ID)
	}
	if superseded == nil || superseded.ID != e.ID {
		y.waits[e.ID] = e
	}
}

// wake takes over what is to run, and checks that each has a reason that it has not seen.
func (y *yard) wake(rt failing, more ...*structs.Evaluation) {
	woken := append(more, y.blocked.Wake(y.free)...)
	for _, e := range woken {
		y.awaken++
		if y.waits[e.ID] != e {
			rt.Fatalf("%s is woken but not blocked", e.ID)
		}
		reason := ""
		for node, index := range y.event {
			if index > e.SnapshotIndex && (node == "" || y.helps(e, node) && y.asks[e.JobID] <= y.free[node]) {
				reason = "it may fit on " + node
			}
		}
		if reason == "" {
			rt.Fatalf("%s is woken for nothing", e.ID)
		}
		delete(y.waits, e.ID)
		y.active[e.ID] = e
	}
	if len(y.blocked.Woken()) > wakeLimit {
		rt.Fatalf("%d are under way at once", len(y.blocked.Woken()))
	}
}

// run ends a woken evaluation as a scheduler would: it takes its room or blocks once more.
func (y *yard) run(rt failing, id string) {
	e := y.active[id]
	delete(y.active, id)
	y.index++
	placed := false
	for _, node := range slices.Sorted(maps.Keys(y.free)) {
		if y.helps(e, node) && y.asks[e.JobID] <= y.free[node] && !placed {
			y.free[node] -= y.asks[e.JobID]
			placed = true
		}
	}
	if !placed {
		again := e.Copy()
		again.SnapshotIndex = y.index
		y.block(rt, again)
	}
	y.blocked.Done(id)
	y.wake(rt)
}

// check is the promise: when nothing is under way, nothing stays blocked that room which it has not seen could help.
func (y *yard) check(rt failing) {
	if n, _ := y.blocked.Len(); n != len(y.waits) {
		rt.Fatalf("holds %d, want %d", n, len(y.waits))
	}
	if len(y.active) > 0 {
		return
	}
	for _, e := range y.waits {
		for node, index := range y.event {
			if index > e.SnapshotIndex && (node == "" || y.helps(e, node) && y.asks[e.JobID] <= y.free[node]) {
				rt.Fatalf("%s (asks %d) stays blocked although %q got room at %d", e.ID, y.asks[e.JobID], node, index)
			}
		}
	}
}

// TestBlockedMissesNothing lets evaluations block, room appear and go, and woken ones run, in any order.
func TestBlockedMissesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		y := &yard{blocked: NewBlocked(0), index: 1, free: memory{}, event: map[string]uint64{}, waits: map[string]*structs.Evaluation{},
			asks: map[string]int64{}, active: map[string]*structs.Evaluation{}}
		for job := range 12 {
			y.asks[fmt.Sprint("j", job)] = int64(rapid.IntRange(0, 5).Draw(rt, "ask"))
		}
		node := rapid.SampledFrom([]string{"n0", "n1", "n2"})
		rt.Repeat(map[string]func(*rapid.T){
			"block": func(rt *rapid.T) {
				y.index++
				// It looked at some state of the past, up to now.
				eval := &structs.Evaluation{ID: fmt.Sprint("e", y.index), JobID: fmt.Sprint("j", rapid.IntRange(0, 11).Draw(rt, "job")),
					Type: structs.JobTypeService, CreateIndex: y.index, Priority: rapid.IntRange(1, 3).Draw(rt, "priority"),
					SnapshotIndex:        y.index - uint64(rapid.IntRange(0, int(min(y.index, 5))).Draw(rt, "age")),
					EscapedComputedClass: rapid.Bool().Draw(rt, "escaped"), ClassEligibility: map[string]bool{}}
				for _, c := range yardClasses {
					if rapid.Bool().Draw(rt, "seen") {
						eval.ClassEligibility[c] = rapid.Bool().Draw(rt, "eligible")
					}
				}
				y.block(rt, eval)
				y.wake(rt)
			},
			"room": func(rt *rapid.T) {
				y.index++
				n := node.Draw(rt, "node")
				y.free[n] += int64(rapid.IntRange(0, 12).Draw(rt, "more"))
				y.event[n] = y.index
				y.wake(rt, y.blocked.Room(n, "c"+n[1:], y.index)...)
			},
			"other work takes room": func(rt *rapid.T) {
				n := node.Draw(rt, "node")
				y.free[n] -= int64(rapid.IntRange(0, int(max(0, y.free[n]))).Draw(rt, "less"))
			},
			"node goes": func(rt *rapid.T) {
				n := node.Draw(rt, "node")
				delete(y.free, n)
				delete(y.event, n)
				y.blocked.ForgetNode(n)
			},
			"run": func(rt *rapid.T) {
				if len(y.active) == 0 {
					rt.Skip("nothing is under way")
				}
				y.run(rt, rapid.SampledFrom(slices.Sorted(maps.Keys(y.active))).Draw(rt, "eval"))
			},
			"wake all": func(rt *rapid.T) {
				y.index++
				y.event[""] = y.index
				y.wake(rt, y.blocked.WakeAll(y.index)...)
			},
			"": func(rt *rapid.T) { y.check(rt) },
		})
		for len(y.active) > 0 { // and so at the end of everything
			y.run(rt, slices.Sorted(maps.Keys(y.active))[0])
		}
		y.check(rt)
	})
}

// TestRoomForTenWakesTen lets 10,000 evaluations wait and a node with room for ten come: only about as many run, all the
// others go on waiting, and room for all that comes then lets each of them run once.
func TestRoomForTenWakesTen(t *testing.T) {
	const total = 10_000
	y := &yard{blocked: NewBlocked(0), index: 1, free: memory{}, event: map[string]uint64{}, waits: map[string]*structs.Evaluation{},
		asks: map[string]int64{}, active: map[string]*structs.Evaluation{}}
	for i := range total {
		y.index++
		e := &structs.Evaluation{ID: fmt.Sprint("e", i), JobID: fmt.Sprint("j", i), Type: structs.JobTypeService, CreateIndex: y.index, SnapshotIndex: y.index}
		y.asks[e.JobID] = 10
		y.block(t, e)
	}
	for _, tc := range []struct {
		room         int64
		runs, blocks int
	}{{105, 10, total - 10}, {0, 0, total - 10}, {total * 10, total - 10, 0}} {
		y.index++
		before := y.awaken
		y.free["n1"] += tc.room
		y.event["n1"] = y.index
		y.wake(t, y.blocked.Room("n1", "c1", y.index)...)
		for len(y.active) > 0 {
			for id := range y.active {
				y.run(t, id)
				break
			}
		}
		if n := y.awaken - before; n != tc.runs || len(y.waits) != tc.blocks {
			t.Errorf("room of %d: %d ran and %d wait, want %d and %d", tc.room, n, len(y.waits), tc.runs, tc.blocks)
		}
	}
}
