package fsm

import (
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Kind numbers a raft command. Numbers are written to disk: never reuse or renumber one.
type Kind uint8

// The commands. Each carries the request type of the same name.
const (
	KindJobRegister        Kind = 1
	KindJobDeregister      Kind = 2
	KindEvalUpdate         Kind = 3
	KindEvalDelete         Kind = 4
	KindPlanApply          Kind = 5
	KindNodeRegister       Kind = 6
	KindNodeStatus         Kind = 7
	KindNodeDeregister     Kind = 8
	KindNodeEligibility    Kind = 9
	KindNodeDrain          Kind = 10
	KindAllocObserve       Kind = 11
	KindAllocTransition    Kind = 12
	KindReap               Kind = 13
	KindKeyringUpsert      Kind = 14
	KindKeyringDelete      Kind = 15
	KindNodePoolUpsert     Kind = 16
	KindNodePoolDelete     Kind = 17
	KindNamespaceUpsert    Kind = 18
	KindNamespaceDelete    Kind = 19
	KindSchedulerConfig    Kind = 20
	KindClusterMeta        Kind = 21
	KindJobStability       Kind = 22
	KindJobVersionTag      Kind = 23
	KindReconcileSummaries Kind = 24
	KindNodeEvents         Kind = 25
	KindDeploymentStatus   Kind = 26
	KindServiceUpsert      Kind = 27
	KindServiceDelete      Kind = 28
	KindJobScale           Kind = 29
	KindDeploymentPromote  Kind = 30
	KindDeploymentHealth   Kind = 31
	KindNodeMaintenance    Kind = 32
	KindPeriodicLaunch     Kind = 33
	KindJobDispatch        Kind = 34
	KindNodeLeave          Kind = 35
)

// JobRegister stores a job (a new version when its specification changed) and its evaluation in one entry.
// It clears NoShutdownDelay and KillTimeout transitions of the job's live allocations that stay desired run.
type JobRegister struct {
	Job        *structs.Job
	Submission *structs.JobSubmission
	// EnforceIndex refuses the write with structs.CodeConflict unless the stored JobModifyIndex equals JobModifyIndex
	// (0: the job must not exist).
	EnforceIndex   bool
	JobModifyIndex uint64
	PreserveCounts bool
	// PreserveResources keeps the resources of tasks that the stored job has too.
	PreserveResources bool
	// SameKind refuses, with structs.CodeValidation, to give a job another type, or to make one periodic or parameterized
	// that was not, and the reverse.
	// Entries of older versions have it not set, and are applied as they were then.
	SameKind bool                `cbor:",omitempty"`
	Eval     *structs.Evaluation // may be nil (periodic, parameterized)
	Now      int64               // unix nanoseconds
}

// JobRegisterResult answers JobRegister.
type JobRegisterResult struct {
	Job             *structs.Job // the row that was stored
	JobModifyIndex  uint64
	EvalID          string
	EvalCreateIndex uint64
}

// JobDeregister stops a job, or purges it, stores its evaluation and sets the transitions on exactly the job's live
// allocations, all in one entry.
type JobDeregister struct {
	Namespace       string
	JobID           string
	Purge           bool
	NoShutdownDelay bool
	KillTimeout     *time.Duration
	Eval            *structs.Evaluation
	Now             int64
}

// JobDeregisterResult answers JobDeregister.
type JobDeregisterResult struct {
	Found           bool // false: there was no such job; its evaluation was stored all the same
	JobModifyIndex  uint64
	EvalID          string
	EvalCreateIndex uint64
}

// EvalUpdate upserts evaluations.
type EvalUpdate struct {
	Evals []*structs.Evaluation
	Now   int64
}

// EvalDelete deletes evaluations by id.
type EvalDelete struct {
	IDs []string
}

// PlanApply commits up to 64 verified plans in one entry. Plans hold only what fits.
type PlanApply struct {
	Plans []*structs.Plan
	// Evals are follow-up evaluations that belong with the plans (preempted jobs).
	Evals []*structs.Evaluation
	Now   int64
	// Fit leaves out of the plans what entries between their verification and this one made wrong. Entries of versions
	// that did not know this are applied as they were.
	Fit bool `cbor:",omitempty"`
}

// PlanApplyResult answers PlanApply. Errors has one entry a plan: nil, or why nothing of that plan was stored; so has
// Fitted when it is not nil: what of the plan was stored, nil for all.
type PlanApplyResult struct {
	Errors []error
	Fitted []*structs.PlanVerdict
}

// NodeRegister upserts what a node says of itself; server-owned fields are kept. Evals come from the caller.
type NodeRegister struct {
	Node  *structs.Node
	Evals []*structs.Evaluation
	Now   int64
}

// NodeStatus changes the status of nodes, in a batch, with the conditions of the allocations on them.
type NodeStatus struct {
	Updates []NodeStatusUpdate
	Evals   []*structs.Evaluation
	Now     int64
}

// NodeStatusUpdate is one node's new status.
type NodeStatusUpdate struct {
	NodeID string
	Status string
	Event  *structs.NodeEvent
	// Conditions by allocation id; those not named keep theirs.
	Conditions map[string]structs.Condition
	// EndMaintenance takes the node's maintenance away: its time is over.
	EndMaintenance bool `cbor:",omitempty"`
	// EndLeaving gives the node back what it had before it began to leave. Agent, when it is not empty, is a process of the
	// node's agent: of the one that leaves it does nothing.
	EndLeaving bool   `cbor:",omitempty"`
	Agent      string `cbor:",omitempty"`
}

// NodeDeregister removes nodes and marks what ran there lost.
type NodeDeregister struct {
	NodeIDs []string
	Reason  string
	Evals   []*structs.Evaluation
	Now     int64
}

// NodeEligibility sets a node's scheduling eligibility.
type NodeEligibility struct {
	NodeID      string
	Eligibility string
	Event       *structs.NodeEvent
	Evals       []*structs.Evaluation
	Now         int64
}

// NodeDrain sets or clears (Strategy nil) a node's drain.
type NodeDrain struct {
	NodeID   string
	Strategy *structs.DrainStrategy
	// Complete says that a drain is cleared because it is done, not because it was cancelled.
	Complete bool
	// NodeModifyIndex is that of the node whose drain is complete: of a node that was changed since it is not. 0: of
	// any.
	NodeModifyIndex uint64 `cbor:",omitempty"`
	MarkEligible    bool
	Meta            map[string]string
	Event           *structs.NodeEvent
	Evals           []*structs.Evaluation
	Now             int64
}

// AllocObserve folds the observations of many nodes into one entry.
type AllocObserve struct {
	Observations []*structs.AllocObservation
	Evals        []*structs.Evaluation
	Now          int64
}

// AllocTransition merges desired transitions into allocations, with the evaluations that act on them.
type AllocTransition struct {
	Transitions map[string]*structs.DesiredTransition
	Evals       []*structs.Evaluation
	Now         int64
}

// Reap deletes what garbage collection found: rows of several tables in one entry.
type Reap struct {
	Evals       []string
	Allocs      []string
	Deployments []string
	Jobs        []structs.NamespacedID
	Nodes       []string
	Reason      string
	Now         int64
}

// ReapResult answers Reap with the numbers of what was deleted. What came alive again since it was found is left.
type ReapResult struct {
	Evals, Allocs, Deployments, Jobs, Nodes int
}

// KeyringUpsert stores a root key's metadata and its wrapped material.
type KeyringUpsert struct {
	Key *structs.RootKey
	Now int64
}

// KeyringDelete removes a root key.
type KeyringDelete struct{ KeyID string }

// NodePoolUpsert stores node pools.
type NodePoolUpsert struct{ Pools []*structs.NodePool }

// NodePoolDelete removes node pools.
type NodePoolDelete struct{ Names []string }

// NamespaceUpsert stores namespaces.
type NamespaceUpsert struct{ Namespaces []*structs.Namespace }

// NamespaceDelete removes namespaces.
type NamespaceDelete struct{ Names []string }

// SchedulerConfig stores the scheduler's configuration; CAS when Config.ModifyIndex must match.
type SchedulerConfig struct {
	Config *structs.SchedulerConfiguration
	CAS    bool
}

// SchedulerConfigResult answers SchedulerConfig.
type SchedulerConfigResult struct {
	Updated bool
}

// ClusterMeta stores the cluster's id, once; the answer is the id that counts, a string.
type ClusterMeta struct {
	ClusterID string
	Now       int64
}

// JobStability marks a version stable or not.
type JobStability struct {
	Namespace, JobID string
	Version          uint64
	Stable           bool
}

// JobVersionTag tags a version (Tag nil: removes the tag Name).
type JobVersionTag struct {
	Namespace, JobID string
	Name             string
	Version          uint64
	Tag              *structs.JobVersionTag
}

// ReconcileSummaries recomputes all job summaries from the allocations.
type ReconcileSummaries struct{}

// NodeEvents appends events to nodes, by node id.
type NodeEvents struct {
	Events map[string][]*structs.NodeEvent
}

// DeploymentStatus changes a deployment's status, optionally with an evaluation, and takes the job back to an earlier
// version.
type DeploymentStatus struct {
	Update *structs.DeploymentStatusUpdate
	Eval   *structs.Evaluation
	Now    int64
	Revert *JobRevert `cbor:",omitempty"`
}

// JobRevert registers a job's earlier version anew, in the entry in which a deployment fails. When the job was changed
// since, or cannot be registered any more, the deployment fails all the same, with the description Otherwise.
type JobRevert struct {
	Job            *structs.Job
	Submission     *structs.JobSubmission
	JobModifyIndex uint64 // of the row that is replaced
	Otherwise      string
}

// ServiceUpsert stores registrations of services, of many nodes in one entry. Each names its node; the store leaves out
// those whose allocations are not there, and fills in what follows from the allocation.
type ServiceUpsert struct {
	Services []*structs.ServiceRegistration
}

// ServiceDelete removes registrations of services. Those that are not there are passed over.
type ServiceDelete struct {
	Services []ServiceRef
}

// ServiceRef names a registration. With a node's id it is removed only when it is of that node.
type ServiceRef struct {
	Namespace string
	ID        string
	NodeID    string
}

// ServiceDeleteResult answers ServiceDelete.
type ServiceDeleteResult struct {
	Deleted int
}

// JobScale gives a group of a job another count, together with the evaluation, or only keeps an event about its
// scaling. With a count the stored job's JobModifyIndex must be JobModifyIndex (structs.CodeConflict).
type JobScale struct {
	Namespace, JobID, Group string
	Count                   *int64 // nil: nothing changes
	JobModifyIndex          uint64
	Event                   structs.ScalingEvent
	Eval                    *structs.Evaluation
	Now                     int64
}

// JobScaleResult answers JobScale.
type JobScaleResult struct {
	JobModifyIndex uint64
}

// DeploymentPromote promotes the canaries of all groups of a deployment, or of some, together with an evaluation.
type DeploymentPromote struct {
	DeploymentID string
	Groups       []string // empty: all that have canaries
	Eval         *structs.Evaluation
	Now          int64
}

// DeploymentHealth is an operator's word on the health of a deployment's allocations, together with an evaluation.
type DeploymentHealth struct {
	DeploymentID       string
	Healthy, Unhealthy []string
	// Fail ends the deployment too; nil leaves it as it is.
	Fail   *structs.DeploymentStatusUpdate
	Eval   *structs.Evaluation
	Now    int64
	Revert *JobRevert `cbor:",omitempty"`
}
