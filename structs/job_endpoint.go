package structs

import "time"

// JobRegisterRequest asks to store a job.
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

// JobRegisterResponse answers a stored job with its evaluation, if there is one.
type JobRegisterResponse struct {
	EvalID          string
	EvalCreateIndex uint64
	JobModifyIndex  uint64
	Warnings        string
}

// JobDeregisterResponse answers a stopped or purged job with its evaluation.
type JobDeregisterResponse struct {
	EvalID          string
	EvalCreateIndex uint64
	JobModifyIndex  uint64
}

// JobEvaluateRequest forces an evaluation of a job.
type JobEvaluateRequest struct {
	JobID       string
	EvalOptions EvalOptions
}

// JobPlanRequest asks what storing a job would do.
type JobPlanRequest struct {
	Job            *Job
	Diff           bool
	PolicyOverride bool
}

// JobPlanResponse is what storing a job would do.
type JobPlanResponse struct {
	JobModifyIndex uint64
	CreatedEvals   []*Evaluation
	Diff           *JobDiff
	Annotations    *PlanAnnotations
	FailedTGAllocs map[string]*AllocationMetric
	// FailedReasons says of FailedTGAllocs in words why, and what would change that.
	FailedReasons      map[string][]Reason `json:",omitempty"`
	NextPeriodicLaunch time.Time
	Warnings           string
}

// JobValidateRequest asks whether a job is valid.
type JobValidateRequest struct {
	Job *Job
}

// JobValidateResponse lists the faults of a job.
type JobValidateResponse struct {
	DriverConfigValidated bool
	ValidationErrors      []string
	Error                 string
	Warnings              string
}

// JobVersionsResponse lists the versions of a job, the newest first.
type JobVersionsResponse struct {
	Versions []*Job
	Diffs    []*JobDiff
}

// JobsParseRequest asks to turn the text of a jobspec into a job.
type JobsParseRequest struct {
	JobHCL       string
	Variables    string
	Canonicalize bool
}

// JobRevertRequest asks to make an older version of a job the newest.
type JobRevertRequest struct {
	JobID               string
	JobVersion          uint64
	EnforcePriorVersion *uint64
}

// JobStabilityRequest marks a version of a job as stable or not.
type JobStabilityRequest struct {
	JobID      string
	JobVersion uint64
	Stable     bool
}

// JobStabilityResponse answers that mark.
type JobStabilityResponse struct {
	JobModifyIndex uint64
}

// JobSubmissionResponse holds the text from which a job was made.
type JobSubmissionResponse struct {
	Submission *JobSubmission
}

// JobDispatchRequest asks for a child of a parameterized job.
type JobDispatchRequest struct {
	JobID            string
	Payload          []byte
	Meta             map[string]string
	IdPrefixTemplate string
	Priority         int
}

// JobDispatchResponse names that child and its evaluation.
type JobDispatchResponse struct {
	DispatchedJobID string
	EvalID          string
	EvalCreateIndex uint64
	JobCreateIndex  uint64
}

// PeriodicForceResponse names the evaluation of a launch that was forced.
type PeriodicForceResponse struct {
	EvalID          string
	EvalCreateIndex uint64
}

// JobStatusesRequest asks for the statuses of some jobs.
type JobStatusesRequest struct {
	Jobs            []NamespacedID
	IncludeChildren bool
}

// TagVersionRequest names a version of a job.
type TagVersionRequest struct {
	Version     uint64
	Latest      bool
	Description string
}

// NamespacedID names a job across namespaces.
type NamespacedID struct {
	Namespace string
	ID        string
}
