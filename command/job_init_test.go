package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/jobspec"
)

// Each example is a valid job in the canonical layout, and a file that is there stays as it is.
func TestExamplesOfJobInit(t *testing.T) {
	seen := map[string]bool{}
	for _, args := range [][]string{nil, {"-short"}, {"-connect"}, {"-connect", "-short"}} {
		path := filepath.Join(t.TempDir(), "x.nomad.hcl")
		words := append(append([]string{"job", "init"}, args...), path)
		s, out, errs := testStreams()
		if code := run("nomadlite", words, s); code != 0 || !strings.Contains(out.String(), path) {
			t.Fatalf("%q: got %d %s %s", args, code, out, errs)
		}
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(body)
		if seen[text] || strings.Contains(text, "#") == (len(args) > 0 && args[len(args)-1] == "-short") {
			t.Errorf("%q gave %s", args, text)
		}
		seen[text] = true
		result, err := jobspec.Parse(jobspec.Config{Path: path, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		result.Job.Canonicalize()
		if err := result.Job.Validate(); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		if code := run("nomadlite", []string{"fmt", "-check", path}, s); code != 0 {
			t.Errorf("%q: not in the canonical layout: %s", args, out)
		}
		if code := run("nomadlite", words, s); code != 1 || !strings.Contains(errs.String(), "exists already") {
			t.Errorf("%q: the second call gave %d %s", args, code, errs)
		}
	}
}
