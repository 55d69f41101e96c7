package structs

import "time"

// CompatVersion is the level of the public interface which all public version fields report, since jobspecs and
// tools compare it. The project's own version is Version.
const CompatVersion = "2.0.6"

// Version is nomadlite's own version.
const Version = "0.1.0"

// Names which the cluster always has.
const (
	DefaultRegion     = "global"
	DefaultDatacenter = "dc1"
	DefaultNamespace  = "default"
	AllNamespaces     = "*"
	NodePoolDefault   = "default"
	NodePoolAll       = "all"
)

// Job types, statuses and limits.
const (
	JobTypeService  = "service"
	JobTypeBatch    = "batch"
	JobTypeSystem   = "system"
	JobTypeSysBatch = "sysbatch"
	JobTypeCore     = "_core"

	JobStatusPending = "pending"
	JobStatusRunning = "running"
	JobStatusDead    = "dead"

	JobDefaultPriority = 50
	JobMinPriority     = 1
	JobMaxPriority     = 100
	CoreJobPriority    = 200

	JobTrackedVersions = 6
)

// Evaluation statuses and the reasons that trigger one.
const (
	EvalStatusBlocked   = "blocked"
	EvalStatusPending   = "pending"
	EvalStatusComplete  = "complete"
	EvalStatusFailed    = "failed"
	EvalStatusCancelled = "canceled"

	EvalTriggerJobRegister       = "job-register"
	EvalTriggerJobDeregister     = "job-deregister"
	EvalTriggerPeriodicJob       = "periodic-job"
	EvalTriggerNodeDrain         = "node-drain"
	EvalTriggerNodeUpdate        = "node-update"
	EvalTriggerAllocStop         = "alloc-stop"
	EvalTriggerScheduled         = "scheduled"
	EvalTriggerRollingUpdate     = "rolling-update"
	EvalTriggerDeploymentWatcher = "deployment-watcher"
	EvalTriggerFailedFollowUp    = "failed-follow-up"
	EvalTriggerMaxPlans          = "max-plan-attempts"
	EvalTriggerRetryFailedAlloc  = "alloc-failure"
	EvalTriggerQueuedAllocs      = "queued-allocs"
	EvalTriggerPreemption        = "preemption"
	EvalTriggerScaling           = "job-scaling"
	EvalTriggerMaxDisconnect     = "max-disconnect-timeout"
	EvalTriggerReconnect         = "reconnect"
)

// Desired, observed and public statuses of an allocation, and its conditions.
const (
	AllocDesiredStatusRun   = "run"
	AllocDesiredStatusStop  = "stop"
	AllocDesiredStatusEvict = "evict"

	AllocClientStatusPending  = "pending"
	AllocClientStatusRunning  = "running"
	AllocClientStatusComplete = "complete"
	AllocClientStatusFailed   = "failed"
	AllocClientStatusLost     = "lost"
	AllocClientStatusUnknown  = "unknown"

	ConditionOK      = "ok"
	ConditionAway    = "away"
	ConditionUnknown = "unknown"
	ConditionLost    = "lost"
)

// Node statuses and eligibility.
const (
	NodeStatusInit         = "initializing"
	NodeStatusReady        = "ready"
	NodeStatusDown         = "down"
	NodeStatusDisconnected = "disconnected"

	NodeEligible   = "eligible"
	NodeIneligible = "ineligible"
)

// Deployment statuses.
const (
	DeploymentStatusRunning      = "running"
	DeploymentStatusPaused       = "paused"
	DeploymentStatusFailed       = "failed"
	DeploymentStatusSuccessful   = "successful"
	DeploymentStatusCancelled    = "cancelled"
	DeploymentStatusInitializing = "initializing"
	DeploymentStatusPending      = "pending"
	DeploymentStatusBlocked      = "blocked"
	DeploymentStatusUnblocking   = "unblocking"
)

// Task states.
const (
	TaskStatePending = "pending"
	TaskStateRunning = "running"
	TaskStateDead    = "dead"
)

// Task event types, as the public API names them.
const (
	TaskSetupFailure           = "Setup Failure"
	TaskDriverFailure          = "Driver Failure"
	TaskDriverMessage          = "Driver"
	TaskReceived               = "Received"
	TaskFailedValidation       = "Failed Validation"
	TaskSetup                  = "Task Setup"
	TaskStarted                = "Started"
	TaskTerminated             = "Terminated"
	TaskRestarting             = "Restarting"
	TaskNotRestarting          = "Not Restarting"
	TaskKilling                = "Killing"
	TaskKilled                 = "Killed"
	TaskRestartSignal          = "Restart Signaled"
	TaskSignaling              = "Signaling"
	TaskDownloadingArtifacts   = "Downloading Artifacts"
	TaskArtifactDownloadFailed = "Failed Artifact Download"
	TaskSiblingFailed          = "Sibling Task Failed"
	TaskLeaderDead             = "Leader Task Dead"
	TaskMainDead               = "Main Tasks Dead"
	TaskTemplate               = "Template"
	TaskHookMessage            = "Task hook message"
	TaskHookFailed             = "Task hook failed"
	TaskRestoreFailed          = "Failed Restoring Task"
	TaskWaitingPrevious        = "Waiting for previous allocation"
	TaskWaitingShutdownDelay   = "Waiting for shutdown delay"
	TaskSkippingShutdownDelay  = "Skipping shutdown delay"
	TaskReattached             = "Reattached"
	TaskAllocUnhealthy         = "Alloc Unhealthy"
	TaskBuildingTaskDir        = "Building Task Directory"
	TaskClientReconnected      = "Reconnected"
	TaskLifecyclePrestart      = "prestart"
	TaskLifecyclePoststart     = "poststart"
	TaskLifecyclePoststop      = "poststop"
	RestartPolicyModeDelay     = "delay"
	RestartPolicyModeFail      = "fail"
	DefaultKillTimeout         = 5 * time.Second
	DefaultMaxKillTimeout      = 30 * time.Second
	ReasonWithinPolicy         = "Restart within policy"
	ReasonExceededRestartLimit = "Exceeded allowed attempts"
	ReasonUnrecoverable        = "Error was unrecoverable"
)

// Val gives what p points at, or the zero value when p is nil.
func Val[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// Ptr gives a pointer to a copy of v.
func Ptr[T any](v T) *T { return &v }
