package sim

import (
	"context"
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/scheduler/rank"
	"github.com/nomadlite/nomadlite/structs"
)

// planner commits plans to the cluster and keeps what evaluations came to.
type planner struct{ sim *Sim }

var _ scheduler.Planner = planner{}

// SubmitPlan commits a plan. It was made of this very state, so all of it fits: a part that does not is a fault of the
// scheduler, and an error.
func (p planner) SubmitPlan(_ context.Context, plan *structs.Plan) (*structs.PlanResult, scheduler.State, error) {
	c := p.sim.cluster
	for _, node := range slices.Sorted(maps.Keys(plan.Places)) {
		if err := p.fits(node, plan); err != nil {
			return nil, nil, err
		}
	}
	for _, stops := range [2]map[string][]*structs.AllocStop{plan.Stops, plan.Preemptions} {
		for _, node := range slices.Sorted(maps.Keys(stops)) {
			for _, stop := range stops[node] {
				p.stop(stop)
			}
		}
	}
	if d := plan.Deployment; d != nil {
		d = d.Copy()
		d.CreateIndex, d.ModifyIndex = c.next(), c.index
		job := name{d.Namespace, d.JobID}
		c.deployments[job] = append(c.deployments[job], d)
	}
	for _, node := range slices.Sorted(maps.Keys(plan.Places)) {
		for _, a := range plan.Places[node] {
			placed := *a
			p.place(&placed)
		}
	}
	for _, u := range plan.DeploymentUpdates {
		c.editDeployment(name{plan.Namespace, plan.JobID}, u.DeploymentID, func(d *structs.Deployment) {
			d.Status, d.StatusDescription = u.Status, u.StatusDescription
		})
	}
	return &structs.PlanResult{Stops: plan.Stops, Places: plan.Places, Preemptions: plan.Preemptions, Deployment: plan.Deployment,
		DeploymentUpdates: plan.DeploymentUpdates, AllocIndex: c.index}, nil, nil
}

// fits verifies one node's part of a plan.
func (p planner) fits(nodeID string, plan *structs.Plan) error {
	c := p.sim.cluster
	usage := c.usage[nodeID].Copy()
	for _, victim := range plan.Preemptions[nodeID] {
		if a := c.allocs[victim.ID]; a != nil && a.HoldsResources() {
			usage.Remove(a) // what takes the room begins after its end
		}
	}
	var newcomers []rank.Newcomer
	for _, a := range plan.Places[nodeID] {
		if c.allocs[a.ID] != nil {
			continue // updated in place
		}
		n := rank.Newcomer{Resources: a.AllocatedResources.Comparable()}
		if old := c.allocs[a.PreviousAllocation]; old != nil && old.NodeID == nodeID && old.HoldsResources() &&
			old.DesiredStatus != structs.AllocDesiredStatusEvict {
			held := old.AllocatedResources.Comparable()
			n.Replaces = &held
		}
		newcomers = append(newcomers, n)
	}
	if len(newcomers) == 0 {
		return nil
	}
	node := c.nodes[nodeID]
	if node == nil || !node.Ready() {
		return structs.Errorf(structs.CodeInternal, "the plan of evaluation %s places on node %q, which is not ready", plan.EvalID, nodeID)
	}
	if ok, dimension := rank.Fits(node, usage, newcomers); !ok {
		return structs.Errorf(structs.CodeInternal, "the plan of evaluation %s does not fit on node %q: %s", plan.EvalID, nodeID, dimension)
	}
	return nil
}

func (p planner) stop(stop *structs.AllocStop) {
	step, c := p.sim.step, p.sim.cluster
	c.editAlloc(stop.ID, func(a *structs.Allocation) {
		running := !a.TerminalStatus()
		if stop.DesiredStatus != "" {
			a.DesiredStatus = stop.DesiredStatus
		}
		if stop.DesiredDescription != "" {
			a.DesiredDescription = stop.DesiredDescription
		}
		if stop.Condition != nil {
			a.Condition = *stop.Condition
		}
		if stop.FollowupEvalID != "" {
			a.FollowupEvalID = stop.FollowupEvalID
		}
		a.PreemptedByAllocation = stop.PreemptedBy
		switch {
		case !running:
		case stop.PreemptedBy != "":
			step.Evicted = append(step.Evicted, Eviction{Alloc: a.Name, Namespace: a.Namespace, Job: a.JobID, Priority: priority(a.Job),
				Node: a.NodeName, By: stop.PreemptedBy})
			p.sim.wantEval(a.Namespace, a.JobID, structs.EvalTriggerPreemption)
		case stop.Condition != nil && stop.Condition.Status == structs.ConditionLost:
			step.Lost++
		case a.ServerTerminal():
			step.Stopped++
		}
	})
}

func (p planner) place(a *structs.Allocation) {
	step, c := p.sim.step, p.sim.cluster
	if a.Job == nil {
		a.Job = c.jobs[name{a.Namespace, a.JobID}]
	}
	if c.allocs[a.ID] != nil {
		step.Updated++
		c.putAlloc(a)
		return
	}
	step.Placed++
	if a.CreateTime == 0 {
		a.CreateTime = c.now.UnixNano()
	}
	c.putAlloc(a)
	c.editAlloc(a.PreviousAllocation, func(old *structs.Allocation) { old.NextAllocation = a.ID })
	if a.DeploymentID == "" {
		return
	}
	c.editDeployment(name{a.Namespace, a.JobID}, a.DeploymentID, func(d *structs.Deployment) {
		group := d.TaskGroups[a.TaskGroup]
		if group == nil {
			return
		}
		group.PlacedAllocs++
		if a.DeploymentStatus != nil && a.DeploymentStatus.Canary {
			group.PlacedCanaries = append(group.PlacedCanaries, a.ID)
		}
	})
}

// UpdateEval keeps what an evaluation came to.
func (p planner) UpdateEval(_ context.Context, e *structs.Evaluation) error {
	e = e.Copy()
	p.sim.cluster.putEval(e)
	p.sim.outcomes[name{e.Namespace, e.JobID}] = e
	return nil
}

// CreateEval stores an evaluation that is blocked, or one that waits for its time.
func (p planner) CreateEval(_ context.Context, e *structs.Evaluation) error {
	e = e.Copy()
	p.sim.cluster.putEval(e)
	p.sim.keep(e)
	return nil
}

// ReblockEval keeps what an evaluation came to that stays blocked.
func (p planner) ReblockEval(ctx context.Context, e *structs.Evaluation) error {
	if err := p.UpdateEval(ctx, e); err != nil {
		return err
	}
	p.sim.keep(p.sim.cluster.evals[e.ID])
	return nil
}

func priority(j *structs.Job) int {
	if j == nil {
		return 0
	}
	return structs.Val(j.Priority)
}
