package structs

// Job is what a user wants to run, with what the servers keep about it. After Canonicalize every scalar that has a
// default is set. SubmitTime is in Unix nanoseconds.
type Job struct {
	Region                   *string                 `hcl:"region,optional"`
	Namespace                *string                 `hcl:"namespace,optional"`
	ID                       *string                 `hcl:"id,optional"`
	Name                     *string                 `hcl:"name,optional"`
	Type                     *string                 `hcl:"type,optional"`
	Priority                 *int                    `hcl:"priority,optional"`
	AllAtOnce                *bool                   `hcl:"all_at_once,optional"`
	Datacenters              []string                `hcl:"datacenters,optional"`
	NodePool                 *string                 `hcl:"node_pool,optional"`
	Constraints              []*Constraint           `hcl:"constraint,block"`
	Affinities               []*Affinity             `hcl:"affinity,block"`
	TaskGroups               []*TaskGroup            `hcl:"group,block"`
	Update                   *UpdateStrategy         `hcl:"update,block"`
	Multiregion              *Multiregion            `hcl:"multiregion,block"`
	Spreads                  []*Spread               `hcl:"spread,block"`
	Periodic                 *PeriodicConfig         `hcl:"periodic,block"`
	ParameterizedJob         *ParameterizedJobConfig `hcl:"parameterized,block"`
	Reschedule               *ReschedulePolicy       `hcl:"reschedule,block"`
	Migrate                  *MigrateStrategy        `hcl:"migrate,block"`
	Meta                     map[string]string       `hcl:"meta,block"`
	UI                       *JobUIConfig            `hcl:"ui,block"`
	Stop                     bool                    `parse:"null"`
	ParentID                 string                  `parse:"null"`
	Dispatched               bool
	DispatchIdempotencyToken string `parse:"null"`
	Payload                  []byte
	ConsulNamespace          *string
	VaultNamespace           *string
	NomadTokenID             string         `parse:"null"`
	Status                   string         `parse:"null"`
	StatusDescription        string         `parse:"null"`
	Stable                   bool           `parse:"null"`
	Version                  uint64         `parse:"null"`
	SubmitTime               int64          `parse:"null"`
	CreateIndex              uint64         `parse:"null"`
	ModifyIndex              uint64         `parse:"null"`
	JobModifyIndex           uint64         `parse:"null"`
	VersionTag               *JobVersionTag `parse:"null"`
}

// JobUIConfig is what user interfaces show about a job.
type JobUIConfig struct {
	Description string       `hcl:"description,optional"`
	Links       []*JobUILink `hcl:"link,block"`
}

// JobUILink is a link to something about a job.
type JobUILink struct {
	Label string `hcl:"label,optional"`
	URL   string `json:"Url" parse:"URL" hcl:"url,optional"`
}

// JobVersionTag is a name that keeps a version of a job from being collected; its time is in Unix nanoseconds.
type JobVersionTag struct {
	Name        string
	Description string
	TaggedTime  int64
}

// PeriodicConfig starts a child of a job at the times of one or more cron expressions.
type PeriodicConfig struct {
	Enabled         *bool    `hcl:"enabled,optional"`
	Spec            *string  `hcl:"cron,optional"`
	Specs           []string `hcl:"crons,optional"`
	SpecType        *string
	ProhibitOverlap *bool   `hcl:"prohibit_overlap,optional"`
	TimeZone        *string `hcl:"time_zone,optional"`
}

// ParameterizedJobConfig makes a job a template whose children are dispatched with a payload and metadata.
type ParameterizedJobConfig struct {
	Payload      string   `hcl:"payload,optional"`
	MetaRequired []string `hcl:"meta_required,optional"`
	MetaOptional []string `hcl:"meta_optional,optional"`
}

// Multiregion is a job that runs in several regions.
type Multiregion struct {
	Strategy *MultiregionStrategy `hcl:"strategy,block"`
	Regions  []*MultiregionRegion `hcl:"region,block"`
}

// MultiregionStrategy is how the roll-out goes from region to region.
type MultiregionStrategy struct {
	MaxParallel *int    `hcl:"max_parallel,optional"`
	OnFailure   *string `hcl:"on_failure,optional"`
}

// MultiregionRegion is what differs in one region.
type MultiregionRegion struct {
	Name        string            `hcl:",label"`
	Count       *int              `hcl:"count,optional"`
	Datacenters []string          `hcl:"datacenters,optional"`
	NodePool    string            `hcl:"node_pool,optional"`
	Meta        map[string]string `hcl:"meta,block"`
}

// JobSubmission is the text from which a job was made, with the values of its variables.
type JobSubmission struct {
	Source        string
	Format        string
	VariableFlags map[string]string
	Variables     string
}

// DispatchPayloadConfig names the file in a task's local directory that gets the payload of a dispatched job.
type DispatchPayloadConfig struct {
	File string `hcl:"file,optional"`
}
