package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadlite/nomadlite/internal/route"
	wire "github.com/nomadlite/nomadlite/internal/session"
	"github.com/nomadlite/nomadlite/structs"
)

func ask(t *testing.T, m *member, method, path, body string) (int, string) {
	t.Helper()
	srv := httptest.NewServer(m.public)
	defer srv.Close()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, _ := http.NewRequestWithContext(t.Context(), method, srv.URL+path, in)
	res, err := srv.Client().Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, err.Error()
	}
	return res.StatusCode, string(data)
}

func TestFollowersForwardToTheLeader(t *testing.T) {
	c := newCluster(t, 3)
	lead := c.ports[0].Addr()
	for _, m := range c.ports {
		for _, body := range []string{"", "hello", strings.Repeat("x", 1<<20)} {
			code, got := ask(t, m, "POST", "/who", body)
			if code != 200 || got != lead+" "+body {
				t.Fatalf("%d, %d bytes", code, len(got))
			}
		}
	}
	if code, got := ask(t, c.ports[1], "GET", "/who?stale", ""); code != 200 || got != c.ports[1].Addr()+" " {
		t.Errorf("stale read: %d %q", code, got)
	}
	c.setLeader(c.ports[2].Addr())
	if _, got := ask(t, c.ports[0], "GET", "/who", ""); got != c.ports[2].Addr()+" " {
		t.Errorf("after a change of leader: %q", got)
	}
}

func TestRequestsWaitForALeader(t *testing.T) {
	c := newCluster(t, 2)
	m := c.ports[0]
	c.setLeader("")
	m.fw.wait = 50 * time.Millisecond
	if code, got := ask(t, m, "PUT", "/who", "x"); code != 500 || got != "No cluster leader" {
		t.Fatalf("%d %q", code, got)
	}
	for _, next := range c.ports { // another server, then this very one
		c.setLeader("")
		m.fw.wait = 10 * time.Second
		done := make(chan string, 1)
		began := make(chan struct{})
		go func() {
			close(began)
			_, got := ask(t, m, "PUT", "/who", "x")
			done <- got
		}()
		<-began
		c.setLeader(next.Addr())
		if got := <-done; got != next.Addr()+" x" {
			t.Fatalf("got %q", got)
		}
	}
}

func TestOnlyReadsAreSentAgain(t *testing.T) {
	var calls atomic.Int32
	var lead *member
	cut := func() { // ends every session of the leader, as a cut cable does
		lead.peers.mu.Lock()
		defer lead.peers.mu.Unlock()
		lead.mu.Lock()
		defer lead.mu.Unlock()
		for conn := range lead.conns {
			_ = conn.Close()
		}
	}
	c := newCluster(t, 2, route.Route{Path: "/cut", ServedBy: route.Leader, Callers: route.Public,
		Handle: func(w http.ResponseWriter, r *route.Request) error {
			_, _ = io.Copy(io.Discard, r.Body)
			if calls.Add(1) == 1 {
				cut()
				<-r.Context().Done()
				return r.Context().Err()
			}
			_, err := io.WriteString(w, "again")
			return err
		}})
	lead = c.ports[0]
	if code, got := ask(t, c.ports[1], "PUT", "/cut", "x"); code != 500 || calls.Load() != 1 ||
		!strings.Contains(got, "it may have been carried out or not") {
		t.Fatalf("write: %d %q after %d calls", code, got, calls.Load())
	}
	calls.Store(0)
	if code, got := ask(t, c.ports[1], "GET", "/cut", ""); code != 200 || got != "again" || calls.Load() != 2 {
		t.Fatalf("read: %d %q after %d calls", code, got, calls.Load())
	}
}

