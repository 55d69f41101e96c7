package structs

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	maxUIDescription = 1000 // characters
	// maxName bounds names in bytes: they stand in paths, tokens of pages and the environment of each task.
	maxName = 1024
)

// Validate tells all faults of a canonical job at once, as Errors. It looks at the job alone: whether its namespace,
// node pool and region exist is the caller's to check.
func (j *Job) Validate() error {
	var errs Errors
	s := scope{errs: &errs}
	j.validateNames(s)
	s.oneOf("job type", Val(j.Type), JobTypeService, JobTypeBatch, JobTypeSystem, JobTypeSysBatch)
	if p := Val(j.Priority); p < JobMinPriority || p > JobMaxPriority {
		s.addf("job priority must be from %d to %d (it is %d)", JobMinPriority, JobMaxPriority, p)
	}
	if slices.Contains(j.Datacenters, "") {
		s.addf("job datacenter must not be empty")
	}
	j.validateLaunch(s)
	if j.IsMultiregion() {
		s.addf("job multiregion: deployments over several regions are not part of the community edition")
	}
	if j.UI != nil && len(j.UI.Description) > maxUIDescription {
		s.addf("job ui: description has more than %d characters", maxUIDescription)
	}
	jobType := Val(j.Type)
	validateConstraints(s.in("job"), j.Constraints, placeJob)
	validateAffinities(s.in("job"), j.Affinities, jobType)
	validateSpreads(s.in("job"), j.Spreads, jobType)
	if j.Update.isSet() && defaultsOf(jobType).update == nil {
		s.addf("job update: a job of type %s has no update strategy", jobType)
	}
	if len(j.TaskGroups) == 0 {
		s.addf("job has no task groups")
	}
	names := make([]string, 0, len(j.TaskGroups))
	for _, tg := range j.TaskGroups {
		names = append(names, Val(tg.Name))
		tg.validate(s.in("group %q", Val(tg.Name)), j)
	}
	s.unique("job task group", names)
	return errs.Err()
}

func (j *Job) validateNames(s scope) {
	for _, f := range []struct{ what, value string }{
		{"job ID", Val(j.ID)}, {"job name", Val(j.Name)}, {"job region", Val(j.Region)}, {"job namespace", Val(j.Namespace)},
		{"job type", Val(j.Type)},
	} {
		if f.value == "" {
			s.addf("%s is missing", f.what)
		}
		if strings.ContainsRune(f.value, 0) {
			s.addf("%s holds a null character", f.what)
		}
		if len(f.value) > maxName {
			s.addf("%s has more than %d bytes", f.what, maxName)
		}
	}
	if strings.ContainsRune(Val(j.ID), ' ') {
		s.addf("job ID %q holds a space", *j.ID)
	}
}

// validateLaunch checks the blocks that make a job start children.
func (j *Job) validateLaunch(s scope) {
	batch := Val(j.Type) == JobTypeBatch || Val(j.Type) == JobTypeSysBatch
	if j.Periodic != nil {
		if !batch {
			s.addf("job periodic: only jobs of type batch and sysbatch can be periodic")
		}
		j.Periodic.validate(s.in("job periodic"))
	}
	p := j.ParameterizedJob
	if p == nil {
		return
	}
	if !batch {
		s.addf("job parameterized: only jobs of type batch and sysbatch can be parameterized")
	}
	s.in("job parameterized").oneOf("payload", p.Payload, PayloadOptional, PayloadRequired, PayloadForbidden)
	s.in("job parameterized").unique("meta key", slices.Concat(p.MetaRequired, p.MetaOptional))
}

func (p *PeriodicConfig) validate(s scope) {
	s.oneOf("kind of schedule", Val(p.SpecType), PeriodicSpecCron)
	if _, err := time.LoadLocation(Val(p.TimeZone)); err != nil {
		s.addf("time zone %q is not known", Val(p.TimeZone))
	}
	specs := p.Specs
	switch {
	case Val(p.Spec) != "" && len(p.Specs) > 0:
		s.addf("both cron and crons are set")
	case Val(p.Spec) != "":
		specs = []string{*p.Spec}
	case len(p.Specs) == 0 && Val(p.Enabled):
		s.addf("cron is missing")
	}
	for _, spec := range specs {
		expr, err := parseCron(spec)
		switch {
		case err != nil:
			s.addf("cron %q cannot be read: %v", spec, err)
		case expr.Next(time.Unix(0, 0).UTC()).IsZero():
			s.addf("cron %q can never fire: there is no such date", spec)
		}
	}
}

// Warnings tells what is accepted, but probably not meant. The job must be canonical.
func (j *Job) Warnings() []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, tg := range j.TaskGroups {
		if u := tg.Update; u != nil && Val(tg.Count) > 0 && Val(u.MaxParallel) > Val(tg.Count) && Val(j.Type) == JobTypeService {
			add("Group %q: update: max_parallel (%d) is greater than the group's count (%d)",
				Val(tg.Name), *u.MaxParallel, *tg.Count)
		}
		tg.serviceWarnings(add)
		for _, t := range tg.Tasks {
			if t.Resources != nil {
				for _, n := range t.Resources.Networks {
					if Val(n.MBits) > 0 {
						add("Group %q: task %q: mbits of a network has no effect any more", Val(tg.Name), t.Name)
					}
				}
			}
			if t.KillTimeout != nil && *t.KillTimeout > DefaultMaxKillTimeout {
				add("Group %q: task %q: kill_timeout (%s) is longer than nodes allow by default (%s)",
					Val(tg.Name), t.Name, *t.KillTimeout, DefaultMaxKillTimeout)
			}
		}
	}
	autoPromote, canaries := 0, 0
	for _, tg := range j.TaskGroups {
		if tg.Update != nil && Val(tg.Update.Canary) > 0 {
			canaries++
			if Val(tg.Update.AutoPromote) {
				autoPromote++
			}
		}
	}
	if autoPromote > 0 && autoPromote < canaries {
		add("auto_promote must be true for all groups to enable automatic promotion")
	}
	return out
}
