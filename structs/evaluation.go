package structs

import "time"

// Evaluation asks the scheduler to look at one job, and keeps what came of it. Times are in Unix nanoseconds.
type Evaluation struct {
	ID                      string
	Priority                int
	Type                    string
	TriggeredBy             string
	Namespace               string
	JobID                   string
	JobModifyIndex          uint64
	NodeID                  string
	NodeModifyIndex         uint64
	DeploymentID            string
	Status                  string
	StatusDescription       string
	Wait                    time.Duration
	WaitUntil               time.Time
	NextEval                string
	PreviousEval            string
	BlockedEval             string
	RelatedEvals            []*EvaluationStub
	FailedTGAllocs          map[string]*AllocationMetric
	PlanAnnotations         *PlanAnnotations
	ClassEligibility        map[string]bool
	EscapedComputedClass    bool
	QuotaLimitReached       string
	MissingNonNodeResources []string
	AnnotatePlan            bool
	QueuedAllocations       map[string]int
	SnapshotIndex           uint64
	CreateIndex             uint64
	ModifyIndex             uint64
	CreateTime              int64
	ModifyTime              int64

	// NoShutdownDelay and KillTimeout ride along for the plan, which stamps them on exactly the allocations that it stops.
	NoShutdownDelay bool           `json:"-" cbor:"NoShutdownDelay"`
	KillTimeout     *time.Duration `json:"-" cbor:"KillTimeout,omitempty"`
}

// EvaluationStub is an evaluation as related ones show it.
type EvaluationStub struct {
	ID                string
	Priority          int
	Type              string
	TriggeredBy       string
	Namespace         string
	JobID             string
	NodeID            string
	DeploymentID      string
	Status            string
	StatusDescription string
	WaitUntil         time.Time
	NextEval          string
	PreviousEval      string
	BlockedEval       string
	CreateIndex       uint64
	ModifyIndex       uint64
	CreateTime        int64
	ModifyTime        int64
}

// EvalDeleteRequest asks to delete evaluations, by id or by a filter.
type EvalDeleteRequest struct {
	EvalIDs []string
	Filter  string
}

// EvalDeleteResponse says how many evaluations were deleted.
type EvalDeleteResponse struct {
	Count int
}

// EvalCountResponse says how many evaluations match.
type EvalCountResponse struct {
	Count int
}

// EvalOptions are the options of an evaluation that an operator forces.
type EvalOptions struct {
	ForceReschedule bool
}
