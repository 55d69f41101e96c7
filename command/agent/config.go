package agent

// Config is the whole configuration of an agent; keys as in the public documentation.
type Config struct {
	Region                    *string           `hcl:"region"`
	Datacenter                *string           `hcl:"datacenter"`
	Name                      *string           `hcl:"name"`
	DataDir                   *string           `hcl:"data_dir"`
	PluginDir                 *string           `hcl:"plugin_dir"`
	LogLevel                  *string           `hcl:"log_level"`
	LogJSON                   *bool             `hcl:"log_json"`
	LogFile                   *string           `hcl:"log_file"`
	LogIncludeLocation        *bool             `hcl:"log_include_location"`
	LogRotateDuration         *string           `hcl:"log_rotate_duration"`
	LogRotateBytes            *int              `hcl:"log_rotate_bytes"`
	LogRotateMaxFiles         *int              `hcl:"log_rotate_max_files"`
	BindAddr                  *string           `hcl:"bind_addr"`
	EnableDebug               *bool             `hcl:"enable_debug"`
	Ports                     *PortsConfig      `hcl:"ports"`
	Addresses                 *AddressesConfig  `hcl:"addresses"`
	Advertise                 *AdvertiseConfig  `hcl:"advertise"`
	Client                    *ClientConfig     `hcl:"client"`
	Server                    *ServerConfig     `hcl:"server"`
	RPC                       *RPCConfig        `hcl:"rpc"`
	ACL                       *ACLConfig        `hcl:"acl"`
	Telemetry                 *TelemetryConfig  `hcl:"telemetry"`
	LeaveOnInterrupt          *bool             `hcl:"leave_on_interrupt"`
	LeaveOnTerminate          *bool             `hcl:"leave_on_terminate"`
	LeaveDeadline             *string           `hcl:"leave_deadline"`
	ExpectBack                *string           `hcl:"expect_back"`
	EnableSyslog              *bool             `hcl:"enable_syslog"`
	SyslogFacility            *string           `hcl:"syslog_facility"`
	DisableUpdateCheck        *bool             `hcl:"disable_update_check"`
	DisableAnonymousSignature *bool             `hcl:"disable_anonymous_signature"`
	UI                        *UIConfig         `hcl:"ui"`
	TLS                       *TLSConfig        `hcl:"tls"`
	HTTPAPIResponseHeaders    map[string]string `hcl:"http_api_response_headers"`
	Sentinel                  *SentinelConfig   `hcl:"sentinel"`
	Autopilot                 *AutopilotConfig  `hcl:"autopilot"`
	Plugin                    []*PluginConfig   `hcl:"plugin"`
	Limits                    *LimitsConfig     `hcl:"limits"`
	Audit                     *AuditConfig      `hcl:"audit"`
	Reporting                 *ReportingConfig  `hcl:"reporting"`
	Keyring                   []*KeyringConfig  `hcl:"keyring"`
	Eventlog                  *EventlogConfig   `hcl:"eventlog"`
	Consul                    []*ConsulConfig   `hcl:"consul"`
	Vault                     []*VaultConfig    `hcl:"vault"`
}

// ACLConfig is the acl block of an agent; keys as in the public documentation.
type ACLConfig struct {
	Enabled               *bool   `hcl:"enabled"`
	TokenTTL              *string `hcl:"token_ttl"`
	PolicyTTL             *string `hcl:"policy_ttl"`
	RoleTTL               *string `hcl:"role_ttl"`
	ReplicationToken      *string `hcl:"replication_token"`
	TokenMinExpirationTTL *string `hcl:"token_min_expiration_ttl"`
	TokenMaxExpirationTTL *string `hcl:"token_max_expiration_ttl"`
}

// AddressesConfig is the addresses block of an agent; keys as in the public documentation.
type AddressesConfig struct {
	HTTP *string `hcl:"http"`
	RPC  *string `hcl:"rpc"`
	Serf *string `hcl:"serf"`
}

// AdvertiseConfig is the advertise block of an agent; keys as in the public documentation.
type AdvertiseConfig struct {
	HTTP *string `hcl:"http"`
	RPC  *string `hcl:"rpc"`
	Serf *string `hcl:"serf"`
}

// AuditConfig is the audit block of an agent; keys as in the public documentation.
type AuditConfig struct {
	Enabled *bool                `hcl:"enabled"`
	Sink    []*AuditSinkConfig   `hcl:"sink"`
	Filter  []*AuditFilterConfig `hcl:"filter"`
}

