package endpoint

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

func jobIDs(stubs []*structs.JobListStub) (ids []string) {
	for _, stub := range stubs {
		ids = append(ids, stub.ID)
	}
	return ids
}

func TestJobListIsFilteredOrderedAndPaged(t *testing.T) {
	s := newServer(t)
	s.call("PUT", "/v1/namespace", structs.Namespace{Name: "other"}).want(200, nil)
	for i := range 5 {
		s.register(job(fmt.Sprintf("job-%d", i), func(j *structs.Job) {
			j.Priority = structs.Ptr(10 * (i + 1))
			j.Meta = map[string]string{"team": "blue"}
		}))
	}
	s.register(job("web", func(j *structs.Job) { j.Namespace = structs.Ptr("other") }))

	for _, c := range []struct{ params, want string }{
		{"", "job-0 job-1 job-2 job-3 job-4"},
		{"namespace=other", "web"},
		{"namespace=*", "job-0 job-1 job-2 job-3 job-4 web"},
		{"prefix=job-3", "job-3"},
		{"prefix=w&namespace=*", "web"},
		{"prefix=nothing", ""},
		{"reverse=true", "job-4 job-3 job-2 job-1 job-0"},
		{"per_page=2", "job-0 job-1"},
		{"per_page=2&reverse", "job-4 job-3"},
		{"filter=" + url.QueryEscape(`Priority != 10 and Priority != 20 and Priority != 30 and Status == "pending"`), "job-3 job-4"},
		{"filter=" + url.QueryEscape(`Meta.team == "blue"`) + "&per_page=1", "job-0"},
		{"filter=" + url.QueryEscape(`ID matches "^web"`) + "&namespace=*", "web"},
		{"filter=" + url.QueryEscape(`ConsulNamespace == "x"`), ""},
	} {
		var got []*structs.JobListStub
		s.get("/v1/jobs?"+c.params).want(200, &got)
		if ids := strings.Join(jobIDs(got), " "); ids != c.want {
			t.Errorf("%s: got %q, want %q", c.params, ids, c.want)
		}
	}

	// Page by page, forwards and backwards, everything comes once.
	for _, reverse := range []bool{false, true} {
		var ids []string
		token := ""
		for page := 0; ; page++ {
			if page > 5 {
				t.Fatal("the pages do not end")
			}
			var got []*structs.JobListStub
			a := s.get(fmt.Sprintf("/v1/jobs?per_page=2&namespace=*&reverse=%t&next_token=%s", reverse, url.QueryEscape(token))).want(200, &got)
			ids = append(ids, jobIDs(got)...)
			if token = a.header.Get("X-Nomad-NextToken"); token == "" {
				break
			}
		}
		if reverse {
			slices.Reverse(ids)
		}
		if got := strings.Join(ids, " "); got != "job-0 job-1 job-2 job-3 job-4 web" {
			t.Errorf("reverse %t: pages gave %q", reverse, got)
		}
	}
}

