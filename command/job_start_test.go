package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// startServer knows three jobs and keeps what is registered.
type startServer struct {
	sources    map[string]string // by version of the job
	registered *structs.JobRegisterRequest
	evalID     string
}

func (s *startServer) serve(t *testing.T) string {
	mux := http.NewServeMux()
	put := func(w http.ResponseWriter, v any) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("GET /v1/jobs", func(w http.ResponseWriter, r *http.Request) {
		var out []*structs.JobListStub
		for _, id := range []string{"cron", "ended", "runs", "web"} {
			if strings.HasPrefix(id, r.URL.Query().Get("prefix")) {
				out = append(out, &structs.JobListStub{ID: id, Namespace: "team"})
			}
		}
		put(w, out)
	})
	mux.HandleFunc("GET /v1/job/{id}", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		extra := map[string]string{"web": `"Stop":true,"Status":"dead"`, "ended": `"Status":"dead"`, "runs": `"Status":"running"`,
			"cron": `"Stop":true,"Status":"dead","Periodic":{"Enabled":true,"Spec":"@hourly","SpecType":"cron"}`}[id]
		fmt.Fprintf(w, `{"ID":%q,"Namespace":"team","JobModifyIndex":42,%s,"TaskGroups":[{"Name":"g","Tasks":[{"Name":"t",
			"Config":{"exact":9007199254740993}}]}]}`, id, extra)
	})
	mux.HandleFunc("GET /v1/job/{id}/versions", func(w http.ResponseWriter, _ *http.Request) {
		put(w, structs.JobVersionsResponse{Versions: []*structs.Job{{Version: 3, Stop: true}, {Version: 2}, {Version: 1}}})
	})
	mux.HandleFunc("GET /v1/job/{id}/submission", func(w http.ResponseWriter, r *http.Request) {
		source, ok := s.sources[r.URL.Query().Get("version")]
		if !ok {
			http.Error(w, "job source not found", http.StatusNotFound)
			return
		}
		put(w, structs.JobSubmission{Source: source})
	})
	mux.HandleFunc("PUT /v1/jobs", func(w http.ResponseWriter, r *http.Request) {
		d := json.NewDecoder(r.Body)
		d.UseNumber()
		s.registered = &structs.JobRegisterRequest{}
		if err := d.Decode(s.registered); err != nil {
			t.Error(err)
		}
		if got := r.URL.Query().Get("namespace"); got != "team" {
			t.Errorf("registered in namespace %q", got)
		}
		put(w, structs.JobRegisterResponse{EvalID: s.evalID})
	})
	ts := httptest.NewServer(mux)
	t.Cleanup(ts.Close)
	return ts.URL
}

func (s *startServer) start(t *testing.T, id string) (code int, out, errs string) {
	t.Helper()
	url := s.serve(t)
	s.registered = nil
	streams, o, e := testStreams()
	code = run("nomadlite", []string{"job", "start", "-address=" + url, "-detach", id}, streams)
	return code, o.String(), e.String()
}

func TestJobStartRegistersWhatWasStopped(t *testing.T) {
	s := &startServer{sources: map[string]string{"2": "newest", "1": "older"}, evalID: "11111111-2222-3333-4444-555555555555"}
	for _, id := range []string{"web", "we"} {
		code, out, errs := s.start(t, id)
		if code != 0 || out != "Evaluation ID: 11111111-2222-3333-4444-555555555555\n" {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		job := s.registered.Job
		if *job.ID != "web" || job.Stop || !s.registered.EnforceIndex || s.registered.JobModifyIndex != 42 ||
			s.registered.Submission == nil || s.registered.Submission.Source != "newest" {
			t.Errorf("registered %+v", s.registered)
		}
		if got := fmt.Sprint(job.TaskGroups[0].Tasks[0].Config["exact"]); got != "9007199254740993" {
			t.Errorf("a number became %s", got)
		}
	}
	// The version that ran has no source: that of an older one is another job's text.
	s.sources = map[string]string{"1": "older"}
	if code, out, errs := s.start(t, "web"); code != 0 || s.registered.Submission != nil {
		t.Errorf("exit %d: %s%s, source %+v", code, out, errs, s.registered.Submission)
	}
	s.evalID = ""
	code, out, errs := s.start(t, "cron")
	if code != 0 || !strings.HasPrefix(out, "Job \"cron\" started\nApproximate next launch time: ") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

func TestJobStartRefuses(t *testing.T) {
	s := &startServer{}
	for id, want := range map[string]string{"runs": `job "runs" is not stopped: its status is "running"`, "ended": "it has ended by itself",
		"nope": "No job"} {
		code, out, errs := s.start(t, id)
		if code != 1 || !strings.Contains(strings.ToLower(errs), strings.ToLower(want)) || s.registered != nil {
			t.Errorf("%s: exit %d: %s%s, registered %+v", id, code, out, errs, s.registered)
		}
	}
}
