// Package scheduler makes decisions: a state snapshot and an evaluation go in, a plan comes out. It does no I/O, asks
// no clock but the one handed in, and leaves no goroutine behind. reconcile says what should change, feasible where a
// group may run, rank where it is best.
package scheduler

import (
	"context"
	"iter"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/scheduler/rank"
	"github.com/nomadlite/nomadlite/structs"
)

// State is the read-only snapshot which a scheduler sees. All objects are immutable. Every allocation's Job is set.
type State interface {
	Index() uint64
	// Job gives the current row of a job, nil when there is none.
	Job(namespace, id string) *structs.Job
	// AllocsByJob gives all allocations of a job id, terminal ones and those of an earlier purged job included.
	AllocsByJob(namespace, id string) []*structs.Allocation
	// AllocsByNode gives all allocations on a node.
	AllocsByNode(nodeID string) []*structs.Allocation
	Node(id string) *structs.Node
	Nodes() iter.Seq[*structs.Node]
	// LatestDeployment gives the newest deployment of a job, nil when there is none.
	LatestDeployment(namespace, jobID string) *structs.Deployment
	SchedulerConfig() *structs.SchedulerConfiguration
}

// A State may know more than it must. What follows is used when it is there.
type (
	// UsageState keeps the usage of each node beside it: the sum over all allocations with HoldsResources. Without
	// it the scheduler adds up the allocations of every node that it looks at.
	UsageState interface {
		NodeUsage(nodeID string) *structs.NodeUsage
	}
	// FleetState keeps what scheduling needs of all nodes, worked out once for as long as none of them changes, and gives
	// the usages by place in it (nil: nothing is held). It is far less work than to look at each node by itself.
	FleetState interface {
		Fleet() (fleet *feasible.Fleet, usages []*structs.NodeUsage)
	}
	// EvalState finds evaluations, so that an allocation whose follow-up evaluation is gone gets another.
	EvalState interface {
		Eval(id string) *structs.Evaluation
	}
	// TentativeState also counts in what others have decided but nobody has written yet. A placement that fits nowhere
	// there, or only where others are evicted, proves nothing: Settled waits for the outcome and gives a state that
	// holds nothing but what is written.
	TentativeState interface {
		Settled(ctx context.Context) (State, error)
	}
	// PoolState finds node pools, whose configuration goes before the cluster's.
	PoolState interface {
		NodePool(name string) *structs.NodePool
	}
)

// Planner takes what a scheduler decided. It is the only way out.
type Planner interface {
	// SubmitPlan hands a plan to the applier and waits for its result. State is not nil when the scheduler must look
	// at a newer snapshot before it goes on.
	SubmitPlan(ctx context.Context, plan *structs.Plan) (*structs.PlanResult, State, error)
	// UpdateEval stores the evaluation's new status.
	UpdateEval(ctx context.Context, eval *structs.Evaluation) error
	// CreateEval stores a new evaluation (blocked, follow-up).
	CreateEval(ctx context.Context, eval *structs.Evaluation) error
	// ReblockEval puts an evaluation that was blocked before back among the blocked ones, with its new reasons.
	ReblockEval(ctx context.Context, eval *structs.Evaluation) error
}

// Config is what a scheduler works with.
type Config struct {
	Logger  hclog.Logger
	State   State
	Planner Planner
	Now     time.Time     // the time of this evaluation
	NewID   func() string // gives a fresh uuid
	// Clock measures how long placements take, for their metrics alone; nil leaves the times at 0.
	Clock func() time.Time
	// Buffers are shared by all evaluations that go by this configuration, also at the same time; nil: by none.
	Buffers *rank.Buffers
}

// Scheduler processes one evaluation. An error means that the evaluation was not decided and may be tried again; a
// job that cannot be placed is no error but a blocked evaluation.
type Scheduler interface {
	Process(ctx context.Context, eval *structs.Evaluation) error
}
