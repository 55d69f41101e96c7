package command

import (
	"maps"
	"os"
	"path/filepath"
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
	} {
		s, _, errs := testStreams()
		s.environ = c.env
		job, submission, err := c.flags.parse(&call{streams: s}, path)
		if err != nil {
			t.Fatalf("%s: %v %s", c.name, err, errs)
		}
		if structs.Val(job.TaskGroups[0].Count) != c.count || !maps.Equal(submission.VariableFlags, c.values) || submission.Variables != c.vars {
			t.Errorf("%s: count %d, kept %+v", c.name, structs.Val(job.TaskGroups[0].Count), submission)
		}
	}
}
