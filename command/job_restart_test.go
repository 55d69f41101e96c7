package command

import (
	"strings"
	"testing"
)

func TestBatchSize(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want int // 0: refused
	}{{"1", 10, 1}, {"3", 10, 3}, {"50%", 10, 5}, {"25%", 10, 3}, {"1%", 3, 1}, {"100%", 7, 7},
		{"0", 10, 0}, {"-1", 10, 0}, {"101%", 10, 0}, {"half", 10, 0}, {"", 10, 0}, {"%", 10, 0}} {
		got, err := batchSize(c.text, c.n)
		if got != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%q of %d: %d, %v, want %d", c.text, c.n, got, err, c.want)
		}
	}
}

// These calls are wrong whatever the cluster is: they end before it is asked.
func TestWrongChangesEndBeforeTheClusterIsAsked(t *testing.T) {
	for want, args := range map[string][]string{
		"-all-tasks and -task":       {"job", "restart", "-all-tasks", "-task", "t", "web"},
		"replaces whole allocations": {"job", "restart", "-reschedule", "-all-tasks", "web"},
		"-on-error must be":          {"job", "restart", "-on-error", "maybe", "web"},
		"-batch-wait needs":          {"job", "restart", "-batch-wait", "-1s", "web"},
		`got "soon"`:                 {"job", "restart", "-batch-wait", "soon", "web"},
		"-batch-size needs":          {"job", "restart", "-batch-size", "0", "web"},
		"-kill-timeout: it needs":    {"job", "restart", "-kill-timeout", "-1s", "web"},
		`"" for flag -kill-timeout`:  {"job", "restart", "-kill-timeout=", "web"},
		`got ""`:                     {"node", "drain", "-enable", "-deadline=", "ffff"},
		`got "many"`:                 {"job", "scale", "web", "many"},
		"at least 2 argument":        {"job", "scale", "web"},
		"takes one argument":         {"deployment", "fail"},
		"must not be empty":          {"deployment", "promote", "-group", "", "x"},
	} {
		s, out, errs := testStreams()
		if code := run("nomadlite", args, s); code != 1 || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: exit %d, no %q in %s%s", args, code, want, out, errs)
		}
	}
}
