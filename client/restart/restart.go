// Package restart decides whether and when a task that ended is started again on the same node. It is pure: a policy,
// what is remembered of earlier restarts, how the task ended and the time go in, a decision and the new memory come
// out. The task runner is its only caller and keeps the memory on disk.
package restart

import (
	"fmt"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Policy is a task's restart policy with all defaults applied, and what its job's type makes of success.
type Policy struct {
	Attempts int
	Interval time.Duration
	Delay    time.Duration
	Fail     bool // mode "fail"; else "delay"
	// OnSuccess says that an end with exit code 0 is a reason to start again (service, system and sidecars).
	OnSuccess bool
}

// PolicyOf reads the policy of a task in a job of the given type.
func PolicyOf(jobType string, task *structs.Task, group *structs.TaskGroup) Policy {
	p := task.RestartPolicy
	if p == nil && group != nil {
		p = group.RestartPolicy
	}
	onSuccess := jobType == structs.JobTypeService || jobType == structs.JobTypeSystem
	if lc := task.Lifecycle; lc != nil && lc.Hook != "" {
		onSuccess = lc.Sidecar && lc.Hook != structs.TaskLifecyclePoststop
	}
	if p == nil {
		return Policy{Fail: true, OnSuccess: onSuccess}
	}
	return Policy{
		Attempts:  structs.Val(p.Attempts),
		Interval:  structs.Val(p.Interval),
		Delay:     structs.Val(p.Delay),
		Fail:      structs.Val(p.Mode) != structs.RestartPolicyModeDelay,
		OnSuccess: onSuccess,
	}
}

// Memory is what is remembered between two ends of a task.
type Memory struct {
	Count       int       `cbor:"c"` // restarts in this interval
	WindowStart time.Time `cbor:"w"`
}

// Ended says how a task ended, or that it could not be started.
type Ended struct {
	Success       bool
	Unrecoverable bool // starting it again can never work
	Requested     bool // an operator asked for the restart: no policy applies, no delay
}

// Verdict is what to do now.
type Verdict uint8

// Done: the task is over and succeeded. Failed: it is over and failed. Again: start it after the delay.
const (
	Done Verdict = iota
	Failed
	Again
)

// Decision is a verdict with the reason that task events show.
type Decision struct {
	Verdict Verdict
	Delay   time.Duration
	Reason  string
}

// Texts of the reasons, as the public interface shows them.
const (
	reasonDone      = "Restart unnecessary as task terminated successfully"
	reasonDelay     = "Exceeded allowed attempts, applying a delay"
	reasonNoRestart = "Policy allows no restarts"
)

// Jitter spreads restarts: up to this part of the delay is added.
const Jitter = 0.25

// Decide applies p. jitter is a random number in [0,1).
func Decide(p Policy, m Memory, e Ended, now time.Time, jitter float64) (Decision, Memory) {
	switch {
	case e.Requested:
		return Decision{Verdict: Again, Reason: ""}, m
	case e.Unrecoverable:
		return Decision{Verdict: Failed, Reason: structs.ReasonUnrecoverable}, m
	case e.Success && !p.OnSuccess:
		return Decision{Verdict: Done, Reason: reasonDone}, m
	case p.Attempts == 0 && p.Fail:
		// A service that ends by itself with code 0 is over all the same, but it did not fail.
		return Decision{Verdict: overVerdict(e), Reason: reasonNoRestart}, m
	}
	if m.WindowStart.IsZero() || !now.Before(m.WindowStart.Add(p.Interval)) {
		m = Memory{WindowStart: now}
	}
	m.Count++
	if m.Count <= p.Attempts {
		delay := p.Delay + time.Duration(float64(p.Delay)*Jitter*jitter)
		return Decision{Verdict: Again, Delay: delay, Reason: structs.ReasonWithinPolicy}, m
	}
	if p.Fail {
		reason := fmt.Sprintf("%s %d in interval %s and mode is \"fail\"",
			structs.ReasonExceededRestartLimit, p.Attempts, p.Interval)
		return Decision{Verdict: Failed, Reason: reason}, m
	}
	// Mode delay: wait until the interval is over, then the policy's own delay.
	delay := m.WindowStart.Add(p.Interval).Sub(now) + time.Duration(float64(p.Delay)*Jitter*jitter)
	return Decision{Verdict: Again, Delay: delay, Reason: reasonDelay}, m
}

func overVerdict(e Ended) Verdict {
	if e.Success {
		return Done
	}
	return Failed
}
