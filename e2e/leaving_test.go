package e2e

import (
	"strings"
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
	alloc, _, err := p.server.Client.Allocations().Info(limited(t), old.ID, nil)
	if err != nil || alloc.ClientStatus != structs.AllocClientStatusComplete || alloc.TaskStates["t"].Failed {
		t.Errorf("what was killed is %s: %v\n%+v", alloc.ClientStatus, err, alloc.TaskStates)
	}
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

// TestKilledWhileItLeaves: an agent that is killed in the middle of leaving comes again as a fresh node: it has the eligibility
// which it had before, new work is placed there, and the stops that were under way are carried through.
func TestKilledWhileItLeaves(t *testing.T) {
	for name, client := range map[string]map[string]any{
		"by stops":   nil,
		"by a drain": {"drain_on_shutdown": map[string]any{"deadline": "1h"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := leaver(t, map[string]any{"leave_on_terminate": true, "leave_deadline": "1h"}, client,
				func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
					g.ShutdownDelay = structs.Ptr(3 * time.Second)
					task.KillTimeout = structs.Ptr(time.Second) // it ignores its kill signal
				})
			old, node := p.holder()
			p.server.followLog(old.ID, "up")
			if err := syscall.Kill(node.PID(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			leaving := awaitNode(t, p.server.Client, old.NodeID, "the leaving", func(n *structs.Node) bool {
				return n.SchedulingEligibility == structs.NodeIneligible
			})
			if (leaving.DrainStrategy != nil) != (client != nil) {
				t.Errorf("drain of the node that leaves: %+v", leaving.DrainStrategy)
			}
			awaitAllocs(t, p.server.Client, "one", "the stop under way", func(l []*structs.AllocationListStub) bool {
				for _, a := range l {
					if a.ID == old.ID {
						events := a.TaskStates["t"].Events
						return strings.Contains(events[len(events)-1].DisplayMessage, "shutdown_delay")
					}
				}
				return false
			})
			node.Kill()
			node.Start()
			back := awaitNode(t, p.server.Client, old.NodeID, "the return of a fresh node", func(n *structs.Node) bool { return n.Ready() })
			if client != nil && (back.LastDrain == nil || back.LastDrain.Status != "canceled") {
				t.Errorf("its drain ended as %+v", back.LastDrain)
			}
			awaitAllocs(t, p.server.Client, "one", "the end of what was stopping", func(l []*structs.AllocationListStub) bool {
				for _, a := range l {
					if a.ID == old.ID {
						return a.ClientStatus == structs.AllocClientStatusComplete
					}
				}
				return false
			})
			p.replaced(old)
			if lives := p.lives(old.ID); len(lives) != 1 {
				t.Errorf("it was started again: %v", lives)
			}
			register(t, p.server.Client, job("new", "sleep 100", func(j *structs.Job, _ *structs.TaskGroup, _ *structs.Task) {
				j.Constraints = []*structs.Constraint{{LTarget: "${node.unique.id}", Operand: "=", RTarget: old.NodeID}}
			}))
			awaitRunning(t, p.server.Client, "new", 1)
		})
	}
}

// TestLeavingServerAndClient: an agent that is its cluster's only server lets its node leave, through itself, and then
// stops. What it was told is kept; its node comes back as a fresh one.
func TestLeavingServerAndClient(t *testing.T) {
	t.Parallel()
	a := newAgent(t, func(c map[string]any) { c["leave_on_terminate"], c["leave_deadline"] = true, "20s" })
	a.Start()
	p := &pair{t: t, server: a, dir: t.TempDir()}
	p.run(func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		g.ShutdownDelay = structs.Ptr(time.Second)
		task.KillTimeout = structs.Ptr(500 * time.Millisecond) // it ignores its kill signal
	})
	old := awaitRunning(t, a.Client, "one", 1)[0]
	a.followLog(old.ID, "up")
	told := time.Now()
	if err := a.Stop(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	if _, last := p.written(p.lives(old.ID)[0]); last.Sub(told) < 1400*time.Millisecond {
		t.Errorf("the task ended %s after its agent was told to leave: where are its delay and its kill_timeout?", last.Sub(told))
	}
	inOrder(t, a.Log(), "node is leaving", "node has left", "this server is the only one of its cluster")
	a.Start()
	back := awaitNode(t, a.Client, old.NodeID, "the return of a fresh node", func(n *structs.Node) bool { return n.Ready() })
	left := false
	for _, e := range back.Events {
		left = left || e.Message == "Node left"
	}
	if !left || back.SchedulingEligibility != structs.NodeEligible {
		t.Errorf("node that left is %s, events %+v", back.SchedulingEligibility, back.Events)
	}
	replacement := p.replaced(old)
	ended, _, err := a.Client.Allocations().Info(limited(t), old.ID, nil)
	if err != nil || !ended.ObservedTerminal() || ended.Condition.Status == structs.ConditionLost {
		t.Errorf("the old allocation was observed %s, condition %+v: %v", ended.ObservedStatus, ended.Condition, err)
	}
	a.followLog(replacement.ID, "up")
	if len(p.lives(old.ID)) != 1 {
		t.Errorf("lives %v", p.lives(old.ID))
	}
}

// TestLeavingOneOfThree: of three agents that are servers and clients one leaves, the leader: what ran on it runs
// elsewhere once it has ended, the servers are two, which go on; and it is taken in again.
func TestLeavingOneOfThree(t *testing.T) {
	t.Parallel()
	all := severalServers(t, 3, func(_ int, a *agent) { a.Config["leave_on_terminate"] = true })
	// Where its allocation runs must not follow from who leads: one everywhere.
	p := &pair{t: t, dir: t.TempDir(), server: all[0]}
	p.run(func(j *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		g.Count, task.KillTimeout = structs.Ptr(6), structs.Ptr(200*time.Millisecond)
		g.Spreads = []*structs.Spread{{Attribute: "${node.unique.name}", Weight: structs.Ptr(int8(100))}}
	})
	awaitRunning(t, all[0].Client, "one", 6)
	leaver := all[leader(t, all)]
	var rest []*agent
	for _, a := range all {
		if a != leaver {
			rest = append(rest, a)
		}
	}
	told := time.Now()
	if err := leaver.Stop(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	if took := time.Since(told); took > 8*time.Second {
		t.Errorf("it left in %s", took)
	}
	inOrder(t, leaver.Log(), "node is leaving", "node has left", "this server has left its cluster")
	for _, a := range rest {
		peers, err := a.Client.Status().Peers(limited(t))
		if err != nil || len(peers) != 2 {
			t.Errorf("peers %v: %v", peers, err)
		}
		if out, _, code := a.cli("", "server", "members"); code != 0 || !strings.Contains(out, "left") {
			t.Errorf("members do not show that one left: exit %d\n%s", code, out)
		}
	}
	running := awaitAllocs(t, rest[0].Client, "one", "six on two nodes", func(l []*structs.AllocationListStub) bool {
		n := 0
		for _, a := range withStatus(l, structs.AllocClientStatusRunning) {
			if a.NodeName == leaver.Config["name"] {
				return false
			}
			n++
		}
		return n == 6
	})
	for _, a := range running {
		if a.NodeName != leaver.Config["name"] {
			continue
		}
		info, _, err := rest[0].Client.Allocations().Info(limited(t), a.ID, nil)
		if err != nil || !info.ObservedTerminal() {
			t.Errorf("%s on the node that left was observed %s: %v", a.ID, info.ObservedStatus, err)
		}
	}
	if took := time.Since(told); took > 12*time.Second {
		t.Errorf("all was moved after %s", took)
	}
	register(t, rest[1].Client, job("after", "exit 0", func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
		g.Count = structs.Ptr(0)
	}))
	if took := leaver.Start(); took > 8*time.Second {
		t.Errorf("it was taken in again after %s", took)
	}
	if _, _, err := leaver.Client.Jobs().Info(limited(t), "after", nil); err != nil {
		t.Errorf("the one that came back: %v", err)
	}
	if peers, err := leaver.Client.Status().Peers(limited(t)); err != nil || len(peers) != 3 {
		t.Errorf("peers after its return %v: %v", peers, err)
	}
}

// inOrder checks that a log has the texts one after the other.
func inOrder(t *testing.T, log string, texts ...string) {
	t.Helper()
	rest := log
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Errorf("the log does not say %q after what came before:\n%s", text, log)
			return
		}
		rest = after
	}
}

