package structs

import "time"

// Deployment is documented with the public API.
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

// DeploymentState is documented with the public API.
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

// DeploymentAllocHealthRequest is documented with the public API.
type DeploymentAllocHealthRequest struct {
	DeploymentID           string
	HealthyAllocationIDs   []string
	UnhealthyAllocationIDs []string
}

// DeploymentFailRequest is documented with the public API.
type DeploymentFailRequest struct {
	DeploymentID string
}

// DeploymentPauseRequest is documented with the public API.
type DeploymentPauseRequest struct {
	DeploymentID string
	Pause        bool
}

// DeploymentPromoteRequest is documented with the public API.
type DeploymentPromoteRequest struct {
	DeploymentID string
	All          bool
	Groups       []string
	PromotedAt   int64
}

// DeploymentUpdateResponse is documented with the public API.
type DeploymentUpdateResponse struct {
	EvalID                string
	EvalCreateIndex       uint64
	DeploymentModifyIndex uint64
	RevertedJobVersion    *uint64
}
