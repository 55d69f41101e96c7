package structs

import "time"

// JobRegisterRequest is documented with the public API.
type JobRegisterRequest struct {
	Submission        *JobSubmission
	Job               *Job
	EnforceIndex      bool   `json:",omitempty"`
	JobModifyIndex    uint64 `json:",omitempty"`
	PolicyOverride    bool   `json:",omitempty"`
	PreserveCounts    bool   `json:",omitempty"`
	PreserveResources bool   `json:",omitempty"`
	EvalPriority      int    `json:",omitempty"`
}

// JobRegisterResponse is documented with the public API.
type JobRegisterResponse struct {
	EvalID          string
	EvalCreateIndex uint64
	JobModifyIndex  uint64
	Warnings        string
}

// JobDeregisterResponse is documented with the public API.
type JobDeregisterResponse struct {
	EvalID          string
	EvalCreateIndex uint64
	JobModifyIndex  uint64
}

// JobEvaluateRequest is documented with the public API.
type JobEvaluateRequest struct {
	JobID       string
	EvalOptions EvalOptions
}

// JobPlanRequest is documented with the public API.
type JobPlanRequest struct {
	Job            *Job
	Diff           bool
	PolicyOverride bool
}

// JobPlanResponse is documented with the public API.
type JobPlanResponse struct {
	JobModifyIndex     uint64
	CreatedEvals       []*Evaluation
	Diff               *JobDiff
	Annotations        *PlanAnnotations
	FailedTGAllocs     map[string]*AllocationMetric
	NextPeriodicLaunch time.Time
	Warnings           string
}

// JobValidateRequest is documented with the public API.
type JobValidateRequest struct {
	Job *Job
}

// JobValidateResponse is documented with the public API.
type JobValidateResponse struct {
	DriverConfigValidated bool
	ValidationErrors      []string
	Error                 string
	Warnings              string
}

// JobVersionsResponse is documented with the public API.
type JobVersionsResponse struct {
	Versions []*Job
	Diffs    []*JobDiff
}

// JobsParseRequest is documented with the public API.
type JobsParseRequest struct {
	JobHCL       string
	Variables    string
	Canonicalize bool
}

// JobRevertRequest is documented with the public API.
type JobRevertRequest struct {
	JobID               string
	JobVersion          uint64
	EnforcePriorVersion *uint64
}

// JobStabilityRequest is documented with the public API.
type JobStabilityRequest struct {
	JobID      string
	JobVersion uint64
	Stable     bool
}

// JobStabilityResponse is documented with the public API.
type JobStabilityResponse struct {
	JobModifyIndex uint64
}

// JobSubmissionResponse is documented with the public API.
type JobSubmissionResponse struct {
	Submission *JobSubmission
}

// JobDispatchRequest is documented with the public API.
type JobDispatchRequest struct {
	JobID            string
	Payload          []byte
	Meta             map[string]string
	IdPrefixTemplate string
	Priority         int
}

// JobDispatchResponse is documented with the public API.
type JobDispatchResponse struct {
	DispatchedJobID string
	EvalID          string
	EvalCreateIndex uint64
	JobCreateIndex  uint64
}

// JobStatusesRequest is documented with the public API.
type JobStatusesRequest struct {
	Jobs            []NamespacedID
	IncludeChildren bool
}

// TagVersionRequest is documented with the public API.
type TagVersionRequest struct {
	Version     uint64
	Latest      bool
	Description string
}

// NamespacedID is documented with the public API.
type NamespacedID struct {
	Namespace string
	ID        string
}
