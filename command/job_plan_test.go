package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func field(kind, name, old, new string, notes ...string) *structs.FieldDiff {
	return &structs.FieldDiff{Type: kind, Name: name, Old: old, New: new, Annotations: notes}
}

// Short names for types of differences.
const (
	none, added, deleted, edited = structs.DiffTypeNone, structs.DiffTypeAdded, structs.DiffTypeDeleted, structs.DiffTypeEdited
)

// diffCase is a difference and how it is written.
type diffCase struct {
	name    string
	diff    *structs.JobDiff
	verbose bool
	want    string
}

func wantDiffs(t *testing.T, cases []diffCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := "\n" + formatDiff(c.diff, c.verbose, false); got != c.want {
				t.Errorf("wrote%s\nwant%s", got, c.want)
			}
		})
	}
}

func TestAddedAndDeletedPartsAreWrittenAsThePublicToolsDo(t *testing.T) {
	service := &structs.ObjectDiff{Type: added, Name: "Service", Fields: []*structs.FieldDiff{field(added, "Name", "", "website"),
		field(added, "PortLabel", "", "web")}, Objects: []*structs.ObjectDiff{{Type: added, Name: "Check", Fields: []*structs.FieldDiff{
		field(none, "Command", "", ""), field(added, "Interval", "", "10000000000")}}}}
	fresh := &structs.JobDiff{Type: added, ID: "example", Fields: []*structs.FieldDiff{field(added, "Name", "", "example")},
		TaskGroups: []*structs.TaskGroupDiff{{Type: added, Name: "cache", Updates: map[string]uint64{"create": 1},
			Fields: []*structs.FieldDiff{field(added, "Count", "", "1", "forces create")},
			Tasks: []*structs.TaskDiff{{Type: added, Name: "redis", Annotations: []string{"forces create"},
				Fields: []*structs.FieldDiff{field(added, "Driver", "", "docker")}}}}}}
	wantDiffs(t, []diffCase{
		{"new job", fresh, false, `
+ Job: "example"
+ Task Group: "cache" (1 create)
  + Task: "redis" (forces create)
`},
		{"new job, all of it", fresh, true, `
+ Job: "example"
+ Name: "example"
+ Task Group: "cache" (1 create)
  + Count: "1" (forces create)
  + Task: "redis" (forces create)
    + Driver: "docker"
`},
		{"one more task", &structs.JobDiff{Type: edited, ID: "example", TaskGroups: []*structs.TaskGroupDiff{{Type: edited, Name: "cache",
			Tasks: []*structs.TaskDiff{{Type: added, Name: "my-website", Annotations: []string{"forces create/destroy update"},
				Fields: []*structs.FieldDiff{field(added, "Driver", "", "docker"), field(added, "KillTimeout", "", "5000000000")}, Objects: []*structs.ObjectDiff{service}},
				{Type: none, Name: "redis"}}}}}, true, `
+/- Job: "example"
+/- Task Group: "cache"
  + Task: "my-website" (forces create/destroy update)
    + Driver:      "docker"
    + KillTimeout: "5000000000"
    + Service {
      + Name:      "website"
      + PortLabel: "web"
      + Check {
          Command:  ""
        + Interval: "10000000000"
        }
      }
    Task: "redis"
`},
		{"deleted", &structs.JobDiff{Type: edited, ID: "a", TaskGroups: []*structs.TaskGroupDiff{{Type: deleted, Name: "g",
			Updates: map[string]uint64{"destroy": 2}, Tasks: []*structs.TaskDiff{{Type: deleted, Name: "t", Annotations: []string{"forces destroy"}}}}}}, false, `
+/- Job: "a"
- Task Group: "g" (2 destroy)
  - Task: "t" (forces destroy)
`},
		{"nothing", &structs.JobDiff{Type: none, ID: "a", TaskGroups: []*structs.TaskGroupDiff{{Type: none, Name: "g",
			Updates: map[string]uint64{"ignore": 2}, Tasks: []*structs.TaskDiff{{Type: none, Name: "t"}}}}}, false, `
Job: "a"
Task Group: "g" (2 ignore)
  Task: "t"
`},
	})
}

