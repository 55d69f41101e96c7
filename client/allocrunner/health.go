package allocrunner

import (
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Defaults of the update block, for jobs whose deployment came without one.
const (
	defaultMinHealthyTime  = 10 * time.Second
	defaultHealthyDeadline = 5 * time.Minute
)

// healthView is what health is judged by.
type healthView struct {
	MinHealthyTime  time.Duration
	HealthyDeadline time.Duration
	Begun           time.Time // when the allocation began to start
	Tasks           []taskView
	StartedAt       []time.Time // of Tasks
}

// judge says whether the allocation is healthy (true), is not (false) or cannot be judged yet (nil, look again after
// the given time). It is healthy when every task which should run has run for MinHealthyTime without interruption and
// ephemeral tasks have succeeded; it is not when a task failed or the deadline passed.
func judge(v healthView, now time.Time) (healthy *bool, again time.Duration) {
	yes, no := true, false
	ready, since := true, v.Begun
	for i, t := range v.Tasks {
		switch {
		case t.Failed:
			return &no, 0
		case t.Role == rolePoststop:
		case t.Role == rolePrestart || t.Role == rolePoststart:
			ready = ready && t.Dead
		case t.Dead:
			return &no, 0 // it should run for as long as the allocation does
		case !t.Running:
			ready = false
		case v.StartedAt[i].After(since):
			since = v.StartedAt[i]
		}
	}
	left := v.Begun.Add(v.HealthyDeadline).Sub(now)
	if ready {
		wait := since.Add(v.MinHealthyTime).Sub(now)
		if wait <= 0 {
			return &yes, 0
		}
		if wait <= left {
			return nil, wait
		}
	}
	if left <= 0 {
		return &no, 0
	}
	return nil, left
}

// healthTerms says by which terms the allocation's health is judged: those of its update block while it is in a
// deployment, else those of its migrate block, for drains wait until what was moved is well. Nobody asks for the health
// of others, and manual health is an operator's word.
func healthTerms(alloc *structs.Allocation) (minHealthy, deadline time.Duration, wanted bool) {
	minHealthy, deadline = defaultMinHealthyTime, defaultHealthyDeadline
	group := alloc.Group()
	take := func(least, most *time.Duration) {
		if least != nil {
			minHealthy = *least
		}
		if most != nil && *most > 0 {
			deadline = *most
		}
	}
	switch {
	case alloc.DeploymentID == "" && (group == nil || group.Migrate == nil):
		return 0, 0, false
	case alloc.DeploymentID == "":
		take(group.Migrate.MinHealthyTime, group.Migrate.HealthyDeadline)
	case group != nil && group.Update != nil:
		if structs.Val(group.Update.HealthCheck) == structs.HealthCheckManual {
			return 0, 0, false
		}
		take(group.Update.MinHealthyTime, group.Update.HealthyDeadline)
	}
	return minHealthy, deadline, true
}
