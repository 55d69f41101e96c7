package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// cluster is a server and nodes beside it, each an agent of its own.
type cluster struct {
	*agent // the server
	nodes  []*agent
	ids    []string
}

// newCluster starts a server and its first node.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{agent: newAgent(t, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })}
	c.Start()
	c.addNode()
	return c
}

// addNode starts another node and waits until it is ready.
func (c *cluster) addNode() {
	c.t.Helper()
	name := fmt.Sprintf("node-%d", len(c.nodes)+1)
	node := newAgent(c.t, func(config map[string]any) {
		config["name"], config["server"] = name, map[string]any{"enabled": false}
		config["client"] = map[string]any{"enabled": true, "servers": []string{fmt.Sprintf("127.0.0.1:%d", c.RPC)}}
	})
	node.Start()
	q := &api.QueryOptions{WaitTime: 5 * time.Second}
	ctx := limited(c.t)
	for {
		list, meta, err := c.Client.Nodes().List(ctx, q)
		if err != nil {
			c.t.Fatalf("wait for %s: %v", name, err)
		}
		for _, n := range list {
			if n.Name == name && n.Status == structs.NodeStatusReady {
				c.nodes, c.ids = append(c.nodes, node), append(c.ids, n.ID)
				return
			}
		}
		q.WaitIndex = meta.LastIndex
	}
}

// drain runs node drain about the n-th node, which must end with 0, and gives what it printed.
func (c *cluster) drain(n int, flags ...string) string {
	c.t.Helper()
	out, errs, code := c.cli("", append(append([]string{"node", "drain"}, flags...), c.ids[n])...)
	if code != 0 {
		c.t.Fatalf("node drain %v: exit %d\n%s\n%s", flags, code, out, errs)
	}
	return out
}

