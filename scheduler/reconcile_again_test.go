package scheduler_test

import (
	"testing"

	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

// TestLostWithoutRoomIsDecidedOnce: when what is lost would be replaced by a new version but finds no room, whether that
// begins a deployment is decided with its loss, and not once more by the next evaluation.
func TestLostWithoutRoomIsDecidedOnce(t *testing.T) {
	c, p := harness(1)
	update := &structs.UpdateStrategy{MaxParallel: structs.Ptr(1)}
	job := schedtest.Job("a", "service", 2)
	job.TaskGroups[0].Update = update
	c.PutJob(job)
	evaluate(t, p, "a")
	for _, a := range c.Allocs() {
		c.EditAlloc(a.ID, func(a *structs.Allocation) { a.ObservedStatus = structs.AllocClientStatusRunning })
	}
	for _, d := range c.Deployments() {
		c.EditDeployment(d.ID, func(d *structs.Deployment) { d.Status = structs.DeploymentStatusSuccessful })
	}
	c.EditNode("n-0000", func(n *structs.Node) { n.Status = structs.NodeStatusDown })
	job = schedtest.Job("a", "service", 1)
	job.TaskGroups[0].Update = update
	c.PutJob(job)
	evaluate(t, p, "a")
	plans, deployments := len(p.Plans), len(c.Deployments())
	evaluate(t, p, "a")
	for _, plan := range p.Plans[plans:] {
		if !plan.IsEmpty() {
			t.Errorf("the second time has a further effect: %+v", plan)
		}
	}
	if n := len(c.Deployments()); n != deployments {
		t.Errorf("%d deployments, then %d", deployments, n)
	}
}