// AuditFilterConfig is the audit filter block of an agent; keys as in the public documentation.
type AuditFilterConfig struct {
	Type       *string  `hcl:"type"`
	Endpoints  []string `hcl:"endpoints"`
	Stages     []string `hcl:"stages"`
	Operations []string `hcl:"operations"`
	Name       string   `hcl:",label"`
}

// AuditSinkConfig is the audit sink block of an agent; keys as in the public documentation.
type AuditSinkConfig struct {
	DeliveryGuarantee *string `hcl:"delivery_guarantee"`
	Type              *string `hcl:"type"`
	Format            *string `hcl:"format"`
	Path              *string `hcl:"path"`
	RotateDuration    *string `hcl:"rotate_duration"`
	RotateBytes       *int    `hcl:"rotate_bytes"`
	RotateMaxFiles    *int    `hcl:"rotate_max_files"`
	Mode              *string `hcl:"mode"`
	Name              string  `hcl:",label"`
}

// AutopilotConfig is the autopilot block of an agent; keys as in the public documentation.
type AutopilotConfig struct {
	CleanupDeadServers      *bool   `hcl:"cleanup_dead_servers"`
	ServerStabilizationTime *string `hcl:"server_stabilization_time"`
	LastContactThreshold    *string `hcl:"last_contact_threshold"`
	MaxTrailingLogs         *int    `hcl:"max_trailing_logs"`
	MinQuorum               *int    `hcl:"min_quorum"`
	EnableRedundancyZones   *bool   `hcl:"enable_redundancy_zones"`
	DisableUpgradeMigration *bool   `hcl:"disable_upgrade_migration"`
	EnableCustomUpgrades    *bool   `hcl:"enable_custom_upgrades"`
}

// ClientConfig is the client block of an agent; keys as in the public documentation.
type ClientConfig struct {
	Enabled                        *bool                        `hcl:"enabled"`
	StateDir                       *string                      `hcl:"state_dir"`
	AllocDir                       *string                      `hcl:"alloc_dir"`
	AllocMountsDir                 *string                      `hcl:"alloc_mounts_dir"`
	HostVolumesDir                 *string                      `hcl:"host_volumes_dir"`
	HostVolumePluginDir            *string                      `hcl:"host_volume_plugin_dir"`
	CommonPluginDir                *string                      `hcl:"common_plugin_dir"`
	Servers                        []string                     `hcl:"servers"`
	NodeClass                      *string                      `hcl:"node_class"`
	NodePool                       *string                      `hcl:"node_pool"`
	Options                        map[string]string            `hcl:"options"`
	Meta                           map[string]string            `hcl:"meta"`
	ChrootEnv                      map[string]string            `hcl:"chroot_env"`
	NetworkInterface               *string                      `hcl:"network_interface"`
	PreferredAddressFamily         *string                      `hcl:"preferred_address_family"`
	NetworkSpeed                   *int                         `hcl:"network_speed"`
	CPUDisableDMIDecode            *bool                        `hcl:"cpu_disable_dmidecode"`
	CPUTotalCompute                *int                         `hcl:"cpu_total_compute"`
	MemoryTotalMB                  *int                         `hcl:"memory_total_mb"`
	DiskTotalMB                    *int                         `hcl:"disk_total_mb"`
	DiskFreeMB                     *int                         `hcl:"disk_free_mb"`
	ReservableCores                *string                      `hcl:"reservable_cores"`
	MaxKillTimeout                 *string                      `hcl:"max_kill_timeout"`
	Lease                          *string                      `hcl:"lease"`
	ClientMaxPort                  *int                         `hcl:"client_max_port"`
	ClientMinPort                  *int                         `hcl:"client_min_port"`
	MaxDynamicPort                 *int                         `hcl:"max_dynamic_port"`
	MinDynamicPort                 *int                         `hcl:"min_dynamic_port"`
	Reserved                       *ClientReservedConfig        `hcl:"reserved"`
	GCInterval                     *string                      `hcl:"gc_interval"`
	GCParallelDestroys             *int                         `hcl:"gc_parallel_destroys"`
	GCDiskUsageThreshold           *float64                     `hcl:"gc_disk_usage_threshold"`
	GCInodeUsageThreshold          *float64                     `hcl:"gc_inode_usage_threshold"`
	GCMaxAllocs                    *int                         `hcl:"gc_max_allocs"`
	GCVolumesOnNodeGC              *bool                        `hcl:"gc_volumes_on_node_gc"`
	NoHostUUID                     *bool                        `hcl:"no_host_uuid"`
	DisableRemoteExec              *bool                        `hcl:"disable_remote_exec"`
	Template                       *ClientTemplateConfig        `hcl:"template"`
	ServerJoin                     *ServerJoin                  `hcl:"server_join"`
	HostVolume                     []*ClientHostVolumeConfig    `hcl:"host_volume"`
	CNIPath                        *string                      `hcl:"cni_path"`
	CNIConfigDir                   *string                      `hcl:"cni_config_dir"`
	BridgeNetworkName              *string                      `hcl:"bridge_network_name"`
	BridgeNetworkSubnet            *string                      `hcl:"bridge_network_subnet"`
	BridgeNetworkSubnetIPv6        *string                      `hcl:"bridge_network_subnet_ipv6"`
	BridgeNetworkHairpinMode       *bool                        `hcl:"bridge_network_hairpin_mode"`
	HostNetwork                    []*ClientHostNetworkConfig   `hcl:"host_network"`
	BindWildcardDefaultHostNetwork *bool                        `hcl:"bind_wildcard_default_host_network"`
	CgroupParent                   *string                      `hcl:"cgroup_parent"`
	NomadServiceDiscovery          *bool                        `hcl:"nomad_service_discovery"`
	Artifact                       *ClientArtifactConfig        `hcl:"artifact"`
	DrainOnShutdown                *ClientDrainOnShutdownConfig `hcl:"drain_on_shutdown"`
	Users                          *ClientUsersConfig           `hcl:"users"`
	NodeMaxAllocs                  *int                         `hcl:"node_max_allocs"`
	LogFile                        *string                      `hcl:"log_file"`
	Fingerprint                    []*ClientFingerprintConfig   `hcl:"fingerprint"`
	DefaultIneligible              *bool                        `hcl:"default_ineligible"`
}

