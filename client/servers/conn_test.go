package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/internal/session"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is the servers' end of sessions, with one handler.
type server struct {
	t        *testing.T
	ln       net.Listener
	addr     string
	handler  http.Handler
	admit    func(session.Hello) error
	sessions chan *session.Session // of each node that connected
	wg       sync.WaitGroup
	mu       sync.Mutex
	open     []io.Closer
}

func newServer(t *testing.T, h http.HandlerFunc) *server { return newServerThat(t, nil, h) }

func newServerThat(t *testing.T, admit func(session.Hello) error, h http.HandlerFunc) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, ln: ln, addr: ln.Addr().String(), admit: admit, sessions: make(chan *session.Session, 100)}
	if h != nil {
		s.handler = h
	}
	s.wg.Add(1)
	go s.run()
	t.Cleanup(s.stop)
	return s
}

func (s *server) run() {
	defer s.wg.Done()
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open = append(s.open, conn)
		s.mu.Unlock()
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			if _, err := session.Greet(context.Background(), conn, session.AcceptConfig{Admit: s.admit}); err != nil {
				_ = conn.Close()
				return
			}
			ses, err := session.Accepted(conn, session.Config{})
			if err != nil {
				return
			}
			s.sessions <- ses
			_ = ses.Serve(s.handler)
		}()
	}
}

// cut ends every connection; stop the server with them.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		_ = c.Close()
	}
	s.open = nil
}

func (s *server) stop() {
	_ = s.ln.Close()
	s.cut()
	s.wg.Wait()
}

func start(t *testing.T, cfg Config) *Conn {
	t.Helper()
	cfg.NodeID, cfg.SecretID = "n1", "secret"
	if cfg.MinBackoff == 0 {
		cfg.MinBackoff = time.Millisecond
	}
	c := New(cfg)
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(context.Background()) }()
	t.Cleanup(func() { _ = c.Close(); <-done })
	return c
}

func answer(t *testing.T, w http.ResponseWriter, v any) {
	data, err := codec.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	_, _ = w.Write(data)
}

func read(t *testing.T, r *http.Request, v any) {
	data, _ := io.ReadAll(r.Body)
	if err := codec.Unmarshal(data, v); err != nil {
		t.Error(err)
	}
}

func TestNodeProtocolCalls(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/internal/node/register":
			var req structs.NodeRegisterRequest
			read(t, r, &req)
			answer(t, w, &structs.NodeHeartbeatResponse{TTL: 7 * time.Second, Known: req.Node.SecretID == "secret",
				Servers: []string{"10.0.0.1:4647"}})
		case "/v1/internal/node/heartbeat":
			var req structs.NodeHeartbeatRequest
			read(t, r, &req)
			answer(t, w, &structs.NodeHeartbeatResponse{Known: req.NodeID == "n1" && req.SecretID == "secret" &&
				req.FreshReport && req.Status == "ready"})
		case "/v1/internal/node/assignments":
			var req structs.AssignmentsRequest
			read(t, r, &req)
			if req.NodeID != "n1" || req.SecretID != "secret" {
				t.Errorf("got %+v", req)
			}
			answer(t, w, &structs.AssignmentsResponse{Epoch: "e", ResultsIn: req.Index + 1,
				Upsert: []*structs.Allocation{{ID: "a"}}})
		case "/v1/internal/node/allocs":
			var req structs.NodeAllocsUpdateRequest
			read(t, r, &req)
			if req.Observations[0].AllocID == "bad" {
				route.WriteError(w, structs.ErrPermission)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		}
	})
	c := start(t, Config{Servers: []string{s.addr}})
	ctx := t.Context()
	res, err := c.Register(ctx, &structs.Node{ID: "n1", SecretID: "secret"})
	if err != nil || !res.Known || res.TTL != 7*time.Second {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := c.Servers(); !slices.Equal(got, []string{"10.0.0.1:4647", s.addr}) {
		t.Errorf("servers %v", got)
	}
	if c.Server() != s.addr {
		t.Errorf("server %q", c.Server())
	}
	if res, err := c.Heartbeat(ctx, "ready", true); err != nil || !res.Known {
		t.Errorf("%+v, %v", res, err)
	}
	as, err := c.Assignments(ctx, structs.AssignmentsRequest{Index: 4})
	if err != nil || as.ResultsIn != 5 || as.Upsert[0].ID != "a" {
		t.Errorf("%+v, %v", as, err)
	}
	if err := c.UpdateAllocs(ctx, []*structs.AllocObservation{{AllocID: "a"}}); err != nil {
		t.Error(err)
	}
	err = c.UpdateAllocs(ctx, []*structs.AllocObservation{{AllocID: "bad"}})
	if structs.ErrorCode(err) != structs.CodePermission || err.Error() != "Permission denied" {
		t.Errorf("got %v", err)
	}
}

