package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// messages are what a node's events say.
func messages(n *structs.Node) string {
	var out []string
	for _, e := range n.Events {
		out = append(out, e.Message)
	}
	return strings.Join(out, "; ")
}

// TestAgentIsRestarted within its heartbeat's time, first told to end and then killed (-9): its node stays ready, the
// processes are the same, and nobody makes an evaluation about it.
func TestAgentIsRestarted(t *testing.T) {
	t.Parallel()
	p := newIdlePair(t, nil)
	p.server.Config["server"].(map[string]any)["heartbeat_grace"] = "20s"
	p.server.Start()
	for _, node := range p.nodes {
		node.Start()
	}
	p.run(func(*structs.Job, *structs.TaskGroup, *structs.Task) {})
	old, node := p.holder()
	p.server.followLog(old.ID, "up")
	ready := awaitNode(t, p.server.Client, old.NodeID, "readiness", func(n *structs.Node) bool { return n.Ready() })
	evals := func() int {
		list, _, err := p.server.Client.Jobs().Evaluations(limited(t), "one", nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := evals()
	for _, end := range []func(){node.Kill, func() {
		if err := node.Stop(); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	}} {
		end()
		node.Start()
	}
	if same, _ := p.holder(); same.ID != old.ID || len(p.lives(old.ID)) != 1 || evals() != before {
		t.Errorf("allocation %s became %s, lives %v, %d evaluations became %d", old.ID, same.ID, p.lives(old.ID), before, evals())
	}
	now, _, err := p.server.Client.Nodes().Info(limited(t), old.NodeID, nil)
	if err != nil || now.Status != structs.NodeStatusReady || len(now.Events) != len(ready.Events) {
		t.Errorf("the node is %s, its events are %s, were %s: %v", now.Status, messages(now), messages(ready), err)
	}
}

// TestMaintenanceOfLeasesAndServices: of a node that is away for longer than one group's lease that group, which the
// command names first, is ended and replaced; the other one waits, and its service is not found meanwhile. The node's
// eligibility is masked for that time, and is what it was afterwards.
func TestMaintenanceOfLeasesAndServices(t *testing.T) {
	t.Parallel()
	p := preparePair(t, nil)
	p.nodes[0].Start()
	node := p.nodes[0]
	p.run(leaseOf(3*time.Second, 500*time.Millisecond))
	old, _ := p.holder()
	p.server.followLog(old.ID, "up")
	register(t, p.server.Client, job("waits", "exec sleep 600", func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
		g.Services = []*structs.Service{nomadService("waits", "")}
	}))
	waits := awaitRunning(t, p.server.Client, "waits", 1)[0]
	awaitInstances(t, p.server.Client, "waits", 1)
	out, errs, code := p.server.cli("", "node", "maintenance", "-for", "1h", old.NodeID)
	first, second := strings.Index(out, "3s"), strings.Index(out, "is in maintenance until")
	if code != 0 || first < 0 || second < first || strings.Contains(out[:second], "waits") {
		t.Errorf("exit %d, leased groups are not listed first: %q %q", code, out, errs)
	}
	masked := awaitNode(t, p.server.Client, old.NodeID, "the announcement", func(n *structs.Node) bool { return n.Maintenance != nil })
	if masked.SchedulingEligibility != structs.NodeEligible {
		t.Errorf("eligibility was changed to %s", masked.SchedulingEligibility)
	}
	// Nothing new is placed there, though it is heard, and all of its room is free.
	register(t, p.server.Client, job("new", "exec sleep 600", nil))
	awaitBlocked(t, p, "new")
	p.nodes[1].Start()
	if news := awaitRunning(t, p.server.Client, "new", 1)[0]; news.NodeID == old.NodeID {
		t.Error("a node in maintenance got something new")
	}
	cut := time.Now()
	node.Kill()
	p.noOverlap(old, p.replaced(old), cut, 3*time.Second)
	away, _, err := p.server.Client.Allocations().Info(limited(t), waits.ID, nil)
	if err != nil || away.Condition.Status != structs.ConditionAway || away.ClientStatus != structs.AllocClientStatusRunning {
		t.Errorf("the other one is %s, condition %+v: %v", away.ClientStatus, away.Condition, err)
	}
	awaitInstances(t, p.server.Client, "waits", 0)
	node.Start()
	awaitInstances(t, p.server.Client, "waits", 1)
	if same := awaitRunning(t, p.server.Client, "waits", 1)[0]; same.ID != waits.ID {
		t.Errorf("%s was replaced by %s", waits.ID, same.ID)
	}
	if out, errs, code := p.server.cli("", "node", "maintenance", "-disable", old.NodeID); code != 0 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	back := awaitNode(t, p.server.Client, old.NodeID, "the end of the maintenance", func(n *structs.Node) bool { return n.Maintenance == nil })
	if back.SchedulingEligibility != structs.NodeEligible || !back.Ready() {
		t.Errorf("node is %s and %s afterwards", back.Status, back.SchedulingEligibility)
	}
}

// awaitBlocked waits until the job's evaluation says that there is no room.
func awaitBlocked(t *testing.T, p *pair, id string) {
	t.Helper()
	ctx := limited(t)
	q := &api.QueryOptions{WaitTime: 5 * time.Second}
	for {
		evals, meta, err := p.server.Client.Jobs().Evaluations(ctx, id, q)
		if err != nil {
			t.Fatalf("wait for a blocked evaluation of %s: %v", id, err)
		}
		for _, e := range evals {
			if e.Status == structs.EvalStatusBlocked {
				return
			}
		}
		q.WaitIndex = meta.LastIndex
	}
}

// TestHostCrashWithLostAfter ends all that runs on a node at once (-9), as a loss of power does. What has lost_after is
// unknown for so long, and lost then; the rest is lost at once. The node that returns tells what became of what it had, and
// gets what could be placed nowhere else.
func TestHostCrashWithLostAfter(t *testing.T) {
	t.Parallel()
	p := preparePair(t, nil)
	node := p.nodes[0]
	node.Start()
	const patience = 4 * time.Second
	for _, id := range []string{"patient", "hasty"} {
		register(t, p.server.Client, job(id, "exec sleep 600", func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
			g.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(0), Delay: structs.Ptr(time.Second),
				Interval: structs.Ptr(time.Minute), Mode: structs.Ptr("fail")} // what was lost has ended
			if id == "patient" {
				g.Disconnect = &structs.DisconnectStrategy{LostAfter: structs.Ptr(patience), Replace: structs.Ptr(true)}
			}
		}))
	}
	patient, hasty := awaitRunning(t, p.server.Client, "patient", 1)[0], awaitRunning(t, p.server.Client, "hasty", 1)[0]
	pids := append(node.supervisors(), node.tasks()...)
	node.Kill()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
	}
	gone := awaitNode(t, p.server.Client, patient.NodeID, "the node's absence", func(n *structs.Node) bool { return n.Down() })
	if gone.Status != structs.NodeStatusDisconnected {
		t.Errorf("the node is %s while something waits for it", gone.Status)
	}
	since := time.Now()
	status := func(id, want string, condition string) {
		t.Helper()
		a, _, err := p.server.Client.Allocations().Info(limited(t), id, nil)
		if err != nil || a.ClientStatus != want || a.Condition.Status != condition || a.ObservedStatus != structs.AllocClientStatusRunning {
			t.Errorf("allocation of %s is %s, condition %+v, was observed %s: %v", a.JobID, a.ClientStatus, a.Condition, a.ObservedStatus, err)
		}
	}
	status(patient.ID, structs.AllocClientStatusUnknown, structs.ConditionUnknown)
	status(hasty.ID, structs.AllocClientStatusLost, structs.ConditionLost)
	down := awaitNode(t, p.server.Client, patient.NodeID, "the end of all patience", func(n *structs.Node) bool { return n.Status == structs.NodeStatusDown })
	if took := time.Since(since); took < patience-time.Second || took > patience+4*time.Second {
		t.Errorf("it was waited for %s: %s", took, messages(down))
	}
	status(patient.ID, structs.AllocClientStatusLost, structs.ConditionLost)
	node.Start()
	awaitNode(t, p.server.Client, patient.NodeID, "its return", func(n *structs.Node) bool { return n.Ready() })
	for _, old := range []*structs.AllocationListStub{patient, hasty} {
		again := awaitRunning(t, p.server.Client, old.JobID, 1)[0]
		if again.ID == old.ID {
			t.Errorf("%s: what was lost runs again", old.JobID)
		}
		awaitAllocs(t, p.server.Client, old.JobID, "the report of the old one's end", func(l []*structs.AllocationListStub) bool {
			for _, a := range l {
				if a.ID == old.ID {
					return a.ClientStatus == structs.AllocClientStatusFailed || a.ClientStatus == structs.AllocClientStatusComplete
				}
			}
			return false
		})
		told, _, err := p.server.Client.Allocations().Info(limited(t), old.ID, nil)
		if err != nil || told.ModifyIndex > again.CreateIndex {
			t.Errorf("%s: the new allocation was made at %d, the end of the old one told at %d: %v",
				old.JobID, again.CreateIndex, told.ModifyIndex, err)
		}
	}
	if pids := node.tasks(); len(pids) != 2 {
		t.Errorf("processes on the node: %v", pids)
	}
}