// TestDrainOfADeadNodeTellsOfOrphans: what is lost there holds up no drain, and runs on all the same.
func TestDrainOfADeadNodeTellsOfOrphans(t *testing.T) {
	t.Parallel()
	p := leaver(t, nil, nil, nil)
	old, node := p.holder()
	p.server.followLog(old.ID, "up")
	node.Kill()
	awaitNode(t, p.server.Client, old.NodeID, "its loss", func(n *structs.Node) bool { return n.Status == structs.NodeStatusDown })
	const orphans = "; 1 allocation is an orphan: it may still run there"
	awaitAllocs(t, p.server.Client, "one", "the loss of its allocation", func(l []*structs.AllocationListStub) bool {
		return len(withStatus(l, structs.AllocClientStatusLost)) == 1
	})
	if out := p.server.ok("node", "drain", "-enable", "-yes", old.NodeID); !strings.Contains(out, "Drain complete for node "+old.NodeID+orphans) {
		t.Errorf("node drain printed %s", out)
	}
	drained, _, err := p.server.Client.Nodes().Info(limited(t), old.NodeID, nil)
	if err != nil || !strings.HasSuffix(drained.Events[len(drained.Events)-1].Message, "complete"+orphans) {
		t.Errorf("events %+v: %v", drained.Events, err)
	}
}
