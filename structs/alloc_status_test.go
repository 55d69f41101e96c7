package structs

import (
	"reflect"
	"testing"
	"time"
)

func TestClientStatusFollowsFromObservationAndCondition(t *testing.T) {
	conditions := []string{"", ConditionOK, ConditionAway, ConditionUnknown, ConditionLost}
	for observed, want := range map[string][]string{
		"":                        {"pending", "pending", "pending", "unknown", "lost"},
		AllocClientStatusPending:  {"pending", "pending", "pending", "unknown", "lost"},
		AllocClientStatusRunning:  {"running", "running", "running", "unknown", "lost"},
		AllocClientStatusComplete: {"complete", "complete", "complete", "complete", "complete"},
		AllocClientStatusFailed:   {"failed", "failed", "failed", "failed", "failed"},
	} {
		for i, c := range conditions {
			a := &Allocation{ObservedStatus: observed, Condition: Condition{Status: c}}
			if got := a.DeriveClientStatus(); got != want[i] {
				t.Errorf("observed %q, condition %q: want %s, got %s", observed, c, want[i], got)
			}
		}
	}
}

func TestObservedStatusOnlyMovesForward(t *testing.T) {
	legal := map[string][]string{
		"":         {"pending", "running", "complete", "failed"},
		"pending":  {"pending", "running", "complete", "failed"},
		"running":  {"running", "complete", "failed"},
		"complete": {"complete"},
		"failed":   {"failed"},
		"lost":     {},
	}
	for from, tos := range legal {
		want := map[string]bool{}
		for _, to := range tos {
			want[to] = true
		}
		for _, to := range []string{"", "pending", "running", "complete", "failed", "lost", "unknown"} {
			if got := ObservedTransitionLegal(from, to); got != want[to] {
				t.Errorf("%q -> %q: %v", from, to, got)
			}
		}
	}
}

func TestTerminalStatuses(t *testing.T) {
	for _, c := range []struct {
		desired, client          string
		server, clientEnd, holds bool
	}{
		{"run", "pending", false, false, true},
		{"run", "running", false, false, true},
		{"run", "unknown", false, false, true},
		{"stop", "running", true, false, true},
		{"evict", "pending", true, false, true},
		{"run", "complete", false, true, false},
		{"run", "lost", false, true, false},
		{"stop", "failed", true, true, false},
	} {
		a := &Allocation{DesiredStatus: c.desired, ClientStatus: c.client}
		if a.ServerTerminal() != c.server || a.ClientTerminal() != c.clientEnd || a.HoldsResources() != c.holds ||
			a.TerminalStatus() != (c.server || c.clientEnd) {
			t.Errorf("%s/%s: server %v, client %v, holds %v", c.desired, c.client, a.ServerTerminal(), a.ClientTerminal(),
				a.HoldsResources())
		}
	}
	orphan := &Allocation{ObservedStatus: "running", Condition: Condition{Status: ConditionLost}}
	if !orphan.Orphaned() || orphan.ObservedTerminal() {
		t.Error("a lost allocation that was last seen running is no orphan")
	}
	orphan.ObservedStatus = "failed"
	if orphan.Orphaned() || !orphan.ObservedTerminal() {
		t.Error("a lost allocation that has ended is an orphan")
	}
}

func TestAllocNames(t *testing.T) {
	a := &Allocation{Name: AllocName("job[1]", "g.x", 12)}
	if a.Name != "job[1].g.x[12]" || a.NameIndex() != 12 {
		t.Errorf("%s has index %d", a.Name, a.NameIndex())
	}
	for _, name := range []string{"", "job.g", "job.g[", "job.g[]", "job.g[x]", "job.g[-1]", "job.g[1]x"} {
		if got := (&Allocation{Name: name}).NameIndex(); got != -1 {
			t.Errorf("%q has index %d", name, got)
		}
	}
}

func TestTransitionsMerge(t *testing.T) {
	d := DesiredTransition{Migrate: Ptr(true), KillTimeout: Ptr(4 * time.Second)}
	d.Merge(nil)
	d.Merge(&DesiredTransition{NoShutdownDelay: Ptr(true), KillTimeout: Ptr(9 * time.Second)})
	want := DesiredTransition{Migrate: Ptr(true), NoShutdownDelay: Ptr(true), KillTimeout: Ptr(4 * time.Second)}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("got %+v", d)
	}
	d.Merge(&DesiredTransition{Migrate: Ptr(false), KillTimeout: Ptr(time.Duration(0))})
	if *d.Migrate || *d.KillTimeout != 0 {
		t.Errorf("got %+v", d)
	}
}

func TestFinishedAt(t *testing.T) {
	early, late := time.Unix(100, 0).UTC(), time.Unix(200, 0).UTC()
	a := &Allocation{ModifyTime: 300e9}
	if got := a.FinishedAt(); !got.Equal(time.Unix(300, 0)) {
		t.Errorf("without tasks: %s", got)
	}
	a.TaskStates = map[string]*TaskState{"a": {FinishedAt: late}, "b": {FinishedAt: early}, "c": {}}
	if got := a.FinishedAt(); !got.Equal(late) {
		t.Errorf("got %s", got)
	}
	if !(&Allocation{}).FinishedAt().IsZero() {
		t.Error("an allocation without a time has one")
	}
}

// TestStubsLeaveNothingOut fills an object and looks for members of its stub that stayed empty.
func TestStubsLeaveNothingOut(t *testing.T) {
	alloc := filled[Allocation]("")
	node := filled[Node]("")
	node.Attributes["nomad.version"] = CompatVersion
	job := filled[Job]("")
	job.Dispatched = false
	for _, c := range []struct {
		stub  any
		empty map[string]bool // what a list sets only when asked for it
	}{
		{alloc.Stub(), map[string]bool{"AllocatedResources": true}},
		{node.Stub(), map[string]bool{"Attributes": true, "NodeResources": true, "ReservedResources": true}},
		{job.Stub(&JobSummary{}), map[string]bool{"Meta": true}},
		{filled[Evaluation]("").Stub(), nil},
	} {
		v := reflect.ValueOf(c.stub).Elem()
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if v.Field(i).IsZero() != c.empty[name] {
				t.Errorf("%s.%s: empty is %v", v.Type().Name(), name, v.Field(i).IsZero())
			}
		}
	}
}
