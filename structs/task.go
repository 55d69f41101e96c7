package structs

import "time"

// Task is one program of a group, run by a driver.
type Task struct {
	Name            string                 `hcl:"name,label"`
	Driver          string                 `hcl:"driver,optional"`
	User            string                 `hcl:"user,optional"`
	Lifecycle       *TaskLifecycle         `hcl:"lifecycle,block"`
	Config          map[string]any         `hcl:"config,block"`
	Constraints     []*Constraint          `hcl:"constraint,block"`
	Affinities      []*Affinity            `hcl:"affinity,block"`
	Env             map[string]string      `hcl:"env,block"`
	Services        []*Service             `hcl:"service,block"`
	Resources       *Resources             `hcl:"resources,block"`
	RestartPolicy   *RestartPolicy         `hcl:"restart,block"`
	Meta            map[string]string      `hcl:"meta,block"`
	KillTimeout     *time.Duration         `hcl:"kill_timeout,optional"`
	LogConfig       *LogConfig             `hcl:"logs,block"`
	Artifacts       []*TaskArtifact        `hcl:"artifact,block"`
	Vault           *Vault                 `hcl:"vault,block"`
	Consul          *Consul                `hcl:"consul,block"`
	Templates       []*Template            `hcl:"template,block"`
	DispatchPayload *DispatchPayloadConfig `hcl:"dispatch_payload,block"`
	VolumeMounts    []*VolumeMount         `hcl:"volume_mount,block"`
	CSIPluginConfig *TaskCSIPluginConfig   `json:",omitempty" hcl:"csi_plugin,block"`
	Leader          bool                   `hcl:"leader,optional"`
	ShutdownDelay   time.Duration          `hcl:"shutdown_delay,optional"`
	KillSignal      string                 `hcl:"kill_signal,optional"`
	Kind            string                 `hcl:"kind,optional"`
	ScalingPolicies []*ScalingPolicy       `hcl:"scaling,block"`
	Secrets         []*Secret              `hcl:"secret,block"`
	Identity        *WorkloadIdentity
	Identities      []*WorkloadIdentity `hcl:"identity,block"`
	Actions         []*Action           `hcl:"action,block"`
	Schedule        *TaskSchedule       `hcl:"schedule,block"`
}

// TaskLifecycle says when a task runs beside the main ones.
type TaskLifecycle struct {
	Hook    string `hcl:"hook"`
	Sidecar bool   `hcl:"sidecar,optional"`
}

// LogConfig says how a task's output is kept and rotated.
type LogConfig struct {
	MaxFiles      *int  `hcl:"max_files,optional"`
	MaxFileSizeMB *int  `hcl:"max_file_size,optional"`
	Enabled       *bool `hcl:"enabled,optional"`
	Disabled      *bool `hcl:"disabled,optional"`
}

// TaskArtifact is something to download before a task starts.
type TaskArtifact struct {
	GetterSource   *string           `hcl:"source,optional"`
	GetterOptions  map[string]string `hcl:"options,block"`
	GetterHeaders  map[string]string `hcl:"headers,block"`
	GetterMode     *string           `hcl:"mode,optional"`
	GetterInsecure *bool             `hcl:"insecure,optional"`
	RelativeDest   *string           `hcl:"destination,optional"`
	Chown          bool              `hcl:"chown,optional"`
}

// Template is a file to render before a task starts and whenever what it shows changes.
type Template struct {
	SourcePath    *string        `hcl:"source,optional"`
	DestPath      *string        `hcl:"destination,optional"`
	EmbeddedTmpl  *string        `hcl:"data,optional"`
	ChangeMode    *string        `hcl:"change_mode,optional"`
	ChangeScript  *ChangeScript  `hcl:"change_script,block"`
	ChangeSignal  *string        `hcl:"change_signal,optional"`
	Once          *bool          `hcl:"once,optional"`
	Splay         *time.Duration `hcl:"splay,optional"`
	Perms         *string        `hcl:"perms,optional"`
	Uid           *int           `hcl:"uid,optional"`
	Gid           *int           `hcl:"gid,optional"`
	LeftDelim     *string        `hcl:"left_delimiter,optional"`
	RightDelim    *string        `hcl:"right_delimiter,optional"`
	Envvars       *bool          `hcl:"env,optional"`
	VaultGrace    *time.Duration `hcl:"vault_grace,optional"`
	Wait          *WaitConfig    `hcl:"wait,block"`
	ErrMissingKey *bool          `hcl:"error_on_missing_key,optional"`
}

