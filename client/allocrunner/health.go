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

func healthTerms(group *structs.TaskGroup) (minHealthy, deadline time.Duration) {
	minHealthy, deadline = defaultMinHealthyTime, defaultHealthyDeadline
	if group == nil || group.Update == nil {
		return minHealthy, deadline
	}
	if p := group.Update.MinHealthyTime; p != nil {
		minHealthy = *p
	}
	if p := group.Update.HealthyDeadline; p != nil && *p > 0 {
		deadline = *p
	}
	return minHealthy, deadline
}
