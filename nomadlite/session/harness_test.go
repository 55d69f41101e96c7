package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/internal/route"
	wire "github.com/nomadlite/nomadlite/internal/session"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testKey = []byte("0123456789abcdef")

// cluster is several ports over one store, with a leader that the test names.
type cluster struct {
	t     testing.TB
	store *state.Store // of the leader, and of all that do not lag
	log   *localLog
	mu    sync.Mutex
	lead  string // address of the leader
	moved chan struct{}
	ports []*member
}

// member is one server.
type member struct {
	*Port
	c      *cluster
	fw     *Forwarder
	polls  *Assignments
	nodes  *NodeProtocol
	public *route.Mux
	beats  *fakeBeats
	stop   func()
}

// localLog applies commands at once, as a cluster of one would.
type localLog struct {
	mu      sync.Mutex
	fsm     *fsm.FSM
	index   uint64
	entries []fsm.Kind
	gate    chan struct{} // not nil: each entry waits for one token
	began   chan struct{}
	fail    error
	data    []*raft.Log
}

// follower is a state that lags behind, until it is told how far to follow.
type follower struct {
	log   *localLog
	store *state.Store
	fsm   *fsm.FSM
	next  int
}

func (l *localLog) newFollower() *follower {
	store := state.New(state.Config{})
	return &follower{log: l, store: store, fsm: fsm.New(store, nil)}
}

func (f *follower) follow() {
	f.log.mu.Lock()
	entries := f.log.data[f.next:]
	f.next = len(f.log.data)
	f.log.mu.Unlock()
	for _, e := range entries {
		f.fsm.Apply(e)
	}
}

func (l *localLog) Apply(ctx context.Context, kind fsm.Kind, req any) (any, uint64, error) {
	if l.gate != nil {
		l.began <- struct{}{}
		<-l.gate
	}
	data, err := fsm.Encode(kind, req)
	if err != nil {
		return nil, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return nil, 0, l.fail
	}
	l.index++
	l.entries = append(l.entries, kind)
	entry := &raft.Log{Index: l.index, Data: data}
	l.data = append(l.data, entry)
	res := l.fsm.Apply(entry)
	if err, ok := res.(error); ok {
		return nil, l.index, err
	}
	return res, l.index, nil
}

func (l *localLog) count(kind fsm.Kind) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, k := range l.entries {
		if k == kind {
			n++
		}
	}
	return n
}

type fakeBeats struct {
	mu    sync.Mutex
	store *state.Store
	fresh map[string]bool
}

func (b *fakeBeats) Forget(string) {}

func (b *fakeBeats) Reconsider(string) {}

