package state

import (
	"slices"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// awaitsWorld has a job whose allocation "a" runs on n1 and is told to stop by the plan that places "b" on another node.
func awaitsWorld(t *testing.T) *world {
	w := newWorld(t)
	for _, id := range []string{"n1", "n2", "n3"} {
		w.must(func(tx *Txn) error { return tx.RegisterNode(testNode(id), w.now()) })
	}
	w.register(testJob("web", "service", "g"), nil)
	w.place("web", testAlloc("a", "g", "n1", 20000))
	w.observe("a", "running")
	w.replace("a", "b", "n2")
	return w
}

// replace stops old and places id in its stead, in one plan.
func (w *world) replace(old, id, node string) {
	w.t.Helper()
	plan := w.plan("web")
	alloc := testAlloc(id, "g", node, 20000)
	alloc.PreviousAllocation = old
	plan.Places[node] = []*structs.Allocation{alloc}
	plan.Stops[w.alloc(old).NodeID] = []*structs.AllocStop{{ID: old, DesiredStatus: "stop"}}
	w.must(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
}

func (w *world) wantAwaits(id string, want ...string) {
	w.t.Helper()
	var got []string
	for _, a := range w.alloc(id).Awaits {
		got = append(got, a.ID)
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("%s waits for %q, want %q", id, got, want)
	}
}

func TestReplacementIsHeldUntilTheEndIsObserved(t *testing.T) {
	w := awaitsWorld(t)
	w.wantAwaits("b", "a")
	if a := w.alloc("b").Awaits[0]; a.NodeID != "n1" {
		t.Fatalf("waits for %+v", a)
	}
	before := w.alloc("b").AllocModifyIndex
	w.observe("a", "running")
	w.wantAwaits("b", "a")
	w.observe("a", "complete")
	w.wantAwaits("b")
	if got := w.alloc("b").AllocModifyIndex; got != w.index || got == before {
		t.Fatalf("its node is told at %d, the end was observed at %d", got, w.index)
	}
	if a := w.alloc("a"); a.AwaitedBy != nil || a.NextAllocation != "b" {
		t.Fatalf("%+v", a)
	}
}

func TestReplacementOnTheSameNodeIsReleasedWithoutWakingIt(t *testing.T) {
	w := awaitsWorld(t)
	w.observe("a", "complete")
	w.observe("b", "running")
	w.replace("b", "c", "n2")
	w.wantAwaits("c", "b")
	before := w.alloc("c").AllocModifyIndex
	w.observe("b", "complete")
	w.wantAwaits("c")
	if got := w.alloc("c").AllocModifyIndex; got != before {
		t.Fatalf("the node was woken for what it reported itself")
	}
}

func TestThirdGenerationWaitsForTheFirst(t *testing.T) {
	w := awaitsWorld(t)
	w.replace("b", "c", "n3")
	w.wantAwaits("c", "b", "a")
	w.observe("b", "complete") // it never began
	w.wantAwaits("c", "a")
	w.observe("a", "complete")
	w.wantAwaits("c")
}

func TestHeirOfOneThatEndedWhileItWaitedWaitsOn(t *testing.T) {
	w := awaitsWorld(t)
	w.observe("b", "failed")
	w.replace("b", "c", "n3")
	w.wantAwaits("c", "a")
	w.observe("a", "complete")
	w.wantAwaits("c")
}

func TestPlanNamesWhatElseIsAwaited(t *testing.T) {
	w := awaitsWorld(t)
	alloc := testAlloc("c", "g", "n3", 20000)
	alloc.Awaits = []structs.AwaitedAlloc{{ID: "a"}, {ID: "gone"}, {ID: "b"}}
	w.place("web", alloc)
	w.wantAwaits("c", "a") // b was not told to stop
	w.observe("a", "complete")
	w.wantAwaits("b")
	w.wantAwaits("c")
}

func TestWhatHoldsNobodyBack(t *testing.T) {
	lost := structs.Condition{Status: structs.ConditionLost}
	unknown := structs.Condition{Status: structs.ConditionUnknown}
	condition := func(c structs.Condition) func(w *world) {
		return func(w *world) {
			w.must(func(tx *Txn) error {
				return tx.SetNodeStatus("n1", "", nil, map[string]structs.Condition{"a": c}, w.now())
			})
		}
	}
	for name, end := range map[string]func(w *world){
		"failed":  func(w *world) { w.observe("a", "failed") },
		"lost":    condition(lost),
		"unknown": condition(unknown), // its group lets another run beside it
		"given up by a plan": func(w *world) {
			plan := w.plan("web")
			plan.Stops["n1"] = []*structs.AllocStop{{ID: "a", Condition: &lost}}
			w.must(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
		},
		"deregistered": func(w *world) {
			w.must(func(tx *Txn) error { tx.DeregisterNode("n1", "purged", w.now()); return nil })
		},
		"deleted": func(w *world) { w.must(func(tx *Txn) error { tx.deleteAlloc(tx.alloc("a")); return nil }) },
	} {
		t.Run(name, func(t *testing.T) {
			w := awaitsWorld(t)
			w.wantAwaits("b", "a")
			end(w)
			w.wantAwaits("b")
		})
		t.Run(name+" before", func(t *testing.T) {
			w := awaitsWorld(t)
			end(w)
			alloc := testAlloc("c", "g", "n3", 20000)
			alloc.PreviousAllocation = "a"
			w.place("web", alloc)
			w.wantAwaits("c")
		})
	}
}

func TestUnheardOnesHoldBackWhereTheGroupSaysSo(t *testing.T) {
	for name, disconnect := range map[string]*structs.DisconnectStrategy{
		"leased":   {StopOnClientAfter: structs.Ptr(time.Minute)},
		"in place": {LostAfter: structs.Ptr(time.Hour), Replace: structs.Ptr(false)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must(func(tx *Txn) error { return tx.RegisterNode(testNode("n1"), w.now()) })
			job := testJob("web", "service", "g")
			job.TaskGroups[0].Disconnect = disconnect
			w.register(job, nil)
			w.place("web", testAlloc("a", "g", "n1", 20000))
			w.replace("a", "b", "n2")
			for _, c := range []string{structs.ConditionAway, structs.ConditionUnknown, structs.ConditionLost} {
				w.wantAwaits("b", "a")
				w.must(func(tx *Txn) error {
					return tx.SetNodeStatus("n1", "", nil, map[string]structs.Condition{"a": {Status: c}}, w.now())
				})
			}
			w.wantAwaits("b")
		})
	}
}

// TestUnheardOneHoldsBackOnlyWhileItsNodeHasALease: a node comes back with other terms, and is not heard of again.
func TestUnheardOneHoldsBackOnlyWhileItsNodeHasALease(t *testing.T) {
	for name, disconnect := range map[string]*structs.DisconnectStrategy{
		"node's lease alone": nil,
		"group's own lease":  {StopOnClientAfter: structs.Ptr(time.Minute)},
		"in place":           {LostAfter: structs.Ptr(time.Hour), Replace: structs.Ptr(false)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			register := func(edit func(*structs.Node)) {
				t.Helper()
				n := testNode("n1")
				edit(n)
				w.must(func(tx *Txn) error { return tx.RegisterNode(n, w.now()) })
			}
			register(func(n *structs.Node) { n.Lease, n.MaxKillTimeout = time.Minute, time.Minute })
			job := testJob("web", "service", "g")
			job.TaskGroups[0].Disconnect = disconnect
			w.register(job, nil)
			w.place("web", testAlloc("a", "g", "n1", 20000), testAlloc("other", "g", "n1", 20001))
			w.replace("a", "b", "n2")
			w.must(func(tx *Txn) error {
				return tx.SetNodeStatus("n1", structs.NodeStatusDown, nil,
					map[string]structs.Condition{"a": {Status: structs.ConditionUnknown}}, w.now())
			})
			w.wantAwaits("b", "a")
			register(func(n *structs.Node) { n.Lease, n.MaxKillTimeout = time.Hour, time.Second })
			w.wantAwaits("b", "a")
			before := w.alloc("a").AllocModifyIndex
			register(func(n *structs.Node) {})
			if disconnect != nil {
				w.wantAwaits("b", "a")
				return
			}
			w.wantAwaits("b")
			if b, a := w.alloc("b"), w.alloc("a"); b.AllocModifyIndex != w.index || a.AllocModifyIndex != before || a.AwaitedBy != nil {
				t.Errorf("released at %d, its node is told at %d; %+v", w.index, b.AllocModifyIndex, a)
			}
			requireSameState(t, w.store, w.restored())
		})
	}
}

func TestOneThatRunsOnHoldsNobodyBack(t *testing.T) {
	w := awaitsWorld(t)
	alloc := testAlloc("canary", "g", "n3", 20000)
	alloc.PreviousAllocation = "b"
	alloc.Awaits = []structs.AwaitedAlloc{{ID: "b"}}
	w.place("web", alloc)
	w.wantAwaits("canary", "a") // but what that one waits for does
}

func TestWholeNodeOfWaitingOnesIsDeregistered(t *testing.T) {
	w := awaitsWorld(t)
	w.replace("b", "c", "n1")
	w.wantAwaits("c", "b", "a")
	w.must(func(tx *Txn) error { tx.DeregisterNode("n1", "purged", w.now()); return nil })
	w.wantAwaits("c", "b")
	if c := w.alloc("c"); c.Condition.Status != structs.ConditionLost {
		t.Fatalf("condition %+v", c.Condition)
	}
	requireSameState(t, w.store, w.restored())
}

func TestWaitSurvivesASnapshot(t *testing.T) {
	w := awaitsWorld(t)
	requireSameState(t, w.store, w.restored())
	w.store = w.restored()
	w.wantAwaits("b", "a")
	w.observe("a", "complete")
	w.wantAwaits("b")
}

// TestNobodyWaitsInACircle: each of two new allocations names the other one, and itself; then they stop, and two more
// replace them crosswise.
func TestNobodyWaitsInACircle(t *testing.T) {
	w := newWorld(t)
	w.must(func(tx *Txn) error { return tx.RegisterNode(testNode("n1"), w.now()) })
	w.register(testJob("web", "service", "g"), nil)
	cross := func(a, b string, stops ...string) {
		t.Helper()
		plan := w.plan("web")
		for i, pair := range [][2]string{{a, b}, {b, a}} {
			alloc := testAlloc(pair[0], "g", "n1", 20000+i)
			alloc.Awaits = []structs.AwaitedAlloc{{ID: pair[1]}, {ID: pair[0]}}
			for _, id := range stops {
				alloc.Awaits = append(alloc.Awaits, structs.AwaitedAlloc{ID: id})
			}
			plan.Places["n1"] = append(plan.Places["n1"], alloc)
		}
		for _, id := range stops {
			plan.Stops["n1"] = append(plan.Stops["n1"], &structs.AllocStop{ID: id, DesiredStatus: "stop"})
		}
		w.must(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
	}
	cross("a", "b")
	w.wantAwaits("a")
	w.wantAwaits("b")
	cross("c", "d", "a", "b")
	w.wantAwaits("c", "a", "b")
	w.wantAwaits("d", "a", "b")
	w.observe("b", "complete")
	w.observe("a", "complete")
	w.wantAwaits("c")
	w.wantAwaits("d")
}

// TestWaitsGoOnAfterARestore of a snapshot: those who wait are released as before, and nodes that the servers do not hear
// of any more are given up as before.
func TestWaitsGoOnAfterARestore(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"observed": func(w *world) { w.observe("a", "complete") },
		"purged": func(w *world) {
			w.must(func(tx *Txn) error { tx.DeregisterNode("n1", "purged", w.now()); return nil })
		},
		"lost": func(w *world) {
			w.must(func(tx *Txn) error {
				return tx.SetNodeStatus("n1", structs.NodeStatusDown, nil,
					map[string]structs.Condition{"a": {Status: structs.ConditionLost}}, w.now())
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := awaitsWorld(t)
			w.store = w.restored()
			w.wantAwaits("b", "a")
			end(w)
			w.wantAwaits("b")
		})
	}
}

// TestPurgedJobLetsNobodyWait for ever: what it left behind is awaited until it has ended, and not when it was collected.
func TestPurgedJobLetsNobodyWait(t *testing.T) {
	w := awaitsWorld(t)
	w.must(func(tx *Txn) error {
		tx.StopJob(JobStop{Namespace: "default", JobID: "web", Purge: true, Now: w.now()})
		return nil
	})
	w.register(testJob("web", "service", "g"), nil)
	alloc := testAlloc("c", "g", "n3", 20000)
	alloc.Awaits = []structs.AwaitedAlloc{{ID: "a"}}
	w.place("web", alloc)
	w.wantAwaits("c", "a")
	w.observe("a", "failed")
	w.must(func(tx *Txn) error { tx.ReapAlloc("a"); return nil })
	w.wantAwaits("c")
}
