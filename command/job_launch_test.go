package command

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// launchServer answers what the commands about periodic and parameterized jobs ask, and keeps the last dispatch.
type launchServer struct {
	jobs     map[string]*structs.Job
	stubs    []*structs.JobListStub
	summary  *structs.JobSummary
	dispatch structs.JobDispatchRequest
	query    string
	answer   structs.JobDispatchResponse
	index    string
}

func (l *launchServer) serve(t *testing.T) string {
	mux := http.NewServeMux()
	put := func(w http.ResponseWriter, v any) {
		w.Header().Set("X-Nomad-Index", l.index)
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("GET /v1/jobs", func(w http.ResponseWriter, r *http.Request) {
		var out []*structs.JobListStub
		for _, s := range l.stubs {
			if strings.HasPrefix(s.ID, r.URL.Query().Get("prefix")) {
				out = append(out, s)
			}
		}
		put(w, out)
	})
	mux.HandleFunc("PUT /v1/jobs", func(w http.ResponseWriter, _ *http.Request) { put(w, structs.JobRegisterResponse{}) })
	mux.HandleFunc("GET /v1/job/{id}", func(w http.ResponseWriter, r *http.Request) { put(w, l.jobs[r.PathValue("id")]) })
	mux.HandleFunc("GET /v1/job/{id}/summary", func(w http.ResponseWriter, _ *http.Request) { put(w, l.summary) })
	mux.HandleFunc("GET /v1/job/{id}/evaluations", func(w http.ResponseWriter, _ *http.Request) { put(w, []any{}) })
	mux.HandleFunc("GET /v1/job/{id}/allocations", func(w http.ResponseWriter, _ *http.Request) {
		put(w, []*structs.AllocationListStub{{ID: "a", ClientStatus: "failed", NextAllocation: "b"}, {ID: "b", ClientStatus: "complete"}})
	})
	mux.HandleFunc("PUT /v1/job/{id}/periodic/force", func(w http.ResponseWriter, _ *http.Request) {
		put(w, structs.PeriodicForceResponse{EvalID: "11111111-2222-3333-4444-555555555555"})
	})
	mux.HandleFunc("PUT /v1/job/{id}/dispatch", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.query = r.URL.RawQuery
		if err := json.Unmarshal(body, &l.dispatch); err != nil {
			t.Error(err)
		}
		put(w, l.answer)
	})
	ts := httptest.NewServer(mux)
	t.Cleanup(ts.Close)
	return ts.URL
}

func newLaunchServer() *launchServer {
	job := func(id string) *structs.Job {
		return &structs.Job{ID: &id, Name: &id, Namespace: structs.Ptr("default"), Type: structs.Ptr("batch"), Priority: structs.Ptr(50),
			Status: "running", NodePool: structs.Ptr("default"), Datacenters: []string{"*"}}
	}
	cron, form, done := job("cron"), job("form"), job("form/dispatch-1-aa")
	cron.Periodic = &structs.PeriodicConfig{Enabled: structs.Ptr(true), Spec: structs.Ptr("@hourly"), TimeZone: structs.Ptr("UTC")}
	form.ParameterizedJob = &structs.ParameterizedJobConfig{Payload: "optional", MetaRequired: []string{"what"}, MetaOptional: []string{"a", "b"}}
	done.Status, done.ParentID, done.Dispatched, done.ParameterizedJob = "dead", "form", true, form.ParameterizedJob
	return &launchServer{
		jobs: map[string]*structs.Job{"cron": cron, "form": form, "form/dispatch-1-aa": done},
		stubs: []*structs.JobListStub{{ID: "cron", Namespace: "default", Periodic: true}, {ID: "cron/periodic-60", ParentID: "cron", Status: "dead"},
			{ID: "cron/periodic-120", ParentID: "cron", Status: "running"}, {ID: "form", Namespace: "default", ParameterizedJob: true},
			{ID: "form/dispatch-1-aa", ParentID: "form", Status: "dead"}, {ID: "form/other", Status: "running"}},
		summary: &structs.JobSummary{Children: &structs.JobChildrenSummary{Running: 1, Dead: 2}},
		answer: structs.JobDispatchResponse{DispatchedJobID: "form/dispatch-1-aa", EvalID: "11111111-2222-3333-4444-555555555555",
			JobCreateIndex: 20},
		index: "20",
	}
}

