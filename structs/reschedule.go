package structs

import "time"

// Delay functions of a reschedule policy, and the rules that policy follows, from the public jobspec documentation.
const (
	DelayConstant    = "constant"
	DelayExponential = "exponential"
	DelayFibonacci   = "fibonacci"
)

// Enabled says whether the policy allows any attempt.
func (p *ReschedulePolicy) Enabled() bool {
	if p == nil {
		return false
	}
	return Val(p.Unlimited) || (Val(p.Attempts) > 0 && Val(p.Interval) > 0)
}

// DelayAt gives the delay before the attempt that follows n earlier ones in a row, capped by MaxDelay.
func (p *ReschedulePolicy) DelayAt(n int) time.Duration {
	base, limit := Val(p.Delay), Val(p.MaxDelay)
	delay := base
	switch Val(p.DelayFunction) {
	case DelayExponential:
		for range n {
			delay *= 2
			if delay <= 0 || (limit > 0 && delay >= limit) {
				return limit
			}
		}
	case DelayFibonacci:
		prev := time.Duration(0)
		for range n {
			prev, delay = delay, prev+delay
			if delay <= 0 || (limit > 0 && delay >= limit) {
				return limit
			}
		}
	default:
		return base
	}
	if limit > 0 && delay > limit {
		return limit
	}
	return delay
}

// attemptsInARow counts the earlier attempts that the next delay builds on: a replacement that ran for longer than
// MaxDelay before it failed starts the row again.
func (p *ReschedulePolicy) attemptsInARow(events []*RescheduleEvent, failedAt time.Time) int {
	n := 0
	for i, e := range events {
		started := time.Unix(0, e.RescheduleTime)
		ended := failedAt
		if i+1 < len(events) {
			ended = time.Unix(0, events[i+1].RescheduleTime).Add(-p.DelayAt(n + 1))
		}
		if limit := Val(p.MaxDelay); limit > 0 && ended.Sub(started) > limit {
			n = 0
			continue
		}
		n++
	}
	return n
}

// NextRescheduleTime says when the failed allocation may be replaced. It is false when the policy allows no more
// attempts. failedAt is when it failed; a zero failedAt counts as now. The answer depends on what is stored alone,
// so that an evaluation that runs twice gets the same one.
func (a *Allocation) NextRescheduleTime(policy *ReschedulePolicy, now, failedAt time.Time) (time.Time, bool) {
	if !policy.Enabled() {
		return time.Time{}, false
	}
	if failedAt.IsZero() {
		failedAt = now
	}
	var events []*RescheduleEvent
	if a.RescheduleTracker != nil {
		events = a.RescheduleTracker.Events
	}
	if !Val(policy.Unlimited) {
		used, since := 0, failedAt.Add(-Val(policy.Interval)).UnixNano()
		for _, e := range events {
			if e.RescheduleTime > since {
				used++
			}
		}
		if used >= Val(policy.Attempts) {
			return time.Time{}, false
		}
	}
	return failedAt.Add(policy.DelayAt(policy.attemptsInARow(events, failedAt))), true
}