// ClientArtifactConfig is the client artifact block of an agent; keys as in the public documentation.
type ClientArtifactConfig struct {
	HTTPReadTimeout               *string  `hcl:"http_read_timeout"`
	HTTPMaxSize                   *string  `hcl:"http_max_size"`
	GCSTimeout                    *string  `hcl:"gcs_timeout"`
	GitTimeout                    *string  `hcl:"git_timeout"`
	HgTimeout                     *string  `hcl:"hg_timeout"`
	S3Timeout                     *string  `hcl:"s3_timeout"`
	DecompressionFileCountLimit   *int     `hcl:"decompression_file_count_limit"`
	DecompressionSizeLimit        *string  `hcl:"decompression_size_limit"`
	DisableArtifactInspection     *bool    `hcl:"disable_artifact_inspection"`
	DisableFilesystemIsolation    *bool    `hcl:"disable_filesystem_isolation"`
	FilesystemIsolationExtraPaths []string `hcl:"filesystem_isolation_extra_paths"`
	SetEnvironmentVariables       *string  `hcl:"set_environment_variables"`
}

// ClientDrainOnShutdownConfig is the client drain_on_shutdown block of an agent; keys as in the public documentation.
type ClientDrainOnShutdownConfig struct {
	Deadline         *string `hcl:"deadline"`
	IgnoreSystemJobs *bool   `hcl:"ignore_system_jobs"`
	Force            *bool   `hcl:"force"`
}

// ClientFingerprintConfig is the client fingerprint block of an agent; keys as in the public documentation.
type ClientFingerprintConfig struct {
	RetryInterval *string `hcl:"retry_interval"`
	RetryAttempts *int    `hcl:"retry_attempts"`
	ExitOnFailure *bool   `hcl:"exit_on_failure"`
	Name          string  `hcl:",label"`
}

// ClientHostNetworkConfig is the client host_network block of an agent; keys as in the public documentation.
type ClientHostNetworkConfig struct {
	CIDR          *string `hcl:"cidr"`
	Interface     *string `hcl:"interface"`
	ReservedPorts *string `hcl:"reserved_ports"`
	Name          string  `hcl:",label"`
}

// ClientHostVolumeConfig is the client host_volume block of an agent; keys as in the public documentation.
type ClientHostVolumeConfig struct {
	Path     *string `hcl:"path"`
	ReadOnly *bool   `hcl:"read_only"`
	Name     string  `hcl:",label"`
}

// ClientReservedConfig is the client reserved block of an agent; keys as in the public documentation.
type ClientReservedConfig struct {
	CPU           *int    `hcl:"cpu"`
	Memory        *int    `hcl:"memory"`
	Disk          *int    `hcl:"disk"`
	ReservedPorts *string `hcl:"reserved_ports"`
	Cores         *string `hcl:"cores"`
}

// ServerJoin is the client server_join block of an agent; keys as in the public documentation.
type ServerJoin struct {
	StartJoin     []string `hcl:"start_join"`
	RetryJoin     []string `hcl:"retry_join"`
	RetryMax      *int     `hcl:"retry_max"`
	RetryInterval *string  `hcl:"retry_interval"`
}

