package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// TestJobStopFindsItsJobs has the jobs web2, which is stopped, and old2, and allocations of web and old, which were purged:
// web's still stops.
func TestJobStopFindsItsJobs(t *testing.T) {
	var stopped []string
	put := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/jobs", func(w http.ResponseWriter, r *http.Request) {
		list := []*structs.JobListStub{}
		for _, id := range []string{"old2", "web2"} {
			if strings.HasPrefix(id, r.URL.Query().Get("prefix")) {
				list = append(list, &structs.JobListStub{ID: id, Namespace: "default"})
			}
		}
		put(w, list)
	})
	mux.HandleFunc("GET /v1/job/{id}", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		put(w, &structs.Job{ID: &id, Namespace: structs.Ptr("default"), Stop: id == "web2"})
	})
	mux.HandleFunc("GET /v1/job/{id}/allocations", func(w http.ResponseWriter, r *http.Request) {
		status := map[string]string{"web": structs.AllocClientStatusRunning, "old": structs.AllocClientStatusComplete}[r.PathValue("id")]
		list := []*structs.AllocationListStub{}
		if status != "" {
			list = append(list, &structs.AllocationListStub{Namespace: "default", ClientStatus: status})
		}
		put(w, list)
	})
	mux.HandleFunc("DELETE /v1/job/{id}", func(w http.ResponseWriter, r *http.Request) {
		stopped = append(stopped, r.PathValue("id")+" "+r.URL.Query().Get("no_shutdown_delay"))
		put(w, structs.JobDeregisterResponse{EvalID: "e"})
	})
	ts := httptest.NewServer(mux)
	t.Cleanup(ts.Close)
	for _, c := range []struct {
		args      string
		code      int
		stops     []string
		says, out string
	}{
		{"web", 0, []string{"web true"}, `Job "web" is purged already`, "e\n"},
		{"-yes web", 0, []string{"web true"}, "purged already", "e\n"},
		{"web2", 0, []string{"web2 true"}, `Job "web2" is stopped already`, "e\n"},
		{"-yes old", 0, []string{"old2 true"}, "", "e\n"},
		{"old", 1, nil, "no answer", ""},
		{"old2 web none", 1, nil, `No job with id or prefix "none" found`, ""},
		{"old2 web", 0, []string{"old2 true", "web true"}, "", "e\ne\n"},
	} {
		stopped = nil
		s, out, errs := testStreams()
		code := run("nomadlite", append([]string{"job", "stop", "-address=" + ts.URL, "-detach", "-no-shutdown-delay"}, strings.Fields(c.args)...), s)
		if code != c.code || !slices.Equal(stopped, c.stops) || !strings.Contains(errs.String(), c.says) || c.code == 0 && out.String() != c.out {
			t.Errorf("%s: exit %d, stopped %v\n%s%s", c.args, code, stopped, out, errs)
		}
	}
}

// TestJobStopTellsOfTheDelay has a job of which one allocation runs on for its shutdown delays when the stop's evaluation has
// ended, and one that was updated in place by that evaluation.
func TestJobStopTellsOfTheDelay(t *testing.T) {
	put := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	running := func(id, desired string) *structs.AllocationListStub {
		return &structs.AllocationListStub{ID: id, DesiredStatus: desired, ClientStatus: structs.AllocClientStatusRunning, CreateIndex: 3}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/jobs", func(w http.ResponseWriter, _ *http.Request) {
		put(w, []*structs.JobListStub{{ID: "web", Namespace: "shop"}})
	})
	mux.HandleFunc("GET /v1/job/web", func(w http.ResponseWriter, _ *http.Request) {
		put(w, &structs.Job{ID: structs.Ptr("web"), Namespace: structs.Ptr("shop"), TaskGroups: []*structs.TaskGroup{
			{ShutdownDelay: structs.Ptr(time.Minute), Tasks: []*structs.Task{{}, {ShutdownDelay: time.Second}}}}})
	})
	mux.HandleFunc("DELETE /v1/job/web", func(w http.ResponseWriter, _ *http.Request) { put(w, structs.JobDeregisterResponse{EvalID: "e"}) })
	mux.HandleFunc("GET /v1/evaluation/e", func(w http.ResponseWriter, _ *http.Request) {
		put(w, &structs.Evaluation{ID: "e", JobID: "web", Status: structs.EvalStatusComplete, CreateIndex: 7})
	})
	mux.HandleFunc("GET /v1/evaluation/e/allocations", func(w http.ResponseWriter, _ *http.Request) {
		put(w, []*structs.AllocationListStub{running("kept", structs.AllocDesiredStatusRun)})
	})
	mux.HandleFunc("GET /v1/job/web/allocations", func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("namespace"); got != "shop" {
			t.Errorf("allocations of namespace %q were asked for", got)
		}
		put(w, []*structs.AllocationListStub{running("kept", structs.AllocDesiredStatusRun), running("stops", structs.AllocDesiredStatusStop)})
	})
	ts := httptest.NewServer(mux)
	t.Cleanup(ts.Close)
	const word = "1 allocation(s) stop, and may wait up to 1m1s (shutdown_delay) before they are signalled. Not to wait:\n" +
		"  nomadlite job stop -no-shutdown-delay -namespace=shop web\n"
	for flag, told := range map[string]bool{"-verbose": true, "-no-shutdown-delay": false, "-immediate": false} {
		s, out, errs := testStreams()
		code := run("nomadlite", []string{"job", "stop", "-address=" + ts.URL, "-namespace=shop", flag, "web"}, s)
		if code != 0 || strings.HasSuffix(out.String(), word) != told || !strings.Contains(out.String(), `Allocation "kept" modified`) {
			t.Errorf("%s: exit %d\n%s%s", flag, code, out, errs)
		}
	}
}