// ChangeScript is a command to run in a task when a template has changed.
type ChangeScript struct {
	Command          *string        `hcl:"command"`
	Args             []string       `hcl:"args,optional"`
	Timeout          *time.Duration `hcl:"timeout,optional"`
	FailOnError      *bool          `hcl:"fail_on_error"`
	RunOnFirstRender *bool          `hcl:"run_on_first_render,optional"`
}

// WaitConfig is for how long changes of a template are collected.
type WaitConfig struct {
	Min *time.Duration `hcl:"min"`
	Max *time.Duration `hcl:"max"`
}

// Vault gives a task a Vault token.
type Vault struct {
	Policies             []string `hcl:"policies,optional"`
	Role                 string   `hcl:"role,optional"`
	Namespace            *string  `hcl:"namespace,optional"`
	Cluster              string   `hcl:"cluster,optional"`
	Env                  *bool    `hcl:"env,optional"`
	DisableFile          *bool    `hcl:"disable_file,optional"`
	ChangeMode           *string  `hcl:"change_mode,optional"`
	ChangeSignal         *string  `hcl:"change_signal,optional"`
	AllowTokenExpiration *bool    `hcl:"allow_token_expiration,optional"`
}

// VolumeMount puts a volume of the group into a task.
type VolumeMount struct {
	Volume          *string `hcl:"volume,optional"`
	Destination     *string `hcl:"destination,optional"`
	ReadOnly        *bool   `hcl:"read_only,optional"`
	PropagationMode *string `hcl:"propagation_mode,optional"`
	SELinuxLabel    *string `hcl:"selinux_label,optional"`
}

// TaskCSIPluginConfig makes a task a CSI plugin.
type TaskCSIPluginConfig struct {
	ID                  string        `hcl:"id,optional"`
	Type                string        `hcl:"type,optional"`
	MountDir            string        `hcl:"mount_dir,optional"`
	StagePublishBaseDir string        `hcl:"stage_publish_base_dir,optional"`
	HealthTimeout       time.Duration `hcl:"health_timeout,optional"`
}

// Secret is a value that a secrets plugin gives to a task.
type Secret struct {
	Name     string            `hcl:"name,label"`
	Provider string            `hcl:"provider,optional"`
	Path     string            `hcl:"path,optional"`
	Config   map[string]any    `hcl:"config,block"`
	Env      map[string]string `hcl:"env,block"`
}

// Action is a command that operators may run in a task.
type Action struct {
	Name    string   `hcl:"name,label"`
	Command string   `hcl:"command"`
	Args    []string `hcl:"args,optional"`
}

// TaskSchedule says when a task runs.
type TaskSchedule struct {
	Cron *TaskScheduleCron `hcl:"cron,block"`
}

// TaskScheduleCron is a schedule by cron expressions.
type TaskScheduleCron struct {
	Start    string `hcl:"start,optional"`
	End      string `hcl:"end,optional"`
	Timezone string `hcl:"timezone,optional"`
}

// WorkloadIdentity is a signed token that proves a task's or service's identity.
type WorkloadIdentity struct {
	Name         string        `hcl:"name,optional"`
	Audience     []string      `hcl:"aud,optional"`
	ChangeMode   string        `hcl:"change_mode,optional"`
	ChangeSignal string        `hcl:"change_signal,optional"`
	Env          bool          `hcl:"env,optional"`
	File         bool          `hcl:"file,optional"`
	Filepath     string        `hcl:"filepath,optional"`
	ServiceName  string        `hcl:"service_name,optional"`
	TTL          time.Duration `hcl:"ttl,optional"`
	ExtraClaims  []string      `hcl:"extra_claims,optional"`
}
