package structs

import "time"

// Service is a network service that a group or task offers, registered with a provider.
type Service struct {
	Name              string            `hcl:"name,optional"`
	Tags              []string          `hcl:"tags,optional"`
	CanaryTags        []string          `hcl:"canary_tags,optional"`
	EnableTagOverride bool              `hcl:"enable_tag_override,optional"`
	PortLabel         string            `hcl:"port,optional"`
	AddressMode       string            `hcl:"address_mode,optional"`
	Address           string            `hcl:"address,optional"`
	Checks            []ServiceCheck    `hcl:"check,block"`
	CheckRestart      *CheckRestart     `hcl:"check_restart,block"`
	Connect           *ConsulConnect    `hcl:"connect,block"`
	Meta              map[string]string `hcl:"meta,block"`
	CanaryMeta        map[string]string `hcl:"canary_meta,block"`
	TaggedAddresses   map[string]string `hcl:"tagged_addresses,block"`
	TaskName          string            `hcl:"task,optional"`
	OnUpdate          string            `hcl:"on_update,optional"`
	Identity          *WorkloadIdentity `hcl:"identity,block"`
	Weights           *ServiceWeights   `hcl:"weights,block"`
	Provider          string            `hcl:"provider,optional"`
	Cluster           string            `hcl:"cluster,optional"`
	Kind              string            `hcl:"kind,optional"`
	// Namespace is the job's; the servers fill it in.
	Namespace string `json:",omitempty" parse:"-"`
}

// ServiceCheck says how a service's health is found out.
type ServiceCheck struct {
	Name                   string              `hcl:"name,optional"`
	Type                   string              `hcl:"type,optional"`
	Command                string              `hcl:"command,optional"`
	Args                   []string            `hcl:"args,optional"`
	Path                   string              `hcl:"path,optional"`
	Protocol               string              `hcl:"protocol,optional"`
	PortLabel              string              `hcl:"port,optional"`
	Expose                 bool                `hcl:"expose,optional"`
	AddressMode            string              `hcl:"address_mode,optional"`
	Advertise              string              `json:",omitempty" hcl:"advertise,optional"`
	Interval               time.Duration       `hcl:"interval,optional"`
	Timeout                time.Duration       `hcl:"timeout,optional"`
	InitialStatus          string              `hcl:"initial_status,optional"`
	Notes                  string              `hcl:"notes,optional"`
	TLSServerName          string              `hcl:"tls_server_name,optional"`
	TLSSkipVerify          bool                `hcl:"tls_skip_verify,optional"`
	Header                 map[string][]string `hcl:"header,block"`
	Method                 string              `hcl:"method,optional"`
	CheckRestart           *CheckRestart       `hcl:"check_restart,block"`
	GRPCService            string              `hcl:"grpc_service,optional"`
	GRPCUseTLS             bool                `hcl:"grpc_use_tls,optional"`
	TaskName               string              `hcl:"task,optional"`
	SuccessBeforePassing   int                 `hcl:"success_before_passing,optional"`
	FailuresBeforeCritical int                 `hcl:"failures_before_critical,optional"`
	FailuresBeforeWarning  int                 `hcl:"failures_before_warning,optional"`
	Body                   string              `hcl:"body,optional"`
	OnUpdate               string              `hcl:"on_update,optional"`
}

// CheckRestart restarts a task whose check fails; a limit of zero never does.
type CheckRestart struct {
	Limit          int            `hcl:"limit,optional"`
	Grace          *time.Duration `hcl:"grace,optional"`
	IgnoreWarnings bool           `hcl:"ignore_warnings,optional"`
}

// ServiceWeights are a service's weights in DNS answers.
type ServiceWeights struct {
	Passing int `hcl:"passing,optional"`
	Warning int `hcl:"warning,optional"`
}