// ClientTemplateConfig is the client template block of an agent; keys as in the public documentation.
type ClientTemplateConfig struct {
	FunctionDenylist          []string     `hcl:"function_denylist"`
	FunctionBlacklist         []string     `hcl:"function_blacklist"`
	DisableFileSandbox        *bool        `hcl:"disable_file_sandbox"`
	MaxStale                  *string      `hcl:"max_stale"`
	BlockQueryWait            *string      `hcl:"block_query_wait"`
	Wait                      *WaitConfig  `hcl:"wait"`
	WaitBounds                *WaitConfig  `hcl:"wait_bounds"`
	ConsulRetry               *RetryConfig `hcl:"consul_retry"`
	VaultDefaultLeaseDuration *string      `hcl:"vault_default_lease_duration"`
	VaultRetry                *RetryConfig `hcl:"vault_retry"`
	NomadRetry                *RetryConfig `hcl:"nomad_retry"`
	UseClientConsulToken      *bool        `hcl:"use_client_consul_token"`
}

// RetryConfig is the client template consul_retry block of an agent; keys as in the public documentation.
type RetryConfig struct {
	Attempts   *int    `hcl:"attempts"`
	Backoff    *string `hcl:"backoff"`
	MaxBackoff *string `hcl:"max_backoff"`
}

// WaitConfig is the client template wait block of an agent; keys as in the public documentation.
type WaitConfig struct {
	Min *string `hcl:"min"`
	Max *string `hcl:"max"`
}

// ClientUsersConfig is the client users block of an agent; keys as in the public documentation.
type ClientUsersConfig struct {
	DynamicUserMin *int `hcl:"dynamic_user_min"`
	DynamicUserMax *int `hcl:"dynamic_user_max"`
}

// ConsulConfig is the consul block of an agent; keys as in the public documentation.
type ConsulConfig struct {
	Name                         *string         `hcl:"name"`
	ServerServiceName            *string         `hcl:"server_service_name"`
	ServerHTTPCheckName          *string         `hcl:"server_http_check_name"`
	ServerSerfCheckName          *string         `hcl:"server_serf_check_name"`
	ServerRPCCheckName           *string         `hcl:"server_rpc_check_name"`
	ServerFailuresBeforeCritical *int            `hcl:"server_failures_before_critical"`
	ServerFailuresBeforeWarning  *int            `hcl:"server_failures_before_warning"`
	ClientServiceName            *string         `hcl:"client_service_name"`
	ClientHTTPCheckName          *string         `hcl:"client_http_check_name"`
	ClientFailuresBeforeCritical *int            `hcl:"client_failures_before_critical"`
	ClientFailuresBeforeWarning  *int            `hcl:"client_failures_before_warning"`
	Tags                         []string        `hcl:"tags"`
	AutoAdvertise                *bool           `hcl:"auto_advertise"`
	ChecksUseAdvertise           *bool           `hcl:"checks_use_advertise"`
	Address                      *string         `hcl:"address"`
	GRPCAddress                  *string         `hcl:"grpc_address"`
	Timeout                      *string         `hcl:"timeout"`
	Token                        *string         `hcl:"token"`
	Auth                         *string         `hcl:"auth"`
	SSL                          *bool           `hcl:"ssl"`
	ShareSSL                     *bool           `hcl:"share_ssl"`
	VerifySSL                    *bool           `hcl:"verify_ssl"`
	GRPCCAFile                   *string         `hcl:"grpc_ca_file"`
	CAFile                       *string         `hcl:"ca_file"`
	CertFile                     *string         `hcl:"cert_file"`
	KeyFile                      *string         `hcl:"key_file"`
	ServerAutoJoin               *bool           `hcl:"server_auto_join"`
	ClientAutoJoin               *bool           `hcl:"client_auto_join"`
	Namespace                    *string         `hcl:"namespace"`
	ServiceIdentity              *IdentityConfig `hcl:"service_identity"`
	ServiceAuthMethod            *string         `hcl:"service_auth_method"`
	TaskIdentity                 *IdentityConfig `hcl:"task_identity"`
	TaskAuthMethod               *string         `hcl:"task_auth_method"`
}

// IdentityConfig is the consul service_identity block of an agent; keys as in the public documentation.
type IdentityConfig struct {
	Aud         []string          `hcl:"aud"`
	Env         *bool             `hcl:"env"`
	File        *bool             `hcl:"file"`
	Filepath    *string           `hcl:"filepath"`
	TTL         *string           `hcl:"ttl"`
	ExtraClaims map[string]string `hcl:"extra_claims"`
}

