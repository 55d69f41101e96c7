package structs

// ScalingPolicy bounds the count of a group, or the resources of a task, for an autoscaler.
type ScalingPolicy struct {
	Min         *int64         `hcl:"min,optional"`
	Max         *int64         `hcl:"max,optional"`
	Policy      map[string]any `hcl:"policy,block"`
	Enabled     *bool          `hcl:"enabled,optional"`
	Type        string         `hcl:"type,optional"`
	ID          string
	Namespace   string `json:",omitempty"`
	Target      map[string]string
	CreateIndex uint64
	ModifyIndex uint64
}

// ScalingPolicyListStub is a scaling policy as lists show it.
type ScalingPolicyListStub struct {
	ID          string
	Enabled     bool
	Type        string
	Target      map[string]string
	CreateIndex uint64
	ModifyIndex uint64
}

// ScalingEvent is something an autoscaler did; its time is in Unix nanoseconds.
type ScalingEvent struct {
	Count         *int64
	PreviousCount int64
	Error         bool
	Message       string
	Meta          map[string]any
	EvalID        *string
	Time          uint64
	CreateIndex   uint64
}

// JobScaleStatusResponse is how far a job's groups are from their counts.
type JobScaleStatusResponse struct {
	JobID          string
	Namespace      string
	JobCreateIndex uint64
	JobModifyIndex uint64
	JobStopped     bool
	TaskGroups     map[string]TaskGroupScaleStatus
}

// TaskGroupScaleStatus is how far one group is from its count.
type TaskGroupScaleStatus struct {
	Desired   int
	Placed    int
	Running   int
	Healthy   int
	Unhealthy int
	Events    []ScalingEvent
}

// ScalingRequest asks for a count, or reports something about scaling.
type ScalingRequest struct {
	Count          *int64
	Target         map[string]string
	Message        string
	Error          bool
	Meta           map[string]any
	PolicyOverride bool
	JobModifyIndex uint64
}