func TestServersAskTheNode(t *testing.T) {
	s := newServer(t, nil)
	mux, err := route.NewServerSession(route.Config{Routes: []route.Route{{Path: "/v1/client/stats", Callers: route.Public,
		Handle: func(w http.ResponseWriter, r *route.Request) error {
			_, err := fmt.Fprint(w, "stats for ", r.Caller.Addr)
			return err
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	start(t, Config{Servers: []string{s.addr}, Handler: mux.For})
	ses := <-s.sessions
	req, _ := http.NewRequest("GET", "/v1/client/stats", nil)
	route.Forward(req.Header, route.Identity{Kind: route.Public, Addr: "1.2.3.4:5"})
	res, err := ses.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if data, _ := io.ReadAll(res.Body); string(data) != "stats for 1.2.3.4:5" {
		t.Fatalf("got %q", data)
	}
}

func TestReconnects(t *testing.T) {
	hello := func(w http.ResponseWriter, r *http.Request) {
		answer(t, w, &structs.NodeHeartbeatResponse{Known: true})
	}
	a, b := newServer(t, hello), newServer(t, hello)
	connected, lost := make(chan string, 10), make(chan string, 10)
	c := start(t, Config{Servers: []string{a.addr, b.addr},
		OnConnected:    func(_ context.Context, server string) { connected <- server },
		OnDisconnected: func(server string, _ error) { lost <- server }})
	for range 3 {
		was := <-connected
		if _, err := c.Heartbeat(t.Context(), "ready", true); err != nil {
			t.Fatal(err)
		}
		a.cut()
		b.cut()
		if got := <-lost; got != was {
			t.Fatalf("lost %s, not %s", got, was)
		}
	}
	// A server that is gone is left for the other one.
	was := <-connected
	gone := a
	if was == b.addr {
		gone = b
	}
	gone.stop()
	<-lost
	if next := <-connected; next == was {
		t.Fatal("connected to a server that is gone")
	}
	if _, err := c.Heartbeat(t.Context(), "ready", true); err != nil {
		t.Fatal(err)
	}
}

func TestLeavesAServerThatHasNoLeader(t *testing.T) {
	var good atomic.Value
	good.Store("")
	handler := func(self *string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if good.Load() != *self {
				route.WriteError(w, structs.ErrNoLeader)
				return
			}
			answer(t, w, &structs.NodeHeartbeatResponse{Known: true})
		}
	}
	var addrA, addrB string
	a, b := newServer(t, handler(&addrA)), newServer(t, handler(&addrB))
	addrA, addrB = a.addr, b.addr
	connected := make(chan string, 10)
	c := start(t, Config{Servers: []string{a.addr, b.addr},
		OnConnected: func(_ context.Context, server string) { connected <- server }})
	first := <-connected
	if first == a.addr {
		good.Store(b.addr)
	} else {
		good.Store(a.addr)
	}
	if _, err := c.Heartbeat(t.Context(), "ready", true); structs.ErrorCode(err) != structs.CodeNoLeader {
		t.Fatalf("got %v", err)
	}
	if second := <-connected; second == first {
		t.Fatal("stayed with the server that has no leader")
	}
	if _, err := c.Heartbeat(t.Context(), "ready", true); err != nil {
		t.Fatal(err)
	}
}

func TestCutInTheMiddleOfARequest(t *testing.T) {
	var calls atomic.Int32
	var s *server
	s = newServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if calls.Add(1) == 1 {
			s.cut()
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	c := start(t, Config{Servers: []string{s.addr}})
	report := []*structs.AllocObservation{{AllocID: "a"}}
	if err := c.UpdateAllocs(t.Context(), report); err == nil || calls.Load() != 1 {
		t.Fatalf("%v after %d calls", err, calls.Load())
	}
	if err := c.UpdateAllocs(t.Context(), report); err != nil || calls.Load() != 2 {
		t.Fatalf("%v after %d calls", err, calls.Load())
	}
}

func TestWaitsForASession(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := ln.Addr().String()
	_ = ln.Close()
	c := start(t, Config{Servers: []string{nobody}})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { _, err := c.Heartbeat(ctx, "ready", true); failed <- err }()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	// A server that is learnt later serves the request that waits.
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		answer(t, w, &structs.NodeHeartbeatResponse{Known: true})
	})
	go func() { _, err := c.Heartbeat(t.Context(), "ready", true); failed <- err }()
	c.SetServers([]string{s.addr})
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if _, err := c.Heartbeat(t.Context(), "ready", true); !errors.Is(err, ErrClosed) {
		t.Fatalf("after Close: %v", err)
	}
	if err := c.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Fatalf("after Close: %v", err)
	}
}

func TestRefusedNodeKeepsAsking(t *testing.T) {
	tries := make(chan struct{}, 100)
	s := newServerThat(t, func(session.Hello) error {
		select {
		case tries <- struct{}{}:
		default:
		}
		return structs.Errorf(structs.CodePermission, "node secret ID does not match")
	}, nil)
	start(t, Config{Servers: []string{s.addr}})
	<-tries
	<-tries
}

func TestForwarder(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "server got %s %s %s", r.Method, r.URL, body)
	})
	c := start(t, Config{Servers: []string{s.addr}})
	fw := c.Forwarder()
	here := func(w http.ResponseWriter, r *route.Request) error { _, err := io.WriteString(w, "here"); return err }
	mux, err := route.NewPublic(route.Config{Forwarder: fw, Unmatched: fw.Handle, Routes: []route.Route{
		{Path: "/v1/client/fs/{node}", ServedBy: route.Node, Callers: route.Public, Handle: here,
			NodeOf: func(r *route.Request) (string, error) { return strings.Trim(r.Param("node"), "-"), nil }},
	}})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(mux)
	defer front.Close()
	for path, want := range map[string]string{
		"/v1/client/fs/n1": "here",
		"/v1/client/fs/n2": "server got POST /v1/client/fs/n2 body",
		"/v1/client/fs/-":  "server got POST /v1/client/fs/- body",
		"/v1/jobs?x=1":     "server got POST /v1/jobs?x=1 body",
	} {
		res, err := front.Client().Post(front.URL+path, "", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if string(got) != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	_ = c.Close()
	res, err := front.Client().Get(front.URL + "/v1/jobs")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, _ := io.ReadAll(res.Body); res.StatusCode != 500 || !strings.HasPrefix(string(got), "No path to the servers") {
		t.Errorf("%d %q", res.StatusCode, got)
	}
}
