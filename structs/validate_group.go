package structs

import (
	"slices"
	"strings"
	"time"
)

const minEphemeralDiskMB = 10

func (tg *TaskGroup) validate(s scope, j *Job) {
	jobType := Val(j.Type)
	if Val(tg.Name) == "" {
		s.addf("name is missing")
	}
	if strings.ContainsRune(Val(tg.Name), 0) {
		s.addf("name holds a null character")
	}
	if len(Val(tg.Name)) > maxName {
		s.addf("name has more than %d bytes", maxName)
	}
	if Val(tg.Count) < 0 {
		s.addf("count must not be negative (it is %d)", *tg.Count)
	}
	if jobType == JobTypeSystem && Val(tg.Count) > 1 {
		s.addf("count must be 0 or 1 in a job of type system (it is %d)", *tg.Count)
	}
	s.notNegative("shutdown_delay", Val(tg.ShutdownDelay))
	if tg.MaxRunDuration != nil {
		if jobType != JobTypeBatch && jobType != JobTypeSysBatch {
			s.addf("max_run_duration is for jobs of type batch and sysbatch")
		}
		s.notNegative("max_run_duration", *tg.MaxRunDuration)
	}
	validateConstraints(s, tg.Constraints, placeGroup)
	validateAffinities(s, tg.Affinities, jobType)
	validateSpreads(s, tg.Spreads, jobType)
	tg.validatePolicies(s, jobType)
	if disk := tg.EphemeralDisk; disk != nil && Val(disk.SizeMB) < minEphemeralDiskMB {
		s.addf("ephemeral_disk: size must be at least %d MB (it is %d)", minEphemeralDiskMB, Val(disk.SizeMB))
	}
	tg.validateVolumes(s)
	validateNetworks(s, tg.Networks)
	if len(tg.Networks) > 1 {
		s.addf("there can be only one network block")
	}
	tg.validateServices(s)
	if tg.Scaling != nil {
		tg.Scaling.validate(s.in("scaling"))
		if n, p := int64(Val(tg.Count)), tg.Scaling; p.Max != nil && (n < Val(p.Min) || n > *p.Max) {
			s.addf("scaling: count %d is not between min %d and max %d", n, Val(p.Min), *p.Max)
		}
	}
	tg.validateTasks(s, j)
}

func (tg *TaskGroup) validateTasks(s scope, j *Job) {
	if len(tg.Tasks) == 0 {
		if !slices.ContainsFunc(tg.Services, (*Service).isGateway) { // whose proxy is a task of its own
			s.addf("there are no tasks")
		}
		return
	}
	leaders, mains := 0, 0
	names := make([]string, 0, len(tg.Tasks))
	for _, t := range tg.Tasks {
		names = append(names, t.Name)
		if t.Leader {
			leaders++
		}
		if t.Lifecycle == nil {
			mains++
		}
		t.validate(s.in("task %q", t.Name), j, tg)
	}
	s.unique("task", names)
	if leaders > 1 {
		s.addf("only one task can be the leader (%d are)", leaders)
	}
	if mains == 0 {
		s.addf("at least one task must be without a lifecycle block")
	}
}

func (tg *TaskGroup) validatePolicies(s scope, jobType string) {
	d := defaultsOf(jobType)
	if tg.RestartPolicy != nil {
		tg.RestartPolicy.validate(s.in("restart"))
	}
	if tg.ReschedulePolicy != nil {
		if d.reschedule == nil {
			s.addf("reschedule: a job of type %s has no reschedule policy", jobType)
		} else {
			tg.ReschedulePolicy.validate(s.in("reschedule"))
		}
	}
	if tg.Migrate != nil {
		if d.migrate == nil {
			s.addf("migrate: a job of type %s has no migrate strategy", jobType)
		} else {
			tg.Migrate.validate(s.in("migrate"))
		}
	}
	if tg.Update != nil {
		if d.update == nil {
			s.addf("update: a job of type %s has no update strategy", jobType)
		} else {
			tg.Update.validate(s.in("update"))
			if canary := Val(tg.Update.Canary); jobType == JobTypeSystem && canary > 100 {
				s.in("update").addf("canary is a percentage of the nodes in a system job, it must not be above 100 (it is %d)", canary)
			}
		}
	}
	if dc := tg.Disconnect; dc != nil {
		s := s.in("disconnect")
		s.notNegative("lost_after", Val(dc.LostAfter))
		s.notNegative("stop_on_client_after", Val(dc.StopOnClientAfter))
		if Val(dc.LostAfter) > 0 && Val(dc.StopOnClientAfter) > 0 {
			s.addf("lost_after and stop_on_client_after exclude each other")
		}
		s.oneOf("reconcile", Val(dc.Reconcile), ReconcileBestScore, ReconcileKeepOriginal, ReconcileKeepReplacement,
			ReconcileLongestRunning)
	}
}

func (tg *TaskGroup) validateVolumes(s scope) {
	for name, v := range tg.Volumes {
		s := s.in("volume %q", name)
		if v == nil {
			s.addf("volume is empty")
			continue
		}
		s.oneOf("type", v.Type, "host", "csi")
		if v.Source == "" {
			s.addf("source is missing")
		}
		if v.Type != "csi" {
			continue
		}
		if v.AccessMode == "" {
			s.addf("access_mode is missing")
		}
		if v.AttachmentMode == "" {
			s.addf("attachment_mode is missing")
		}
	}
}