func TestJobListShape(t *testing.T) {
	s := newServer(t)
	if got := s.get("/v1/jobs").want(200, nil); got.body != "[]" {
		t.Fatalf("an empty list is %q", got.body)
	}
	s.register(job("web", func(j *structs.Job) { j.Meta = map[string]string{"a": "b"} }))
	a := s.get("/v1/jobs")
	if strings.Contains(a.body, `"Meta"`) || !strings.Contains(a.body, `"JobSummary":{"JobID":"web"`) {
		t.Errorf("list is %s", a.body)
	}
	if a := s.get("/v1/jobs?meta"); !strings.Contains(a.body, `"Meta":{"a":"b"}`) {
		t.Errorf("list with meta is %s", a.body)
	}
	if a := s.get("/v1/jobs?pretty"); !strings.Contains(a.body, "\n        \"ID\": \"web\"") {
		t.Errorf("pretty list is %s", a.body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "X-Nomad-KnownLeader": "true", "X-Nomad-LastContact": "0", "X-Nomad-Index": "1",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
}

func TestBadParametersAreRefused(t *testing.T) {
	s := newServer(t)
	for path, text := range map[string]string{
		"/v1/jobs?index=x":                      `invalid value "x" of parameter index`,
		"/v1/jobs?index=-1":                     "parameter index",
		"/v1/jobs?index=1&wait=soon":            `invalid value "soon" of parameter wait`,
		"/v1/jobs?per_page=many":                "parameter per_page",
		"/v1/jobs?per_page=-1":                  "parameter per_page",
		"/v1/jobs?per_page=99999999999":         "parameter per_page",
		"/v1/jobs?pretty=perhaps":               "parameter pretty",
		"/v1/jobs?meta=perhaps":                 "parameter meta",
		"/v1/jobs?filter=Name":                  "failed to create result paginator",
		"/v1/jobs?filter=%22":                   "failed to create result paginator",
		"/v1/job/x?namespace=*":                 "name one namespace",
		"/v1/job/x/submission":                  "parameter version is missing",
		"/v1/job/x/submission?version=one":      "parameter version",
		"/v1/allocations?prefix=xyz":            "parameter prefix",
		"/v1/nodes?resources=perhaps":           "parameter resources",
		"/v1/metrics?format=xml":                "parameter format",
		"/v1/job/x/allocations?all=perhaps":     "parameter all",
		"/v1/evaluations?reverse=perhaps":       "parameter reverse",
		"/v1/jobs?%zz":                          "cannot read the query parameters",
		"/v1/operator/keyring/keys?consistent=": "",
	} {
		if text == "" {
			s.get(path).want(200, nil)
			continue
		}
		s.get(path).says(400, text)
	}
	s.get("/v1/jobs?region=elsewhere").says(500, "No path to region")
	s.get("/v1/jobs?region=global").want(200, nil)
}

func TestUnknownObjectsAnswer404(t *testing.T) {
	s := newServer(t)
	id := "8e231cf4-ca48-43ff-b694-5801e69e22fa"
	for path, text := range map[string]string{
		"/v1/job/nope":                      "job not found",
		"/v1/job/nope/summary":              "job not found",
		"/v1/job/nope/versions":             "job versions not found",
		"/v1/job/nope/submission?version=0": "job source not found",
		"/v1/job/nope/scale":                "job not found",
		"/v1/allocation/" + id:              "alloc not found",
		"/v1/evaluation/" + id:              "eval not found",
		"/v1/node/" + id:                    "node not found",
		"/v1/deployment/" + id:              "deployment not found",
		"/v1/node/pool/nope":                "node pool not found",
		"/v1/namespace/nope":                "namespace not found",
	} {
		s.get(path).says(404, text)
	}
	for path, text := range map[string]string{
		"PUT /v1/job/nope/evaluate":             "job not found",
		"PUT /v1/allocation/" + id + "/stop":    "alloc not found",
		"PUT /v1/node/" + id + "/evaluate":      "node not found",
		"PUT /v1/node/" + id + "/purge":         "node not found",
		"DELETE /v1/node/pool/nope":             "not found",
		"DELETE /v1/namespace/nope":             "not found",
		"DELETE /v1/operator/keyring/key/" + id: "not found",
	} {
		method, path, _ := strings.Cut(path, " ")
		s.call(method, path, nil).says(404, text)
	}
	for _, path := range []string{"/v1/job/nope/allocations", "/v1/job/nope/evaluations", "/v1/job/nope/deployments",
		"/v1/node/nope/allocations", "/v1/evaluation/nope/allocations"} {
		if a := s.get(path).want(200, nil); a.body != "[]" || a.header.Get("X-Nomad-Index") != "0" {
			t.Errorf("%s answered %q at index %s", path, a.body, a.header.Get("X-Nomad-Index"))
		}
	}
	if a := s.get("/v1/job/nope/deployment").want(200, nil); a.body != "null" {
		t.Errorf("no deployment is %q", a.body)
	}
}

func TestRegisterAnswersAndMakesOneEntry(t *testing.T) {
	s := newServer(t)
	out := s.register(job("web"))
	if out.EvalID == "" || out.JobModifyIndex != 1 || out.EvalCreateIndex != 1 || len(s.raft.entries) != 1 {
		t.Fatalf("registered %+v with entries %v", out, s.raft.entries)
	}
	var eval structs.Evaluation
	s.get("/v1/evaluation/"+out.EvalID).want(200, &eval)
	if eval.JobID != "web" || eval.TriggeredBy != "job-register" || eval.Status != "pending" || eval.Priority != 50 ||
		eval.Type != "service" || eval.JobModifyIndex != 1 {
		t.Errorf("evaluation is %+v", eval)
	}
	var stored structs.Job
	s.get("/v1/job/web").want(200, &stored)
	if stored.Version != 0 || stored.SubmitTime == 0 || structs.Val(stored.Region) != "global" {
		t.Errorf("job is %+v", stored)
	}

	// A second, equal registration is no new version; another one is.
	s.register(job("web"))
	s.get("/v1/job/web").want(200, &stored)
	if stored.Version != 0 {
		t.Errorf("version is %d after an equal registration", stored.Version)
	}
	s.register(job("web", func(j *structs.Job) { j.TaskGroups[0].Count = structs.Ptr(3) }))
	var versions structs.JobVersionsResponse
	s.get("/v1/job/web/versions").want(200, &versions)
	if len(versions.Versions) != 2 || versions.Versions[0].Version != 1 || versions.Diffs != nil {
		t.Errorf("versions are %+v", versions)
	}

	// Counts may be kept.
	s.call("POST", "/v1/job/web", structs.JobRegisterRequest{Job: job("web"), PreserveCounts: true, EvalPriority: 99}).want(200, &out)
	s.get("/v1/evaluation/"+out.EvalID).want(200, &eval)
	var scale structs.JobScaleStatusResponse
	s.get("/v1/job/web/scale").want(200, &scale)
	if scale.TaskGroups["group"].Desired != 3 || eval.Priority != 99 {
		t.Errorf("scale %+v, evaluation's priority %d", scale, eval.Priority)
	}
}

func TestRegisterEnforcesTheIndex(t *testing.T) {
	s := newServer(t)
	request := func(index uint64) structs.JobRegisterRequest {
		return structs.JobRegisterRequest{Job: job("web"), EnforceIndex: true, JobModifyIndex: index}
	}
	s.call("PUT", "/v1/jobs", request(10)).says(500, "Enforcing job modify index")
	var out structs.JobRegisterResponse
	s.call("PUT", "/v1/jobs", request(0)).want(200, &out)
	s.call("PUT", "/v1/jobs", request(0)).says(500, "Enforcing job modify index 0: job already exists")
	s.call("PUT", "/v1/jobs", request(out.JobModifyIndex)).want(200, nil)
}

func TestRegisterInAnotherNamespaceAndRegion(t *testing.T) {
	s := newServer(t, func(b *Backend) { b.Region = "north" })
	s.call("PUT", "/v1/namespace", structs.Namespace{Name: "other"}).want(200, nil)
	// The parameter counts more than the job, and "global" stands for the region that was asked.
	s.call("PUT", "/v1/jobs?namespace=other", structs.JobRegisterRequest{Job: job("web", func(j *structs.Job) {
		j.Region = structs.Ptr("global")
	})}).want(200, nil)
	var stored structs.Job
	s.get("/v1/job/web?namespace=other").want(200, &stored)
	if structs.Val(stored.Region) != "north" || structs.Val(stored.Namespace) != "other" {
		t.Errorf("stored in region %q, namespace %q", structs.Val(stored.Region), structs.Val(stored.Namespace))
	}
	s.get("/v1/job/web").says(404, "job not found")
	s.call("PUT", "/v1/jobs?namespace=nope", structs.JobRegisterRequest{Job: job("web")}).says(500, `nonexistent namespace "nope"`)
	s.call("PUT", "/v1/jobs?region=south", structs.JobRegisterRequest{Job: job("web")}).says(500, "No path to region")
}

func TestRequestBodies(t *testing.T) {
	s := newServer(t, func(b *Backend) { b.Limits.MaxBodyBytes = 2000 })
	s.call("PUT", "/v1/jobs", `{"Job": {"ID": "x", "Priority": "high"}}`).says(400, "field Job.Priority is a string: expected a whole number")
	s.call("PUT", "/v1/jobs", `{"Job": {"Affinities": [{"Weight": 500}]}}`).says(400, "expected a whole number from -128 to 127")
	s.call("PUT", "/v1/jobs", `{"Job": {"TaskGroups": [{"Tasks": [{"KillTimeout": "5s"}]}]}}`).says(400, "expected a number (nanoseconds)")
	s.call("PUT", "/v1/jobs", `{"Job": `).says(400, "ends in the middle")
	s.call("PUT", "/v1/jobs", `[1]`).says(400, "expected an object")
	s.call("PUT", "/v1/jobs", strings.Repeat(" ", 3000)).says(413, "larger than 2000 bytes")
	s.call("PUT", "/v1/jobs/parse", `{"JobHCL": ""}`).says(400, "Job spec is empty")
	s.call("DELETE", "/v1/jobs", nil).says(405, "Invalid method")
	s.call("PUT", "/v1/node/x/eligibility", nil).says(400, "request body is empty")
}

func TestLimitsOfJobs(t *testing.T) {
	s := newServer(t, func(b *Backend) { b.Limits.JobMaxPriority = 80; b.Limits.JobMaxCount = 10 })
	s.call("PUT", "/v1/jobs", structs.JobRegisterRequest{Job: job("web", func(j *structs.Job) {
		j.Priority = structs.Ptr(90)
		j.TaskGroups[0].Count = structs.Ptr(11)
	})}).says(500, "at most 80")
	s.call("PUT", "/v1/jobs", structs.JobRegisterRequest{Job: job("web", func(j *structs.Job) {
		j.TaskGroups[0].Count = structs.Ptr(11)
	})}).says(500, "asks for more than 10 allocations")
	s.register(job("web"))
	var cfg structs.SchedulerConfigurationResponse
	s.get("/v1/operator/scheduler/configuration").want(200, &cfg)
	cfg.SchedulerConfig.RejectJobRegistration = true
	s.call("PUT", "/v1/operator/scheduler/configuration", cfg.SchedulerConfig).want(200, nil)
	s.call("PUT", "/v1/jobs", structs.JobRegisterRequest{Job: job("web")}).says(403, "rejected by the scheduler configuration")
}

func TestParseAndValidate(t *testing.T) {
	s := newServer(t)
	spec := "job \"web\" {\n group \"g\" {\n task \"t\" {\n driver = \"raw_exec\"\n}\n}\n}\n"
	var parsed map[string]any
	s.call("PUT", "/v1/jobs/parse", structs.JobsParseRequest{JobHCL: spec}).want(200, &parsed)
	if parsed["ID"] != "web" || parsed["Priority"] != nil || parsed["Version"] != nil {
		t.Errorf("parsed %v", parsed)
	}
	s.call("POST", "/v1/jobs/parse", structs.JobsParseRequest{JobHCL: spec, Canonicalize: true}).want(200, &parsed)
	if parsed["Priority"] != 50.0 {
		t.Errorf("with defaults: %v", parsed)
	}
	s.call("PUT", "/v1/jobs/parse", structs.JobsParseRequest{JobHCL: "job \"web\" {\n grup \"g\" {}\n}\n"}).says(400, "grup")

	var valid structs.JobValidateResponse
	s.call("PUT", "/v1/validate/job", structs.JobValidateRequest{Job: job("web")}).want(200, &valid)
	if !valid.DriverConfigValidated || valid.ValidationErrors != nil || valid.Error != "" {
		t.Errorf("valid job: %+v", valid)
	}
	s.call("PUT", "/v1/validate/job", structs.JobValidateRequest{Job: job("", func(j *structs.Job) { j.ID = nil; j.TaskGroups = nil })}).want(200, &valid)
	if len(valid.ValidationErrors) < 2 || valid.Error == "" {
		t.Errorf("invalid job: %+v", valid)
	}
	s.call("PUT", "/v1/validate/job", `{}`).says(400, "Job must be specified")
	if len(s.raft.entries) != 0 {
		t.Error("something was stored")
	}
}

func TestDeregisterSetsTransitionsInItsOwnEntry(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	first := s.register(job("web"))
	alloc := s.place("web", first.EvalID, node)
	s.observe(alloc, structs.AllocClientStatusRunning)
	before := len(s.raft.entries)

	var out structs.JobDeregisterResponse
	s.call("DELETE", "/v1/job/web?no_shutdown_delay=true&kill_timeout=2s&eval_priority=97", nil).want(200, &out)
	if n := len(s.raft.entries) - before; n != 1 || s.raft.entries[before] != fsm.KindJobDeregister {
		t.Fatalf("the stop made entries %v", s.raft.entries[before:])
	}
	var got structs.Allocation
	s.get("/v1/allocation/"+alloc.ID).want(200, &got)
	if !structs.Val(got.DesiredTransition.NoShutdownDelay) || structs.Val(got.DesiredTransition.KillTimeout) != 2*time.Second {
		t.Errorf("transition is %+v", got.DesiredTransition)
	}
	var eval structs.Evaluation
	s.get("/v1/evaluation/"+out.EvalID).want(200, &eval)
	if eval.Priority != 97 || eval.TriggeredBy != "job-deregister" {
		t.Errorf("evaluation is %+v", eval)
	}
	var stored structs.Job
	s.get("/v1/job/web").want(200, &stored)
	if !stored.Stop {
		t.Error("the job is not stopped")
	}

	s.call("DELETE", "/v1/job/web?purge=true", nil).want(200, nil)
	s.get("/v1/job/web").says(404, "job not found")
	// What it left behind is still stopped by name; what never was is no error and no entry.
	s.call("DELETE", "/v1/job/web", nil).want(200, &out)
	if out.EvalID == "" {
		t.Error("no evaluation for the allocations of a purged job")
	}
	before = len(s.raft.entries)
	s.call("DELETE", "/v1/job/nope", nil).want(200, &out)
	if len(s.raft.entries) != before {
		t.Error("stopping nothing made an entry")
	}
	for _, params := range []string{"eval_priority=101", "eval_priority=-1", "kill_timeout=-1s", "kill_timeout=x", "kill_timeout=", "purge=perhaps"} {
		name, _, _ := strings.Cut(params, "=")
		s.call("DELETE", "/v1/job/web?"+params, nil).says(400, name)
	}
}

func TestEvaluateForcesReschedules(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	first := s.register(job("web"))
	alloc := s.place("web", first.EvalID, node)
	s.observe(alloc, structs.AllocClientStatusFailed)
	before := len(s.raft.entries)
	var out structs.JobRegisterResponse
	s.call("PUT", "/v1/job/web/evaluate", structs.JobEvaluateRequest{JobID: "web", EvalOptions: structs.EvalOptions{ForceReschedule: true}}).want(200, &out)
	if len(s.raft.entries) != before+1 || out.EvalID == "" {
		t.Fatalf("answered %+v with entries %v", out, s.raft.entries[before:])
	}
	if got := s.backend.Store.Alloc(nil, alloc.ID); !got.DesiredTransition.ShouldForceReschedule() {
		t.Errorf("transition is %+v", got.DesiredTransition)
	}
	s.call("PUT", "/v1/job/web/evaluate", nil).want(200, &out)
	s.call("PUT", "/v1/job/web/evaluate", `{"JobID":"other"}`).says(400, "does not match")
	s.register(job("cron", func(j *structs.Job) {
		j.Type = structs.Ptr("batch")
		j.Periodic = &structs.PeriodicConfig{Spec: structs.Ptr("*/5 * * * *")}
	}))
	s.call("PUT", "/v1/job/cron/evaluate", nil).says(400, "can't evaluate periodic job")
}

func TestJobIDsMayHaveSlashes(t *testing.T) {
	s := newServer(t)
	s.register(job("team/web"))
	for _, path := range []string{"/v1/job/team/web", "/v1/job/team%2Fweb", "/v1/job/team/web/summary", "/v1/job/team%2Fweb/allocations"} {
		s.get(path).want(200, nil)
	}
}

func TestStable(t *testing.T) {
	s := newServer(t)
	s.register(job("web"))
	s.call("PUT", "/v1/job/web/stable", structs.JobStabilityRequest{JobID: "web", JobVersion: 0, Stable: true}).want(200, nil)
	if !s.backend.Store.Job(nil, "default", "web").Stable {
		t.Error("the job is not stable")
	}
	s.call("PUT", "/v1/job/web/stable", structs.JobStabilityRequest{JobID: "web", JobVersion: 7, Stable: true}).says(404, "version 7 not found")
}

func TestStatuses(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	for _, id := range []string{"a", "b", "c"} {
		s.place(id, s.register(job(id)).EvalID, node)
	}
	var got []struct {
		ID            string
		GroupCountSum int
		Allocs        []struct{ ClientStatus, Group string }
	}
	s.get("/v1/jobs/statuses").want(200, &got)
	if len(got) != 3 || got[0].ID != "c" || got[0].GroupCountSum != 1 || len(got[0].Allocs) != 1 || got[0].Allocs[0].ClientStatus != "pending" {
		t.Errorf("statuses are %+v", got)
	}
	s.call("POST", "/v1/jobs/statuses", structs.JobStatusesRequest{Jobs: []structs.NamespacedID{{ID: "b"}}}).want(200, &got)
	if len(got) != 1 || got[0].ID != "b" {
		t.Errorf("statuses of one are %+v", got)
	}
}

func TestPagesOfAllNamespacesFollowTheStoredOrder(t *testing.T) {
	s := newServer(t)
	// A dash sorts before most separators: "a" and "a-b" are where a token could go wrong.
	for _, ns := range []string{"a", "a-b"} {
		s.call("PUT", "/v1/namespace", structs.Namespace{Name: ns}).want(200, nil)
		for _, id := range []string{"x", "x-1", "x/y"} {
			s.call("PUT", "/v1/jobs?namespace="+ns, structs.JobRegisterRequest{Job: job(id)}).want(200, nil)
		}
	}
	seen := map[string]int{}
	token := ""
	for range 10 {
		var got []*structs.JobListStub
		a := s.get("/v1/jobs?namespace=*&per_page=1&next_token="+url.QueryEscape(token)).want(200, &got)
		for _, stub := range got {
			seen[stub.Namespace+" "+stub.ID]++
		}
		if token = a.header.Get("X-Nomad-NextToken"); token == "" {
			break
		}
	}
	if len(seen) != 6 {
		t.Errorf("pages gave %v", seen)
	}
}

func TestWarningsTellWhatIsOnlyStored(t *testing.T) {
	s := newServer(t, func(b *Backend) { b.Limits.JobMaxSourceSize = 10 })
	out := s.register(job("everywhere", func(j *structs.Job) { j.Type = structs.Ptr("system") }))
	if out.Warnings != "" {
		t.Errorf("a system job is placed, but its warnings are %q", out.Warnings)
	}
	s.call("PUT", "/v1/jobs", structs.JobRegisterRequest{Job: job("web"), Submission: &structs.JobSubmission{Source: "much too long"}}).want(200, &out)
	if !strings.Contains(out.Warnings, "exceeds the maximum of 10 bytes") {
		t.Errorf("warnings are %q", out.Warnings)
	}
	s.get("/v1/job/web/submission?version=0").says(404, "job source not found")
}

func TestVersionTags(t *testing.T) {
	s := newServer(t)
	s.register(job("web"))
	s.register(job("web", func(j *structs.Job) { j.TaskGroups[0].Count = structs.Ptr(2) }))
	s.call("PUT", "/v1/job/web/versions/golden/tag", structs.TagVersionRequest{Version: 0, Description: "good"}).want(200, nil)
	var versions structs.JobVersionsResponse
	s.get("/v1/job/web/versions").want(200, &versions)
	if tag := versions.Versions[1].VersionTag; tag == nil || tag.Name != "golden" || tag.Description != "good" || tag.TaggedTime == 0 {
		t.Errorf("tag is %+v", tag)
	}
	s.call("PUT", "/v1/job/web/versions/golden/tag", structs.TagVersionRequest{Version: 1}).says(500, "golden")
	s.call("PUT", "/v1/job/web/versions/new/tag", structs.TagVersionRequest{Version: 9}).says(404, "not found")
	s.call("PUT", "/v1/job/nope/versions/new/tag", structs.TagVersionRequest{}).says(404, "job not found")
	s.call("DELETE", "/v1/job/web/versions/golden/tag", nil).want(200, nil)
	s.call("DELETE", "/v1/job/web/versions/golden/tag", nil).says(404, "not found")
}

// TestCountsThatOverflow: sums of counts that no number holds are too many, not few.
func TestCountsThatOverflow(t *testing.T) {
	s := newServer(t)
	group := func(name string, count, canary int) *structs.TaskGroup {
		g := job("x").TaskGroups[0].Copy()
		g.Name, g.Count = &name, &count
		if canary > 0 {
			g.Update = &structs.UpdateStrategy{Canary: &canary}
		}
		return g
	}
	for says, groups := range map[string][]*structs.TaskGroup{
		"job asks for more than 50000 allocations": {group("a", math.MaxInt, 0), group("b", math.MaxInt, 0)},
		"more than 50000 allocations":              {group("a", math.MaxInt, 0), group("b", 1, 0)},
		"asks for 9223372036854775807 canaries":    {group("a", 1, math.MaxInt)},
	} {
		s.call("PUT", "/v1/jobs", structs.JobRegisterRequest{Job: job("x", func(j *structs.Job) { j.TaskGroups = groups })}).says(500, says)
	}
}
