package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

func request(path string, params map[string]string) *route.Request {
	return &route.Request{Request: httptest.NewRequest(http.MethodGet, path, nil), Params: params}
}

func TestAClientAnswersForWhatItHolds(t *testing.T) {
	a := newAgent(t).start()
	a.servers.assign("a1", jobOf("j", "service", mockTask(map[string]any{"run_for": "1h"})), nil)
	a.servers.untilStatus("a1", "running")
	l := a.client.LocalLocate()
	own := a.client.NodeID()
	for id, want := range map[string]string{"a1": own, "elsewhere": ""} {
		if got, err := l.Alloc(request("/", map[string]string{"alloc_id": id})); got != want || err != nil {
			t.Errorf("%s is on %q, error %v", id, got, err)
		}
	}
	for query, want := range map[string]string{"": own, "?node_id=" + own: own, "?node_id=another": ""} {
		if got, err := l.Param(request("/v1/client/stats"+query, nil)); got != want || err != nil {
			t.Errorf("%q leads to %q, error %v", query, got, err)
		}
	}
	if err := a.client.CollectAlloc(context.Background(), "a1"); structs.ErrorCode(err) != structs.CodeInvalid {
		t.Errorf("a running allocation was collected: %v", err)
	}
	if err := a.client.CollectAlloc(context.Background(), "a2"); structs.ErrorCode(err) != structs.CodeNotFound {
		t.Errorf("an unknown allocation was collected: %v", err)
	}
	if s := a.client.Stats(); s["num_allocations"] != "1" || s["node_id"] != own {
		t.Errorf("stats %v", s)
	}
	alloc, err := backend{a.client}.Alloc("a1")
	if err != nil {
		t.Fatal(err)
	}
	if usage, err := alloc.Stats(context.Background(), ""); err != nil || usage["t"] == nil {
		t.Errorf("usage %v, error %v", usage, err)
	}
	if err := alloc.Signal(context.Background(), "t", "SIGHUP"); err != nil {
		t.Error(err)
	}
}

func TestServersReachTheNodesHandlers(t *testing.T) {
	a := newAgent(t).start()
	w := httptest.NewRecorder()
	a.client.serve()(route.Identity{Kind: route.ServerSession}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/client/stats", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"Uptime":`) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}