func (b *fakeBeats) Beat(_ context.Context, nodeID string, fresh bool) (time.Duration, error) {
	if b.store.Node(nil, nodeID) == nil {
		return 0, structs.ErrNodeNotFound
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fresh[nodeID] = fresh
	return 10 * time.Second, nil
}

func newCluster(t testing.TB, n int, extra ...route.Route) *cluster {
	t.Helper()
	store := state.New(state.Config{})
	c := &cluster{t: t, store: store, log: &localLog{fsm: fsm.New(store, nil), index: 10}, moved: make(chan struct{})}
	for range n {
		c.add(c.store, extra)
	}
	c.setLeader(c.ports[0].Addr())
	return c
}

func (c *cluster) add(store *state.Store, extra []route.Route) *member {
	t := c.t
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &member{c: c, beats: &fakeBeats{store: store, fresh: map[string]bool{}}}
	m.Port, err = New(Config{Listener: ln, ServerID: ln.Addr().String(), Key: testKey, DialTimeout: 2 * time.Second,
		NodeSecret: func(id string) (string, bool) {
			if node := store.Node(nil, id); node != nil {
				return node.SecretID, true
			}
			return "", false
		}})
	if err != nil {
		t.Fatal(err)
	}
	m.fw = NewForwarder(m.Port, m)
	m.polls = NewAssignments(store, func(context.Context) error {
		if !m.IsLeader() {
			return errors.New("not the leader")
		}
		return nil
	}, nil)
	m.nodes = NewNodeProtocol(NodeConfig{Store: store, Raft: c.log, Heartbeats: m.beats, Assignments: m.polls,
		Servers: m.Peers, Forwarder: m.fw})
	routes := append(m.nodes.Routes(), m.Nodes().Routes()...)
	routes = append(routes, extra...)
	routes = append(routes, route.Route{Path: "/who", ServedBy: route.Leader, Callers: route.Public,
		Handle: func(w http.ResponseWriter, r *route.Request) error {
			body, err := io.ReadAll(r.Body)
			w.Header().Set("X-Hops", string(rune('0'+r.Caller.Hops)))
			_, _ = w.Write(append([]byte(m.Addr()+" "), body...))
			return err
		}}, route.Route{Path: "/on/{node}", ServedBy: route.Node, Callers: route.Public,
		NodeOf: func(r *route.Request) (string, error) { return r.Param("node"), nil },
		Handle: func(http.ResponseWriter, *route.Request) error { return errors.New("served by a server") }})
	cfg := route.Config{Routes: routes, Forwarder: m.fw}
	public, err := route.NewPublic(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.public = public
	nodeMux, _ := route.NewNodeSession(cfg)
	serverMux, _ := route.NewServerSession(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Add(2)
	go func() {
		defer wg.Done()
		if err := m.Run(ctx, Handlers{Node: nodeMux.For, Server: serverMux.For}); err != nil {
			t.Error(err)
		}
	}()
	go func() { defer wg.Done(); _ = m.polls.Run(ctx) }()
	var once sync.Once
	m.stop = func() {
		once.Do(func() {
			cancel()
			_ = m.Port.Close()
			wg.Wait()
			_ = m.nodes.Close()
		})
	}
	t.Cleanup(m.stop)
	c.ports = append(c.ports, m)
	return m
}

func (c *cluster) setLeader(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lead = addr
	close(c.moved)
	c.moved = make(chan struct{})
}

func (m *member) IsLeader() bool { return m.LeaderAddr() == m.Addr() }

func (m *member) LeaderAddr() string {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	return m.c.lead
}

func (m *member) LeaderChanged() <-chan struct{} {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	return m.c.moved
}

func (m *member) Peers() []string {
	var addrs []string
	for _, p := range m.c.ports {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

// node is a node's end of a session.
type node struct {
	*wire.Session
	t          testing.TB
	id, secret string
	served     chan struct{}
}

func dialNode(t testing.TB, m *member, id, secret string, h http.Handler) (*node, error) {
	t.Helper()
	conn, err := net.Dial("tcp", m.cfg.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Introduce(t.Context(), conn, wire.Hello{NodeID: id, SecretID: secret}); err != nil {
		_ = conn.Close()
		return nil, err
	}
	s, err := wire.Dialed(conn, wire.Config{})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{Session: s, t: t, id: id, secret: secret, served: make(chan struct{})}
	go func() { defer close(n.served); _ = s.Serve(h) }()
	t.Cleanup(n.leave)
	return n, nil
}

func (n *node) leave() {
	_ = n.Close()
	<-n.served
}

// connect opens a session and registers.
func connect(t testing.TB, m *member, id string, h http.Handler) *node {
	t.Helper()
	n, err := dialNode(t, m, id, "secret-"+id, h)
	if err != nil {
		t.Fatal(err)
	}
	if code := n.call("register", &structs.NodeRegisterRequest{Node: &structs.Node{ID: id, SecretID: n.secret,
		Name: id}}, nil); code != 200 {
		t.Fatalf("register: %d", code)
	}
	return n
}

func (n *node) call(what string, in, out any) int {
	code, err := n.try(n.t.Context(), what, in, out)
	if err != nil {
		n.t.Errorf("%s: %v", what, err)
	}
	return code
}

func (n *node) try(ctx context.Context, what string, in, out any) (int, error) {
	body, err := codec.Marshal(in)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, "PUT", "/v1/internal/node/"+what, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	res, err := n.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err == nil && out != nil && res.StatusCode == 200 {
		err = codec.Unmarshal(data, out)
	}
	return res.StatusCode, err
}

// eventually waits for what the other end of a connection, or a goroutine of the product, does in its own time and
// tells nobody.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	deadline := time.After(5 * time.Second)
	for !cond() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("never happened: %s", what)
		}
	}
}