// EventlogConfig is the eventlog block of an agent; keys as in the public documentation.
type EventlogConfig struct {
	Enabled *bool   `hcl:"enabled"`
	Level   *string `hcl:"level"`
}

// KeyringConfig is the keyring block of an agent; keys as in the public documentation.
type KeyringConfig struct {
	Provider string  `hcl:",label"`
	Name     *string `hcl:"name"`
	Active   *bool   `hcl:"active"`
}

// LimitsConfig is the limits block of an agent; keys as in the public documentation.
type LimitsConfig struct {
	HttpsHandshakeTimeout *string `hcl:"https_handshake_timeout"`
	HTTPMaxConnsPerClient *int    `hcl:"http_max_conns_per_client"`
	RPCHandshakeTimeout   *string `hcl:"rpc_handshake_timeout"`
	RPCMaxConnsPerClient  *int    `hcl:"rpc_max_conns_per_client"`
}

// PluginConfig is the plugin block of an agent; keys as in the public documentation.
type PluginConfig struct {
	Args   []string       `hcl:"args"`
	Config map[string]any `hcl:"config"`
	Name   string         `hcl:",label"`
}

// PortsConfig is the ports block of an agent; keys as in the public documentation.
type PortsConfig struct {
	HTTP *int `hcl:"http"`
	RPC  *int `hcl:"rpc"`
	Serf *int `hcl:"serf"`
}

// ReportingConfig is the reporting block of an agent; keys as in the public documentation.
type ReportingConfig struct {
	License                      *ReportingLicenseConfig `hcl:"license"`
	Address                      *string                 `hcl:"address"`
	ExportInterval               *string                 `hcl:"export_interval"`
	SnapshotRetentionTime        *string                 `hcl:"snapshot_retention_time"`
	DisableProductUsageReporting *bool                   `hcl:"disable_product_usage_reporting"`
}

// ReportingLicenseConfig is the reporting license block of an agent; keys as in the public documentation.
type ReportingLicenseConfig struct {
	Enabled *bool `hcl:"enabled"`
}

// RPCConfig is the rpc block of an agent; keys as in the public documentation.
type RPCConfig struct {
	AcceptBacklog          *int    `hcl:"accept_backlog"`
	KeepAliveInterval      *string `hcl:"keep_alive_interval"`
	ConnectionWriteTimeout *string `hcl:"connection_write_timeout"`
	StreamOpenTimeout      *string `hcl:"stream_open_timeout"`
	StreamCloseTimeout     *string `hcl:"stream_close_timeout"`
	DialTimeout            *string `hcl:"dial_timeout"`
}

// SentinelConfig is the sentinel block of an agent; keys as in the public documentation.
type SentinelConfig struct {
	Import                   []*SentinelImportConfig `hcl:"import"`
	AdditionalEnabledModules []string                `hcl:"additional_enabled_modules"`
}

// SentinelImportConfig is the sentinel import block of an agent; keys as in the public documentation.
type SentinelImportConfig struct {
	Path *string  `hcl:"path"`
	Args []string `hcl:"args"`
	Name string   `hcl:",label"`
}

