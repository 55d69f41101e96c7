package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// awaitNode waits until a node's row satisfies done.
func awaitNode(t *testing.T, c *api.Client, id, what string, done func(*structs.Node) bool) *structs.Node {
	t.Helper()
	q := &api.QueryOptions{WaitTime: 5 * time.Second}
	var last *structs.Node
	ctx := limited(t)
	for {
		node, meta, err := c.Nodes().Info(ctx, id, q)
		if err != nil {
			t.Fatalf("wait for %s: %v; last seen: %+v", what, err, last)
		}
		if last = node; done(node) {
			return node
		}
		q.WaitIndex = meta.LastIndex
	}
}

// TestMaintenance kills an agent (-9) in an announced downtime: nothing is replaced, and it finds its task again. When
// it is away for longer than announced, the task is replaced.
func TestMaintenance(t *testing.T) {
	t.Parallel()
	p := newPair(t, nil, func(*structs.Job, *structs.TaskGroup, *structs.Task) {})
	old, node := p.holder()
	p.server.followLog(old.ID, "up")
	for _, bad := range [][]string{{}, {"-for", "soon"}, {"-for", "-1m"}, {"-for", "200h"}, {"-for", "1h", "-disable"}} {
		out, text, code := p.server.cli("", append(append([]string{"node", "maintenance"}, bad...), old.NodeID)...)
		if code == 0 || text == "" {
			t.Errorf("%v: exit %d, %q %q", bad, code, out, text)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		out, text, code := p.server.cli("", args...)
		if code != 0 {
			t.Fatalf("%v: exit %d: %s %s", args, code, out, text)
		}
		return out
	}
	run("node", "maintenance", "-for", "20m", "-reason", "new disk", old.NodeID)
	if list := run("node", "status"); strings.Count(list, "eligible (maintenance)") != 1 {
		t.Errorf("the list does not show the one node in maintenance:\n%s", list)
	}
	node.Kill()
	away := awaitNode(t, p.server.Client, old.NodeID, "the node's absence", func(n *structs.Node) bool { return n.Status == structs.NodeStatusDisconnected })
	if away.SchedulingEligibility != structs.NodeEligible || away.Maintenance == nil {
		t.Errorf("eligibility %s, maintenance %+v", away.SchedulingEligibility, away.Maintenance)
	}
	alloc, _, err := p.server.Client.Allocations().Info(limited(t), old.ID, nil)
	if err != nil || alloc.ClientStatus != structs.AllocClientStatusRunning || alloc.Condition.Status != structs.ConditionAway {
		t.Errorf("allocation is %s, condition %+v, %v", alloc.ClientStatus, alloc.Condition, err)
	}
	run("node", "maintenance", "-for", "1m", p.other(node))
	for text, args := range map[string][]string{
		"new disk":            {"node", "status", old.NodeID},
		"away since":          {"alloc", "status", old.ID},
		"Maintenance of node": {"node", "maintenance", "-disable", p.other(node)},
	} {
		if out := run(args...); !strings.Contains(out, text) {
			t.Errorf("%v does not say %q:\n%s", args, text, out)
		}
	}
	node.Start()
	awaitNode(t, p.server.Client, old.NodeID, "the node's return", func(n *structs.Node) bool { return n.Status == structs.NodeStatusReady })
	if same, _ := p.holder(); same.ID != old.ID || len(p.lives(old.ID)) != 1 {
		t.Errorf("allocation %s became %s, lives %v", old.ID, same.ID, p.lives(old.ID))
	}
	// This time it stays away.
	run("node", "maintenance", "-for", "4s", old.NodeID)
	announced := time.Now()
	node.Kill()
	replacement := p.replaced(old)
	p.server.followLog(replacement.ID, "up")
	first, _ := p.written(p.lives(replacement.ID)[0])
	if first.Sub(announced) < 3*time.Second {
		t.Errorf("it was replaced %s after the announcement", first.Sub(announced))
	}
	if out := run("node", "status", old.NodeID); !strings.Contains(out, "Unheard Allocations") {
		t.Errorf("the orphan is not shown:\n%s", out)
	}
}

// other gives the id of the node that is not agent's.
func (p *pair) other(agent *agent) string {
	p.t.Helper()
	nodes, _, err := p.server.Client.Nodes().List(limited(p.t), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Name != agent.Config["name"] {
			return n.ID
		}
	}
	p.t.Fatal("there is no other node")
	return ""
}

// TestDrainEndsTheMaintenanceOfASilentNode drains a node that is away for an hour: nobody waits for it any more.
func TestDrainEndsTheMaintenanceOfASilentNode(t *testing.T) {
	t.Parallel()
	p := newPair(t, nil, func(*structs.Job, *structs.TaskGroup, *structs.Task) {})
	old, node := p.holder()
	for _, args := range [][]string{{"maintenance", "-for", "1h", old.NodeID}, {"drain", "-enable", "-detach", old.NodeID}} {
		if out, text, code := p.server.cli("", append([]string{"node"}, args...)...); code != 0 {
			t.Fatalf("%v: exit %d: %s %s", args, code, out, text)
		}
		if args[0] == "maintenance" {
			node.Kill()
			awaitNode(t, p.server.Client, old.NodeID, "the node's absence", func(n *structs.Node) bool { return n.Status == structs.NodeStatusDisconnected })
		}
	}
	p.server.followLog(p.replaced(old).ID, "up")
	n := awaitNode(t, p.server.Client, old.NodeID, "the node to be down", func(n *structs.Node) bool { return n.Status == structs.NodeStatusDown })
	if n.Maintenance != nil || n.SchedulingEligibility != structs.NodeIneligible {
		t.Errorf("maintenance %+v, %s", n.Maintenance, n.SchedulingEligibility)
	}
}
