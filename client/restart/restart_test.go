package restart

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/structs"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	service := Policy{Attempts: 2, Interval: 30 * time.Minute, Delay: 15 * time.Second, Fail: true, OnSuccess: true}
	batch := Policy{Attempts: 3, Interval: 24 * time.Hour, Delay: 15 * time.Second, Fail: true}
	delay := Policy{Attempts: 1, Interval: time.Minute, Delay: 10 * time.Second, OnSuccess: true}
	used := func(n int, ago time.Duration) Memory { return Memory{Count: n, WindowStart: now.Add(-ago)} }
	for _, c := range []struct {
		name    string
		policy  Policy
		memory  Memory
		ended   Ended
		jitter  float64
		verdict Verdict
		delay   time.Duration
		reason  string
		count   int
	}{
		{"first failure of a service", service, Memory{}, Ended{}, 0, Again, 15 * time.Second, structs.ReasonWithinPolicy, 1},
		{"jitter adds at most a quarter", service, Memory{}, Ended{}, 1, Again, 18750 * time.Millisecond, structs.ReasonWithinPolicy, 1},
		{"a service restarts after success too", service, Memory{}, Ended{Success: true}, 0, Again, 15 * time.Second, structs.ReasonWithinPolicy, 1},
		{"attempts used up", service, used(2, time.Minute), Ended{}, 0, Failed, 0,
			`Exceeded allowed attempts 2 in interval 30m0s and mode is "fail"`, 3},
		{"a new interval begins afresh", service, used(2, 30*time.Minute), Ended{}, 0, Again, 15 * time.Second, structs.ReasonWithinPolicy, 1},
		{"batch is done on success", batch, Memory{}, Ended{Success: true}, 0, Done, 0, reasonDone, 0},
		{"batch restarts on failure", batch, Memory{}, Ended{}, 0, Again, 15 * time.Second, structs.ReasonWithinPolicy, 1},
		{"unrecoverable", batch, Memory{}, Ended{Unrecoverable: true}, 0, Failed, 0, structs.ReasonUnrecoverable, 0},
		{"asked for by an operator", batch, used(9, 0), Ended{Requested: true}, 0, Again, 0, "", 9},
		{"mode delay waits for the interval's end", delay, used(1, 20*time.Second), Ended{}, 0, Again, 40 * time.Second, reasonDelay, 2},
		{"no attempts, failed", Policy{Fail: true}, Memory{}, Ended{}, 0, Failed, 0, reasonNoRestart, 0},
		{"no attempts, success of a service", Policy{Fail: true, OnSuccess: true}, Memory{}, Ended{Success: true}, 0, Done, 0, reasonNoRestart, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, m := Decide(c.policy, c.memory, c.ended, now, c.jitter)
			if d.Verdict != c.verdict || d.Delay != c.delay || d.Reason != c.reason {
				t.Fatalf("decided %+v", d)
			}
			if m.Count != c.count {
				t.Fatalf("count %d", m.Count)
			}
		})
	}
}

func TestPolicyOf(t *testing.T) {
	group := &structs.TaskGroup{RestartPolicy: &structs.RestartPolicy{Attempts: structs.Ptr(7), Mode: structs.Ptr("delay")}}
	lifecycle := func(hook string, sidecar bool) *structs.Task {
		return &structs.Task{Lifecycle: &structs.TaskLifecycle{Hook: hook, Sidecar: sidecar}}
	}
	for _, c := range []struct {
		name      string
		jobType   string
		task      *structs.Task
		onSuccess bool
	}{
		{"service main", "service", &structs.Task{}, true},
		{"system main", "system", &structs.Task{}, true},
		{"batch main", "batch", &structs.Task{}, false},
		{"sysbatch main", "sysbatch", &structs.Task{}, false},
		{"service prestart", "service", lifecycle("prestart", false), false},
		{"batch prestart sidecar", "batch", lifecycle("prestart", true), true},
		{"service poststart", "service", lifecycle("poststart", false), false},
		{"poststop is never restarted on success", "service", lifecycle("poststop", true), false},
	} {
		if p := PolicyOf(c.jobType, c.task, group); p.OnSuccess != c.onSuccess || p.Attempts != 7 || p.Fail {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}

// Within one interval a policy of mode fail never allows more than its attempts, whatever the order of events.
func TestNeverMoreThanAttempts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			Attempts: rapid.IntRange(0, 5).Draw(t, "attempts"), Interval: time.Minute,
			Delay: time.Duration(rapid.IntRange(0, 20).Draw(t, "delay")) * time.Second,
			Fail:  rapid.Bool().Draw(t, "fail"), OnSuccess: rapid.Bool().Draw(t, "on success"),
		}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var m Memory
		starts := map[time.Time]int{}
		for range rapid.IntRange(1, 40).Draw(t, "ends") {
			now = now.Add(time.Duration(rapid.IntRange(0, 15).Draw(t, "ran for")) * time.Second)
			var d Decision
			d, m = Decide(p, m, Ended{Success: rapid.Bool().Draw(t, "success")}, now, rapid.Float64Range(0, 0.999).Draw(t, "jitter"))
			if d.Delay < 0 {
				t.Fatalf("delay %s", d.Delay)
			}
			if d.Verdict != Again {
				return
			}
			starts[m.WindowStart]++
			if p.Fail && starts[m.WindowStart] > p.Attempts {
				t.Fatalf("%d restarts in one interval, %d allowed", starts[m.WindowStart], p.Attempts)
			}
			now = now.Add(d.Delay)
		}
	})
}