// TestAFormerLeaderThatHangs is waited for no longer than until another one leads: a read goes there, a write says that
// nobody knows what became of it.
func TestAFormerLeaderThatHangs(t *testing.T) {
	arrived := make(chan struct{}, 1)
	var c *cluster
	c = newCluster(t, 3, route.Route{Path: "/hang", ServedBy: route.Leader, Callers: route.Public,
		Handle: func(w http.ResponseWriter, r *route.Request) error {
			arrived <- struct{}{}
			if c.ports[0].IsLeader() {
				<-r.Context().Done()
				return r.Context().Err()
			}
			_, err := io.WriteString(w, "new")
			return err
		}})
	for _, m := range c.ports {
		m.fw.wait = 200 * time.Millisecond
	}
	for method, want := range map[string]string{"GET": "200 new", "PUT": "500 " + errLost().Error()} {
		c.setLeader(c.ports[0].Addr())
		got := make(chan string, 1)
		go func() {
			code, body := ask(t, c.ports[1], method, "/hang", "")
			got <- fmt.Sprint(code, " ", body)
		}()
		<-arrived
		select { // longer than a search takes
		case text := <-got:
			t.Errorf("%s while its leader leads: %s", method, text)
		case <-time.After(300 * time.Millisecond):
		}
		c.setLeader(c.ports[2].Addr())
		if text := <-got; text != want {
			t.Errorf("%s: %q, want %q", method, text, want)
		}
		select {
		case <-arrived:
		default:
		}
	}
}

func TestABrokenAnswerNeverLooksComplete(t *testing.T) {
	c := newCluster(t, 2, route.Route{Path: "/half", ServedBy: route.Leader, Callers: route.Public,
		Handle: func(w http.ResponseWriter, r *route.Request) error {
			_, _ = io.WriteString(w, strings.Repeat("x", 100000))
			panic(http.ErrAbortHandler)
		}})
	if code, got := ask(t, c.ports[1], "GET", "/half", ""); !strings.Contains(got, "unexpected EOF") {
		t.Fatalf("%d, %d bytes without an error", code, len(got))
	}
}

func TestToNode(t *testing.T) {
	c := newCluster(t, 3)
	serve := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, name+r.URL.Path) })
	}
	n := connect(t, c.ports[1], "n1", serve("first"))
	for _, m := range c.ports {
		if code, got := ask(t, m, "GET", "/on/n1", ""); code != 200 || got != "first/on/n1" {
			t.Fatalf("%d %q", code, got)
		}
	}
	// The node moves to another server: the others find it there.
	n.leave()
	eventually(t, "the server notices", func() bool { return c.ports[1].Nodes().Count() == 0 })
	if code, got := ask(t, c.ports[0], "GET", "/on/n1", ""); code != 404 || got != "No path to node" {
		t.Fatalf("%d %q", code, got)
	}
	connect(t, c.ports[2], "n1", serve("second"))
	for _, m := range c.ports {
		if code, got := ask(t, m, "GET", "/on/n1", ""); code != 200 || got != "second/on/n1" {
			t.Fatalf("%d %q", code, got)
		}
	}
	if code, got := ask(t, c.ports[0], "GET", "/on/nobody", ""); code != 404 || !strings.HasPrefix(got, "Unknown node") {
		t.Fatalf("%d %q", code, got)
	}
}

func TestUpgradePassesThroughTwoServers(t *testing.T) {
	c := newCluster(t, 2)
	connect(t, c.ports[1], "n1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = rw.Flush()
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = fmt.Fprintf(conn, "got %s", line)
		}
	}))
	srv := httptest.NewServer(c.ports[0].public)
	defer srv.Close()
	req, _ := http.NewRequest("GET", srv.URL+"/on/n1", nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	raw, ok := res.Body.(io.ReadWriteCloser)
	if !ok || res.StatusCode != 101 {
		t.Fatalf("got %d", res.StatusCode)
	}
	defer raw.Close()
	br := bufio.NewReader(raw)
	for i := range 3 {
		_, _ = fmt.Fprintf(raw, "line %d\n", i)
		if got, err := br.ReadString('\n'); err != nil || got != fmt.Sprintf("got line %d\n", i) {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

func TestCancellingReachesTheNodeThroughTwoServers(t *testing.T) {
	c := newCluster(t, 2)
	began, ended := make(chan struct{}), make(chan struct{})
	connect(t, c.ports[1], "n1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		close(began)
		<-r.Context().Done()
		close(ended)
	}))
	srv := httptest.NewServer(c.ports[0].public)
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "GET", srv.URL+"/on/n1", nil)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	<-began
	cancel()
	<-ended
	_ = res.Body.Close()
}

