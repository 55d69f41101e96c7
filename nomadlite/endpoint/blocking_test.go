package endpoint

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// blocked is the handlers without a network, so that a test may run in a bubble with its own clock.
func blocked(t *testing.T) (*http.ServeMux, *fakeRaft) {
	t.Helper()
	store := state.New(state.Config{})
	raft := &fakeRaft{fsm: fsm.New(store, nil)}
	mux, err := route.NewPublic(route.Config{Routes: Routes(&Backend{Region: "global", Store: store, Raft: raft})})
	if err != nil {
		t.Fatal(err)
	}
	outer := http.NewServeMux()
	outer.Handle("/", mux)
	return outer, raft
}

func store(t *testing.T, raft *fakeRaft, id string) {
	t.Helper()
	j := job(id)
	j.Canonicalize()
	if _, _, err := raft.Apply(t.Context(), fsm.KindJobRegister, &fsm.JobRegister{Job: j, Eval: jobEval(j, "job-register", 1), Now: 1}); err != nil {
		t.Fatal(err)
	}
}

// ask makes a request and gives its answer once there is one.
func ask(t *testing.T, mux http.Handler, path string) <-chan *httptest.ResponseRecorder {
	t.Helper()
	done := make(chan *httptest.ResponseRecorder, 1)
	req := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
	go func() {
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, req)
		done <- rec
	}()
	return done
}

func TestBlockingQueriesAnswerWhenTheirObjectChanges(t *testing.T) {
	for _, path := range []string{
		"/v1/jobs", "/v1/job/web", "/v1/job/web/summary", "/v1/job/web/evaluations", "/v1/job/web/versions",
		"/v1/evaluations", "/v1/jobs/statuses", "/v1/job/web/scale", "/v1/jobs?prefix=we", "/v1/job/web/submission?version=0",
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mux, raft := blocked(t)
				store(t, raft, "first")
				sep := "?"
				if u := httptest.NewRequest("GET", path, nil).URL; u.RawQuery != "" {
					sep = "&"
				}
				done := ask(t, mux, path+sep+"wait=1m&index=1")
				synctest.Wait()
				select {
				case rec := <-done:
					t.Fatalf("answered at once: %d %s", rec.Code, rec.Body)
				default:
				}
				start := time.Now()
				if path == "/v1/job/web/submission?version=0" {
					j := job("web")
					j.Canonicalize()
					_, _, _ = raft.Apply(t.Context(), fsm.KindJobRegister, &fsm.JobRegister{Job: j, Submission: &structs.JobSubmission{Source: "x"}, Now: 1})
				} else {
					store(t, raft, "web")
				}
				rec := <-done
				if time.Since(start) != 0 || rec.Code != 200 || rec.Header().Get("X-Nomad-Index") != "2" {
					t.Fatalf("after %s: %d at index %s: %s", time.Since(start), rec.Code, rec.Header().Get("X-Nomad-Index"), rec.Body)
				}
			})
		})
	}
}

func TestBlockingQueriesEndWithTheirWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux, raft := blocked(t)
		store(t, raft, "web")
		for _, c := range []struct {
			path  string
			wait  time.Duration
			code  int
			index string
		}{
			{"/v1/jobs?index=1&wait=10s", 10 * time.Second, 200, "1"},
			{"/v1/job/web?index=9&wait=10000ms", 10 * time.Second, 200, "1"},
			{"/v1/job/nope?index=1&wait=10s", 10 * time.Second, 404, "1"},
			{"/v1/jobs?index=1", defaultWait, 200, "1"},
			{"/v1/jobs?index=1&wait=20h", maxWait, 200, "1"},
			{"/v1/jobs?index=0&wait=10s", 0, 200, "1"},
		} {
			start := time.Now()
			rec := <-ask(t, mux, c.path)
			took := time.Since(start)
			if took < c.wait || took > c.wait+c.wait/16 {
				t.Errorf("%s took %s", c.path, took)
			}
			if rec.Code != c.code || rec.Header().Get("X-Nomad-Index") != c.index {
				t.Errorf("%s answered %d at index %s", c.path, rec.Code, rec.Header().Get("X-Nomad-Index"))
			}
		}
	})
}

// What others do does not wake a query about one object.
func TestBlockingQueriesSleepThroughOtherChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux, raft := blocked(t)
		store(t, raft, "web")
		done := ask(t, mux, "/v1/job/web?index=1&wait=1m")
		start := time.Now()
		for i := range 20 {
			store(t, raft, "other-"+strconv.Itoa(i))
			synctest.Wait()
		}
		if rec := <-done; time.Since(start) < time.Minute || rec.Header().Get("X-Nomad-Index") != "1" {
			t.Errorf("answered after %s at index %s", time.Since(start), rec.Header().Get("X-Nomad-Index"))
		}
	})
}

func TestBlockingQueriesEndWithTheirSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux, raft := blocked(t)
		store(t, raft, "web")
		ctx, cancel := context.WithCancel(t.Context())
		req := httptest.NewRequestWithContext(ctx, "GET", "/v1/jobs?index=1", nil)
		done := make(chan struct{})
		go func() {
			mux.ServeHTTP(httptest.NewRecorder(), req)
			close(done)
		}()
		synctest.Wait()
		start := time.Now()
		cancel()
		<-done
		if time.Since(start) != 0 {
			t.Errorf("went on for %s", time.Since(start))
		}
	})
}

func TestConsistentReadsVerifyTheLeader(t *testing.T) {
	s := newServer(t)
	s.get("/v1/jobs?consistent").want(200, nil)
	if s.raft.verified != 1 {
		t.Errorf("verified %d times", s.raft.verified)
	}
	s.get("/v1/jobs").want(200, nil)
	if s.raft.verified != 1 {
		t.Error("an ordinary read verified the leader")
	}
}

// TestBlockingQueriesDoNotHoldUpTheEndOfTheAgent: they are answered with what there is.
func TestBlockingQueriesDoNotHoldUpTheEndOfTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopping := make(chan struct{})
		st := state.New(state.Config{})
		raft := &fakeRaft{fsm: fsm.New(st, nil)}
		mux, err := route.NewPublic(route.Config{Routes: Routes(&Backend{Region: "global", Store: st, Raft: raft, Stopping: stopping})})
		if err != nil {
			t.Fatal(err)
		}
		store(t, raft, "web")
		var parked []<-chan *httptest.ResponseRecorder
		for _, path := range []string{"/v1/jobs?index=1000", "/v1/job/web?index=1000", "/v1/jobs/statuses?index=1000"} {
			parked = append(parked, ask(t, mux, path))
		}
		begin := time.Now()
		synctest.Wait()
		close(stopping)
		for _, p := range parked {
			if rec := <-p; rec.Code != 200 || time.Since(begin) > 0 {
				t.Errorf("%d after %s: %s", rec.Code, time.Since(begin), rec.Body)
			}
		}
	})
}