func (c *cluster) node(n int) *structs.Node {
	c.t.Helper()
	node, _, err := c.Client.Nodes().Info(limited(c.t), c.ids[n], nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return node
}

// on gives a job's allocations on the n-th node which satisfy is.
func (c *cluster) on(n int, jobID string, is func(*structs.AllocationListStub) bool) []*structs.AllocationListStub {
	c.t.Helper()
	list, _, err := c.Client.Jobs().Allocations(limited(c.t), jobID, true, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(a *structs.AllocationListStub) bool { return a.NodeID != c.ids[n] || !is(a) })
}

func running(a *structs.AllocationListStub) bool {
	return a.ClientStatus == structs.AllocClientStatusRunning && a.DesiredStatus == structs.AllocDesiredStatusRun
}

func anyAlloc(*structs.AllocationListStub) bool { return true }

// sleeper is a job that sleeps; its health is known soon after it runs.
func sleeper(id, kind string, count int, change func(*structs.TaskGroup, *structs.Task)) *structs.Job {
	return job(id, "exec sleep 600", func(j *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		j.Type, g.Count = structs.Ptr(kind), structs.Ptr(count)
		if kind == structs.JobTypeService {
			g.Update = &structs.UpdateStrategy{MinHealthyTime: structs.Ptr(100 * time.Millisecond), MaxParallel: structs.Ptr(0)}
			g.Migrate = &structs.MigrateStrategy{MaxParallel: structs.Ptr(1), MinHealthyTime: structs.Ptr(100 * time.Millisecond)}
		}
		if change != nil {
			change(g, task)
		}
	})
}

// awaitHealthy waits until count allocations of a job run and are known to be well.
func awaitHealthy(t testing.TB, c *api.Client, jobID string, count int) {
	t.Helper()
	awaitAllocs(t, c, jobID, fmt.Sprintf("%d healthy allocations", count), func(l []*structs.AllocationListStub) bool {
		n := 0
		for _, a := range l {
			if running(a) && a.DeploymentStatus != nil && structs.Val(a.DeploymentStatus.Healthy) {
				n++
			}
		}
		return n == count
	})
}

// TestDrainMovesServicesStepByStep drains a node with a service, batch work and a system job by the command line, which
// follows it to the end.
func TestDrainMovesServicesStepByStep(t *testing.T) {
	c := newCluster(t)
	const healthy = 700 * time.Millisecond
	register(t, c.Client, sleeper("web", structs.JobTypeService, 3, func(g *structs.TaskGroup, _ *structs.Task) {
		g.Migrate.MinHealthyTime = structs.Ptr(healthy)
	}))
	register(t, c.Client, sleeper("work", structs.JobTypeBatch, 1, nil))
	register(t, c.Client, sleeper("agent", structs.JobTypeSystem, 1, nil))
	awaitHealthy(t, c.Client, "web", 3)
	awaitRunning(t, c.Client, "work", 1)
	c.addNode()
	awaitRunning(t, c.Client, "agent", 2)

	const deadline = 6 * time.Second
	begin := time.Now()
	out := c.drain(0, "-enable", "-deadline", deadline.String(), "-m", "new disk", "-meta", "ticket=7")
	if took := time.Since(begin); took < deadline || took > deadline+15*time.Second {
		t.Errorf("the drain took %s, batch work was to be awaited for %s", took, deadline)
	}
	for _, want := range []string{"drain strategy set", "marked for migration", "draining", "status running -> complete",
		"Drain complete for node " + c.ids[0]} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	node := c.node(0)
	if d := node.LastDrain; node.DrainStrategy != nil || node.SchedulingEligibility != structs.NodeIneligible || d.Status != "complete" ||
		d.Meta["message"] != "new disk" || d.Meta["ticket"] != "7" {
		t.Errorf("drained node: %+v, %s, %+v", node.DrainStrategy, node.SchedulingEligibility, d)
	}

	// One at a time, the next when the one before it was well for long enough.
	moved := c.on(1, "web", running)
	if len(moved) != 3 || len(c.on(0, "web", running)) != 0 {
		t.Fatalf("%d allocations of the service were moved, %d are left", len(moved), len(c.on(0, "web", running)))
	}
	slices.SortFunc(moved, func(a, b *structs.AllocationListStub) int { return int(a.CreateTime - b.CreateTime) })
	for i := range moved[1:] {
		if gap := time.Duration(moved[i+1].CreateTime - moved[i].CreateTime); gap < healthy {
			t.Errorf("replacement %d came %s after the one before it, not %s", i+2, gap, healthy)
		}
	}
	// The batch work was ended at the deadline and is not done again; the system job left after it.
	if all, _, _ := c.Client.Jobs().Allocations(limited(t), "work", true, nil); len(all) != 1 || all[0].DesiredStatus != structs.AllocDesiredStatusStop {
		t.Errorf("batch work: %s", describe(all))
	}
	if len(c.on(0, "agent", running)) != 0 || len(c.on(1, "agent", running)) != 1 {
		t.Error("the system job did not leave the drained node, or left the other")
	}
	// Eligible again, the node gets its system job back.
	if out := c.drain(0, "-disable"); !strings.Contains(out, "eligible for scheduling") {
		t.Errorf("node drain -disable printed %s", out)
	}
	awaitRunning(t, c.Client, "agent", 2)
}

func TestDrainByForceAndWithoutSystemJobs(t *testing.T) {
	c := newCluster(t)
	register(t, c.Client, sleeper("web", structs.JobTypeService, 3, nil))
	register(t, c.Client, sleeper("work", structs.JobTypeBatch, 1, nil))
	register(t, c.Client, sleeper("agent", structs.JobTypeSystem, 1, nil))
	awaitRunning(t, c.Client, "web", 3)
	awaitRunning(t, c.Client, "work", 1)
	awaitRunning(t, c.Client, "agent", 1)
	c.addNode()
	begin := time.Now()
	c.drain(0, "-enable", "-force", "-ignore-system")
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("a forced drain took %s", took)
	}
	awaitRunning(t, c.Client, "web", 3)
	for _, id := range []string{"web", "work"} {
		if left := c.on(0, id, running); len(left) != 0 {
			t.Errorf("still there: %s", describe(left))
		}
	}
	if len(c.on(0, "agent", running)) != 1 {
		t.Error("the system job, which was to be ignored, left")
	}
	// Without -ignore-system it goes too.
	c.drain(0, "-enable", "-no-deadline")
	if len(c.on(0, "agent", running)) != 0 {
		t.Error("the system job is still there")
	}
}

