package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// agents registers a version of a system job which is rolled out by one canary: half of the nodes.
func (p *pair) agents(script string, change func(*structs.UpdateStrategy)) {
	p.t.Helper()
	register(p.t, p.server.Client, job("agents", script, func(j *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
		j.Type, g.Count, g.ReschedulePolicy = structs.Ptr(structs.JobTypeSystem), nil, nil
		g.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(0), Mode: structs.Ptr("fail")}
		g.Update = &structs.UpdateStrategy{MaxParallel: structs.Ptr(1), Canary: structs.Ptr(50), MinHealthyTime: structs.Ptr(100 * time.Millisecond),
			HealthCheck: structs.Ptr(structs.HealthCheckTaskStates)}
		if change != nil {
			change(g.Update)
		}
	}))
}

// rollout waits until the deployment of a version satisfies done.
func (p *pair) rollout(version uint64, what string, done func(*structs.Deployment) bool) *structs.Deployment {
	p.t.Helper()
	ctx := limited(p.t)
	q := &api.QueryOptions{WaitTime: 5 * time.Second}
	for {
		list, meta, err := p.server.Client.Deployments().List(ctx, q)
		if err != nil {
			p.t.Fatalf("wait until the rollout of version %d %s: %v", version, what, err)
		}
		for _, d := range list {
			if d.JobID == "agents" && d.JobVersion == version && done(d) {
				return d
			}
		}
		q.WaitIndex = meta.LastIndex
	}
}

func ended(status string) func(*structs.Deployment) bool {
	return func(d *structs.Deployment) bool { return d.Status == status }
}

// runs wants one allocation on each node, so many of each version.
func (p *pair) runs(versions map[uint64]int) []*structs.AllocationListStub {
	p.t.Helper()
	list := awaitAllocs(p.t, p.server.Client, "agents", fmt.Sprint("versions ", versions), func(l []*structs.AllocationListStub) bool {
		got := map[uint64]int{}
		for _, a := range withStatus(l, structs.AllocClientStatusRunning) {
			if a.DesiredStatus != structs.AllocDesiredStatusRun {
				return false
			}
			got[a.JobVersion]++
		}
		for v, n := range versions {
			if got[v] != n {
				return false
			}
			delete(got, v)
		}
		return len(got) == 0
	})
	running := withStatus(list, structs.AllocClientStatusRunning)
	if len(running) != 2 || running[0].NodeID == running[1].NodeID {
		p.t.Errorf("not one on each node:%s", describe(running))
	}
	return running
}

// A system job's canary takes the place of what runs on half of the nodes, and the rest follows when it is promoted, by an
// operator or by itself. A version that fails on its canary is taken back there, and never comes to the other node.
func TestSystemJobIsRolledOutByCanaries(t *testing.T) {
	p := newPairOfNodes(t)
	p.agents("exec sleep 1000", nil)
	p.rollout(0, "ends", ended(structs.DeploymentStatusSuccessful))
	p.runs(map[uint64]int{0: 2})

	p.agents("exec sleep 1001", nil)
	d := p.rollout(1, "has a healthy canary", func(d *structs.Deployment) bool { return d.TaskGroups["g"].HealthyAllocs == 1 })
	if g := d.TaskGroups["g"]; d.Status != structs.DeploymentStatusRunning || g.Promoted || g.DesiredCanaries != 1 || len(g.PlacedCanaries) != 1 {
		t.Errorf("before the promotion: %s, %+v", d.Status, g)
	}
	p.runs(map[uint64]int{0: 1, 1: 1})
	p.server.ok("deployment", "promote", "-detach", d.ID)
	p.rollout(1, "ends", ended(structs.DeploymentStatusSuccessful))
	p.runs(map[uint64]int{1: 2})

	p.agents("exec sleep 1002", func(u *structs.UpdateStrategy) { u.AutoPromote = structs.Ptr(true) })
	d = p.rollout(2, "ends", ended(structs.DeploymentStatusSuccessful))
	if g := d.TaskGroups["g"]; !g.Promoted || g.DesiredCanaries != 1 {
		t.Errorf("promoted by itself: %+v", g)
	}
	stable := p.runs(map[uint64]int{2: 2})

	p.agents("exit 1", func(u *structs.UpdateStrategy) {
		u.AutoRevert, u.ProgressDeadline = structs.Ptr(true), structs.Ptr(time.Duration(0)) // the first that is unhealthy decides
	})
	p.rollout(3, "fails", ended(structs.DeploymentStatusFailed))
	p.rollout(4, "ends", ended(structs.DeploymentStatusSuccessful))
	list, _, err := p.server.Client.Jobs().Allocations(limited(t), "agents", true, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]bool{}
	for _, a := range list {
		if a.JobVersion == 3 {
			failed[a.NodeID] = true
		}
	}
	if len(failed) != 1 {
		t.Errorf("the version that failed came to %d nodes, its canary is on one:%s", len(failed), describe(list))
	}
	kept := 0
	for _, a := range p.runs(map[uint64]int{4: 2}) {
		for _, old := range stable {
			if a.ID == old.ID {
				kept++
			}
		}
	}
	if kept != 1 {
		t.Errorf("%d allocations ran on through the failure, want that of the node without a canary", kept)
	}
}

// newPairOfNodes starts the server and both nodes, and waits until they are ready.
func newPairOfNodes(t *testing.T) *pair {
	t.Helper()
	p := preparePair(t, nil)
	for _, node := range p.nodes {
		node.Start()
	}
	ctx := limited(t)
	q := &api.QueryOptions{WaitTime: 5 * time.Second}
	for {
		nodes, meta, err := p.server.Client.Nodes().List(ctx, q)
		if err != nil {
			t.Fatalf("wait for the nodes: %v", err)
		}
		ready := 0
		for _, n := range nodes {
			if n.Status == structs.NodeStatusReady {
				ready++
			}
		}
		if ready == len(p.nodes) {
			return p
		}
		q.WaitIndex = meta.LastIndex
	}
}