// ServerConfig is the server block of an agent; keys as in the public documentation.
type ServerConfig struct {
	Enabled                   *bool                               `hcl:"enabled"`
	AuthoritativeRegion       *string                             `hcl:"authoritative_region"`
	BootstrapExpect           *int                                `hcl:"bootstrap_expect"`
	ClientIntroduction        *ServerClientIntroductionConfig     `hcl:"client_introduction"`
	DataDir                   *string                             `hcl:"data_dir"`
	ProtocolVersion           *int                                `hcl:"protocol_version"`
	RaftProtocol              *int                                `hcl:"raft_protocol"`
	RaftMultiplier            *int                                `hcl:"raft_multiplier"`
	NumSchedulers             *int                                `hcl:"num_schedulers"`
	EnabledSchedulers         []string                            `hcl:"enabled_schedulers"`
	NodeGCThreshold           *string                             `hcl:"node_gc_threshold"`
	JobGCInterval             *string                             `hcl:"job_gc_interval"`
	JobGCThreshold            *string                             `hcl:"job_gc_threshold"`
	EvalGCThreshold           *string                             `hcl:"eval_gc_threshold"`
	BatchEvalGCThreshold      *string                             `hcl:"batch_eval_gc_threshold"`
	DeploymentGCThreshold     *string                             `hcl:"deployment_gc_threshold"`
	CSIVolumeClaimGCInterval  *string                             `hcl:"csi_volume_claim_gc_interval"`
	CSIVolumeClaimGCThreshold *string                             `hcl:"csi_volume_claim_gc_threshold"`
	CSIPluginGCThreshold      *string                             `hcl:"csi_plugin_gc_threshold"`
	ACLTokenGCThreshold       *string                             `hcl:"acl_token_gc_threshold"`
	RootKeyGCInterval         *string                             `hcl:"root_key_gc_interval"`
	RootKeyGCThreshold        *string                             `hcl:"root_key_gc_threshold"`
	RootKeyRotationThreshold  *string                             `hcl:"root_key_rotation_threshold"`
	HeartbeatGrace            *string                             `hcl:"heartbeat_grace"`
	MinHeartbeatTTL           *string                             `hcl:"min_heartbeat_ttl"`
	MaxHeartbeatsPerSecond    *float64                            `hcl:"max_heartbeats_per_second"`
	FailoverHeartbeatTTL      *string                             `hcl:"failover_heartbeat_ttl"`
	StartJoin                 []string                            `hcl:"start_join"`
	RetryJoin                 []string                            `hcl:"retry_join"`
	RetryMax                  *int                                `hcl:"retry_max"`
	RetryInterval             *string                             `hcl:"retry_interval"`
	RejoinAfterLeave          *bool                               `hcl:"rejoin_after_leave"`
	NonVotingServer           *bool                               `hcl:"non_voting_server"`
	RedundancyZone            *string                             `hcl:"redundancy_zone"`
	UpgradeVersion            *string                             `hcl:"upgrade_version"`
	Encrypt                   *string                             `hcl:"encrypt"`
	ServerJoin                *ServerJoin                         `hcl:"server_join"`
	DefaultSchedulerConfig    *ServerDefaultSchedulerConfigConfig `hcl:"default_scheduler_config"`
	PlanRejectionTracker      *ServerPlanRejectionTrackerConfig   `hcl:"plan_rejection_tracker"`
	PlanApplyPipeline         *int                                `hcl:"plan_apply_pipeline"`
	EnableEventBroker         *bool                               `hcl:"enable_event_broker"`
	EventBufferSize           *int                                `hcl:"event_buffer_size"`
	LicensePath               *string                             `hcl:"license_path"`
	Search                    *ServerSearchConfig                 `hcl:"search"`
	DeployQueryRateLimit      *float64                            `hcl:"deploy_query_rate_limit"`
	RaftLogstore              *ServerRaftLogstoreConfig           `hcl:"raft_logstore"`
	RaftBoltDB                *ServerRaftBoltDBConfig             `hcl:"raft_boltdb"`
	RaftSnapshotThreshold     *int                                `hcl:"raft_snapshot_threshold"`
	RaftSnapshotInterval      *string                             `hcl:"raft_snapshot_interval"`
	RaftTrailingLogs          *int                                `hcl:"raft_trailing_logs"`
	JobDefaultPriority        *int                                `hcl:"job_default_priority"`
	JobMaxPriority            *int                                `hcl:"job_max_priority"`
	JobMaxCount               *int                                `hcl:"job_max_count"`
	JobMaxSourceSize          *string                             `hcl:"job_max_source_size"`
	JobTrackedVersions        *int                                `hcl:"job_tracked_versions"`
	OIDCIssuer                *string                             `hcl:"oidc_issuer"`
	StartTimeout              *string                             `hcl:"start_timeout"`
	LogFile                   *string                             `hcl:"log_file"`
	NonProduction             *bool                               `hcl:"non_production"`
}

// ServerClientIntroductionConfig is the server client_introduction block of an agent; keys as in the public documentation.
type ServerClientIntroductionConfig struct {
	Enforcement        *string `hcl:"enforcement"`
	DefaultIdentityTTL *string `hcl:"default_identity_ttl"`
	MaxIdentityTTL     *string `hcl:"max_identity_ttl"`
}

// ServerDefaultSchedulerConfigConfig is the server default_scheduler_config block of an agent; keys as in the public documentation.
type ServerDefaultSchedulerConfigConfig struct {
	SchedulerAlgorithm            *string                                             `hcl:"scheduler_algorithm"`
	PreemptionConfig              *ServerDefaultSchedulerConfigPreemptionConfigConfig `hcl:"preemption_config"`
	MemoryOversubscriptionEnabled *bool                                               `hcl:"memory_oversubscription_enabled"`
	RejectJobRegistration         *bool                                               `hcl:"reject_job_registration"`
	PauseEvalBroker               *bool                                               `hcl:"pause_eval_broker"`
	NodeLimitForFeasibilityChecks *int                                                `hcl:"node_limit_for_feasibility_checks"`
}