// TestDrainIsDisabledInTheMiddle ends a drain that waits for a replacement which is never well.
func TestDrainIsDisabledInTheMiddle(t *testing.T) {
	c := newCluster(t)
	register(t, c.Client, sleeper("web", structs.JobTypeService, 2, nil))
	awaitHealthy(t, c.Client, "web", 2)
	c.addNode()
	// From here on nothing is well for an hour.
	register(t, c.Client, sleeper("web", structs.JobTypeService, 2, func(g *structs.TaskGroup, _ *structs.Task) {
		g.Migrate.MinHealthyTime, g.Migrate.HealthyDeadline = structs.Ptr(time.Hour), structs.Ptr(2*time.Hour)
	}))
	c.drain(0, "-enable", "-detach", "-no-shutdown-delay")
	awaitAllocs(t, c.Client, "web", "the first to be moved", func(l []*structs.AllocationListStub) bool {
		return slices.ContainsFunc(l, func(a *structs.AllocationListStub) bool { return a.NodeID == c.ids[1] && running(a) })
	})
	left := c.on(0, "web", running)
	if len(left) != 1 {
		t.Fatalf("left on the node: %s", describe(left))
	}
	c.drain(0, "-disable", "-keep-ineligible")
	node := c.node(0)
	if node.DrainStrategy != nil || node.SchedulingEligibility != structs.NodeIneligible || node.LastDrain.Status != "canceled" {
		t.Errorf("node: %+v, %s, %+v", node.DrainStrategy, node.SchedulingEligibility, node.LastDrain)
	}
	if out := c.drain(0, "-monitor"); !strings.Contains(out, "No drain strategy set") {
		t.Errorf("node drain -monitor printed %s", out)
	}
	kept, _, err := c.Client.Allocations().Info(limited(t), left[0].ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if kept.DesiredStatus != structs.AllocDesiredStatusRun || kept.DesiredTransition != (structs.DesiredTransition{}) {
		t.Errorf("what stayed has desired status %s and %+v", kept.DesiredStatus, kept.DesiredTransition)
	}
	if got := c.on(0, "web", running); len(got) != 1 || got[0].ID != left[0].ID {
		t.Errorf("after the end of the drain: %s", describe(got))
	}
}

// TestDrainWithoutShutdownDelay shortens, by a second call, a drain whose allocations wait: those of the group's and of
// the task's shutdown_delay. What replaces them has its delay.
func TestDrainWithoutShutdownDelay(t *testing.T) {
	c := newCluster(t)
	register(t, c.Client, sleeper("group", structs.JobTypeService, 1, func(g *structs.TaskGroup, _ *structs.Task) {
		g.ShutdownDelay = structs.Ptr(time.Minute)
	}))
	register(t, c.Client, sleeper("task", structs.JobTypeService, 1, func(_ *structs.TaskGroup, task *structs.Task) {
		task.ShutdownDelay = time.Minute
	}))
	awaitHealthy(t, c.Client, "group", 1)
	awaitHealthy(t, c.Client, "task", 1)
	c.addNode()
	c.drain(0, "-enable", "-detach")
	waits := func(node int) func(l []*structs.AllocationListStub) bool {
		return func(l []*structs.AllocationListStub) bool {
			return slices.ContainsFunc(l, func(a *structs.AllocationListStub) bool {
				return a.NodeID == c.ids[node] && a.ClientStatus == structs.AllocClientStatusRunning && hasEvent(a.TaskStates["t"], structs.TaskWaitingShutdownDelay)
			})
		}
	}
	awaitAllocs(t, c.Client, "task", "a wait before the signal", waits(0))

	begin := time.Now()
	out := c.drain(0, "-enable", "-no-shutdown-delay", "-kill-timeout=3s")
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("the drain took %s although shutdown delays of a minute were to be skipped", took)
	}
	if !strings.Contains(out, "Drain complete") {
		t.Errorf("printed %s", out)
	}
	for _, id := range []string{"group", "task"} {
		gone := c.on(0, id, anyAlloc)
		if len(gone) != 1 || gone[0].ClientStatus != structs.AllocClientStatusComplete {
			t.Errorf("on the drained node: %s", describe(gone))
		}
		awaitRunning(t, c.Client, id, 1)
		for _, stub := range c.on(1, id, anyAlloc) {
			a, _, err := c.Client.Allocations().Info(limited(t), stub.ID, nil)
			if err != nil {
				t.Fatal(err)
			}
			if a.DesiredTransition.NoShutdownDelay != nil || a.DesiredTransition.KillTimeout != nil {
				t.Errorf("the replacement has %+v", a.DesiredTransition)
			}
		}
	}
	if out, errs, code := c.cli("", "job", "stop", "-detach", "task"); code != 0 {
		t.Fatalf("job stop: exit %d\n%s\n%s", code, out, errs)
	}
	awaitAllocs(t, c.Client, "task", "a wait of the replacement", waits(1))
}

