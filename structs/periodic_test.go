package structs

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func schedule(t interface{ Fatal(...any) }, zone string, specs ...string) *Schedule {
	s, err := (&PeriodicConfig{Specs: specs, TimeZone: &zone}).Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestClockChanges tells what is launched around the changes of the clock of Berlin in 2026 (29 March, 02:00 -> 03:00;
// 25 October, 03:00 -> 02:00), of Lord Howe (half an hour, at 02:00) and of São Paulo (2018, at midnight).
func TestClockChanges(t *testing.T) {
	const form = "01-02 15:04 MST"
	for _, tc := range []struct {
		name, zone, spec string
		after            time.Time
		want             []string
	}{
		{"skipped, launched at the end of the gap", "Europe/Berlin", "30 2 * * *", time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC),
			[]string{"03-28 02:30 CET", "03-29 03:00 CEST", "03-30 02:30 CEST"}},
		{"several skipped, launched together", "Europe/Berlin", "*/10 2 * * *", time.Date(2026, 3, 28, 1, 45, 0, 0, time.UTC),
			[]string{"03-28 02:50 CET", "03-29 03:00 CEST", "03-30 02:00 CEST"}},
		{"skipped, and due at the end anyway", "Europe/Berlin", "0 2,3 * * *", time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC),
			[]string{"03-29 03:00 CEST", "03-30 02:00 CEST"}},
		{"hourly goes on", "Europe/Berlin", "15 * * * *", time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC),
			[]string{"03-29 01:15 CET", "03-29 03:15 CEST", "03-29 04:15 CEST"}},
		{"hourly at the change", "Europe/Berlin", "@hourly", time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC),
			[]string{"03-29 03:00 CEST", "03-29 04:00 CEST"}},
		{"repeated, launched at the first", "Europe/Berlin", "30 2 * * *", time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC),
			[]string{"10-25 02:30 CEST", "10-26 02:30 CET"}},
		{"repeated, asked between the two", "Europe/Berlin", "30 2 * * *", time.Date(2026, 10, 25, 1, 10, 0, 0, time.UTC),
			[]string{"10-26 02:30 CET"}},
		{"hourly in both", "Europe/Berlin", "30 * * * *", time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC),
			[]string{"10-25 02:30 CEST", "10-25 02:30 CET", "10-25 03:30 CET"}},
		{"a day that has no such hour", "Europe/Berlin", "0 */2 * * *", time.Date(2026, 10, 24, 22, 30, 0, 0, time.UTC),
			[]string{"10-25 02:00 CEST", "10-25 04:00 CET"}},
		{"half an hour", "Australia/Lord_Howe", "15 2 * * *", time.Date(2026, 10, 2, 20, 0, 0, 0, time.UTC),
			[]string{"10-04 02:30 +11", "10-05 02:15 +11"}},
		{"no midnight", "America/Sao_Paulo", "@daily", time.Date(2018, 11, 2, 12, 0, 0, 0, time.UTC),
			[]string{"11-03 00:00 -03", "11-04 01:00 -02", "11-05 00:00 -02"}},
	} {
		s := schedule(t, tc.zone, tc.spec)
		at := tc.after
		for _, want := range tc.want {
			if at = s.Next(at); at.Location() != time.UTC || at.In(s.zone).Format(form) != want {
				t.Errorf("%s: launched at %s, want %s", tc.name, at.In(s.zone).Format(form), want)
			}
		}
	}
}