func TestEditedPartsAreWrittenAsThePublicToolsDo(t *testing.T) {
	memory := &structs.ObjectDiff{Type: edited, Name: "Resources", Fields: []*structs.FieldDiff{
		field(none, "CPU", "500", "500"), field(none, "DiskMB", "0", "0"), field(edited, "MemoryMB", "256", "512")}}
	wantDiffs(t, []diffCase{
		{"count", &structs.JobDiff{Type: edited, ID: "example", TaskGroups: []*structs.TaskGroupDiff{{Type: edited, Name: "cache",
			Updates: map[string]uint64{"in-place update": 1, "create": 7},
			Fields:  []*structs.FieldDiff{field(edited, "Count", "1", "8", "forces create")},
			Tasks:   []*structs.TaskDiff{{Type: none, Name: "redis"}}}}}, false, `
+/- Job: "example"
+/- Task Group: "cache" (7 create, 1 in-place update)
  +/- Count: "1" => "8" (forces create)
      Task: "redis"
`},
		{"memory", &structs.JobDiff{Type: edited, ID: "example", TaskGroups: []*structs.TaskGroupDiff{{Type: edited, Name: "cache",
			Tasks: []*structs.TaskDiff{{Type: edited, Name: "redis", Objects: []*structs.ObjectDiff{memory}}}}}}, false, `
+/- Job: "example"
+/- Task Group: "cache"
  +/- Task: "redis"
    +/- Resources {
          CPU:      "500"
          DiskMB:   "0"
      +/- MemoryMB: "256" => "512"
        }
`},
		{"constraint", &structs.JobDiff{Type: edited, ID: "dummyapp", Objects: []*structs.ObjectDiff{{Type: added, Name: "Constraint",
			Fields: []*structs.FieldDiff{field(added, "Operand", "", "distinct_hosts")}}}, TaskGroups: []*structs.TaskGroupDiff{
			{Type: none, Name: "dummyapp", Updates: map[string]uint64{"create/destroy update": 39}, Tasks: []*structs.TaskDiff{{Type: none, Name: "dummyapp"}}}}},
			false, `
+/- Job: "dummyapp"
+ Constraint {
  + Operand: "distinct_hosts"
  }
  Task Group: "dummyapp" (39 create/destroy update)
    Task: "dummyapp"
`},
		{"meta", &structs.JobDiff{Type: edited, ID: "httpbin", Fields: []*structs.FieldDiff{field(edited, "Meta[uuid]", "a\n", "b")},
			TaskGroups: []*structs.TaskGroupDiff{{Type: none, Name: "app", Updates: map[string]uint64{"ignore": 1, "canary": 1},
				Tasks: []*structs.TaskDiff{{Type: none, Name: "httpbin"}}}}}, false, `
+/- Job: "httpbin"
+/- Meta[uuid]: "a\n" => "b"
    Task Group: "app" (1 canary, 1 ignore)
      Task: "httpbin"
`},
		{"scaling", &structs.JobDiff{Type: edited, ID: "foo", TaskGroups: []*structs.TaskGroupDiff{{Type: edited, Name: "foo",
			Fields: []*structs.FieldDiff{field(edited, "Count", "1", "2", "forces create")},
			Objects: []*structs.ObjectDiff{{Type: added, Name: "Scaling", Fields: []*structs.FieldDiff{field(added, "Enabled", "", "true"),
				field(added, "Max", "", "10")}, Objects: []*structs.ObjectDiff{{Type: added, Name: "Policy", Fields: []*structs.FieldDiff{
				field(added, "cooldown", "", "1m")}}}}}, Tasks: []*structs.TaskDiff{{Type: none, Name: "foo"}}}}}, false, `
+/- Job: "foo"
+/- Task Group: "foo"
  +/- Count: "1" => "2" (forces create)
  +   Scaling {
      + Enabled: "true"
      + Max:     "10"
      + Policy {
        + cooldown: "1m"
        }
      }
      Task: "foo"
`},
	})
}

// planServer answers every plan with p and keeps what was asked.
func planServer(t *testing.T, status int, p *structs.JobPlanResponse, asked *structs.JobPlanRequest) string {
	t.Helper()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/job/example/plan" {
			t.Errorf("asked %s", r.URL.Path)
		}
		if err := json.NewDecoder(r.Body).Decode(asked); err != nil {
			t.Error(err)
		}
		if status != http.StatusOK {
			http.Error(w, "no such thing", status)
			return
		}
		if err := json.NewEncoder(w).Encode(p); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(ts.Close)
	return ts.URL
}

func planFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "example.nomad.hcl")
	text := `variable "n" {
  type    = number
  default = 1
}
job "example" {
  group "cache" {
    count = var.n
    task "redis" {
      driver = "raw_exec"
    }
  }
}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPlanExitCodes(t *testing.T) {
	for _, c := range []struct {
		name string
		d    structs.DesiredUpdates
		want int
	}{
		{"nothing", structs.DesiredUpdates{Ignore: 3}, 0}, {"in place", structs.DesiredUpdates{InPlaceUpdate: 3}, 0},
		{"create", structs.DesiredUpdates{Place: 1}, 1}, {"destroy", structs.DesiredUpdates{Stop: 1}, 1},
		{"update", structs.DesiredUpdates{DestructiveUpdate: 1}, 1}, {"canary", structs.DesiredUpdates{Canary: 1}, 1},
		{"migrate", structs.DesiredUpdates{Migrate: 1}, 1},
	} {
		for _, form := range []string{"-diff=true", "-json-output", "-t={{.JobModifyIndex}}"} {
			s, out, errs := testStreams()
			var asked structs.JobPlanRequest
			url := planServer(t, 200, &structs.JobPlanResponse{Annotations: &structs.PlanAnnotations{
				DesiredTGUpdates: map[string]*structs.DesiredUpdates{"cache": &c.d}}}, &asked)
			if code := run("nomadlite", []string{"plan", "-address=" + url, form, planFile(t)}, s); code != c.want {
				t.Errorf("%s %s: exit code %d, want %d: %s%s", c.name, form, code, c.want, out, errs)
			}
		}
	}
	for _, args := range [][]string{{"/no/such/file"}, {}, {"-nope", "x"}, {"-json", planFile(t)}} {
		s, out, errs := testStreams()
		if code := run("nomadlite", append([]string{"job", "plan", "-address=http://127.0.0.1:1"}, args...), s); code != 255 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d: %s%s", args, code, out, errs)
		}
	}
	s, _, errs := testStreams()
	var asked structs.JobPlanRequest
	if code := run("nomadlite", []string{"job", "plan", "-address=" + planServer(t, 500, nil, &asked), planFile(t)}, s); code != 255 ||
		!strings.Contains(errs.String(), "Error during plan: no such thing") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestPlanTellsWhatTheSchedulerFound(t *testing.T) {
	next := time.Now().Add(90 * time.Minute)
	p := &structs.JobPlanResponse{JobModifyIndex: 15, Warnings: "1 warning:\n\n* old", NextPeriodicLaunch: next,
		Diff: &structs.JobDiff{Type: edited, ID: "example"},
		FailedTGAllocs: map[string]*structs.AllocationMetric{"cache": {NodesEvaluated: 1, NodesExhausted: 1, CoalescedFailures: 2,
			DimensionExhausted: map[string]int{"cpu": 1}}}}
	s, out, errs := testStreams()
	var asked structs.JobPlanRequest
	path := planFile(t)
	code := run("nomadlite", []string{"job", "plan", "-address=" + planServer(t, 200, p, &asked), "-var", "n=3", "-policy-override", path}, s)
	want := `+/- Job: "example"

Scheduler dry-run:
- WARNING: Failed to place all allocations.
  Task Group "cache" (failed to place 3 allocations):
    * Resources exhausted on 1 nodes
    * Dimension "cpu" exhausted on 1 nodes
    In words: needs more cpu on 1 of 1 node
      > free some cpu on one of them, ask for less, or add a node
- If submitted now, next periodic launch would be at ` + next.Local().Format(time.RFC3339) + ` (1h29m from now).

Job Modify Index: 15
To submit the job with version verification run:

nomadlite job run -check-index 15 -var=n=3 ` + path + `

When running the job with the check-index flag, the job will only be run if the
job modify index given matches the server-side version. If the index has
changed, another user has modified the job and the plan's results are
potentially invalid.
`
	if code != 0 || out.String() != want {
		t.Errorf("exit code %d, wrote\n%s\nwant\n%s", code, out, want)
	}
	if !strings.Contains(errs.String(), "Job Warnings:\n1 warning:") {
		t.Errorf("warnings are %q", errs)
	}
	if !asked.Diff || !asked.PolicyOverride || structs.Val(asked.Job.TaskGroups[0].Count) != 3 {
		t.Errorf("asked %+v", asked)
	}
	s, out, _ = testStreams()
	p.Diff = nil
	if run("nomadlite", []string{"job", "plan", "-address=" + planServer(t, 200, p, &asked), "-diff=false", path}, s); asked.Diff ||
		!strings.HasPrefix(out.String(), "Scheduler dry-run:") {
		t.Errorf("without a difference: %s", out)
	}
}

func TestPlanTellsWhyUpdatesAreWhatTheyAre(t *testing.T) {
	p := &structs.JobPlanResponse{Annotations: &structs.PlanAnnotations{Reasons: map[string][]*structs.PlannedUpdate{
		"api": {{Update: structs.UpdateIgnore, Allocs: 3, Reason: "runs this version of the job already"}},
		"web": {{Update: structs.UpdateDestructive, Allocs: 2, Reason: "what differs was given to the tasks at their start",
			Differs: []string{"task server env", "volume"}},
			{Update: structs.UpdateIgnore, Allocs: 4, Reason: "waits for its turn: max_parallel is 2", Differs: []string{"task server env", "volume"}}}}}}
	short := `- Task Group "web":
    * 2 create/destroy update: what differs was given to the tasks at their start (task server env, volume)
    * 4 ignore: waits for its turn: max_parallel is 2 (task server env, volume)