func TestJobDispatch(t *testing.T) {
	l := newLaunchServer()
	url := l.serve(t)
	path := filepath.Join(t.TempDir(), "in.txt")
	if err := os.WriteFile(path, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, out, errs := testStreams()
	code := run("nomadlite", []string{"job", "dispatch", "-address=" + url, "-detach", "-meta", "what=x=y", "-meta", "a=", "-priority=70",
		"-idempotency-token=a b", "-id-prefix-template=pre", "form", path}, s)
	if want := "Dispatched Job ID = form/dispatch-1-aa\nEvaluation ID     = 11111111\n"; code != 0 || out.String() != want {
		t.Errorf("exit code %d, wrote %q%s", code, out, errs)
	}
	if d := l.dispatch; string(d.Payload) != "from a file" || d.Meta["what"] != "x=y" || d.Meta["a"] != "" || len(d.Meta) != 2 ||
		d.Priority != 70 || d.IdPrefixTemplate != "pre" || l.query != "idempotency_token=a+b&namespace=default" {
		t.Errorf("asked %+v, %s", d, l.query)
	}
	s, out, _ = testStreams()
	s.in, l.index = strings.NewReader("from a pipe"), "25"
	code = run("nomadlite", []string{"job", "dispatch", "-address=" + url, "-wait", "-idempotency-token=once", "for", "-"}, s)
	want := `Job "form/dispatch-1-aa" already dispatched with idempotency token "once".` + "\n" + `Job "form/dispatch-1-aa" has ended` + "\n"
	if code != 0 || out.String() != want || string(l.dispatch.Payload) != "from a pipe" {
		t.Errorf("exit code %d, wrote %q, payload %q", code, out, l.dispatch.Payload)
	}
	for _, args := range [][]string{{"-meta=nope", "form"}, {"form", "/no/such/file"}, {"form", "-"}, {}, {"nothing"}} {
		s, out, errs := testStreams()
		s.in = strings.NewReader(strings.Repeat("x", structs.DispatchPayloadLimit+1))
		if code := run("nomadlite", append([]string{"job", "dispatch", "-address=" + url}, args...), s); code != 1 || errs.Len() == 0 {
			t.Errorf("%q: exit code %d: %s%s", args, code, out, errs)
		}
	}
}

func TestJobPeriodicForce(t *testing.T) {
	s, out, errs := testStreams()
	code := run("nomadlite", []string{"job", "periodic", "force", "-address=" + newLaunchServer().serve(t), "-detach", "c"}, s)
	if want := "Force periodic successful\nEvaluation ID: 11111111-2222-3333-4444-555555555555\n"; code != 0 || out.String() != want {
		t.Errorf("exit code %d, wrote %q%s", code, out, errs)
	}
}

func TestStatusOfParents(t *testing.T) {
	url := newLaunchServer().serve(t)
	for id, wants := range map[string][]string{
		"cron": {"Periodic             = true\n", "Next Periodic Launch = ", " from now)\n", `
Children Job Summary
Pending  Running  Dead
0        1        2

Previously Launched Jobs
ID                 Status
cron/periodic-60   dead
cron/periodic-120  running
`},
		"form": {"Parameterized = true\n", `
Parameterized Job
Payload           = optional
Required Metadata = what
Optional Metadata = a, b

Parameterized Job Summary
Pending  Running  Dead
0        1        2

Dispatched Jobs
ID                  Status
form/dispatch-1-aa  dead
`},
	} {
		s, out, errs := testStreams()
		if code := run("nomadlite", []string{"job", "status", "-address=" + url, id}, s); code != 0 {
			t.Errorf("exit code %d: %s", code, errs)
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the status of %s is\n%s\nwant\n%s", id, out, want)
			}
		}
		if strings.Contains(out.String(), "Allocations") {
			t.Errorf("a template shows allocations:\n%s", out)
		}
	}
}

func TestWhyThereIsNoNextLaunch(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for want, change := range map[string]func(*structs.Job){
		"stopped":       func(j *structs.Job) { j.Stop = true },
		"disabled":      func(j *structs.Job) { j.Periodic.Enabled = structs.Ptr(false) },
		"its end":       func(j *structs.Job) { j.Periodic.Spec = structs.Ptr("0 0 1 1 * 2020") },
		"instances":     func(j *structs.Job) { j.ParameterizedJob = &structs.ParameterizedJobConfig{} },
		"1h0m from now": func(*structs.Job) {},
	} {
		job := newLaunchServer().jobs["cron"]
		change(job)
		if got := nextLaunchText(job, now); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestJobRunTellsTheNextLaunch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cron.nomad.hcl")
	text := `job "cron" {
  type = "batch"
  periodic {
    crons = ["@hourly"]
  }
  task "t" {
    driver = "raw_exec"
    config {
      command = "/bin/true"
    }
  }
}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, out, errs := testStreams()
	code := run("nomadlite", []string{"job", "run", "-address=" + newLaunchServer().serve(t), path}, s)
	if code != 0 || !strings.HasPrefix(out.String(), "Job registration successful\nApproximate next launch time: 2") || !strings.HasSuffix(out.String(), " from now)\n") {
		t.Errorf("exit code %d, wrote %q%s", code, out, errs)
	}
}
