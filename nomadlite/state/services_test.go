package state

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

func testService(allocID, name string, tags ...string) *structs.ServiceRegistration {
	return &structs.ServiceRegistration{ID: structs.ServiceID(allocID, "g", "", &structs.Service{Name: name, PortLabel: "http"}),
		ServiceName: name, NodeID: "n1", AllocID: allocID, Tags: tags, Address: "10.0.0.1", Port: 20000}
}

// offer registers services as a node does and gives the number of those that changed.
func (w *world) offer(list ...*structs.ServiceRegistration) (changed int) {
	w.t.Helper()
	w.must(func(tx *Txn) error { changed = tx.UpsertServices(list); return nil })
	return changed
}

// found lists the ids that a look-up of a service gives.
func (w *world) found(name string) []string {
	var ids []string
	for s := range w.store.ServicesByName(nil, "default", name) {
		ids = append(ids, s.ID)
	}
	return ids
}

func TestServicesFollowTheirAllocation(t *testing.T) {
	for _, tc := range []struct {
		name  string
		do    func(w *world)
		shown bool
		kept  bool // the row is there, shown or not
	}{
		{"running", func(w *world) { w.observe("a1", "running") }, true, true},
		{"away", func(w *world) { w.condition("a1", structs.ConditionAway) }, false, true},
		{"unknown", func(w *world) { w.condition("a1", structs.ConditionUnknown) }, false, true},
		{"unknown and heard again", func(w *world) {
			w.condition("a1", structs.ConditionUnknown)
			w.observe("a1", "running")
		}, true, true},
		{"unknown and the node is back", func(w *world) {
			w.condition("a1", structs.ConditionUnknown)
			w.condition("a1", structs.ConditionOK)
		}, true, true},
		{"lost", func(w *world) { w.condition("a1", structs.ConditionLost) }, false, false},
		{"complete", func(w *world) { w.observe("a1", "running"); w.observe("a1", "complete") }, false, false},
		{"failed", func(w *world) { w.observe("a1", "failed") }, false, false},
		{"node deregistered", func(w *world) {
			w.must(func(tx *Txn) error { tx.DeregisterNode("n1", "left", w.now()); return nil })
		}, false, false},
		{"to stop, not stopped yet", func(w *world) {
			plan := w.plan("web")
			plan.Stops["n1"] = []*structs.AllocStop{{ID: "a1", DesiredStatus: structs.AllocDesiredStatusStop, DesiredDescription: "test"}}
			w.must(func(tx *Txn) error { return tx.ApplyPlan(plan, w.now()) })
		}, true, true},
		{"reaped", func(w *world) {
			w.observe("a1", "complete")
			w.must(func(tx *Txn) error { tx.ReapAlloc("a1"); return nil })
		}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := oneAlloc(t)
			reg := testService("a1", "web")
			w.offer(reg)
			ws := memdb.NewWatchSet()
			for range w.store.ServicesByName(ws, "default", "web") {
			}
			before := w.store.TableIndex(TableServices)
			tc.do(w)
			if got := len(w.found("web")) == 1; got != tc.shown {
				t.Errorf("shown %v, want %v", got, tc.shown)
			}
			if got := w.store.Service(nil, "default", reg.ID) != nil; got != tc.kept {
				t.Errorf("kept %v, want %v", got, tc.kept)
			}
			if !tc.shown {
				if w.store.TableIndex(TableServices) == before {
					t.Error("the table's index did not move")
				}
				if !fired(ws) {
					t.Error("the watch did not fire")
				}
			}
			requireSameState(t, w.store, w.restored())
		})
	}
}

