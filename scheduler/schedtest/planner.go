package schedtest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/scheduler/rank"
	"github.com/nomadlite/nomadlite/structs"
)

// Planner applies plans to a cluster and remembers them.
type Planner struct {
	Cluster *Cluster
	Plans   []*structs.Plan
	// Before is asked before each plan is verified; a test changes the cluster there, as another worker would.
	Before func(*structs.Plan)
	// DryRun commits nothing.
	DryRun bool
}

var _ scheduler.Planner = (*Planner)(nil)

// SubmitPlan verifies each node's part against the cluster and commits what fits.
func (p *Planner) SubmitPlan(_ context.Context, plan *structs.Plan) (*structs.PlanResult, scheduler.State, error) {
	if p.Before != nil {
		p.Before(plan)
	}
	p.Plans = append(p.Plans, plan)
	result := &structs.PlanResult{
		Stops: plan.Stops, Places: map[string][]*structs.Allocation{}, Deployment: plan.Deployment,
		DeploymentUpdates: plan.DeploymentUpdates, Preemptions: map[string][]*structs.AllocStop{},
	}
	for node, places := range plan.Places {
		if ok, _ := p.fits(node, places, plan.Preemptions[node]); ok {
			result.Places[node] = places
			if evicted := plan.Preemptions[node]; len(evicted) > 0 {
				result.Preemptions[node] = evicted
			}
		} else {
			result.RejectedNodes = append(result.RejectedNodes, node)
		}
	}
	p.leaveOut(result, plan)
	if p.DryRun {
		return result, nil, nil
	}
	p.commit(result)
	if len(result.RejectedNodes) > 0 {
		result.RefreshIndex = p.Cluster.Index()
		return result, p.Cluster, nil
	}
	return result, nil, nil
}

// leaveOut drops what means nothing without the placements that were rejected: the stops of those which they were to
// replace, and a deployment without any allocation.
func (p *Planner) leaveOut(result *structs.PlanResult, plan *structs.Plan) {
	if len(result.RejectedNodes) == 0 {
		return
	}
	unreplaced := map[string]bool{}
	for _, node := range result.RejectedNodes {
		for _, a := range plan.Places[node] {
			unreplaced[a.PreviousAllocation] = true
		}
	}
	result.Stops = map[string][]*structs.AllocStop{}
	for node, stops := range plan.Stops {
		for _, st := range stops {
			if !unreplaced[st.ID] || st.Condition != nil {
				result.Stops[node] = append(result.Stops[node], st)
			}
		}
	}
	if len(result.Places) == 0 {
		result.Deployment = nil
	}
}

func (p *Planner) fits(nodeID string, places []*structs.Allocation, evicted []*structs.AllocStop) (bool, string) {
	node, usage := p.Cluster.Node(nodeID), p.Cluster.NodeUsage(nodeID)
	if len(evicted) > 0 {
		usage = usage.Copy() // their room is for the newcomers, which begin after them
	}
	for _, v := range evicted {
		if a := p.Cluster.allocs[v.ID]; a != nil && a.HoldsResources() {
			usage.Remove(a)
		}
	}
	var newcomers []rank.Newcomer
	for _, a := range places {
		if p.Cluster.allocs[a.ID] != nil {
			continue // in place
		}
		n := rank.Newcomer{Resources: a.AllocatedResources.Comparable()}
		if old := p.Cluster.allocs[a.PreviousAllocation]; old != nil && old.NodeID == nodeID && old.HoldsResources() &&
			old.DesiredStatus != structs.AllocDesiredStatusEvict {
			held := old.AllocatedResources.Comparable()
			n.Replaces = &held
		}
		newcomers = append(newcomers, n)
	}
	if len(newcomers) == 0 {
		return true, ""
	}
	if node == nil || !node.Ready() {
		return false, "node not ready"
	}
	return rank.Fits(node, usage, newcomers)
}

