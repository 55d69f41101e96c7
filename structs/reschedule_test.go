package structs

import (
	"testing"
	"time"
)

func TestDelayFunctions(t *testing.T) {
	// The examples of the public documentation.
	for _, c := range []struct {
		fn   string
		want []int // seconds
	}{
		{DelayConstant, []int{5, 5, 5, 5, 5, 5}},
		{DelayExponential, []int{5, 10, 20, 40, 60, 60}},
		{DelayFibonacci, []int{5, 5, 10, 15, 25, 40, 60, 60}},
	} {
		p := &ReschedulePolicy{Delay: Ptr(5 * time.Second), MaxDelay: Ptr(time.Minute), DelayFunction: Ptr(c.fn)}
		for n, want := range c.want {
			if got := p.DelayAt(n); got != time.Duration(want)*time.Second {
				t.Errorf("%s, attempt %d: want %ds, got %s", c.fn, n, want, got)
			}
		}
		if got := p.DelayAt(100000); got > time.Minute {
			t.Errorf("%s grows to %s", c.fn, got)
		}
	}
	p := &ReschedulePolicy{Delay: Ptr(time.Hour), MaxDelay: Ptr(time.Minute), DelayFunction: Ptr(DelayExponential)}
	if got := p.DelayAt(0); got != time.Minute {
		t.Errorf("the first delay is not limited: %s", got)
	}
}

func TestNextRescheduleTime(t *testing.T) {
	now := time.Unix(1_000_000, 0).UTC()
	tracker := func(ago ...time.Duration) *RescheduleTracker {
		r := &RescheduleTracker{}
		for _, d := range ago {
			r.Events = append(r.Events, &RescheduleEvent{RescheduleTime: now.Add(-d).UnixNano()})
		}
		return r
	}
	limited := &ReschedulePolicy{Attempts: Ptr(2), Interval: Ptr(time.Hour), Delay: Ptr(5 * time.Second),
		DelayFunction: Ptr(DelayConstant), MaxDelay: Ptr(time.Duration(0)), Unlimited: Ptr(false)}
	unlimited := &ReschedulePolicy{Delay: Ptr(30 * time.Second), DelayFunction: Ptr(DelayExponential),
		MaxDelay: Ptr(time.Hour), Unlimited: Ptr(true)}
	never := &ReschedulePolicy{Attempts: Ptr(0), Interval: Ptr(time.Duration(0)), Unlimited: Ptr(false)}
	for _, c := range []struct {
		name     string
		policy   *ReschedulePolicy
		tracker  *RescheduleTracker
		failedAt time.Time
		delay    time.Duration
		ok       bool
	}{
		{"no policy", nil, nil, now, 0, false},
		{"switched off", never, nil, now, 0, false},
		{"first", limited, nil, now, 5 * time.Second, true},
		{"failed earlier", limited, nil, now.Add(-3 * time.Second), 2 * time.Second, true},
		{"no time of failure", limited, nil, time.Time{}, 5 * time.Second, true},
		{"one left", limited, tracker(time.Minute), now, 5 * time.Second, true},
		{"none left", limited, tracker(2*time.Minute, time.Minute), now, 0, false},
		{"one is out of the interval", limited, tracker(2*time.Hour, time.Minute), now, 5 * time.Second, true},
		{"unlimited, first", unlimited, nil, now, 30 * time.Second, true},
		{"unlimited, third in a row", unlimited, tracker(10*time.Minute, time.Minute), now, 2 * time.Minute, true},
		{"unlimited, ran for long", unlimited, tracker(4*time.Hour, 2*time.Hour), now, 30 * time.Second, true},
	} {
		a := &Allocation{RescheduleTracker: c.tracker}
		at, ok := a.NextRescheduleTime(c.policy, now, c.failedAt)
		if ok != c.ok || ok && !at.Equal(now.Add(c.delay)) {
			t.Errorf("%s: want %v after %s, got %v after %s", c.name, c.ok, c.delay, ok, at.Sub(now))
		}
	}
}