func TestRaftStreams(t *testing.T) {
	c := newCluster(t, 2)
	a, b := c.ports[0].StreamLayer(), c.ports[1].StreamLayer()
	if b.Addr().String() != c.ports[1].Addr() {
		t.Errorf("address %s", b.Addr())
	}
	got := make(chan string, 1)
	go func() {
		conn, err := b.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		data, _ := io.ReadAll(conn)
		_ = conn.Close()
		got <- string(data)
	}()
	conn, err := a.Dial(raft.ServerAddress(b.Addr().String()), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "append entries")
	_ = conn.Close()
	if s := <-got; s != "append entries" {
		t.Fatalf("got %q", s)
	}
	_ = b.Close()
	if _, err := b.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("got %v", err)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	c := newCluster(t, 1)
	addr := c.ports[0].cfg.Listener.Addr().String()
	for _, protocol := range []byte{wire.ByteRaft, wire.ByteServer} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = wire.Prove(t.Context(), conn, protocol, wire.Hello{Server: "evil"}, []byte("fedcba9876543210"))
		if structs.ErrorCode(err) != structs.CodePermission {
			t.Errorf("%c: %v", protocol, err)
		}
		_ = conn.Close()
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write([]byte{wire.ByteTLS, 3, 1})
	if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("TLS: %v", err)
	}
	_ = conn.Close()
}

func TestNodeMustKeepItsSecret(t *testing.T) {
	c := newCluster(t, 1)
	m := c.ports[0]
	stranger, err := dialNode(t, m, "n1", "forged", http.NotFoundHandler())
	if err != nil {
		t.Fatal(err) // nobody knows the node yet
	}
	beat := func(n *node) int { // an answer shows that the session is in place
		return n.call("heartbeat", &structs.NodeHeartbeatRequest{NodeID: n.id, SecretID: n.secret}, nil)
	}
	if code := beat(stranger); code != 200 {
		t.Fatalf("heartbeat of an unknown node: %d", code)
	}
	if _, ok := m.Nodes().Local("n1"); ok {
		t.Error("a node which never registered is reachable")
	}
	n := connect(t, m, "n1", nil)
	other, err := dialNode(t, m, "n2", "secret-n2", nil) // and the other way round
	if err != nil {
		t.Fatal(err)
	}
	second, err := dialNode(t, m, "n2", "forged", nil)
	if err != nil {
		t.Fatal(err)
	}
	if code := beat(second); code != 200 {
		t.Fatalf("heartbeat of an unknown node: %d", code)
	}
	if code := other.call("register", &structs.NodeRegisterRequest{Node: &structs.Node{ID: "n2", SecretID: "secret-n2",
		Name: "n2"}}, nil); code != 200 {
		t.Fatalf("register: %d", code)
	}
	if _, ok := m.Nodes().Local("n2"); !ok {
		t.Error("the registered node is not reachable")
	}
	<-second.Done() // it had proved another secret
	if _, err := dialNode(t, m, "n1", "forged", nil); structs.ErrorCode(err) != structs.CodePermission {
		t.Errorf("wrong secret at the handshake: %v", err)
	}
	forged := &structs.Node{ID: "n1", SecretID: "forged", Name: "n1"}
	if code := stranger.call("register", &structs.NodeRegisterRequest{Node: forged}, nil); code != 403 {
		t.Errorf("wrong secret at registration: %d", code)
	}
	foreign := &structs.Node{ID: "n2", SecretID: "x", Name: "n2"}
	if code := n.call("register", &structs.NodeRegisterRequest{Node: foreign}, nil); code != 403 {
		t.Errorf("registration of another node: %d", code)
	}
	if code := beat(stranger); code != 403 {
		t.Errorf("wrong secret at a heartbeat: %d", code)
	}
	if _, ok := m.Nodes().Local("n1"); !ok {
		t.Error("the registered node is not reachable")
	}
	<-stranger.Done()
	if got := c.store.Node(nil, "n1").SecretID; got != "secret-n1" {
		t.Errorf("secret is now %q", got)
	}
}

func TestPortEndsWithItsSessions(t *testing.T) {
	c := newCluster(t, 2)
	n := connect(t, c.ports[1], "n1", nil)
	if _, got := ask(t, c.ports[1], "GET", "/who", ""); got == "" {
		t.Fatal("no answer")
	}
	c.ports[1].stop()
	<-n.Done()
	if _, err := c.ports[1].peers.get(t.Context(), c.ports[0].Addr()); !errors.Is(err, wire.ErrNotSent) {
		t.Fatalf("got %v", err)
	}
	if got := c.ports[1].Close(); got != nil {
		t.Fatal(got)
	}
}
