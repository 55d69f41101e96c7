package check

import "github.com/nomadlite/nomadlite/structs"

// Verdict is what one answer says of what was asked.
type Verdict uint8

// Passed, Warned (only scripts do) and Failed.
const (
	Passed Verdict = iota
	Warned
	Failed
)

// Outcome is one answer.
type Outcome struct {
	Verdict Verdict
	Output  string // at most maxOutput bytes
	Code    int    // of an HTTP answer, else 0
	// Void says that there was nobody to ask any more: it is no result.
	Void bool
}

// Tally is how a check stands: its status, and what led to it. The zero value is pending.
type Tally struct {
	Status    string
	successes int // in a row
	failures  int
	bad       int // results in a row for which check_restart may restart
}

// begin is how a check stands before its first result.
func begin(c *structs.ServiceCheck) Tally {
	switch c.InitialStatus {
	case "passing":
		return Tally{Status: structs.CheckSuccess}
	case "warning":
		return Tally{Status: structs.CheckWarning}
	case "critical":
		return Tally{Status: structs.CheckFailure}
	}
	return Tally{Status: structs.CheckPending}
}

// add counts one result. The numbers of results before a change of status do not apply to scripts.
func (t *Tally) add(v Verdict, c *structs.ServiceCheck) {
	passAt, failAt := max(c.SuccessBeforePassing, 1), max(c.FailuresBeforeCritical, 1)
	warnAt := c.FailuresBeforeWarning
	if c.Type == structs.CheckScript {
		passAt, failAt, warnAt = 1, 1, 0
	}
	if v == Failed {
		t.failures, t.successes = t.failures+1, 0
	} else {
		t.failures, t.successes = 0, t.successes+1
	}
	switch {
	case v == Warned:
		t.Status = structs.CheckWarning
	case v == Passed && t.successes >= passAt:
		t.Status = structs.CheckSuccess
	case v == Failed && t.failures >= failAt:
		t.Status = structs.CheckFailure
	case v == Failed && warnAt > 0 && t.failures >= warnAt:
		t.Status = structs.CheckWarning
	}
}

// restarts counts a result for check_restart and says whether the task is to be restarted now. What comes within the
// grace period is not counted, and a single good result begins the count anew.
func (t *Tally) restarts(v Verdict, c *structs.ServiceCheck, inGrace bool) bool {
	r := c.CheckRestart
	if r == nil || r.Limit <= 0 {
		return false
	}
	unhealthy := t.Status == structs.CheckFailure || t.Status == structs.CheckWarning && !r.IgnoreWarnings
	if v == Passed || !unhealthy || inGrace {
		t.bad = 0
		return false
	}
	if t.bad++; t.bad < r.Limit {
		return false
	}
	t.bad = 0
	return true
}

// passes says whether deployments may go on with the check in this status.
func passes(status string, c *structs.ServiceCheck) bool {
	switch c.OnUpdate {
	case structs.OnUpdateIgnore:
		return true
	case structs.OnUpdateIgnoreWarnings:
		return status == structs.CheckSuccess || status == structs.CheckWarning
	}
	return status == structs.CheckSuccess
}
