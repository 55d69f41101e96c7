package structs

import "time"

// Defaults that do not depend on the type of the job.
const (
	DefaultEphemeralDiskMB  = 300
	DefaultCPU              = 100 // MHz, of a task that names neither cpu nor cores
	DefaultMemoryMB         = 300
	DefaultLogFiles         = 10
	DefaultLogFileSizeMB    = 10
	DefaultAffinityWeight   = 50
	DefaultSpreadWeight     = 50
	DefaultServiceProvider  = ServiceProviderConsul
	DefaultIdentityName     = "default"
	DefaultIdentityAudience = "nomadproject.io"
	defaultCluster          = "default" // of Consul and Vault
	defaultHostNetwork      = "default"
	defaultChangeMode       = "restart"
	defaultCheckGrace       = time.Second
	defaultChangeTimeout    = 5 * time.Second
	defaultTemplateSplay    = 5 * time.Second
	defaultTemplatePerms    = "0644"
	defaultCSIHealthTimeout = 30 * time.Second
)

// Providers of services.
const (
	ServiceProviderConsul = "consul"
	ServiceProviderNomad  = "nomad"
)

// typeDefaults are the policies of one type of job, as the public jobspec documentation gives them. A nil policy
// does not exist for that type.
type typeDefaults struct {
	restart    RestartPolicy
	reschedule *ReschedulePolicy
	migrate    *MigrateStrategy
	update     *UpdateStrategy
}

// defaultsOf is the table of the defaults per job type. An unknown type gets those of a service; Validate refuses it.
func defaultsOf(jobType string) typeDefaults {
	longRunning := RestartPolicy{
		Attempts: Ptr(2), Interval: Ptr(30 * time.Minute), Delay: Ptr(15 * time.Second),
		Mode: Ptr(RestartPolicyModeFail), RenderTemplates: Ptr(false),
	}
	batch := RestartPolicy{
		Attempts: Ptr(3), Interval: Ptr(24 * time.Hour), Delay: Ptr(15 * time.Second),
		Mode: Ptr(RestartPolicyModeFail), RenderTemplates: Ptr(false),
	}
	update := &UpdateStrategy{
		Stagger: Ptr(30 * time.Second), MaxParallel: Ptr(1), HealthCheck: Ptr(HealthCheckChecks),
		MinHealthyTime: Ptr(10 * time.Second), HealthyDeadline: Ptr(5 * time.Minute),
		ProgressDeadline: Ptr(10 * time.Minute), Canary: Ptr(0), AutoRevert: Ptr(false), AutoPromote: Ptr(false),
	}
	switch jobType {
	case JobTypeBatch:
		return typeDefaults{
			restart: batch,
			reschedule: &ReschedulePolicy{
				Attempts: Ptr(1), Interval: Ptr(24 * time.Hour), Delay: Ptr(5 * time.Second),
				DelayFunction: Ptr(DelayConstant), MaxDelay: Ptr(time.Duration(0)), Unlimited: Ptr(false),
			},
		}
	case JobTypeSysBatch:
		return typeDefaults{restart: batch}
	case JobTypeSystem:
		return typeDefaults{restart: longRunning, update: update}
	default:
		return typeDefaults{
			restart: longRunning,
			reschedule: &ReschedulePolicy{
				Attempts: Ptr(0), Interval: Ptr(time.Duration(0)), Delay: Ptr(30 * time.Second),
				DelayFunction: Ptr(DelayExponential), MaxDelay: Ptr(time.Hour), Unlimited: Ptr(true),
			},
			migrate: &MigrateStrategy{
				MaxParallel: Ptr(1), HealthCheck: Ptr(HealthCheckChecks),
				MinHealthyTime: Ptr(10 * time.Second), HealthyDeadline: Ptr(5 * time.Minute),
			},
			update: update,
		}
	}
}

// setDefault gives an optional field its default.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// inherit gives an optional field the value of the next one that is set, from the nearest to the farthest.
func inherit[T any](field **T, from ...*T) {
	for _, f := range from {
		if *field != nil {
			return
		}
		*field = copyPtr(f)
	}
}

// fill takes over from o what p leaves out.
func (p *RestartPolicy) fill(o *RestartPolicy) {
	if o == nil {
		return
	}
	inherit(&p.Interval, o.Interval)
	inherit(&p.Attempts, o.Attempts)
	inherit(&p.Delay, o.Delay)
	inherit(&p.Mode, o.Mode)
	inherit(&p.RenderTemplates, o.RenderTemplates)
}

func (p *ReschedulePolicy) fill(o *ReschedulePolicy) {
	if o == nil {
		return
	}
	inherit(&p.Attempts, o.Attempts)
	inherit(&p.Interval, o.Interval)
	inherit(&p.Delay, o.Delay)
	inherit(&p.DelayFunction, o.DelayFunction)
	inherit(&p.MaxDelay, o.MaxDelay)
	inherit(&p.Unlimited, o.Unlimited)
}

func (m *MigrateStrategy) fill(o *MigrateStrategy) {
	if o == nil {
		return
	}
	inherit(&m.MaxParallel, o.MaxParallel)
	inherit(&m.HealthCheck, o.HealthCheck)
	inherit(&m.MinHealthyTime, o.MinHealthyTime)
	inherit(&m.HealthyDeadline, o.HealthyDeadline)
}

func (u *UpdateStrategy) fill(o *UpdateStrategy) {
	if o == nil {
		return
	}
	inherit(&u.Stagger, o.Stagger)
	inherit(&u.MaxParallel, o.MaxParallel)
	inherit(&u.HealthCheck, o.HealthCheck)
	inherit(&u.MinHealthyTime, o.MinHealthyTime)
	inherit(&u.HealthyDeadline, o.HealthyDeadline)
	inherit(&u.ProgressDeadline, o.ProgressDeadline)
	inherit(&u.Canary, o.Canary)
	inherit(&u.AutoRevert, o.AutoRevert)
	inherit(&u.AutoPromote, o.AutoPromote)
}
