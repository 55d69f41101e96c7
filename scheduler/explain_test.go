package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

func TestExplainGroup(t *testing.T) {
	c, p := contest(6, nil)
	edit := func(i int, how func(*structs.Node)) { c.EditNode(fmt.Sprintf("n-%04d", i), how) }
	edit(0, func(n *structs.Node) { n.Attributes["kernel.name"] = "windows" })
	edit(1, func(n *structs.Node) {
		n.Attributes["kernel.name"] = "windows"
		n.NodeResources.Memory.MemoryMB = 100
	})
	edit(2, func(n *structs.Node) { n.NodeResources.Memory.MemoryMB = 100 })
	edit(3, func(n *structs.Node) { n.Datacenter = "dc2" })
	edit(4, func(n *structs.Node) { n.Status = structs.NodeStatusDown })
	run(t, p, "web", "service", 50, 2, 100, func(j *structs.Job) {
		tg := j.TaskGroups[0]
		tg.Constraints = []*structs.Constraint{{LTarget: "${attr.kernel.name}", RTarget: "linux", Operand: "="}}
		tg.Networks = []*structs.NetworkResource{{Mode: "host", ReservedPorts: []structs.Port{{Label: "http", Value: 80}}}}
	})
	job := c.Job("", "web")
	g := scheduler.ExplainGroup(c, job, job.TaskGroups[0])
	want := "0/6 [{${attr.kernel.name} = linux 2 [n-0000 n-0001]} {memory 2 [n-0001 n-0002]} {node is down 1 [n-0004]} " +
		"{not in the job's datacenters 1 [n-0003]} {port http=80 1 [n-0005]}] " +
		"[{${attr.kernel.name} = linux 1} {memory 1} {node is down 1} {not in the job's datacenters 1} {port http=80 1}]"
	if got := fmt.Sprintf("%d/%d %v %v", g.Open, g.Nodes, g.Barriers, g.Relax); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	// What a group that opens says is what a placement does.
	c.Fill("m", 1, nil)
	if g = scheduler.ExplainGroup(c, job, job.TaskGroups[0]); g.Open != 1 {
		t.Errorf("%d open after a node was added", g.Open)
	}
	if e, err := p.Evaluate("web", "service", structs.EvalTriggerNodeUpdate, nil); err != nil || len(e.FailedTGAllocs) != 0 {
		t.Errorf("%v %+v", err, e.FailedTGAllocs)
	}
}

func TestExplainGroupOfASystemJob(t *testing.T) {
	c, p := contest(2, nil)
	run(t, p, "sys", "system", 50, 1, 100, nil)
	c.Fill("m", 1, func(_ int, n *structs.Node) { n.NodeResources.Cpu.CpuShares = 50 })
	job := c.Job("", "sys")
	g := scheduler.ExplainGroup(c, job, job.TaskGroups[0])
	if got := fmt.Sprintf("%d %v", g.Open, g.Barriers); got != "0 [{runs its allocation already 2 [n-0000 n-0001]} {cpu 1 [m-0000]}]" {
		t.Error(got)
	}
}

func TestMissingAmounts(t *testing.T) {
	c := schedtest.New()
	p := &schedtest.Planner{Cluster: c}
	c.Fill("n", 3, func(i int, n *structs.Node) { n.NodeResources.Memory.MemoryMB = int64(100 + 50*i) })
	for _, kind := range []string{"service", "system"} {
		e := run(t, p, kind, kind, 50, 1, 100, nil) // asks for 256
		m := e.FailedTGAllocs["web"]
		if m.Missing["memory"] != 56 || m.ExplainText() != "needs at least 56 MiB more memory on 3 of 3 nodes" {
			t.Errorf("%s: %v, %s", kind, m.Missing, m.ExplainText())
		}
	}
}