func (p *RestartPolicy) validate(s scope) {
	s.oneOf("mode", Val(p.Mode), RestartPolicyModeFail, RestartPolicyModeDelay)
	attempts, interval, delay := Val(p.Attempts), Val(p.Interval), Val(p.Delay)
	s.notNegative("delay", delay)
	if attempts < 0 {
		s.addf("attempts must not be negative (they are %d)", attempts)
	}
	if attempts == 0 && Val(p.Mode) == RestartPolicyModeDelay {
		s.addf("mode %q needs at least one attempt", RestartPolicyModeDelay)
	}
	if attempts <= 0 {
		return
	}
	if interval < minRestartInterval {
		s.addf("interval must be at least %s (it is %s)", minRestartInterval, interval)
	}
	if time.Duration(attempts)*delay > interval {
		s.addf("%d attempts with a delay of %s do not fit into the interval of %s", attempts, delay, interval)
	}
}

// same says whether two policies mean the same, as those of a group and of a task that says nothing itself do.
func (p *RestartPolicy) same(o *RestartPolicy) bool {
	return o != nil && Val(p.Interval) == Val(o.Interval) && Val(p.Attempts) == Val(o.Attempts) &&
		Val(p.Delay) == Val(o.Delay) && Val(p.Mode) == Val(o.Mode) && Val(p.RenderTemplates) == Val(o.RenderTemplates)
}

const (
	minRestartInterval = 5 * time.Second
	minRescheduleDelay = 5 * time.Second
)

func (p *ReschedulePolicy) validate(s scope) {
	attempts, unlimited := Val(p.Attempts), Val(p.Unlimited)
	if attempts < 0 {
		s.addf("attempts must not be negative (they are %d)", attempts)
	}
	if unlimited && attempts > 0 {
		s.addf("unlimited and attempts exclude each other")
	}
	if attempts <= 0 && !unlimited {
		return // switched off
	}
	fn := Val(p.DelayFunction)
	s.oneOf("delay_function", fn, DelayConstant, DelayExponential, DelayFibonacci)
	if Val(p.Delay) < minRescheduleDelay {
		s.addf("delay must be at least %s (it is %s)", minRescheduleDelay, Val(p.Delay))
	}
	if fn != DelayConstant && Val(p.MaxDelay) < Val(p.Delay) {
		s.addf("max_delay (%s) must not be below delay (%s)", Val(p.MaxDelay), Val(p.Delay))
	}
	if unlimited {
		return
	}
	if Val(p.Interval) <= 0 {
		s.addf("interval must be greater than zero when attempts are limited")
		return
	}
	if Val(p.Delay) < minRescheduleDelay {
		return
	}
	total := time.Duration(0)
	for n := range attempts {
		if total += p.DelayAt(n); total > Val(p.Interval) {
			s.addf("%d attempts do not fit into the interval of %s with these delays; %d would", attempts, Val(p.Interval), n)
			return
		}
	}
}

func (m *MigrateStrategy) validate(s scope) {
	if Val(m.MaxParallel) < 0 {
		s.addf("max_parallel must not be negative (it is %d)", *m.MaxParallel)
	}
	s.oneOf("health_check", Val(m.HealthCheck), HealthCheckChecks, HealthCheckTaskStates)
	s.notNegative("min_healthy_time", Val(m.MinHealthyTime))
	s.notNegative("healthy_deadline", Val(m.HealthyDeadline))
	if Val(m.MinHealthyTime) > Val(m.HealthyDeadline) {
		s.addf("min_healthy_time (%s) must not be above healthy_deadline (%s)", Val(m.MinHealthyTime), Val(m.HealthyDeadline))
	}
}

func (u *UpdateStrategy) validate(s scope) {
	s.oneOf("health_check", Val(u.HealthCheck), HealthCheckChecks, HealthCheckTaskStates, HealthCheckManual)
	if Val(u.MaxParallel) < 0 {
		s.addf("max_parallel must not be negative (it is %d)", *u.MaxParallel)
	}
	if Val(u.Canary) < 0 {
		s.addf("canary must not be negative (it is %d)", *u.Canary)
	}
	if Val(u.Canary) == 0 && Val(u.AutoPromote) {
		s.addf("auto_promote needs a canary")
	}
	s.notNegative("min_healthy_time", Val(u.MinHealthyTime))
	s.notNegative("progress_deadline", Val(u.ProgressDeadline))
	if Val(u.HealthyDeadline) <= 0 {
		s.addf("healthy_deadline must be greater than zero (it is %s)", Val(u.HealthyDeadline))
	}
	if Val(u.MinHealthyTime) >= Val(u.HealthyDeadline) {
		s.addf("min_healthy_time (%s) must be below healthy_deadline (%s)", Val(u.MinHealthyTime), Val(u.HealthyDeadline))
	}
	if p := Val(u.ProgressDeadline); p > 0 && Val(u.HealthyDeadline) >= p {
		s.addf("healthy_deadline (%s) must be below progress_deadline (%s)", Val(u.HealthyDeadline), p)
	}
	if Val(u.Stagger) <= 0 {
		s.addf("stagger must be greater than zero (it is %s)", Val(u.Stagger))
	}
}

// validate checks the bounds of a group's count; max must be there.
func (p *ScalingPolicy) validate(s scope) {
	if p.Max == nil {
		s.addf("max is missing")
	}
	p.validateBounds(s)
}

// validateBounds checks bounds, of which those of a task's resources may be left open.
func (p *ScalingPolicy) validateBounds(s scope) {
	switch {
	case p.Max == nil:
	case *p.Max < 0:
		s.addf("max must not be negative (it is %d)", *p.Max)
	case Val(p.Min) > *p.Max:
		s.addf("min (%d) must not be above max (%d)", Val(p.Min), *p.Max)
	}
	if Val(p.Min) < 0 {
		s.addf("min must not be negative (it is %d)", *p.Min)
	}
}
