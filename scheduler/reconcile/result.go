package reconcile

import (
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Input is what a reconciliation looks at.
type Input struct {
	Namespace, JobID string
	Job              *structs.Job // nil when it was purged
	Batch            bool
	System           bool                  // RunSystem sets it
	Allocs           []*structs.Allocation // all of the job id, each with its Job
	Node             func(id string) *structs.Node
	Deployment       *structs.Deployment // the newest of the job, nil when there is none
	Eval             *structs.Evaluation
	// Pending says whether an evaluation that an allocation names as its follow-up is still to come; nil when that
	// cannot be told, then it counts as coming.
	Pending func(evalID string) bool
	Now     time.Time
	NewID   func() string
}

// Result is what should change.
type Result struct {
	Stops   []Stop  // to end or to give up, whatever becomes of placements
	Places  []Place // new allocations
	InPlace []Update
	// Follow are evaluations that must be stored before the plan, since allocations name them.
	Follow []*structs.Evaluation
	// Deployment is a new deployment, DeploymentUpdates change older ones.
	Deployment        *structs.Deployment
	DeploymentUpdates []*structs.DeploymentStatusUpdate
	// ActiveDeployment is the deployment to which new allocations of the current version belong, "" for none.
	ActiveDeployment string
	Desired          map[string]*structs.DesiredUpdates // by group
	// Reasons says why, by group, when the evaluation asks for annotations.
	Reasons   map[string][]*structs.PlannedUpdate
	Decisions []Decision
	Held      []Held
}

// Held says of a group why no more of it is updated now.
type Held struct {
	Group   string
	Waiting int    // allocations of an older version
	Brake   string // the name of what holds them
	Reason  string // the same in words
}

// Stop ends one allocation or changes what is inferred about it.
type Stop struct {
	Alloc        *structs.Allocation
	Desired      string // stop, or empty to leave it as it is
	Description  string
	Condition    *structs.Condition
	FollowupEval string
}

// Place is one allocation to make.
type Place struct {
	Group    *structs.TaskGroup
	Job      *structs.Job // the version of Group, nil for the current one
	Name     string
	Previous *structs.Allocation // which it follows, nil for none
	History  *structs.Allocation // whose reschedules it carries on, nil for none
	// Awaits are ids of other allocations that have to end before the new one begins.
	Awaits []string
	// StopPrevious ends Previous once the new one has found a node; nil when that is not for this placement to do.
	StopPrevious *Stop
	Reschedule   bool     // counts as an attempt of the reschedule policy
	Penalty      []string // nodes on which it failed before
	Node         string   // system jobs: the node on which it belongs
	Canary       bool
	Deploys      bool // belongs to the active deployment
	Destructive  bool // an update which runs in place of Previous
}

// Update changes a running allocation without stopping it.
type Update struct {
	Alloc      *structs.Allocation
	Group      *structs.TaskGroup
	Difference Difference
	Deploys    bool
	told       []string // what differs, when somebody wants to read it
}

// Decision tells for tests and logs what became of an allocation and why.
type Decision struct {
	Alloc  *structs.Allocation
	Bucket Bucket
	Rule   string
	Reason string
}
