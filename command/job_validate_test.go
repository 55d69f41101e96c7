package command

import (
	"strings"
	"testing"
)

// TestValidateTellsWhatHasNoEffect, also without an agent: what the text says in vain and what is not done yet.
func TestValidateTellsWhatHasNoEffect(t *testing.T) {
	s, out, errs := testStreams()
	s.in = strings.NewReader(`job "x" {
  constraint {
    attribute        = "${meta.a}"
    value            = "c"
    set_contains_any = "c"
  }
  group "g" {
    network {
      reserved_ports "a" {
        static = 80
      }
    }
    task "t" {
      driver = "raw_exec"
      consul {}
    }
  }
}
`)
	code := run("nomadlite", []string{"job", "validate", "-address=http://127.0.0.1:1", "-"}, s)
	if code != 0 || !strings.Contains(out.String(), "Job validation successful") {
		t.Fatalf("got %d %s %s", code, out, errs)
	}
	for _, want := range []string{"stdin:5:5: ", "stdin:9:7: ", "consul has no effect yet"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("no %q in %s", want, errs)
		}
	}
}
