package jobspec_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/jobspec"
	"github.com/nomadlite/nomadlite/structs"
	"github.com/nomadlite/nomadlite/structs/jsontest"
)

// TestServersKeepWhatTheJobspecSays follows a jobspec all the way: parsed, printed as a request's body, read by a
// server, made canonical and validated there, and printed as an answer. The recorded jobs belong to package structs.
func TestServersKeepWhatTheJobspecSays(t *testing.T) {
	dir := filepath.Join("..", "structs", "testdata", "server")
	specs, err := filepath.Glob(filepath.Join(dir, "*.nomad.hcl"))
	if err != nil || len(specs) < 40 {
		t.Fatalf("found %d jobspecs, %v", len(specs), err)
	}
	for _, path := range specs {
		name := strings.TrimSuffix(filepath.Base(path), ".nomad.hcl")
		t.Run(name, func(t *testing.T) {
			result, err := jobspec.ParseFile(jobspec.Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			body, err := structs.ParseView(result.Job)
			if err != nil {
				t.Fatal(err)
			}
			var request struct{ Job *structs.Job }
			readJSON(t, body, &request)
			job := request.Job
			job.Canonicalize()
			if err := job.Validate(); err != nil {
				t.Fatal(err)
			}
			answer, err := json.Marshal(job)
			if err != nil {
				t.Fatal(err)
			}
			recorded, err := os.ReadFile(filepath.Join(dir, name+".registered.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want, got map[string]any
			readJSON(t, recorded, &want)
			readJSON(t, answer, &got)
			for _, member := range []string{"SubmitTime", "CreateIndex", "ModifyIndex", "JobModifyIndex", "Version", "Status",
				"StatusDescription", "Stable", "VersionTag"} {
				delete(got, member) // the cases do not record it
			}
			dropServerOwned(got)
			for _, d := range jsontest.Differences(want, got, "Job") {
				t.Error(d)
			}
		})
	}
}

// dropServerOwned removes ids and indexes of scaling policies, which the cases do not record.
func dropServerOwned(v any) {
	switch x := v.(type) {
	case map[string]any:
		_, scaling := x["Max"]
		if _, target := x["Target"]; scaling && target {
			delete(x, "ID")
			delete(x, "CreateIndex")
			delete(x, "ModifyIndex")
		}
		for _, member := range x {
			dropServerOwned(member)
		}
	case []any:
		for _, entry := range x {
			dropServerOwned(entry)
		}
	}
}

func readJSON(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}
