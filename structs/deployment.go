package structs

import "time"

// Deployment is the roll-out of one version of a job.
type Deployment struct {
	ID                 string
	Namespace          string
	JobID              string
	JobVersion         uint64
	JobModifyIndex     uint64
	JobSpecModifyIndex uint64
	JobCreateIndex     uint64
	IsMultiregion      bool
	TaskGroups         map[string]*DeploymentState
	Status             string
	StatusDescription  string
	CreateIndex        uint64
	ModifyIndex        uint64
	CreateTime         int64
	ModifyTime         int64
}

// DeploymentState is the progress of a deployment in one group.
type DeploymentState struct {
	PlacedCanaries    []string
	AutoRevert        bool
	ProgressDeadline  time.Duration
	RequireProgressBy time.Time
	Promoted          bool
	DesiredCanaries   int
	DesiredTotal      int
	PlacedAllocs      int
	HealthyAllocs     int
	UnhealthyAllocs   int
}

// DeploymentAllocHealthRequest sets the health of a deployment's allocations by hand.
type DeploymentAllocHealthRequest struct {
	DeploymentID           string
	HealthyAllocationIDs   []string
	UnhealthyAllocationIDs []string
}

// DeploymentFailRequest asks to fail a deployment.
type DeploymentFailRequest struct {
	DeploymentID string
}

// DeploymentUnblockRequest asks to unblock a deployment.
type DeploymentUnblockRequest struct {
	DeploymentID string
}

// DeploymentPauseRequest asks to pause a deployment or to go on.
type DeploymentPauseRequest struct {
	DeploymentID string
	Pause        bool
}

// DeploymentPromoteRequest asks to promote the canaries of all groups or of some.
type DeploymentPromoteRequest struct {
	DeploymentID string
	All          bool
	Groups       []string
	PromotedAt   int64
}

// DeploymentUpdateResponse answers a change of a deployment.
type DeploymentUpdateResponse struct {
	EvalID                string
	EvalCreateIndex       uint64
	DeploymentModifyIndex uint64
	RevertedJobVersion    *uint64
}
