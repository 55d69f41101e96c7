package structs

import "time"

// Plan is what a scheduler wants to change for one evaluation. It is verified by the plan applier against the newest
// state; what does not fit is left out and the scheduler is told to refresh.
type Plan struct {
	EvalID        string
	EvalToken     string
	Priority      int
	AllAtOnce     bool
	SnapshotIndex uint64 // index of the state the scheduler looked at

	// Namespace, JobID, JobModifyIndex name the specification row which new allocations run. Empty for plans
	// that only stop.
	Namespace      string
	JobID          string
	JobModifyIndex uint64

	// Stops, by node: allocations to stop or to give up.
	Stops map[string][]*AllocStop
	// Places, by node: new allocations, and in-place updates of existing ones (same ID).
	Places map[string][]*Allocation
	// Preemptions, by node: allocations evicted for one of Places.
	Preemptions map[string][]*AllocStop

	Deployment        *Deployment
	DeploymentUpdates []*DeploymentStatusUpdate
	Annotations       *PlanAnnotations `json:",omitempty"`
}

// AllocStop asks that one allocation be stopped, evicted or given up.
type AllocStop struct {
	ID                 string
	DesiredStatus      string // stop, evict, or empty to leave as it is
	DesiredDescription string
	Condition          *Condition // set to lost or unknown when the scheduler gives the allocation up
	FollowupEvalID     string
	PreemptedBy        string
	NoShutdownDelay    bool
	KillTimeout        *time.Duration
}

// IsEmpty says whether the plan changes nothing.
func (p *Plan) IsEmpty() bool {
	return len(p.Stops) == 0 && len(p.Places) == 0 && len(p.Preemptions) == 0 &&
		p.Deployment == nil && len(p.DeploymentUpdates) == 0
}

// DeploymentStatusUpdate changes the status of a deployment.
type DeploymentStatusUpdate struct {
	DeploymentID      string
	Status            string
	StatusDescription string
}

// PlanResult is what the applier committed of a plan.
type PlanResult struct {
	Stops             map[string][]*AllocStop
	Places            map[string][]*Allocation
	Preemptions       map[string][]*AllocStop
	Deployment        *Deployment
	DeploymentUpdates []*DeploymentStatusUpdate

	// RejectedNodes are those whose part of the plan did not fit.
	RejectedNodes []string
	// RefreshIndex is not 0 when the scheduler must look at a state at least this new before it tries again.
	RefreshIndex uint64
	// AllocIndex is the raft index of the commit, 0 for an empty result.
	AllocIndex uint64
}

// FullCommit says whether all of plan was committed, with the numbers expected and committed.
func (r *PlanResult) FullCommit(plan *Plan) (full bool, expected, actual int) {
	for node, places := range plan.Places {
		expected += len(places)
		actual += len(r.Places[node])
	}
	return expected == actual, expected, actual
}
