package e2e

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// TestAgentExpectsToBeBack: an agent that is told to end announces its absence. Its task runs on and is not replaced; with
// the agent's return the announcement is over. When it does not come back in time, its heartbeat was missed then.
func TestAgentExpectsToBeBack(t *testing.T) {
	t.Parallel()
	p := preparePair(t, nil)
	for _, node := range p.nodes {
		node.Config["expect_back"] = "20m"
		node.Start()
	}
	p.run(func(*structs.Job, *structs.TaskGroup, *structs.Task) {})
	old, node := p.holder()
	p.server.followLog(old.ID, "up")
	file := p.lives(old.ID)[0]
	pid, err := strconv.Atoi(file[strings.LastIndexByte(file, '.')+1:]) // each life writes to a file of its own
	if err != nil {
		t.Fatal(err)
	}
	stop := func() {
		t.Helper()
		if err := node.Stop(); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	}
	info := func() *structs.Allocation {
		t.Helper()
		alloc, _, err := p.server.Client.Allocations().Info(limited(t), old.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		return alloc
	}
	stop()
	away := awaitNode(t, p.server.Client, old.NodeID, "the node's absence", func(n *structs.Node) bool { return n.Down() })
	if m := away.Maintenance; away.Status != structs.NodeStatusDisconnected || away.SchedulingEligibility != structs.NodeEligible || m == nil ||
		!m.UntilBack || m.Reason != "agent expects to be back" || m.Until.Sub(m.Since) != 20*time.Minute {
		t.Errorf("the node is %s, its maintenance %+v", away.Status, m)
	}
	if a := info(); a.ClientStatus != structs.AllocClientStatusRunning || a.Condition.Status != structs.ConditionAway {
		t.Errorf("allocation is %s, condition %+v", a.ClientStatus, a.Condition)
	}
	node.Config["expect_back"] = "8s"
	node.Start()
	back := awaitNode(t, p.server.Client, old.NodeID, "its return", func(n *structs.Node) bool { return n.Ready() })
	if !strings.Contains(messages(back), "Node is back, its maintenance is over") {
		t.Errorf("events: %s", messages(back))
	}
	if a := info(); a.ClientStatus != structs.AllocClientStatusRunning || a.Condition.Status != structs.ConditionOK {
		t.Errorf("allocation is %s, condition %+v", a.ClientStatus, a.Condition)
	}
	if same, _ := p.holder(); same.ID != old.ID || len(p.lives(old.ID)) != 1 || !slices.Contains(node.tasks(), pid) {
		t.Errorf("allocation %s became %s, lives %v, process %d became %v", old.ID, same.ID, p.lives(old.ID), pid, node.tasks())
	}
	// This time it stays away.
	stop()
	announced := time.Now()
	replacement := p.replaced(old)
	p.server.followLog(replacement.ID, "up")
	if first, _ := p.written(p.lives(replacement.ID)[0]); first.Sub(announced) < 7*time.Second || first.Sub(announced) > 15*time.Second {
		t.Errorf("it was replaced %s after the announcement", first.Sub(announced))
	}
	if a := info(); a.ClientStatus != structs.AllocClientStatusLost || !a.Orphaned() {
		t.Errorf("allocation is %s, condition %+v", a.ClientStatus, a.Condition)
	}
	gone, _, err := p.server.Client.Nodes().Info(limited(t), old.NodeID, nil)
	if err != nil || gone.Status != structs.NodeStatusDown || gone.Maintenance != nil {
		t.Errorf("the node is %s, its maintenance %+v: %v", gone.Status, gone.Maintenance, err)
	}
}
