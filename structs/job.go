package structs

// Job is documented with the public API.
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

// JobUIConfig is documented with the public API.
type JobUIConfig struct {
	Description string       `hcl:"description,optional"`
	Links       []*JobUILink `hcl:"link,block"`
}

// JobUILink is documented with the public API.
type JobUILink struct {
	Label string `hcl:"label,optional"`
	URL   string `json:"Url" parse:"URL" hcl:"url,optional"`
}

// JobVersionTag is documented with the public API.
type JobVersionTag struct {
	Name        string
	Description string
	TaggedTime  int64
}

// PeriodicConfig is documented with the public API.
type PeriodicConfig struct {
	Enabled         *bool    `hcl:"enabled,optional"`
	Spec            *string  `hcl:"cron,optional"`
	Specs           []string `hcl:"crons,optional"`
	SpecType        *string
	ProhibitOverlap *bool   `hcl:"prohibit_overlap,optional"`
	TimeZone        *string `hcl:"time_zone,optional"`
}

// ParameterizedJobConfig is documented with the public API.
type ParameterizedJobConfig struct {
	Payload      string   `hcl:"payload,optional"`
	MetaRequired []string `hcl:"meta_required,optional"`
	MetaOptional []string `hcl:"meta_optional,optional"`
}

// Multiregion is documented with the public API.
type Multiregion struct {
	Strategy *MultiregionStrategy `hcl:"strategy,block"`
	Regions  []*MultiregionRegion `hcl:"region,block"`
}

// MultiregionStrategy is documented with the public API.
type MultiregionStrategy struct {
	MaxParallel *int    `hcl:"max_parallel,optional"`
	OnFailure   *string `hcl:"on_failure,optional"`
}

// MultiregionRegion is documented with the public API.
type MultiregionRegion struct {
	Name        string            `hcl:",label"`
	Count       *int              `hcl:"count,optional"`
	Datacenters []string          `hcl:"datacenters,optional"`
	NodePool    string            `hcl:"node_pool,optional"`
	Meta        map[string]string `hcl:"meta,block"`
}

// JobSubmission is documented with the public API.
type JobSubmission struct {
	Source        string
	Format        string
	VariableFlags map[string]string
	Variables     string
}

// DispatchPayloadConfig is documented with the public API.
type DispatchPayloadConfig struct {
	File string `hcl:"file,optional"`
}
