package structs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs/jsontest"
)

// volatile are the members which a server sets by itself and a case does not record.
var volatile = []string{
	"SubmitTime", "CreateIndex", "ModifyIndex", "JobModifyIndex", "Version", "Status", "StatusDescription", "Stable",
	"VersionTag",
}

func readJobCase(t *testing.T, path string) *Job {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var body struct{ Job *Job }
	if err := json.Unmarshal(data, &body); err != nil {
		t.Fatal(err)
	}
	return body.Job
}

func decodedJSON(t *testing.T, v any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// stripVolatile removes what the cases do not record.
func stripVolatile(job map[string]any) {
	for _, name := range volatile {
		delete(job, name)
	}
	strip := func(policy any) {
		if p, ok := policy.(map[string]any); ok {
			delete(p, "ID")
			delete(p, "CreateIndex")
			delete(p, "ModifyIndex")
		}
	}
	groups, _ := job["TaskGroups"].([]any)
	for _, g := range groups {
		group := g.(map[string]any)
		strip(group["Scaling"])
		tasks, _ := group["Tasks"].([]any)
		for _, task := range tasks {
			policies, _ := task.(map[string]any)["ScalingPolicies"].([]any)
			for _, p := range policies {
				strip(p)
			}
		}
	}
}

func TestCanonicalJobIsWhatServersKeep(t *testing.T) {
	cases, err := filepath.Glob("testdata/server/*.registered.json")
	if err != nil || len(cases) < 50 {
		t.Fatalf("found %d cases, %v", len(cases), err)
	}
	for _, path := range cases {
		name := strings.TrimSuffix(filepath.Base(path), ".registered.json")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			job := readJobCase(t, filepath.Join("testdata/server", name+".job.json"))
			job.Canonicalize()
			if err := job.Validate(); err != nil {
				t.Fatal(err)
			}
			got := decodedJSON(t, job)
			stripVolatile(got)
			for _, d := range jsontest.Differences(want, got, "Job") {
				t.Error(d)
			}

			again := job.Copy()
			again.Canonicalize()
			if !again.SpecEqual(job) {
				t.Error("a canonical job changes when it is made canonical once more")
			}
			var back Job
			if data, err = json.Marshal(job); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &back); err != nil {
				t.Fatal(err)
			}
			back.Canonicalize()
			if !back.SpecEqual(job) {
				t.Error("a job that was read and written back is another one")
			}
		})
	}
}
