package periodic

import (
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

var begin = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func cronJob(id, spec string) *structs.Job {
	return &structs.Job{ID: &id, Name: &id, Namespace: structs.Ptr("default"), Type: structs.Ptr("batch"), Priority: structs.Ptr(50),
		SubmitTime: begin.UnixNano(), TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"), Count: structs.Ptr(1)}},
		Periodic: &structs.PeriodicConfig{Enabled: structs.Ptr(true), Spec: &spec, SpecType: structs.Ptr("cron"),
			ProhibitOverlap: structs.Ptr(false), TimeZone: structs.Ptr("UTC")}}
}

func row(id string, at time.Time) *state.Launch {
	return &state.Launch{Namespace: "default", JobID: id, Time: at.UnixNano()}
}

// dueAt gives what is due at a moment, by job.
func dueAt(s *Schedules, now time.Time) map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, d := range s.Due(now, 100) {
		out[d.ID] = d.Time.Sub(begin)
	}
	return out
}

func wantDue(t *testing.T, s *Schedules, at time.Duration, want map[string]time.Duration) {
	t.Helper()
	got := dueAt(s, begin.Add(at))
	if len(got) != len(want) {
		t.Errorf("at %s: due %v, want %v", at, got, want)
	}
	for id, d := range want {
		if have, ok := got[id]; !ok || have != d {
			t.Errorf("at %s: due %v, want %v", at, got, want)
		}
	}
}

type times = map[string]time.Duration

func TestDueAndNext(t *testing.T) {
	s := NewSchedules()
	if _, ok := s.Next(); ok {
		t.Error("a core without jobs has an alarm")
	}
	s.Job(cronJob("minute", "* * * * *"))
	s.Job(cronJob("hour", "0 * * * *"))
	if at, ok := s.Next(); !ok || !at.Equal(begin.Add(time.Minute)) {
		t.Errorf("the next look is at %s", at)
	}
	wantDue(t, s, 59*time.Second, times{})
	wantDue(t, s, time.Minute, times{"minute": time.Minute})
	wantDue(t, s, time.Minute, times{}) // it is handed out once
	wantDue(t, s, 2*time.Minute, times{"minute": 2 * time.Minute})
	wantDue(t, s, time.Hour, times{"minute": time.Hour, "hour": time.Hour}) // late ones are caught up by one
	wantDue(t, s, time.Hour, times{})
}

func TestABusyLeaderLosesNoTime(t *testing.T) {
	s := NewSchedules()
	s.Job(cronJob("second", "* * * * * * *"))
	for i := range 6 {
		wantDue(t, s, 6*time.Second, times{"second": time.Duration(i+1) * time.Second})
	}
	wantDue(t, s, 6*time.Second, times{})
	wantDue(t, s, 6*time.Second+Late+2*time.Second, times{"second": 6*time.Second + Late + 2*time.Second})
}

func TestANewLeaderCatchesUpOnce(t *testing.T) {
	for _, tc := range []struct {
		name string
		done time.Duration // of the row; negative: there is none
		now  time.Duration
		want []time.Duration // all that is due then
	}{
		{"nothing was missed", 3 * time.Minute, 3*time.Minute + 30*time.Second, nil},
		{"one was", 3 * time.Minute, 4*time.Minute + time.Second, []time.Duration{4 * time.Minute}},
		{"many were", 3 * time.Minute, 90*time.Minute + time.Second, []time.Duration{90 * time.Minute}},
		{"a job of before there were rows", -1, 5 * time.Minute, []time.Duration{5 * time.Minute}},
	} {
		s := NewSchedules()
		var launch *state.Launch
		if tc.done >= 0 {
			launch = row("minute", begin.Add(tc.done))
		}
		s.Load(cronJob("minute", "* * * * *"), launch, begin.Add(tc.now))
		for _, want := range tc.want {
			wantDue(t, s, tc.now, times{"minute": want})
		}
		wantDue(t, s, tc.now, times{})
	}
}

func TestAFailedWriteIsDueAgain(t *testing.T) {
	s := NewSchedules()
	s.Job(cronJob("minute", "* * * * *"))
	due := s.Due(begin.Add(time.Minute), 1)
	s.Retry(due[0], begin.Add(61*time.Second))
	wantDue(t, s, 60*time.Second, times{})
	wantDue(t, s, 61*time.Second, times{"minute": time.Minute})
	s.Launch(row("minute", begin.Add(time.Minute)))
	s.Retry(due[0], begin.Add(62*time.Second)) // the entry was written after all
	wantDue(t, s, 62*time.Second, times{})
	s.Retry(Due{NamespacedID: structs.NamespacedID{Namespace: "default", ID: "gone"}}, begin)
}

func TestSchedulesFollowTheirJobs(t *testing.T) {
	s := NewSchedules()
	job := cronJob("minute", "* * * * *")
	if !s.Job(job) {
		t.Error("a new job changes nothing")
	}
	same := *job
	same.Status, same.Periodic = structs.JobStatusRunning, job.Periodic.Copy()
	if s.Job(&same) {
		t.Error("a job with the same schedule changes something")
	}
	other := cronJob("minute", "30 * * * *")
	s.Launch(row("minute", begin.Add(90*time.Second))) // when it was registered
	s.Job(other)
	if at, _ := s.Next(); !at.Equal(begin.Add(30 * time.Minute)) {
		t.Errorf("the next look is at %s", at)
	}
	other = cronJob("minute", "30 * * * *")
	other.Stop = true
	if !s.Job(other) || s.Job(other) {
		t.Error("a stopped job is still in")
	}
	if _, ok := s.Next(); ok {
		t.Error("a stopped job has an alarm")
	}
	s.Job(job)
	s.Job(cronJob("never", "0 0 30 2 *"))
	if !s.RemoveJob(structs.NamespacedID{Namespace: "default", ID: "minute"}) {
		t.Error("the job was not in")
	}
	if _, ok := s.Next(); ok {
		t.Error("a job that is gone has an alarm")
	}
}
