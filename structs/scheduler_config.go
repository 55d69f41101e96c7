package structs

// SchedulerConfiguration is what operators change about the scheduler at run time.
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

// PreemptionConfig says for which types of jobs allocations of lower priority are evicted.
type PreemptionConfig struct {
	SystemSchedulerEnabled   bool
	SysBatchSchedulerEnabled bool
	BatchSchedulerEnabled    bool
	ServiceSchedulerEnabled  bool
}

// SchedulerConfigurationResponse holds the scheduler's configuration.
type SchedulerConfigurationResponse struct {
	SchedulerConfig *SchedulerConfiguration
}

// SchedulerSetConfigurationResponse says whether the configuration was changed.
type SchedulerSetConfigurationResponse struct {
	Updated bool
}
