package structs

import "time"

// TaskGroup is a set of tasks that are placed together on one node.
type TaskGroup struct {
	Name                      *string                   `hcl:"name,label"`
	Count                     *int                      `hcl:"count,optional"`
	Constraints               []*Constraint             `hcl:"constraint,block"`
	Affinities                []*Affinity               `hcl:"affinity,block"`
	Tasks                     []*Task                   `hcl:"task,block"`
	Spreads                   []*Spread                 `hcl:"spread,block"`
	Volumes                   map[string]*VolumeRequest `hcl:"volume,block"`
	RestartPolicy             *RestartPolicy            `hcl:"restart,block"`
	Disconnect                *DisconnectStrategy       `hcl:"disconnect,block"`
	ReschedulePolicy          *ReschedulePolicy         `hcl:"reschedule,block"`
	EphemeralDisk             *EphemeralDisk            `hcl:"ephemeral_disk,block"`
	Update                    *UpdateStrategy           `hcl:"update,block"`
	Migrate                   *MigrateStrategy          `hcl:"migrate,block"`
	Networks                  []*NetworkResource        `hcl:"network,block"`
	Meta                      map[string]string         `hcl:"meta,block"`
	Services                  []*Service                `hcl:"service,block"`
	ShutdownDelay             *time.Duration            `hcl:"shutdown_delay,optional"`
	MaxRunDuration            *time.Duration            `hcl:"max_run_duration,optional"`
	StopAfterClientDisconnect *time.Duration            `hcl:"stop_after_client_disconnect,optional"`
	MaxClientDisconnect       *time.Duration            `hcl:"max_client_disconnect,optional"`
	Scaling                   *ScalingPolicy            `hcl:"scaling,block"`
	Consul                    *Consul                   `hcl:"consul,block"`
	PreventRescheduleOnLost   *bool                     `hcl:"prevent_reschedule_on_lost,optional"`
}

// EphemeralDisk is the directory that a group's tasks share, with its size in MB.
type EphemeralDisk struct {
	Sticky  *bool `hcl:"sticky,optional"`
	Migrate *bool `hcl:"migrate,optional"`
	SizeMB  *int  `hcl:"size,optional"`
}

// RestartPolicy says how often a task that ended is started again on its node within an interval.
type RestartPolicy struct {
	Interval        *time.Duration `hcl:"interval,optional"`
	Attempts        *int           `hcl:"attempts,optional"`
	Delay           *time.Duration `hcl:"delay,optional"`
	Mode            *string        `hcl:"mode,optional"`
	RenderTemplates *bool          `hcl:"render_templates,optional"`
}

// ReschedulePolicy says when a failed allocation is replaced by one elsewhere.
type ReschedulePolicy struct {
	Attempts      *int           `hcl:"attempts,optional"`
	Interval      *time.Duration `hcl:"interval,optional"`
	Delay         *time.Duration `hcl:"delay,optional"`
	DelayFunction *string        `hcl:"delay_function,optional"`
	MaxDelay      *time.Duration `hcl:"max_delay,optional"`
	Unlimited     *bool          `hcl:"unlimited,optional"`
}

// MigrateStrategy says how allocations leave a node that is drained.
type MigrateStrategy struct {
	MaxParallel     *int           `hcl:"max_parallel,optional"`
	HealthCheck     *string        `hcl:"health_check,optional"`
	MinHealthyTime  *time.Duration `hcl:"min_healthy_time,optional"`
	HealthyDeadline *time.Duration `hcl:"healthy_deadline,optional"`
}

// UpdateStrategy says how a new version is rolled out.
type UpdateStrategy struct {
	Stagger          *time.Duration `hcl:"stagger,optional"`
	MaxParallel      *int           `hcl:"max_parallel,optional"`
	HealthCheck      *string        `hcl:"health_check,optional"`
	MinHealthyTime   *time.Duration `hcl:"min_healthy_time,optional"`
	HealthyDeadline  *time.Duration `hcl:"healthy_deadline,optional"`
	ProgressDeadline *time.Duration `hcl:"progress_deadline,optional"`
	Canary           *int           `hcl:"canary,optional"`
	AutoRevert       *bool          `hcl:"auto_revert,optional"`
	AutoPromote      *bool          `hcl:"auto_promote,optional"`
}

// DisconnectStrategy says what becomes of allocations on a node that cannot be heard.
type DisconnectStrategy struct {
	LostAfter         *time.Duration `hcl:"lost_after,optional"`
	StopOnClientAfter *time.Duration `hcl:"stop_on_client_after,optional"`
	Replace           *bool          `hcl:"replace,optional"`
	Reconcile         *string        `hcl:"reconcile,optional"`
}

// VolumeRequest asks for a host volume or a CSI volume.
type VolumeRequest struct {
	Name           string           `hcl:"name,label"`
	Type           string           `hcl:"type,optional"`
	Source         string           `hcl:"source,optional"`
	ReadOnly       bool             `hcl:"read_only,optional"`
	Sticky         bool             `hcl:"sticky,optional"`
	AccessMode     string           `hcl:"access_mode,optional"`
	AttachmentMode string           `hcl:"attachment_mode,optional"`
	MountOptions   *CSIMountOptions `hcl:"mount_options,block"`
	PerAlloc       bool             `hcl:"per_alloc,optional"`
}

// CSIMountOptions says how a CSI volume is mounted.
type CSIMountOptions struct {
	FSType     string   `hcl:"fs_type,optional"`
	MountFlags []string `hcl:"mount_flags,optional"`
}

// Consul names the Consul cluster, namespace and partition to use.
type Consul struct {
	Namespace string `hcl:"namespace,optional"`
	Cluster   string `hcl:"cluster,optional"`
	Partition string `hcl:"partition,optional"`
}
