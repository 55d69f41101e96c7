package jobspec_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/nomadlite/nomadlite/jobspec"
	"github.com/nomadlite/nomadlite/structs"
)

// warned parses body and gives its warnings, a line each: place and text.
func warned(t *testing.T, body string) (*structs.Job, string) {
	t.Helper()
	result, err := jobspec.Parse(jobspec.Config{Path: "x", Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, d := range result.Warnings {
		if d.Severity != hcl.DiagWarning {
			t.Errorf("%s is no warning", d)
		}
		fmt.Fprintf(&b, "%d:%d %s\n", d.Subject.Start.Line, d.Subject.Start.Column, d.Detail)
	}
	return result.Job, b.String()
}

// A weight that does not fit keeps its low eight bits, as established tools keep them, and is told.
func TestWrappedWeightIsTold(t *testing.T) {
	for written, kept := range map[string]int8{"300": 44, "-129": 127, "256": 0, `"200"`: -56} {
		job, words := warned(t, "job \"x\" {\n affinity {\n  attribute = \"a\"\n  weight = "+written+"\n }\n}")
		if got := structs.Val(job.Affinities[0].Weight); got != kept || !strings.Contains(words, "4:12 ") {
			t.Errorf("of %s %d is kept: %s", written, got, words)
		}
	}
	for _, written := range []string{"100", "-100", "null", `"50"`} {
		if _, words := warned(t, "job \"x\" {\n affinity {\n  weight = "+written+"\n }\n}"); words != "" {
			t.Errorf("%s: %s", written, words)
		}
	}
	for _, written := range []string{"1.5", `"much"`, "[1]", "1e30"} {
		if _, err := jobspec.Parse(jobspec.Config{Body: []byte("job \"x\" {\n affinity {\n  weight = " + written + "\n }\n}")}); err == nil {
			t.Errorf("%s is a weight", written)
		}
	}
}

// Names in a JSON job that nothing reads are told with their places; those in free-form values are not looked at.
func TestUnknownNamesInJSONAreTold(t *testing.T) {
	job, words := warned(t, `{"Job": {"id": "x", "Prio": 3,
 "ConsulToken": null, "VaultToken": "", "Old": {}, "Older": [], "Oldest": false, "Meta": {"any": "thing"}, "UI": {"Links": [{"URL": "u"}]}, "CreateIndex": 4,
 "TaskGroups": [{"Name": "g", "Cuont": 3, "Volumes": {"v": {"Sauce": "s"}},
  "Tasks": [{"Name": "t", "Config": {"what": {"Ever": 1}}, "Templates": [null, {"Dest": {"deep": [1]}}]}]}]}}`)
	want := []string{
		"1:21 Prio is not a member of Job", "3:31 TaskGroups[0].Cuont is not a member of TaskGroup",
		"3:61 TaskGroups[0].Volumes.v.Sauce is not a member of VolumeRequest",
		"4:81 TaskGroups[0].Tasks[0].Templates[1].Dest is not a member of Template",
	}
	lines := strings.Split(strings.TrimSpace(words), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got\n%s", words)
	}
	for i, w := range want {
		if !strings.HasPrefix(lines[i], w) {
			t.Errorf("got %s, not %s", lines[i], w)
		}
	}
	if structs.Val(job.ID) != "x" || structs.Val(job.UI).Links[0].URL != "u" {
		t.Errorf("got %+v", job)
	}
	many := strings.Repeat(`"A": 1, `, 5000)
	if _, words := warned(t, `{`+many+`"ID": "x", "TaskGroups": []}`); strings.Count(words, "\n") != 21 {
		t.Errorf("%d warnings", strings.Count(words, "\n"))
	}
}

// A scaling block of a task may leave its bounds to the policy, one of a group has a bound.
func TestScalingOfATaskNeedsNoMax(t *testing.T) {
	const body = "job \"x\" {\n group \"g\" {\n task \"t\" {\n driver = \"mock\"\n scaling \"cpu\" {\n policy {\n a = 1\n }\n }\n }\n }\n}"
	job, words := warned(t, body)
	job.Canonicalize()
	if p := job.TaskGroups[0].Tasks[0].ScalingPolicies[0]; p.Max != nil || p.Type != "vertical_cpu" || words != "" || job.Validate() != nil {
		t.Errorf("got %+v, %s, %v", p, words, job.Validate())
	}
}

// Hostile JSON costs no more than its size: deep nesting, and long names above many others.
func TestUnknownNamesOfHostileJSON(t *testing.T) {
	deep := `{"ID": "x", "TaskGroups": [], "X": ` + strings.Repeat("[", 9000) + strings.Repeat("1,", 1<<16) + "1" + strings.Repeat("]", 9000) + "}"
	long := strings.Repeat("k", 1<<16)
	wide := `{"ID": "x", "TaskGroups": [{"Volumes": {"` + long + `": {` + strings.Repeat(`"Sauce": 1, `, 1<<14) + `"Name": "v"}}}]}`
	for name, body := range map[string]string{"deep": deep, "wide": wide} {
		begin := time.Now()
		_, words := warned(t, body)
		if took := time.Since(begin); took > 10*time.Second || len(words) > 10000 || words == "" {
			t.Errorf("%s: %s, %d bytes of warnings", name, took, len(words))
		}
	}
}

// HCL written as JSON is another language than jobs of the API.
func TestHCLInJSONIsRefusedByName(t *testing.T) {
	_, err := jobspec.Parse(jobspec.Config{Body: []byte(`{"job": {"x": {"group": {"g": {}}}}}`)})
	if err == nil || !strings.Contains(err.Error(), "HCL written as JSON") {
		t.Errorf("got %v", err)
	}
}
