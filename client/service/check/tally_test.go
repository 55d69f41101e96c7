package check

import (
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// results reads p, w and f as passed, warned and failed.
func results(text string) []Verdict {
	var out []Verdict
	for _, r := range text {
		out = append(out, map[rune]Verdict{'p': Passed, 'w': Warned, 'f': Failed}[r])
	}
	return out
}

func TestStatusFollowsResults(t *testing.T) {
	letter := map[string]string{structs.CheckPending: "-", structs.CheckSuccess: "S", structs.CheckWarning: "W", structs.CheckFailure: "F"}
	for _, c := range []struct {
		name    string
		check   structs.ServiceCheck
		results string
		want    string
	}{
		{"at once", structs.ServiceCheck{}, "pfpf", "-SFSF"},
		{"a few failures first", structs.ServiceCheck{FailuresBeforeCritical: 3}, "pfffpff", "-SSSFSSS"},
		{"warning first", structs.ServiceCheck{FailuresBeforeCritical: 3, FailuresBeforeWarning: 1}, "pfffp", "-SWWFS"},
		{"a few successes first", structs.ServiceCheck{SuccessBeforePassing: 2}, "ppfpfpp", "--SFFFFS"},
		{"initially passing", structs.ServiceCheck{InitialStatus: "passing", FailuresBeforeCritical: 2}, "ff", "SSF"},
		{"initially warning", structs.ServiceCheck{InitialStatus: "warning"}, "", "W"},
		{"initially critical", structs.ServiceCheck{InitialStatus: "critical"}, "p", "FS"},
		{"scripts warn, and do not count", structs.ServiceCheck{Type: "script", FailuresBeforeCritical: 3, SuccessBeforePassing: 3}, "wpfp", "-WSFS"},
	} {
		tally := begin(&c.check)
		got := letter[tally.Status]
		for _, v := range results(c.results) {
			tally.add(v, &c.check)
			got += letter[tally.Status]
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestRestartsAfterFailuresInARow(t *testing.T) {
	for _, c := range []struct {
		name    string
		restart *structs.CheckRestart
		check   structs.ServiceCheck
		results string // upper case: within the grace period
		want    string // R where the task is restarted
	}{
		{"no block", nil, structs.ServiceCheck{}, "ffff", "...."},
		{"no limit", &structs.CheckRestart{}, structs.ServiceCheck{}, "ffff", "...."},
		{"the first", &structs.CheckRestart{Limit: 1}, structs.ServiceCheck{}, "pff", ".RR"},
		{"the third in a row", &structs.CheckRestart{Limit: 3}, structs.ServiceCheck{}, "ffpfffpfff", ".....R...R"},
		{"not in grace", &structs.CheckRestart{Limit: 2}, structs.ServiceCheck{}, "FFFff", "....R"},
		{"only once critical", &structs.CheckRestart{Limit: 1}, structs.ServiceCheck{FailuresBeforeCritical: 2}, "fff", ".RR"},
		{"warnings count", &structs.CheckRestart{Limit: 2}, structs.ServiceCheck{Type: "script"}, "ww", ".R"},
		{"unless ignored", &structs.CheckRestart{Limit: 2, IgnoreWarnings: true}, structs.ServiceCheck{Type: "script"}, "wwfwff", ".....R"},
		{"a good result counts before the status follows", &structs.CheckRestart{Limit: 2},
			structs.ServiceCheck{SuccessBeforePassing: 5}, "fpfpff", ".....R"},
	} {
		c.check.CheckRestart = c.restart
		tally := begin(&c.check)
		got := ""
		for _, r := range c.results {
			v := results(strings.ToLower(string(r)))[0]
			tally.add(v, &c.check)
			if tally.restarts(v, &c.check, r < 'a') {
				got += "R"
			} else {
				got += "."
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestWhatDeploymentsWaitFor(t *testing.T) {
	for _, c := range []struct{ onUpdate, pass string }{
		{structs.OnUpdateRequireHealthy, "success"},
		{structs.OnUpdateIgnoreWarnings, "success warning"},
		{structs.OnUpdateIgnore, "pending success warning failure"},
	} {
		var got []string
		for _, status := range []string{structs.CheckPending, structs.CheckSuccess, structs.CheckWarning, structs.CheckFailure} {
			if passes(status, &structs.ServiceCheck{OnUpdate: c.onUpdate}) {
				got = append(got, status)
			}
		}
		if strings.Join(got, " ") != c.pass {
			t.Errorf("%s: %v", c.onUpdate, got)
		}
	}
}

func TestClip(t *testing.T) {
	for _, n := range []int{maxOutput - 1, maxOutput, maxOutput + 1, maxOutput + 2} {
		text := strings.Repeat("x", n%3) + strings.Repeat("€", n/3)
		if got := clip(text); len(got) > maxOutput || !strings.HasPrefix(text, got) || len(got) < min(len(text), maxOutput)-3 ||
			strings.ContainsRune(got, '�') {
			t.Errorf("%d bytes: %d", n, len(got))
		}
	}
}