// TestSchedulesOfManyZones compares with a walk over every minute.
func TestSchedulesOfManyZones(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo",
			"Asia/Kathmandu", "Africa/Casablanca", "Pacific/Apia"}).Draw(t, "zone")
		line := rapid.SampledFrom([]string{"*/15 * * * *", "30 2 * * *", "0,30 1-3 * * *", "5 0 * * *", "10 */3 * * *", "0 0 * * 0"}).Draw(t, "spec")
		from := time.Date(2011, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 15*366*24*60).Draw(t, "from")) * time.Minute)
		if rapid.Bool().Draw(t, "near a change") {
			if _, end := from.In(schedule(t, zone).at()).ZoneBounds(); !end.IsZero() {
				from = end.UTC().Add(time.Duration(rapid.IntRange(-180, 180).Draw(t, "by")) * time.Minute)
			}
		}
		s := schedule(t, zone, line)
		if got, want := s.Next(from), walk(s, from); !got.Equal(want) {
			t.Fatalf("%q in %s after %s: %s, want %s", line, zone, from.In(s.zone), got.In(s.zone), want.In(s.zone))
		}
		now := from.Add(time.Duration(rapid.IntRange(0, 3*24*60).Draw(t, "until")) * time.Minute)
		var last time.Time
		for at := walk(s, from); !at.After(now); at = walk(s, at) {
			last = at
		}
		if got := s.Last(from, now); !got.Equal(last) {
			t.Fatalf("%q in %s between %s and %s: the last is %s, want %s", line, zone, from, now, got, last)
		}
	})
}

func (s *Schedule) at() *time.Location { return s.zone }

// walk goes from minute to minute and asks of each what the clock shows, and what it has skipped since the minute
// before.
func walk(s *Schedule, from time.Time) time.Time {
	fires := func(wall time.Time) bool { return s.exprs[0].expr.Next(wall.Add(-time.Second)).Equal(wall) }
	for at := from.Truncate(time.Minute).Add(time.Minute); ; at = at.Add(time.Minute) {
		shown, before := wallClock(at, s.zone), wallClock(at.Add(-time.Minute), s.zone)
		if s.exprs[0].hourly {
			if fires(shown) {
				return at
			}
			continue
		}
		for wall := before.Add(time.Minute); !wall.After(shown); wall = wall.Add(time.Minute) {
			if fires(wall) && !shownBefore(wall, at, s.zone) {
				return at
			}
		}
	}
}

// shownBefore says whether the clock showed a time in the day before a moment.
func shownBefore(wall, at time.Time, zone *time.Location) bool {
	for back := time.Minute; back <= 25*time.Hour; back += time.Minute {
		if wallClock(at.Add(-back), zone).Equal(wall) {
			return true
		}
	}
	return false
}

func TestSchedulesOfSeconds(t *testing.T) {
	s := schedule(t, "Europe/Berlin", "*/10 * * * * * *", "5 * * * * * *")
	from := time.Date(2026, 3, 29, 0, 59, 59, 999, time.UTC)
	for _, want := range []int{0, 5, 10, 20} {
		if from = s.Next(from); from.Second() != want || from.Nanosecond() != 0 {
			t.Fatalf("launched at %s, want second %d", from, want)
		}
	}
	if got := s.Last(from.Add(-5*365*24*time.Hour), from.Add(2*time.Second)); !got.Equal(from) {
		t.Errorf("the last of five years is %s, want %s", got, from)
	}
	if got := s.Last(from, from); !got.IsZero() {
		t.Errorf("the last of an empty interval is %s", got)
	}
	if got := schedule(t, "UTC", "0 0 30 2 *").Next(from); !got.IsZero() {
		t.Errorf("30 February is %s", got)
	}
	if got := schedule(t, "Europe/Berlin", "0 0 1 1 * 2020").Next(from); !got.IsZero() {
		t.Errorf("2020 comes again at %s", got)
	}
	if _, err := (&PeriodicConfig{Specs: []string{"* *"}}).Schedule(); err == nil {
		t.Error("an expression that cannot be read was read")
	}
	if _, err := (&PeriodicConfig{TimeZone: Ptr("Mars/Olympus")}).Schedule(); err == nil {
		t.Error("a zone that is not there is known")
	}
}

func TestNextLaunchIsOfActiveJobs(t *testing.T) {
	job := &Job{Periodic: &PeriodicConfig{Enabled: Ptr(true), Spec: Ptr("@hourly"), TimeZone: Ptr("UTC")}}
	now := time.Date(2026, 1, 1, 10, 30, 0, 0, time.UTC)
	if got := job.NextLaunch(now); !got.Equal(now.Add(30 * time.Minute)) {
		t.Errorf("next launch %s", got)
	}
	job.Stop = true
	if got := job.NextLaunch(now); !got.IsZero() {
		t.Errorf("a stopped job is launched at %s", got)
	}
}
