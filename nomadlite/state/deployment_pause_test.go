package state

import (
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// TestPausesOfADeployment: for how long allocations were away is told by the deployment itself, also when the scheduler
// writes it anew, and begins with the first and ends with the last of them.
func TestPausesOfADeployment(t *testing.T) {
	w := rollOut(t)
	condition := func(status string) structs.Condition {
		return structs.Condition{Status: status, Since: unixTime(w.now())}
	}
	set := func(status string, ids ...string) int64 {
		w.must(func(tx *Txn) error {
			conditions := map[string]structs.Condition{}
			for _, id := range ids {
				conditions[id] = condition(status)
			}
			return tx.SetNodeStatus("n1", structs.NodeStatusReady, nil, conditions, w.now())
		})
		return w.now()
	}
	group := func(name string) *structs.DeploymentState { return w.store.Deployment(nil, "d1").TaskGroups[name] }
	w.observe("b1", structs.AllocClientStatusRunning)
	since := set(structs.ConditionAway, "b1")
	if g := group("b"); g.Away != 1 || len(g.Pauses) != 1 || !g.Pauses[0].Since.Equal(unixTime(since)) || !g.Pauses[0].Until.IsZero() {
		t.Fatalf("one is away: %+v", g)
	}
	if g := group("a"); g.Away != 0 || len(g.Pauses) != 0 {
		t.Errorf("the other group is %+v", g)
	}
	w.must(func(tx *Txn) error {
		tx.UpsertDeployment(&structs.Deployment{ID: "d1", Namespace: "default", JobID: "web", Status: structs.DeploymentStatusRunning,
			TaskGroups: map[string]*structs.DeploymentState{"a": {}, "b": {ProgressDeadline: time.Minute}}}, w.now())
		return nil
	})
	w.observe("b1", structs.AllocClientStatusRunning) // to be heard is to be back
	g := group("b")
	if g.Away != 0 || len(g.Pauses) != 1 || g.Pauses[0].Until.IsZero() || g.Pauses[0].Until.After(unixTime(w.now())) {
		t.Fatalf("it is back: %+v", g)
	}
	if by, counts := g.Extend(g.RequireProgressBy, g.ProgressDeadline); !counts ||
		by.Sub(g.RequireProgressBy) != g.Pauses[0].Until.Sub(g.Pauses[0].Since) {
		t.Errorf("the deadline is extended to %s, %v", by, counts)
	}
	set(structs.ConditionAway, "b1")
	set(structs.ConditionLost, "b1") // given up: it is not awaited any more
	if g := group("b"); g.Away != 0 || len(g.Pauses) != 2 {
		t.Errorf("it was given up: %+v", g)
	}
}