`
	whole := `- Task Group "api":
    * 3 ignore: runs this version of the job already
` + short
	var asked structs.JobPlanRequest
	url := planServer(t, 200, p, &asked)
	for flag, want := range map[string]string{"-verbose=false": short, "-verbose": whole} {
		s, out, errs := testStreams()
		run("nomadlite", []string{"job", "plan", "-address=" + url, flag, planFile(t)}, s)
		_, text, _ := strings.Cut(out.String(), "Updates:\n")
		if got, _, _ := strings.Cut(text, "\nJob Modify"); got != want {
			t.Errorf("%s wrote\n%s%s\nwant\n%s", flag, out, errs, want)
		}
	}
	p.Annotations.Reasons = map[string][]*structs.PlannedUpdate{"api": p.Annotations.Reasons["api"]}
	s, out, _ := testStreams()
	if run("nomadlite", []string{"job", "plan", "-address=" + url, planFile(t)}, s); strings.Contains(out.String(), "Updates:") {
		t.Errorf("nothing changes, but it wrote\n%s", out)
	}
}

func TestVariablesOfASourceAreWrittenAsInAFile(t *testing.T) {
	for value, want := range map[string]string{"3": `"3"`, `say "${x}"`: `"say \"$${x}\""`, ` ["a"]`: ` ["a"]`, "{a=1}": "{a=1}", "": `""`} {
		if got := variableText(value); got != want {
			t.Errorf("%q became %s, want %s", value, got, want)
		}
	}
}

func TestWordsAreQuotedForAShell(t *testing.T) {
	for word, want := range map[string]string{"a=b": "a=b", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$x": "'$x'"} {
		if got := shellQuote(word); got != want {
			t.Errorf("%q became %s, want %s", word, got, want)
		}
	}
}

func TestColoursOfADifference(t *testing.T) {
	p := &structs.JobPlanResponse{Diff: &structs.JobDiff{Type: edited, ID: "example", TaskGroups: []*structs.TaskGroupDiff{
		{Type: added, Name: "a"}, {Type: deleted, Name: "b"}, {Type: none, Name: "c"}}}}
	var asked structs.JobPlanRequest
	url := planServer(t, 200, p, &asked)
	coloured := "\033[33m+/- \033[0mJob: \"example\"\n\033[32m+ \033[0mTask Group: \"a\"\n\033[31m- \033[0mTask Group: \"b\"\n  Task Group: \"c\"\n"
	plain := "+/- Job: \"example\"\n+ Task Group: \"a\"\n- Task Group: \"b\"\n  Task Group: \"c\"\n"
	for _, c := range []struct {
		args     []string
		env      string
		terminal bool
		want     string
	}{
		{nil, "", false, plain}, {nil, "", true, coloured}, {[]string{"-no-color"}, "", true, plain}, {[]string{"-force-color"}, "", false, coloured},
		{nil, "NOMAD_CLI_NO_COLOR", true, plain}, {nil, "NOMAD_CLI_FORCE_COLOR", false, coloured},
		{[]string{"-no-color", "-force-color"}, "", false, plain},
	} {
		s, out, errs := testStreams()
		s.terminal = c.terminal
		s.getenv = func(name string) string {
			if name == c.env {
				return "1"
			}
			return ""
		}
		run("nomadlite", append(append([]string{"plan", "-address=" + url}, c.args...), planFile(t)), s)
		if got, _, _ := strings.Cut(out.String(), "\nScheduler"); got != c.want {
			t.Errorf("%v %s terminal %t: wrote %q %s", c.args, c.env, c.terminal, got, errs)
		}
	}
}
