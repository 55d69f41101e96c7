package structs

// Words of the public jobspec.
const (
	HealthCheckChecks     = "checks"
	HealthCheckTaskStates = "task_states"
	HealthCheckManual     = "manual"

	ReconcileBestScore       = "best_score"
	ReconcileKeepOriginal    = "keep_original"
	ReconcileKeepReplacement = "keep_replacement"
	ReconcileLongestRunning  = "longest_running"

	PeriodicSpecCron = "cron"

	PayloadOptional  = "optional"
	PayloadRequired  = "required"
	PayloadForbidden = "forbidden"

	ScalingHorizontal = "horizontal"

	PropagationPrivate       = "private"
	PropagationHostToTask    = "host-to-task"
	PropagationBidirectional = "bidirectional"

	ArtifactModeAny  = "any"
	ArtifactModeFile = "file"
	ArtifactModeDir  = "dir"

	ChangeModeNoop    = "noop"
	ChangeModeRestart = "restart"
	ChangeModeSignal  = "signal"
	ChangeModeScript  = "script"

	AddressModeAuto      = "auto"
	AddressModeHost      = "host"
	AddressModeDriver    = "driver"
	AddressModeAlloc     = "alloc"
	AddressModeAllocIPv6 = "alloc_ipv6"

	OnUpdateRequireHealthy = "require_healthy"
	OnUpdateIgnoreWarnings = "ignore_warnings"
	OnUpdateIgnore         = "ignore"

	NUMANone    = "none"
	NUMAPrefer  = "prefer"
	NUMARequire = "require"

	NetworkModeBridge = "bridge"
	NetworkModeHost   = "host"
	NetworkModeNone   = "none"

	ConstraintDistinctHosts     = "distinct_hosts"
	ConstraintDistinctProperty  = "distinct_property"
	ConstraintRegexp            = "regexp"
	ConstraintVersion           = "version"
	ConstraintSemver            = "semver"
	ConstraintSetContains       = "set_contains"
	ConstraintSetContainsAll    = "set_contains_all"
	ConstraintSetContainsAny    = "set_contains_any"
	ConstraintAttributeIsSet    = "is_set"
	ConstraintAttributeIsNotSet = "is_not_set"
)