// ServerDefaultSchedulerConfigPreemptionConfigConfig is the server default_scheduler_config preemption_config block of
// an agent; keys as in the public documentation.
type ServerDefaultSchedulerConfigPreemptionConfigConfig struct {
	SystemSchedulerEnabled   *bool `hcl:"system_scheduler_enabled"`
	SysbatchSchedulerEnabled *bool `hcl:"sysbatch_scheduler_enabled"`
	BatchSchedulerEnabled    *bool `hcl:"batch_scheduler_enabled"`
	ServiceSchedulerEnabled  *bool `hcl:"service_scheduler_enabled"`
}

// ServerPlanRejectionTrackerConfig is the server plan_rejection_tracker block of an agent; keys as in the public documentation.
type ServerPlanRejectionTrackerConfig struct {
	Enabled       *bool   `hcl:"enabled"`
	NodeThreshold *int    `hcl:"node_threshold"`
	NodeWindow    *string `hcl:"node_window"`
}

// ServerRaftBoltDBConfig is the server raft_boltdb block of an agent; keys as in the public documentation.
type ServerRaftBoltDBConfig struct {
	NoFreelistSync *bool `hcl:"no_freelist_sync"`
}

// ServerRaftLogstoreConfig is the server raft_logstore block of an agent; keys as in the public documentation.
type ServerRaftLogstoreConfig struct {
	Backend         *string                               `hcl:"backend"`
	BoltDB          *ServerRaftLogstoreBoltDBConfig       `hcl:"boltdb"`
	WAL             *ServerRaftLogstoreWALConfig          `hcl:"wal"`
	DisableLogCache *bool                                 `hcl:"disable_log_cache"`
	Verification    *ServerRaftLogstoreVerificationConfig `hcl:"verification"`
}

// ServerRaftLogstoreBoltDBConfig is the server raft_logstore boltdb block of an agent; keys as in the public documentation.
type ServerRaftLogstoreBoltDBConfig struct {
	NoFreelistSync *bool `hcl:"no_freelist_sync"`
}

// ServerRaftLogstoreVerificationConfig is the server raft_logstore verification block of an agent; keys as in the public documentation.
type ServerRaftLogstoreVerificationConfig struct {
	Enabled  *bool   `hcl:"enabled"`
	Interval *string `hcl:"interval"`
}

// ServerRaftLogstoreWALConfig is the server raft_logstore wal block of an agent; keys as in the public documentation.
type ServerRaftLogstoreWALConfig struct {
	SegmentSizeMB *int `hcl:"segment_size_mb"`
}

// ServerSearchConfig is the server search block of an agent; keys as in the public documentation.
type ServerSearchConfig struct {
	FuzzyEnabled  *bool `hcl:"fuzzy_enabled"`
	LimitQuery    *int  `hcl:"limit_query"`
	LimitResults  *int  `hcl:"limit_results"`
	MinTermLength *int  `hcl:"min_term_length"`
}

// TelemetryConfig is the telemetry block of an agent; keys as in the public documentation.
type TelemetryConfig struct {
	InMemoryCollectionInterval         *string  `hcl:"in_memory_collection_interval"`
	InMemoryRetentionPeriod            *string  `hcl:"in_memory_retention_period"`
	StatsiteAddress                    *string  `hcl:"statsite_address"`
	StatsdAddress                      *string  `hcl:"statsd_address"`
	DatadogAddress                     *string  `hcl:"datadog_address"`
	DatadogTags                        []string `hcl:"datadog_tags"`
	PrometheusMetrics                  *bool    `hcl:"prometheus_metrics"`
	DisableHostname                    *bool    `hcl:"disable_hostname"`
	UseNodeName                        *bool    `hcl:"use_node_name"`
	CollectionInterval                 *string  `hcl:"collection_interval"`
	PublishAllocationMetrics           *bool    `hcl:"publish_allocation_metrics"`
	PublishNodeMetrics                 *bool    `hcl:"publish_node_metrics"`
	IncludeAllocMetadataInMetrics      *bool    `hcl:"include_alloc_metadata_in_metrics"`
	AllowedMetadataKeysInMetrics       []string `hcl:"allowed_metadata_keys_in_metrics"`
	PrefixFilter                       []string `hcl:"prefix_filter"`
	FilterDefault                      *bool    `hcl:"filter_default"`
	DisableDispatchedJobSummaryMetrics *bool    `hcl:"disable_dispatched_job_summary_metrics"`
	DisableQuotaUtilizationMetrics     *bool    `hcl:"disable_quota_utilization_metrics"`
	DisableRPCRateMetricsLabels        *bool    `hcl:"disable_rpc_rate_metrics_labels"`
	DisableAllocationHookMetrics       *bool    `hcl:"disable_allocation_hook_metrics"`
	CirconusAPIToken                   *string  `hcl:"circonus_api_token"`
	CirconusAPIApp                     *string  `hcl:"circonus_api_app"`
	CirconusAPIURL                     *string  `hcl:"circonus_api_url"`
	CirconusSubmissionInterval         *string  `hcl:"circonus_submission_interval"`
	CirconusSubmissionURL              *string  `hcl:"circonus_submission_url"`
	CirconusCheckID                    *string  `hcl:"circonus_check_id"`
	CirconusCheckForceMetricActivation *string  `hcl:"circonus_check_force_metric_activation"`
	CirconusCheckInstanceID            *string  `hcl:"circonus_check_instance_id"`
	CirconusCheckSearchTag             *string  `hcl:"circonus_check_search_tag"`
	CirconusCheckTags                  *string  `hcl:"circonus_check_tags"`
	CirconusCheckDisplayName           *string  `hcl:"circonus_check_display_name"`
	CirconusBrokerID                   *string  `hcl:"circonus_broker_id"`
	CirconusBrokerSelectTag            *string  `hcl:"circonus_broker_select_tag"`
}

