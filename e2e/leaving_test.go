package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// leaver is a pair whose agents leave when they are told to end.
func leaver(t *testing.T, config, client map[string]any, change func(*structs.Job, *structs.TaskGroup, *structs.Task)) *pair {
	t.Helper()
	p := preparePair(t, client)
	for _, node := range p.nodes {
		for key, value := range config {
			node.Config[key] = value
		}
		node.Start()
	}
	p.run(change)
	return p
}

// TestLeaving: an agent that leaves stops what runs in its ordinary order while it heartbeats, reports it, and is down
// at once; what ran is placed elsewhere only then. It comes back as a fresh node.
func TestLeaving(t *testing.T) {
	t.Parallel()
	p := leaver(t, map[string]any{"leave_on_terminate": true, "leave_deadline": "20s"}, nil,
		func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
			g.ShutdownDelay = structs.Ptr(time.Second)
			task.KillTimeout = structs.Ptr(1500 * time.Millisecond) // it ignores its kill signal
		})
	old, node := p.holder()
	p.server.followLog(old.ID, "up")
	told := time.Now()
	if err := node.Stop(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	left, _, err := p.server.Client.Nodes().Info(limited(t), old.NodeID, nil)
	if err != nil || left.Status != structs.NodeStatusDown || left.Events[len(left.Events)-1].Message != "Node left" {
		t.Errorf("the node is %s: %v", left.Status, err)
	}
	alloc, _, err := p.server.Client.Allocations().Info(limited(t), old.ID, nil)
	if err != nil || !alloc.ObservedTerminal() {
		t.Errorf("allocation was observed %s: %v", alloc.ObservedStatus, err)
	}
	replacement := p.replaced(old)
	p.noOverlap(old, replacement, told, 2*time.Second)
	if _, last := p.written(p.lives(old.ID)[0]); last.Sub(told) < 2400*time.Millisecond {
		t.Errorf("the task ended %s after its node was told to leave: where are its delay and its kill_timeout?", last.Sub(told))
	}
	node.Start()
	awaitNode(t, p.server.Client, old.NodeID, "the return of a fresh node", func(n *structs.Node) bool { return n.Ready() })
}

// TestLeavingHasADeadline: what has not ended by then is killed.
func TestLeavingHasADeadline(t *testing.T) {
	t.Parallel()
	p := leaver(t, map[string]any{"leave_on_interrupt": true, "leave_deadline": "1s"}, nil,
		func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
			g.ShutdownDelay = structs.Ptr(time.Hour)
			task.KillTimeout = structs.Ptr(25 * time.Second)
		})
	old, node := p.holder()
	p.server.followLog(old.ID, "up")
	told := time.Now()
	if err := syscall.Kill(node.PID(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	replacement := p.replaced(old)
	p.noOverlap(old, replacement, told, time.Second)
	if _, last := p.written(p.lives(old.ID)[0]); last.Sub(told) > 8*time.Second {
		t.Errorf("the task ended %s after its node was told to leave", last.Sub(told))
	}
}

// TestLeavingByADrain: with drain_on_shutdown the servers move what runs.
func TestLeavingByADrain(t *testing.T) {
	t.Parallel()
	p := leaver(t, map[string]any{"leave_on_terminate": true},
		map[string]any{"drain_on_shutdown": map[string]any{"deadline": "20s"}},
		func(_ *structs.Job, _ *structs.TaskGroup, task *structs.Task) {
			task.KillTimeout = structs.Ptr(time.Second)
		})
	old, node := p.holder()
	p.server.followLog(old.ID, "up")
	if err := node.Stop(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	left, _, err := p.server.Client.Nodes().Info(limited(t), old.NodeID, nil)
	if err != nil || left.Status != structs.NodeStatusDown || left.LastDrain == nil || left.DrainStrategy != nil {
		t.Errorf("the node is %s, drain %+v, %v", left.Status, left.LastDrain, err)
	}
	alloc, _, err := p.server.Client.Allocations().Info(limited(t), old.ID, nil)
	if err != nil || alloc.DesiredStatus != structs.AllocDesiredStatusStop || !alloc.ObservedTerminal() {
		t.Errorf("allocation is desired %s, observed %s: %v", alloc.DesiredStatus, alloc.ObservedStatus, err)
	}
	p.replaced(old)
	node.Start()
	awaitNode(t, p.server.Client, old.NodeID, "the return of a fresh node", func(n *structs.Node) bool { return n.Ready() })
}
