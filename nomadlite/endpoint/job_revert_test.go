package endpoint

import (
	"slices"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// threeVersions registers a job with three counts, each from a source of its own.
func threeVersions(s *server) {
	for i, source := range []string{"first", "second", "third"} {
		j := job("web", func(j *structs.Job) { j.TaskGroups[0].Count = structs.Ptr(i + 1) })
		s.call("PUT", "/v1/jobs", structs.JobRegisterRequest{Job: j, Submission: &structs.JobSubmission{
			Source: source, Format: "hcl2", VariableFlags: map[string]string{"n": source}}}).want(200, nil)
	}
}

func TestRevertRegistersTheOldVersionWithItsSource(t *testing.T) {
	s := newServer(t)
	threeVersions(s)
	s.call("PUT", "/v1/job/web/versions/good/tag", structs.TagVersionRequest{Version: 0}).want(200, nil)
	s.call("PUT", "/v1/job/web/stable", structs.JobStabilityRequest{JobID: "web", JobVersion: 0, Stable: true}).want(200, nil)
	var out structs.JobRegisterResponse
	s.call("POST", "/v1/job/web/revert", structs.JobRevertRequest{JobID: "web", JobVersion: 0, EnforcePriorVersion: structs.Ptr(uint64(2))}).
		want(200, &out)
	got := s.backend.Store.Job(nil, "default", "web")
	if got.Version != 3 || structs.Val(got.TaskGroups[0].Count) != 1 || got.Stable || got.VersionTag != nil ||
		got.JobModifyIndex != out.JobModifyIndex {
		t.Errorf("reverted to %+v", got)
	}
	eval := s.backend.Store.Eval(nil, out.EvalID)
	if eval == nil || eval.JobModifyIndex != out.JobModifyIndex || out.EvalCreateIndex != out.JobModifyIndex {
		t.Errorf("evaluation %+v of %+v", eval, out)
	}
	var source structs.JobSubmission
	s.get("/v1/job/web/submission?version=3").want(200, &source)
	if source.Source != "first" || source.VariableFlags["n"] != "first" {
		t.Errorf("the source is %+v", source)
	}
	if old := s.backend.Store.JobVersion(nil, "default", "web", 0); old.VersionTag == nil || !old.Stable {
		t.Errorf("the old version lost its tag or stability: %+v", old)
	}
}

func TestRevertRefuses(t *testing.T) {
	s := newServer(t)
	threeVersions(s)
	revert := func(version uint64, enforce *uint64) answered {
		return s.call("PUT", "/v1/job/web/revert", structs.JobRevertRequest{JobID: "web", JobVersion: version, EnforcePriorVersion: enforce})
	}
	index := s.backend.Store.Index()
	if a := revert(0, structs.Ptr(uint64(10))); a.status < 400 {
		t.Errorf("answered %d", a.status)
	} else {
		a.says(a.status, "current job has version 2; enforcing version 10")
	}
	revert(2, nil).says(400, "can't revert to current version")
	revert(9, nil).says(404, "at version 9 not found")
	s.call("PUT", "/v1/job/nope/revert", structs.JobRevertRequest{JobID: "nope"}).says(404, "job not found")
	s.call("PUT", "/v1/job/web/revert", structs.JobRevertRequest{JobID: "other"}).says(400, "does not match")
	s.call("PUT", "/v1/job/web/revert", nil).says(400, "empty")
	if s.backend.Store.Index() != index {
		t.Error("a refused revert wrote something")
	}
}

func TestVersionsWithDifferences(t *testing.T) {
	s := newServer(t)
	threeVersions(s)
	s.call("PUT", "/v1/job/web/versions/good/tag", structs.TagVersionRequest{Version: 1, Description: "it works"}).want(200, nil)
	counts := func(path string) []string {
		t.Helper()
		var out structs.JobVersionsResponse
		s.get(path).want(200, &out)
		if len(out.Versions) != 3 {
			t.Fatalf("%d versions", len(out.Versions))
		}
		var got []string
		for _, d := range out.Diffs {
			change := d.Type
			for _, g := range d.TaskGroups {
				for _, f := range g.Fields {
					change += " " + f.Name + " " + f.Old + "=>" + f.New
				}
			}
			got = append(got, change)
		}
		return got
	}
	for _, c := range []struct {
		params string
		want   []string
	}{
		{"", nil},
		{"?diffs=false", nil},
		{"?diffs=true", []string{"Edited Count 2=>3", "Edited Count 1=>2"}},
		{"?diffs=true&diff_version=0", []string{"Edited Count 1=>3", "Edited Count 1=>2", "None"}},
		{"?diffs=true&diff_tag=good", []string{"Edited Count 2=>3", "None", "Edited Count 2=>1"}},
	} {
		if got := counts("/v1/job/web/versions" + c.params); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.params, got, c.want)
		}
	}
	s.get("/v1/job/web/versions?diffs=true&diff_version=7").says(404, "version 7 not found")
	s.get("/v1/job/web/versions?diffs=true&diff_tag=bad").says(404, `tag "bad" not found`)
	s.get("/v1/job/web/versions?diffs=true&diff_version=x").says(400, "expected a number")
	s.get("/v1/job/web/versions?diffs=true&diff_version=1&diff_tag=good").says(400, "exclude each other")
	s.get("/v1/job/web/versions?diffs=perhaps").says(400, "diffs")
	s.get("/v1/job/nope/versions?diffs=true").says(404, "not found")
}

func TestOfficialClientPlansComparesAndReverts(t *testing.T) {
	s := newServer(t)
	jobs := officialClient(t, s).Jobs()
	j := officialJob()
	planned, wrote, err := jobs.Plan(j, true, nil)
	if err != nil || planned.JobModifyIndex != 0 || planned.Diff.Type != "Added" || wrote.RequestTime == 0 {
		t.Fatalf("plan of a new job: %+v, %v", planned, err)
	}
	if _, _, err := jobs.Register(j, nil); err != nil {
		t.Fatal(err)
	}
	j.Meta = map[string]string{"foo": "new"}
	planned, wrote, err = jobs.Plan(j, true, nil)
	if err != nil || planned.JobModifyIndex == 0 || planned.Annotations == nil || len(planned.CreatedEvals) != 1 || wrote.LastIndex == 0 ||
		len(planned.FailedTGAllocs) != 1 || planned.Diff.Fields[0].Name != "Meta[foo]" {
		t.Fatalf("plan of a change: %+v, %v", planned, err)
	}
	if planned, _, err = jobs.Plan(j, false, nil); err != nil || planned.Diff != nil {
		t.Fatalf("plan without a difference: %+v, %v", planned, err)
	}
	if _, _, err := jobs.Register(j, nil); err != nil {
		t.Fatal(err)
	}
	versions, diffs, _, err := jobs.Versions("job1", true, nil)
	if err != nil || len(versions) != 2 || len(diffs) != 1 || diffs[0].Fields[0].New != "new" {
		t.Fatalf("versions %+v, %+v, %v", versions, diffs, err)
	}
	_, _, err = jobs.Revert("job1", 0, structs.Ptr(uint64(10)), nil, "", "")
	if err == nil || !strings.Contains(err.Error(), "enforcing version") {
		t.Fatalf("reverted with a wrong version: %v", err)
	}
	reverted, _, err := jobs.Revert("job1", 0, structs.Ptr(uint64(1)), nil, "", "")
	if err != nil || reverted.EvalID == "" || reverted.EvalCreateIndex == 0 || reverted.JobModifyIndex == 0 {
		t.Fatalf("reverted: %+v, %v", reverted, err)
	}
}