func TestOnlyTheNodesOwnAllocationsAreOffered(t *testing.T) {
	w := oneAlloc(t)
	w.must(func(tx *Txn) error { return tx.RegisterNode(testNode("n2"), w.now()) })
	w.place("web", testAlloc("a2", "g", "n2", 20001), testAlloc("a3", "g", "n1", 20002))
	w.observe("a3", "complete")
	foreign, forged, ended := testService("a2", "foreign"), testService("a1", "forged"), testService("a3", "ended")
	forged.ID = strings.Replace(forged.ID, "a1", "a2", 1)
	if n := w.offer(foreign, forged, ended, testService("a9", "nobody")); n != 0 {
		t.Errorf("%d were taken", n)
	}
	lied := testService("a1", "web")
	lied.Namespace, lied.JobID, lied.Datacenter = "other", "other", "other"
	if n := w.offer(lied); n != 1 {
		t.Fatalf("%d were taken", n)
	}
	got := w.store.Service(nil, "default", lied.ID)
	if got == nil || got.JobID != "web" || got.Namespace != "default" || got.Datacenter != w.store.Node(nil, "n1").Datacenter {
		t.Errorf("got %+v", got)
	}
}

func TestRegisteringAgainChangesNothing(t *testing.T) {
	w := oneAlloc(t)
	w.offer(testService("a1", "web", "blue"))
	at := w.store.TableIndex(TableServices)
	if n := w.offer(testService("a1", "web", "blue")); n != 0 || w.store.TableIndex(TableServices) != at {
		t.Errorf("%d changed, the table's index went from %d to %d", n, at, w.store.TableIndex(TableServices))
	}
	w.offer(testService("a1", "web", "green"))
	for s := range w.store.ServicesByName(nil, "default", "web") {
		if s.CreateIndex != at || s.ModifyIndex != w.index || !slices.Equal(s.Tags, []string{"green"}) {
			t.Errorf("got %+v, want it made at %d and changed at %d", s, at, w.index)
		}
	}
}

func TestDeleteService(t *testing.T) {
	w := oneAlloc(t)
	reg := testService("a1", "web")
	w.offer(reg)
	for _, tc := range []struct {
		ns, id, node string
		want         bool
	}{{"other", reg.ID, "", false}, {"default", reg.ID, "n2", false}, {"default", reg.ID, "n1", true}, {"default", reg.ID, "n1", false}} {
		w.must(func(tx *Txn) error {
			if got := tx.DeleteService(tc.ns, tc.id, tc.node); got != tc.want {
				t.Errorf("delete %+v: %v", tc, got)
			}
			return nil
		})
	}
	if ids := w.found("web"); len(ids) != 0 {
		t.Errorf("found %v", ids)
	}
}

func TestServiceNamesGatherTags(t *testing.T) {
	w := oneAlloc(t)
	w.place("web", testAlloc("a2", "g", "n1", 20001))
	w.offer(testService("a1", "web", "b", "a"), testService("a2", "web", "c", "a"), testService("a1", "db"), testService("a1", "webby"))
	list := w.store.ServiceNames(nil, structs.AllNamespaces)
	if len(list) != 1 || list[0].Namespace != "default" || len(list[0].Services) != 3 {
		t.Fatalf("got %+v", list)
	}
	for i, want := range []string{"db []", "web [a b c]", "webby []"} {
		s := list[0].Services[i]
		if got := s.ServiceName + " [" + strings.Join(s.Tags, " ") + "]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := w.found("web"); len(got) != 2 {
		t.Errorf("web is found as %v", got)
	}
	if got := len(slices.Collect(w.store.ServicesByJob(nil, "default", "web"))); got != 4 {
		t.Errorf("the job has %d", got)
	}
	if got := len(slices.Collect(w.store.ServicesByAlloc(nil, "a1"))); got != 3 {
		t.Errorf("the allocation has %d", got)
	}
	if got := len(slices.Collect(w.store.ServicesByNode("n1"))); got != 4 {
		t.Errorf("the node has %d", got)
	}
	if got := w.store.ServiceNames(nil, "other"); got == nil || len(got) != 0 {
		t.Errorf("another namespace has %v", got)
	}
}