func (p *Planner) commit(r *structs.PlanResult) {
	c := p.Cluster
	for _, stops := range [2]map[string][]*structs.AllocStop{r.Stops, r.Preemptions} {
		for _, node := range slices.Sorted(maps.Keys(stops)) {
			for _, st := range stops[node] {
				c.EditAlloc(st.ID, func(a *structs.Allocation) { applyStop(a, st) })
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(r.Places)) {
		for _, a := range r.Places[node] {
			c.PutAlloc(a.Copy())
			if prev := c.allocs[a.PreviousAllocation]; prev != nil {
				c.EditAlloc(prev.ID, func(old *structs.Allocation) { old.NextAllocation = a.ID })
			}
		}
	}
	if r.Deployment != nil {
		d := r.Deployment.Copy()
		d.CreateIndex = c.next()
		c.deployments = append(c.deployments, d)
	}
	for _, u := range r.DeploymentUpdates {
		c.EditDeployment(u.DeploymentID, func(d *structs.Deployment) {
			d.Status, d.StatusDescription = u.Status, u.StatusDescription
		})
	}
	r.AllocIndex = c.Index()
}

func applyStop(a *structs.Allocation, st *structs.AllocStop) {
	if st.DesiredStatus != "" {
		a.DesiredStatus = st.DesiredStatus
	}
	if st.DesiredDescription != "" {
		a.DesiredDescription = st.DesiredDescription
	}
	if st.Condition != nil {
		a.Condition = *st.Condition
	}
	if st.FollowupEvalID != "" {
		a.FollowupEvalID = st.FollowupEvalID
	}
	if st.PreemptedBy != "" {
		a.PreemptedByAllocation = st.PreemptedBy
	}
	if st.NoShutdownDelay {
		a.DesiredTransition.NoShutdownDelay = structs.Ptr(true)
	}
	a.DesiredTransition.Merge(&structs.DesiredTransition{KillTimeout: st.KillTimeout})
}

// UpdateEval stores an evaluation.
func (p *Planner) UpdateEval(_ context.Context, e *structs.Evaluation) error {
	p.Cluster.PutEval(e.Copy())
	return nil
}

// CreateEval stores a new evaluation.
func (p *Planner) CreateEval(_ context.Context, e *structs.Evaluation) error {
	if p.Cluster.Eval(e.ID) != nil {
		return fmt.Errorf("create evaluation %s: it exists", e.ID)
	}
	p.Cluster.PutEval(e.Copy())
	return nil
}

// ReblockEval stores an evaluation that stays blocked.
func (p *Planner) ReblockEval(_ context.Context, e *structs.Evaluation) error {
	if e.Status != structs.EvalStatusBlocked {
		return fmt.Errorf("block evaluation %s again: its status is %s", e.ID, e.Status)
	}
	p.Cluster.PutEval(e.Copy())
	return nil
}

// Evaluate makes an evaluation of a job and processes it.
func (p *Planner) Evaluate(job, kind, trigger string, edit func(*structs.Evaluation)) (*structs.Evaluation, error) {
	e := &structs.Evaluation{
		ID: p.Cluster.NewID("eval-"), Namespace: structs.DefaultNamespace, JobID: job, Type: kind, Priority: 50,
		TriggeredBy: trigger, Status: structs.EvalStatusPending,
	}
	if edit != nil {
		edit(e)
	}
	p.Cluster.PutEval(e)
	return p.Process(e)
}

// Process lets the scheduler of its type decide an evaluation.
func (p *Planner) Process(e *structs.Evaluation) (*structs.Evaluation, error) {
	n := 0
	s, err := scheduler.New(e.Type, scheduler.Config{
		State: p.Cluster, Planner: p, Now: p.Cluster.Now,
		NewID: func() string { n++; return p.Cluster.NewID("id-") },
	})
	if err != nil {
		return nil, err
	}
	if err := s.Process(context.Background(), e); err != nil {
		return nil, err
	}
	return p.Cluster.Eval(e.ID), nil
}
