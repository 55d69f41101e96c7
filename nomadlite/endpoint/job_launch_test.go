package endpoint

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func template(id string, change ...func(*structs.ParameterizedJobConfig)) *structs.Job {
	return job(id, func(j *structs.Job) {
		j.Type = structs.Ptr(structs.JobTypeBatch)
		j.Meta = map[string]string{"who": "nobody", "kept": "yes"}
		j.ParameterizedJob = &structs.ParameterizedJobConfig{MetaRequired: []string{"what"}, MetaOptional: []string{"who"}}
		for _, f := range change {
			f(j.ParameterizedJob)
		}
	})
}

func cron(id string) *structs.Job {
	return job(id, func(j *structs.Job) {
		j.Type = structs.Ptr(structs.JobTypeBatch)
		j.Periodic = &structs.PeriodicConfig{Spec: structs.Ptr("*/5 * * * *"), ProhibitOverlap: structs.Ptr(true)}
	})
}

func TestDispatch(t *testing.T) {
	now := time.Unix(1700000000, 0)
	s := newServer(t, func(b *Backend) { b.Now = func() time.Time { return now } })
	if got := s.register(template("form")); got.EvalID != "" || got.Warnings != "" {
		t.Errorf("registered %+v", got)
	}
	s.register(job("web"))
	var out structs.JobDispatchResponse
	req := map[string]any{"Payload": base64.StdEncoding.EncodeToString([]byte("input")), "Meta": map[string]string{"what": "it", "who": "me"},
		"IdPrefixTemplate": "big", "Priority": 77}
	s.call("PUT", "/v1/job/form/dispatch?idempotency_token=once", req).want(200, &out)
	if !regexp.MustCompile(`^form/dispatch-big-1700000000-[0-9a-f]{8}$`).MatchString(out.DispatchedJobID) ||
		out.EvalID == "" || out.EvalCreateIndex != out.JobCreateIndex || out.JobCreateIndex == 0 {
		t.Fatalf("dispatched %+v", out)
	}
	var child structs.Job
	s.call("GET", "/v1/job/"+url.PathEscape(out.DispatchedJobID), nil).want(200, &child)
	if child.ParentID != "form" || !child.Dispatched || string(child.Payload) != "input" || child.Meta["who"] != "me" ||
		child.Meta["what"] != "it" || child.Meta["kept"] != "yes" || *child.Priority != 77 || child.Status != structs.JobStatusPending ||
		child.DispatchIdempotencyToken != "once" {
		t.Errorf("the child is %+v", child)
	}
	var eval structs.Evaluation
	s.call("GET", "/v1/evaluation/"+out.EvalID, nil).want(200, &eval)
	if eval.JobID != out.DispatchedJobID || eval.Priority != 77 || eval.TriggeredBy != structs.EvalTriggerJobRegister {
		t.Errorf("the evaluation is %+v", eval)
	}
	var again structs.JobDispatchResponse
	s.call("POST", "/v1/job/form/dispatch?idempotency_token=once", req).want(200, &again)
	if again.DispatchedJobID != out.DispatchedJobID || again.EvalID != "" || again.JobCreateIndex != out.JobCreateIndex {
		t.Errorf("the same token: %+v", again)
	}
	var parent structs.Job
	s.call("GET", "/v1/job/form", nil).want(200, &parent)
	var summary structs.JobSummary
	s.call("GET", "/v1/job/form/summary", nil).want(200, &summary)
	if parent.Status != structs.JobStatusRunning || summary.Children == nil || *summary.Children != (structs.JobChildrenSummary{Pending: 1}) {
		t.Errorf("the parent is %s, its children %+v", parent.Status, summary.Children)
	}
	var list []structs.JobListStub
	s.call("GET", "/v1/jobs?prefix=form/", nil).want(200, &list)
	if len(list) != 1 || list[0].ID != out.DispatchedJobID || list[0].ParentID != "form" || list[0].ParameterizedJob {
		t.Errorf("children by prefix: %+v", list)
	}
	var statuses []jobStatus
	s.call("GET", "/v1/jobs/statuses", nil).want(200, &statuses)
	for _, row := range statuses {
		if row.ParentID != "" || row.ID == "form" && (len(row.ChildStatuses) != 1 || row.ChildStatuses[0] != "pending") {
			t.Errorf("status %+v", row)
		}
	}
	s.call("GET", "/v1/jobs/statuses?include_children=true", nil).want(200, &statuses)
	if len(statuses) != 3 {
		t.Errorf("with children there are %d jobs", len(statuses))
	}
}

