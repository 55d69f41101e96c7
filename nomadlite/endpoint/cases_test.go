package endpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs/jsontest"
)

// The cases are requests with what a server answered to them, as facts recorded once; package structs checks its own
// half of them.
const cases = "../../structs/testdata/server"

func TestRefusedRequestsAnswerTheRecordedStatus(t *testing.T) {
	paths, err := filepath.Glob(cases + "/invalid/*.err")
	if err != nil || len(paths) != 148 {
		t.Fatalf("found %d cases, %v", len(paths), err)
	}
	s := newServer(t)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".err")
		t.Run(name, func(t *testing.T) {
			want := strings.Fields(readFile(t, path))
			method, target := "PUT", "/v1/jobs"
			if len(want) == 4 {
				method, target = want[2], want[3]
			}
			before := s.backend.Store.Index()
			got := s.call(method, target, readFile(t, strings.TrimSuffix(path, ".err")+".json"))
			if text := fmt.Sprint(got.status); text != want[0] {
				t.Fatalf("answered %s %q, want %s (%s)", text, got.body, want[0], want[1])
			}
			if strings.TrimSpace(got.body) == "" || strings.Contains(got.body, "internal error") {
				t.Fatalf("the answer %q says nothing", got.body)
			}
			if got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("content type %q", got.header.Get("Content-Type"))
			}
			if name != "request-enforce-index" && s.backend.Store.Index() != before {
				t.Error("a refused request wrote to raft")
			}
		})
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	s := newServer(t)
	got := s.call("PUT", "/v1/jobs", readFile(t, cases+"/invalid/two-faults-at-once.json"))
	if got.status != 500 || strings.Count(got.body, "* ") < 2 {
		t.Fatalf("answered %d %q, want two faults", got.status, got.body)
	}
}

func TestRegisteredJobsAreKeptAsRecorded(t *testing.T) {
	paths, err := filepath.Glob(cases + "/*.registered.json")
	if err != nil || len(paths) != 53 {
		t.Fatalf("found %d cases, %v", len(paths), err)
	}
	s := newServer(t)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".registered.json")
		t.Run(name, func(t *testing.T) {
			body := readFile(t, strings.TrimSuffix(path, ".registered.json")+".job.json")
			s.call("PUT", "/v1/jobs", body).want(200, nil)
			var want, got map[string]any
			decodeJSON(t, readFile(t, path), &want)
			decodeJSON(t, s.get("/v1/job/"+want["ID"].(string)).want(200, nil).body, &got)
			for _, difference := range jsontest.Lacks(want, got, name) {
				t.Error(difference)
			}
		})
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// decodeJSON keeps numbers as they are written.
func decodeJSON(t *testing.T, text string, out any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
