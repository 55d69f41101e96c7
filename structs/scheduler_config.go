package structs

// SchedulerConfiguration is documented with the public API.
type SchedulerConfiguration struct {
	SchedulerAlgorithm            string
	PreemptionConfig              PreemptionConfig
	MemoryOversubscriptionEnabled bool
	RejectJobRegistration         bool
	PauseEvalBroker               bool
	NodeLimitForFeasibilityChecks uint
	CreateIndex                   uint64
	ModifyIndex                   uint64
}

// PreemptionConfig is documented with the public API.
type PreemptionConfig struct {
	SystemSchedulerEnabled   bool
	SysBatchSchedulerEnabled bool
	BatchSchedulerEnabled    bool
	ServiceSchedulerEnabled  bool
}

// SchedulerConfigurationResponse is documented with the public API.
type SchedulerConfigurationResponse struct {
	SchedulerConfig *SchedulerConfiguration
}

// SchedulerSetConfigurationResponse is documented with the public API.
type SchedulerSetConfigurationResponse struct {
	Updated bool
}