func hasEvent(s *structs.TaskState, kind string) bool {
	return s != nil && slices.ContainsFunc(s.Events, func(e *structs.TaskEvent) bool { return e.Type == kind })
}

// TestBadDrainsByTheCommandLine tries what cannot be meant: a clear word, exit code 1, nothing changed.
func TestBadDrainsByTheCommandLine(t *testing.T) {
	c := newCluster(t)
	for want, args := range map[string][]string{
		"exactly one of -enable":  {c.ids[0]},
		"-enable, -disable":       {"-enable", "-disable", c.ids[0]},
		"only one of -deadline":   {"-enable", "-force", "-deadline", "5m", c.ids[0]},
		"-deadline needs":         {"-enable", "-deadline", "-5m", c.ids[0]},
		`got "soon"`:              {"-enable", "-deadline", "soon", c.ids[0]},
		"-kill-timeout: it needs": {"-enable", "-kill-timeout", "-1s", c.ids[0]},
		"need -enable":            {"-disable", "-no-shutdown-delay", c.ids[0]},
		"-keep-ineligible needs":  {"-enable", "-keep-ineligible", c.ids[0]},
		"is not KEY=VALUE":        {"-enable", "-meta", "x", c.ids[0]},
		"Name a node":             {"-enable"},
		"used together":           {"-enable", "-self", c.ids[0]},
		`prefix "ffffffff-ffff"`:  {"-enable", "ffffffff-ffff"},
		"no answer":               {"-enable", c.ids[0][:8]},
	} {
		out, errs, code := c.cli("", append([]string{"node", "drain"}, args...)...)
		if code != 1 || !strings.Contains(out+errs, want) {
			t.Errorf("node drain %v: exit %d, no %q in\n%s%s", args, code, want, out, errs)
		}
	}
	if n := c.node(0); n.LastDrain != nil || n.SchedulingEligibility != structs.NodeEligible {
		t.Errorf("node %s, drain %+v", n.SchedulingEligibility, n.LastDrain)
	}
	// -self names the node of the agent that is asked, -yes a prefix; there is nothing to drain, so it is over at once.
	out, errs, code := runCLI(t, c.nodes[0].Addr(), c.Dir, "", "node", "drain", "-enable", "-self")
	if code != 0 || !strings.Contains(out, "Drain complete") {
		t.Errorf("node drain -self: exit %d\n%s%s", code, out, errs)
	}
	if out, errs, code := c.cli("", "node", "drain", "-disable", "-yes", c.ids[0][:8]); code != 0 || c.node(0).SchedulingEligibility != structs.NodeEligible {
		t.Errorf("node drain -disable: exit %d\n%s%s", code, out, errs)
	}
	if out, _, code := c.cli("n\n", "node", "drain", "-enable", c.ids[0][:8]); code != 0 || !strings.Contains(out, "Cancelling drain toggle") {
		t.Errorf("answer no: exit %d\n%s", code, out)
	}
}
