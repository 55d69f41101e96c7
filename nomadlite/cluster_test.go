package nomadlite

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/structs"
)

// trio is three servers of one cluster, each with its own directory and a port that outlives it.
type trio struct {
	listeners [3]net.Listener
	addrs     [3]string
	dirs      [3]string
	servers   []*testServer
}

func startTrio(t *testing.T) *trio {
	t.Helper()
	c := &trio{}
	for i := range c.listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c.listeners[i], c.addrs[i], c.dirs[i] = l, l.Addr().String(), t.TempDir()
	}
	for i := range c.listeners {
		c.servers = append(c.servers, start(t, c.config(i)))
	}
	for _, s := range c.servers {
		await(t, "forming the cluster", s.Ready())
	}
	return c
}

func (c *trio) config(i int) Config {
	return Config{Name: fmt.Sprint("s", i), DataDir: c.dirs[i], BootstrapExpect: 3, Join: c.addrs[:], Listener: c.listeners[i],
		EncryptKey: "MDEyMzQ1Njc4OWFiY2RlZg==", ProbeInterval: 200 * time.Millisecond, NumSchedulers: structs.Ptr(1)}
}

// without is the servers but for one.
func (c *trio) without(one *testServer) []*testServer {
	var rest []*testServer
	for _, s := range c.servers {
		if s != one {
			rest = append(rest, s)
		}
	}
	return rest
}

// again starts a server that was closed at its old address.
func (c *trio) again(t *testing.T, lost *testServer) *testServer {
	t.Helper()
	for i, s := range c.servers {
		if s != lost {
			continue
		}
		l, err := net.Listen("tcp", c.addrs[i])
		if err != nil {
			t.Fatal(err)
		}
		c.listeners[i] = l
		return start(t, c.config(i))
	}
	t.Fatal("not one of the three")
	return nil
}

// TestThreeServers forms a cluster of three, writes through it, loses the leader, and finds everything there.
func TestThreeServers(t *testing.T) {
	c := startTrio(t)
	leader := leaderOf(t, c.servers...)
	var acked []string
	for i := range 30 {
		id := fmt.Sprint("job", i)
		if err := register(leader, id); err != nil {
			t.Fatal(err)
		}
		acked = append(acked, id)
	}
	// Evaluations are processed by all servers' workers; there is no node, so that each job blocks.
	until(t, leader.store, "evaluations", func() bool {
		for _, id := range acked {
			if leader.store.Eval(nil, "eval-"+id).Status != structs.EvalStatusComplete {
				return false
			}
		}
		return true
	})
	rest := c.without(leader)
	// A follower's HTTP answers by the leader, and it has the key file to sign with.
	get(t, rest[0], "/v1/status/leader", func(body []byte) bool {
		var addr string
		return json.Unmarshal(body, &addr) == nil && addr == leader.Addr()
	})
	until(t, rest[0].store, "root key", func() bool { return len(rest[0].store.RootKeys(nil)) == 1 })
	await(t, "fetching the key file", rest[0].keys.Arrived())
	if _, _, err := rest[0].keys.SignClaims(map[string]string{}); err != nil {
		t.Errorf("a follower cannot sign: %v", err)
	}

	if err := leader.Close(); err != nil {
		t.Fatal(err)
	}
	next := leaderOf(t, rest...)
	for _, id := range acked {
		if next.store.Job(nil, structs.DefaultNamespace, id) == nil {
			t.Errorf("%s is lost", id)
		}
	}
	if err := register(next, "after"); err != nil {
		t.Fatal(err)
	}
	until(t, next.store, "evaluation after the change of leader", func() bool {
		return next.store.Eval(nil, "eval-after").Status == structs.EvalStatusComplete
	})
	awaitMember(t, next, leader.Addr(), "failed")

	// The one that was lost comes back at its address and catches up.
	returned := c.again(t, leader)
	await(t, "catching up", returned.Ready())
	if returned.store.Job(nil, structs.DefaultNamespace, "after") == nil {
		t.Error("the returned server says it has caught up, but has not")
	}
	awaitMember(t, next, leader.Addr(), "alive")
}

// TestAnotherServerJoins lets one into a running cluster that has its key, and keeps one out that has another.
func TestAnotherServerJoins(t *testing.T) {
	c := startTrio(t)
	if err := register(leaderOf(t, c.servers...), "before"); err != nil {
		t.Fatal(err)
	}
	joined := start(t, Config{Name: "s3", DataDir: t.TempDir(), Join: c.addrs[:1], EncryptKey: c.config(0).EncryptKey,
		ProbeInterval: 200 * time.Millisecond, NumSchedulers: structs.Ptr(0)})
	await(t, "joining", joined.Ready())
	if n := len(joined.lead.Peers()); n != 4 {
		t.Errorf("the joined server sees %d voters", n)
	}
	if joined.store.Job(nil, structs.DefaultNamespace, "before") == nil {
		t.Error("the joined server says it has caught up, but has not")
	}

	stranger := start(t, Config{Name: "s4", DataDir: t.TempDir(), Join: c.addrs[:1], EncryptKey: "ZmVkY2JhOTg3NjU0MzIxMA==",
		ProbeInterval: 200 * time.Millisecond, RetryMax: 2, RetryInterval: 50 * time.Millisecond})
	if err := <-stranger.done; err == nil || !strings.Contains(err.Error(), "join cluster") {
		t.Errorf("a server with another key: %v", err)
	}
}

// awaitMember waits until s shows the member at addr with the status.
func awaitMember(t *testing.T, s *testServer, addr, status string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		changed := s.members.inner.Load().Changed()
		for _, m := range s.Members() {
			if net.JoinHostPort(m.Addr, fmt.Sprint(m.Port)) == addr && m.Status == status {
				return
			}
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%s is not %s: %+v", addr, status, s.Members())
		}
	}
}

// get asks a server's public port.
func get(t *testing.T, s *testServer, path string, ok func(body []byte) bool) {
	t.Helper()
	mux, err := route.NewPublic(route.Config{Routes: s.HTTPRoutes(), Forwarder: s.Forwarder()})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != http.StatusOK || !ok(w.Body.Bytes()) {
		t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
	}
}
