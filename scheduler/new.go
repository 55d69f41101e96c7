package scheduler

import (
	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/structs"
)

// How often a scheduler tries again, with a newer state, when what it planned did not fit any more. Batch jobs have
// more to lose by waiting than by a late placement.
const (
	serviceAttempts = 5
	batchAttempts   = 2
)

// New makes a scheduler for jobs of one type. The error of a type that is not known is coded as invalid.
func New(kind string, cfg Config) (Scheduler, error) {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	switch kind {
	case structs.JobTypeService:
		return &generic{cfg: cfg, attempts: serviceAttempts}, nil
	case structs.JobTypeBatch:
		return &generic{cfg: cfg, attempts: batchAttempts, batch: true}, nil
	case structs.JobTypeSystem:
		return &generic{cfg: cfg, attempts: systemAttempts, system: true}, nil
	case structs.JobTypeSysBatch:
		return &generic{cfg: cfg, attempts: systemAttempts, system: true, batch: true}, nil
	}
	return nil, structs.Errorf(structs.CodeInvalid, "unknown type of job %q", kind)
}