func TestDispatchIsRefused(t *testing.T) {
	s := newServer(t)
	s.register(template("form"))
	s.register(template("bare", func(c *structs.ParameterizedJobConfig) { c.Payload, c.MetaRequired = "forbidden", nil }))
	s.register(template("full", func(c *structs.ParameterizedJobConfig) { c.Payload, c.MetaRequired = "required", nil }))
	s.register(job("web"))
	what := map[string]string{"what": ""}
	for _, tc := range []struct {
		path string
		req  any
		code int
		word string
	}{
		{"/v1/job/nope/dispatch", nil, 404, "job not found"},
		{"/v1/job/web/dispatch", nil, 400, "not a parameterized job"},
		{"/v1/job/form/dispatch", nil, 400, "required meta keys: what"},
		{"/v1/job/form/dispatch", structs.JobDispatchRequest{JobID: "other"}, 400, "does not match"},
		{"/v1/job/form/dispatch", structs.JobDispatchRequest{Meta: map[string]string{"what": "", "x": ""}}, 400, "unpermitted metadata keys: x"},
		{"/v1/job/form/dispatch", structs.JobDispatchRequest{Meta: what, Payload: make([]byte, 16385)}, 400, "16385 > 16384"},
		{"/v1/job/form/dispatch", structs.JobDispatchRequest{Meta: what, Priority: 101}, 400, "priority"},
		{"/v1/job/form/dispatch", structs.JobDispatchRequest{Meta: what, IdPrefixTemplate: "a b"}, 400, "id prefix"},
		{"/v1/job/bare/dispatch", structs.JobDispatchRequest{Payload: []byte("x")}, 400, "forbidden"},
		{"/v1/job/full/dispatch", structs.JobDispatchRequest{}, 400, "required by parameterized job"},
		{"/v1/job/web/periodic/force", nil, 400, "non-periodic job"},
	} {
		s.call("PUT", tc.path, tc.req).says(tc.code, tc.word)
	}
	s.call("DELETE", "/v1/job/form", nil).want(200, nil)
	s.call("PUT", "/v1/job/form/dispatch", structs.JobDispatchRequest{Meta: what}).says(400, "is stopped")
	// An update must not turn one kind of job into another.
	s.call("PUT", "/v1/jobs", structs.JobRegisterRequest{Job: cron("bare")}).says(500, "non-periodic job to being periodic")
}

func TestDispatchOfAWholeBody(t *testing.T) {
	s := newServer(t)
	s.register(template("form", func(c *structs.ParameterizedJobConfig) { c.MetaRequired = nil }))
	post := func(size int) int {
		resp, err := http.Post(s.url+"/v1/job/form/dispatch/payload", "text/plain", strings.NewReader(strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if got := post(16384); got != 200 {
		t.Errorf("16 KiB answer %d", got)
	}
	if got := post(16385); got != 400 {
		t.Errorf("one byte more answers %d", got)
	}
	for child := range s.backend.Store.Children(nil, "default", "form") {
		if !bytes.Equal(child.Payload, bytes.Repeat([]byte("x"), 16384)) {
			t.Errorf("the payload has %d bytes", len(child.Payload))
		}
	}
}

func TestForcedLaunch(t *testing.T) {
	now := time.Unix(1700000000, 0)
	s := newServer(t, func(b *Backend) { b.Now = func() time.Time { return now } })
	if got := s.register(cron("cron")); got.EvalID != "" {
		t.Errorf("registered %+v", got)
	}
	var out structs.PeriodicForceResponse
	for i := range 2 { // the job prohibits overlap
		s.call("PUT", "/v1/job/cron/periodic/force", nil).want(200, &out)
		var eval structs.Evaluation
		s.call("GET", "/v1/evaluation/"+out.EvalID, nil).want(200, &eval)
		if eval.JobID != fmt.Sprint("cron/periodic-", 1700000000-i) || eval.TriggeredBy != structs.EvalTriggerPeriodicJob || out.EvalCreateIndex == 0 {
			t.Errorf("forced %+v, evaluation %+v", out, eval)
		}
	}
	var summary structs.JobSummary
	s.call("GET", "/v1/job/cron/summary", nil).want(200, &summary)
	if *summary.Children != (structs.JobChildrenSummary{Pending: 2}) {
		t.Errorf("children %+v", summary.Children)
	}
	disabled := cron("cron")
	disabled.Periodic.Enabled = structs.Ptr(false)
	s.register(disabled)
	s.call("PUT", "/v1/job/cron/periodic/force", nil).says(400, "can't force launch")

	// Children outlive their parent.
	s.call("DELETE", "/v1/job/cron?purge=true", nil).want(200, nil)
	var list []structs.JobListStub
	s.call("GET", "/v1/jobs", nil).want(200, &list)
	if len(list) != 2 || list[0].Stop || list[1].Stop {
		t.Errorf("jobs after the purge of the parent: %+v", list)
	}
}

func TestLaunchesByHandAreRejectedWithRegistrations(t *testing.T) {
	s := newServer(t)
	s.register(template("form", func(c *structs.ParameterizedJobConfig) { c.MetaRequired = nil }))
	s.register(cron("cron"))
	s.call("PUT", "/v1/operator/scheduler/configuration", map[string]any{"RejectJobRegistration": true}).want(200, nil)
	for _, path := range []string{"/v1/job/form/dispatch", "/v1/job/cron/periodic/force"} {
		s.call("PUT", path, nil).says(403, "rejected")
	}
}
