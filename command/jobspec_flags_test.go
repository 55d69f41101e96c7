package command

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// What is kept of a job's source must make the same job again.
func TestTheSubmittedSourceHasAllValuesOfVariables(t *testing.T) {
	path := planFile(t)
	file := filepath.Join(t.TempDir(), "vars.hcl")
	if err := os.WriteFile(file, []byte("n = 4"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "vars.json")
	if err := os.WriteFile(other, []byte(`{"n": 5}`), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe") // can be read once, as what a shell's <(...) names
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(pipe, []byte("n = 6"), 0o600) }()
	for _, c := range []struct {
		name   string
		flags  jobspecFlags
		env    []string
		count  int
		values map[string]string
		vars   string
	}{
		{"nothing", jobspecFlags{strict: true}, nil, 1, map[string]string{}, ""},
		{"environment", jobspecFlags{strict: true}, []string{"NOMAD_VAR_n=2", "NOMAD_VAR_other=x"}, 2, map[string]string{"n": "2"}, ""},
		{"argument", jobspecFlags{strict: true, vars: list{"n=3"}}, []string{"NOMAD_VAR_n=2"}, 3, map[string]string{"n": "3"}, ""},
		{"file", jobspecFlags{strict: true, varFiles: list{file}}, []string{"NOMAD_VAR_n=2"}, 4, map[string]string{}, "n = 4\n"},
		{"JSON", jobspecFlags{strict: true, varFiles: list{other}}, nil, 5, map[string]string{}, "{\"n\": 5}\n"},
		{"two", jobspecFlags{strict: true, varFiles: list{other, file}}, nil, 4, map[string]string{}, "n = 4\n"},
		{"pipe", jobspecFlags{strict: true, varFiles: list{pipe}}, nil, 6, map[string]string{}, "n = 6\n"},
	} {
		s, _, errs := testStreams()
		s.environ = c.env
		job, submission, err := c.flags.parse(t.Context(), &call{streams: s}, path)
		if err != nil {
			t.Fatalf("%s: %v %s", c.name, err, errs)
		}
		if structs.Val(job.TaskGroups[0].Count) != c.count || !maps.Equal(submission.VariableFlags, c.values) || submission.Variables != c.vars {
			t.Errorf("%s: count %d, kept %+v", c.name, structs.Val(job.TaskGroups[0].Count), submission)
		}
	}
}

const countJob = `
variable "n" {
  type    = number
  default = 1
}
job "x" {
  group "g" {
    count = var.n
    task "t" {
      driver = "raw_exec"
    }
  }
}
`

// TestStandardInputTakesAllKindsOfValues: the later of environment, files and arguments wins.
func TestStandardInputTakesAllKindsOfValues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "n.vars")
	if err := os.WriteFile(file, []byte("n = 3"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		env  []string
		want string
	}{
		{nil, nil, `"Count": 1`},
		{nil, []string{"NOMAD_VAR_n=2"}, `"Count": 2`},
		{[]string{"-var-file=" + file}, []string{"NOMAD_VAR_n=2"}, `"Count": 3`},
		{[]string{"-var", "n=4", "-var-file", file}, []string{"NOMAD_VAR_n=2"}, `"Count": 4`},
	} {
		s, out, errs := testStreams()
		s.in, s.environ = strings.NewReader(countJob), c.env
		args := append(append([]string{"job", "run", "-output"}, c.args...), "-")
		if code := run("nomadlite", args, s); code != 0 || !strings.Contains(out.String(), c.want) {
			t.Errorf("%q %q: got %d %s %s", c.args, c.env, code, out, errs)
		}
	}
	s, _, errs := testStreams()
	s.in = strings.NewReader("job \"x\" {\n  nope = 1\n}\n")
	if code := run("nomadlite", []string{"job", "run", "-output", "-"}, s); code != 1 || !strings.Contains(errs.String(), "stdin:2:3: ") {
		t.Errorf("got %d %s", code, errs)
	}
}

// A jobspec may stand at an address.
func TestJobspecsAreFetched(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/x.nomad.hcl":
			fmt.Fprint(w, countJob)
		case "/large":
			_, _ = w.Write(bytes.Repeat([]byte("#"), 17<<20))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	for path, want := range map[string]string{"/x.nomad.hcl": `"Count": 4`, "/none": "404", "/large": "at most 16777216 are allowed"} {
		s, out, errs := testStreams()
		code := run("nomadlite", []string{"job", "run", "-output", "-var=n=4", server.URL + path}, s)
		if (code == 0) != (path == "/x.nomad.hcl") || !strings.Contains(out.String()+errs.String(), want) {
			t.Errorf("%s: got %d %s %s", path, code, out, errs)
		}
	}
	for _, path := range []string{"git::https://example.test/x", "s3::x", "ftp://example.test/x"} {
		for _, command := range [][]string{{"job", "run"}, {"job", "validate"}, {"job", "plan"}} {
			s, _, errs := testStreams()
			if code := run("nomadlite", append(command, path), s); code == 0 || !strings.Contains(errs.String(), "not fetched") {
				t.Errorf("%q %s: got %d %s", command, path, code, errs)
			}
		}
	}
}

// Variables of a job that has none are no silent mistake.
func TestJobsInJSONTakeNoVariables(t *testing.T) {
	for _, flag := range []string{"-var=n=1", "-var-file=n.vars"} {
		s, out, errs := testStreams()
		s.in = strings.NewReader(`{"ID": "x", "TaskGroups": []}`)
		if code := run("nomadlite", []string{"job", "run", "-output", "-json", flag, "-"}, s); code != 1 ||
			!strings.Contains(errs.String(), "has no variables") {
			t.Errorf("%s: got %d %s %s", flag, code, out, errs)
		}
	}
}
