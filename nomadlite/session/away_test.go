package session

import (
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// TestAgentExpectsToBeBack: its announcement lasts until it registers again; an operator's stays, and is made longer only.
func TestAgentExpectsToBeBack(t *testing.T) {
	c := newCluster(t, 1)
	n := connect(t, c.ports[0], "n1", nil)
	c.apply(fsm.KindNodeStatus, &fsm.NodeStatus{Now: 1, Updates: []fsm.NodeStatusUpdate{{NodeID: "n1", Status: structs.NodeStatusReady}}})
	away := func(secret string, d time.Duration) int {
		t.Helper()
		return n.call("away", &structs.NodeAwayRequest{NodeID: "n1", SecretID: secret, For: d}, &structs.NodeAwayResponse{})
	}
	register := func() *structs.Node {
		t.Helper()
		row := c.store.Node(nil, "n1").Copy()
		if code := n.call("register", &structs.NodeRegisterRequest{Node: row}, &structs.NodeHeartbeatResponse{}); code != 200 {
			t.Fatalf("register: %d", code)
		}
		return c.store.Node(nil, "n1")
	}
	for _, d := range []time.Duration{0, -time.Minute, structs.MaxNodeMaintenance + 1} {
		if code := away(n.secret, d); code != 400 {
			t.Errorf("for %s: %d", d, code)
		}
	}
	if code := away("guessed", time.Minute); code != 403 {
		t.Errorf("with another secret: %d", code)
	}
	if code := away(n.secret, 20*time.Minute); code != 200 {
		t.Fatalf("%d", code)
	}
	m := c.store.Node(nil, "n1").Maintenance
	if m == nil || !m.UntilBack || m.Reason != "agent expects to be back" || m.Until.Sub(m.Since) != 20*time.Minute {
		t.Fatalf("%+v", m)
	}
	if row := register(); row.Maintenance != nil || row.Status != structs.NodeStatusInit || row.SchedulingEligibility != structs.NodeEligible {
		t.Errorf("back: %+v, %s", row.Maintenance, row.Status)
	}

	operators := &structs.NodeMaintenance{Since: time.Now().UTC(), Until: time.Now().Add(time.Hour).UTC(), Reason: "new disk"}
	c.apply(fsm.KindNodeMaintenance, &fsm.NodeMaintenance{NodeID: "n1", Maintenance: operators, Now: 2})
	for d, longer := range map[time.Duration]bool{time.Minute: false, 2 * time.Hour: true} {
		if code := away(n.secret, d); code != 200 {
			t.Fatalf("%d", code)
		}
		m := c.store.Node(nil, "n1").Maintenance
		if m.UntilBack || m.Reason != "new disk" || longer && !m.Until.After(operators.Until) || m.Until.Before(operators.Until) {
			t.Errorf("for %s: %+v", d, m)
		}
		if register().Maintenance == nil {
			t.Error("a return has ended what an operator announced")
		}
	}
	c.apply(fsm.KindNodeDrain, &fsm.NodeDrain{NodeID: "n1", Strategy: &structs.DrainStrategy{}, Now: 3})
	if code := away(n.secret, time.Minute); code != 400 || c.store.Node(nil, "n1").Maintenance != nil {
		t.Errorf("while it drains: %d", code)
	}
}
