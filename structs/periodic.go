package structs

import (
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/cronexpr"
)

// PeriodicLaunchSuffix stands between the id of a periodic job and the epoch of a launch in the id of a child.
const PeriodicLaunchSuffix = "/periodic-"

// Schedule tells when a periodic job is launched. It is not safe for concurrent use.
//
// Cron expressions speak of wall clocks, so a change of the clock needs rules. They are those that users of cron know:
//
//   - An expression that fires in every hour of the day counts hours as they pass: it goes on through a change as if
//     there was none, and in a repeated hour it fires in both.
//   - Any other speaks of times of day, each of which is launched once: a time that the clock skips is launched at the
//     end of the gap, several skipped ones together, and a time that the clock shows twice is launched at the first.
type Schedule struct {
	zone  *time.Location
	exprs []cronLine
}

// cronLine is one expression of a schedule.
type cronLine struct {
	expr   *cronexpr.Expression
	hourly bool // it fires in every hour of the day
}

// Schedule reads the configuration's expressions. It fails when one cannot be read, or the time zone is not known.
func (p *PeriodicConfig) Schedule() (*Schedule, error) {
	zone, err := time.LoadLocation(Val(p.TimeZone))
	if err != nil {
		return nil, fmt.Errorf("time zone %q is not known", Val(p.TimeZone))
	}
	s := &Schedule{zone: zone}
	for _, spec := range p.specs() {
		expr, err := parseCron(spec)
		if err != nil {
			return nil, fmt.Errorf("cron %q cannot be read: %w", spec, err)
		}
		s.exprs = append(s.exprs, cronLine{expr: expr, hourly: everyHour(expr)})
	}
	return s, nil
}

func (p *PeriodicConfig) specs() []string {
	if Val(p.Spec) != "" {
		return []string{*p.Spec}
	}
	return p.Specs
}

// NextLaunch is the first time after a moment at which the job is launched, in UTC, the zero time when there is none.
func (j *Job) NextLaunch(after time.Time) time.Time {
	if !j.IsPeriodicActive() {
		return time.Time{}
	}
	s, err := j.Periodic.Schedule()
	if err != nil {
		return time.Time{}
	}
	return s.Next(after)
}

// Next is the first time after a moment at which one of the expressions fires, in UTC and in whole seconds; the zero
// time when none does any more.
func (s *Schedule) Next(after time.Time) time.Time {
	var first time.Time
	for _, line := range s.exprs {
		if t := line.next(after, s.zone); !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// Last is the newest time in (after, now] at which one of the expressions fires, the zero time when there is none. It
// looks back from now, so that a long interval costs little.
func (s *Schedule) Last(after, now time.Time) time.Time {
	// Most often there is none, or one.
	last := s.Next(after)
	if last.IsZero() || last.After(now) {
		return time.Time{}
	}
	// A late time is found near now: look back further and further until there is one.
	for back := time.Minute; now.Add(-back).After(last); back *= 2 {
		if t := s.Next(now.Add(-back)); !t.IsZero() && !t.After(now) {
			last = t
			break
		}
	}
	for {
		t := s.Next(last)
		if t.IsZero() || t.After(now) {
			return last
		}
		last = t
	}
}

func (l cronLine) next(after time.Time, zone *time.Location) time.Time {
	after = after.Truncate(time.Second)
	switch {
	case zone == time.UTC:
		return l.expr.Next(after.UTC())
	case l.hourly:
		return l.nextElapsed(after, zone)
	}
	for wall := wallClock(after, zone); ; {
		wall = l.expr.Next(wall)
		if wall.IsZero() {
			return wall
		}
		if t := firstShown(wall, zone); t.After(after) {
			return t
		}
	}
}

// nextElapsed looks for a moment at which the wall clock shows what the expression says, from one change of the clock
// to the next.
func (l cronLine) nextElapsed(after time.Time, zone *time.Location) time.Time {
	for {
		_, end := after.In(zone).ZoneBounds()
		wall := l.expr.Next(wallClock(after, zone))
		if wall.IsZero() {
			return wall
		}
		t := wall.Add(-offset(after, zone))
		if end.IsZero() || t.Before(end) {
			return t
		}
		// The clock is changed before: its new time at the change may be one already.
		shown := wallClock(end, zone)
		if l.expr.Next(shown.Add(-time.Second)).Equal(shown) {
			return end.UTC()
		}
		after = end
	}
}

// wallClock is what the clock of a zone shows at a moment, written as a time of UTC.
func wallClock(t time.Time, zone *time.Location) time.Time { return t.UTC().Add(offset(t, zone)) }

func offset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// firstShown is the first moment at which the clock of a zone shows wall or, where it skips that, a later time.
func firstShown(wall time.Time, zone *time.Location) time.Time {
	// No zone is further than a day from UTC: begin before all moments at which it may be shown.
	at := wall.Add(-26 * time.Hour).In(zone)
	for {
		_, end := at.ZoneBounds()
		t := wall.Add(-offset(at, zone))
		if end.IsZero() || t.Before(end) {
			if start, _ := at.ZoneBounds(); t.Before(start) {
				return start.UTC() // the clock skipped it when it was changed to this offset
			}
			return t
		}
		at = end.In(zone)
	}
}

// everyHour says whether an expression fires in each hour of a day on which it fires at all.
func everyHour(expr *cronexpr.Expression) bool {
	first := expr.Next(time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC))
	if first.IsZero() {
		return false
	}
	day := first.Truncate(24 * time.Hour)
	for hour := range 24 {
		begin := day.Add(time.Duration(hour) * time.Hour)
		if t := expr.Next(begin.Add(-time.Second)); t.IsZero() || !t.Before(begin.Add(time.Hour)) {
			return false
		}
	}
	return true
}

// parseCron reads a cron expression. The library panics on some that it cannot read.
func parseCron(spec string) (expr *cronexpr.Expression, err error) {
	defer func() {
		if r := recover(); r != nil {
			expr, err = nil, fmt.Errorf("%v", r)
		}
	}()
	return cronexpr.Parse(spec)
}

// PeriodicChild is the job that a launch at a time runs. The servers' fields are those of a new job.
func (j *Job) PeriodicChild(launch time.Time) *Job {
	child := j.child(PeriodicChildID(Val(j.ID), launch))
	child.Periodic, child.DispatchIdempotencyToken = nil, ""
	return child
}

// PeriodicChildID is the id of the child that is launched at a time. Its resolution is a second.
func PeriodicChildID(parent string, launch time.Time) string {
	return parent + PeriodicLaunchSuffix + epoch(launch)
}

// child is a new job made of a template.
func (j *Job) child(id string) *Job {
	child := *j
	child.ID, child.Name, child.ParentID = &id, &id, Val(j.ID)
	child.Stop, child.Stable, child.VersionTag = false, false, nil
	child.Status, child.StatusDescription = "", ""
	child.Version, child.SubmitTime = 0, 0
	child.CreateIndex, child.ModifyIndex, child.JobModifyIndex = 0, 0, 0
	return &child
}

func epoch(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