// TLSConfig is the tls block of an agent; keys as in the public documentation.
type TLSConfig struct {
	HTTP                 *bool   `hcl:"http"`
	RPC                  *bool   `hcl:"rpc"`
	VerifyServerHostname *bool   `hcl:"verify_server_hostname"`
	CAFile               *string `hcl:"ca_file"`
	CertFile             *string `hcl:"cert_file"`
	KeyFile              *string `hcl:"key_file"`
	RPCUpgradeMode       *bool   `hcl:"rpc_upgrade_mode"`
	VerifyHttpsClient    *bool   `hcl:"verify_https_client"`
	TLSCipherSuites      *string `hcl:"tls_cipher_suites"`
	TLSMinVersion        *string `hcl:"tls_min_version"`
}

// UIConfig is the ui block of an agent; keys as in the public documentation.
type UIConfig struct {
	Enabled               *bool                          `hcl:"enabled"`
	ContentSecurityPolicy *UIContentSecurityPolicyConfig `hcl:"content_security_policy"`
	Consul                *UIConsulConfig                `hcl:"consul"`
	Vault                 *UIVaultConfig                 `hcl:"vault"`
	Label                 *UILabelConfig                 `hcl:"label"`
	ShowCliHints          *bool                          `hcl:"show_cli_hints"`
}

// UIConsulConfig is the ui consul block of an agent; keys as in the public documentation.
type UIConsulConfig struct {
	UIURL *string `hcl:"ui_url"`
}

// UIContentSecurityPolicyConfig is the ui content_security_policy block of an agent; keys as in the public documentation.
type UIContentSecurityPolicyConfig struct {
	ConnectSrc     []string `hcl:"connect_src"`
	DefaultSrc     []string `hcl:"default_src"`
	FormAction     []string `hcl:"form_action"`
	FrameAncestors []string `hcl:"frame_ancestors"`
	ImgSrc         []string `hcl:"img_src"`
	ScriptSrc      []string `hcl:"script_src"`
	StyleSrc       []string `hcl:"style_src"`
}

// UILabelConfig is the ui label block of an agent; keys as in the public documentation.
type UILabelConfig struct {
	Text            *string `hcl:"text"`
	BackgroundColor *string `hcl:"background_color"`
	TextColor       *string `hcl:"text_color"`
}

// UIVaultConfig is the ui vault block of an agent; keys as in the public documentation.
type UIVaultConfig struct {
	UIURL *string `hcl:"ui_url"`
}

// VaultConfig is the vault block of an agent; keys as in the public documentation.
type VaultConfig struct {
	Name               *string         `hcl:"name"`
	Enabled            *bool           `hcl:"enabled"`
	CreateFromRole     *string         `hcl:"create_from_role"`
	Namespace          *string         `hcl:"namespace"`
	Address            *string         `hcl:"address"`
	JWTAuthBackendPath *string         `hcl:"jwt_auth_backend_path"`
	CAFile             *string         `hcl:"ca_file"`
	CAPath             *string         `hcl:"ca_path"`
	CertFile           *string         `hcl:"cert_file"`
	KeyFile            *string         `hcl:"key_file"`
	TLSSkipVerify      *bool           `hcl:"tls_skip_verify"`
	TLSServerName      *string         `hcl:"tls_server_name"`
	DefaultIdentity    *IdentityConfig `hcl:"default_identity"`
	Token              *string         `hcl:"token"`
}
