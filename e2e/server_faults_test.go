package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// threeServers starts a cluster of servers that take snapshots often, so that logs are cut while they are killed.
func threeServers(t *testing.T) []*agent {
	t.Helper()
	var all []*agent
	var addrs []string
	for i := range 3 {
		a := newAgent(t, func(c map[string]any) {
			c["name"], c["client"] = fmt.Sprintf("server-%d", i+1), map[string]any{"enabled": false}
		})
		all, addrs = append(all, a), append(addrs, fmt.Sprintf("127.0.0.1:%d", a.RPC))
	}
	var starts sync.WaitGroup
	for _, a := range all {
		a.Config["server"] = map[string]any{"enabled": true, "bootstrap_expect": 3,
			"encrypt":                 "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
			"raft_snapshot_threshold": 100, "raft_trailing_logs": 20, "raft_snapshot_interval": "1s",
			"server_join": map[string]any{"retry_join": addrs, "retry_interval": "1s"}}
		starts.Go(func() { a.Start() }) // none is ready before there is a leader
	}
	starts.Wait()
	return all
}

// leader is the index of the server that leads.
func leader(t *testing.T, servers []*agent) int {
	t.Helper()
	for _, s := range servers {
		text, err := s.Client.Status().Leader(limited(t))
		if err != nil {
			continue
		}
		for i, l := range servers {
			if strings.HasSuffix(text, fmt.Sprintf(":%d", l.RPC)) {
				return i
			}
		}
	}
	t.Fatal("there is no leader")
	return -1
}

// writers register and stop jobs through all servers and remember what was acknowledged.
type writers struct {
	mu         sync.Mutex
	registered map[string]uint64
	stopped    map[string]uint64
	more       chan struct{} // has a token after each acknowledged write
	quota      chan struct{} // a token for each write that may be made
	end        func()
}

func write(t *testing.T, servers []*agent) *writers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &writers{registered: map[string]uint64{}, stopped: map[string]uint64{}, more: make(chan struct{}, 1),
		quota: make(chan struct{}, 10000)}
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-w.quota:
				case <-ctx.Done():
					return
				}
				if w.one(ctx, servers[(n+i)%len(servers)].Client, fmt.Sprintf("w%d-%d", n, i), i%3 == 0) {
					continue
				}
				w.quota <- struct{}{}
				select { // its server may be dead at this moment
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	w.end = func() { cancel(); wg.Wait() }
	t.Cleanup(w.end)
	return w
}

// one says whether the registration was acknowledged.
func (w *writers) one(ctx context.Context, c *api.Client, id string, stop bool) bool {
	j := job(id, "true", func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) { g.Count = structs.Ptr(0) })
	answer, _, err := c.Jobs().Register(ctx, j, nil, nil)
	if err != nil {
		return false
	}
	w.mu.Lock()
	w.registered[id] = answer.JobModifyIndex
	w.mu.Unlock()
	if stop {
		if stopped, _, err := c.Jobs().Deregister(ctx, id, nil, nil); err == nil {
			w.mu.Lock()
			w.stopped[id] = stopped.JobModifyIndex
			w.mu.Unlock()
		}
	}
	select {
	case w.more <- struct{}{}:
	default:
	}
	return true
}

// await waits until n more writes were acknowledged, and lets more be under way when it returns.
func (w *writers) await(t *testing.T, n int) {
	t.Helper()
	for range n + 50 {
		w.quota <- struct{}{}
	}
	w.mu.Lock()
	want := len(w.registered) + n
	w.mu.Unlock()
	deadline := time.After(2 * waitLimit)
	for {
		w.mu.Lock()
		have := len(w.registered)
		w.mu.Unlock()
		if have >= want {
			return
		}
		select {
		case <-w.more:
		case <-deadline:
			t.Fatalf("%d of %d writes were acknowledged", have, want)
		}
	}
}

// TestKillsOfThreeServersLoseNothingAcknowledged kills (-9) the leader, a follower, all three and the leader again
// while all are written to, and counts on each of them.
func TestKillsOfThreeServersLoseNothingAcknowledged(t *testing.T) {
	servers := threeServers(t)
	w := write(t, servers)
	for _, round := range []string{"leader", "follower", "all", "leader", "leader"} {
		w.await(t, 150)
		l := leader(t, servers)
		victims := map[string][]*agent{"leader": {servers[l]}, "follower": {servers[(l+1)%3]}, "all": servers}[round]
		for _, v := range victims {
			v.Kill()
		}
		if len(victims) < 3 {
			w.await(t, 50) // two of three go on without it
		}
		var starts sync.WaitGroup
		for _, v := range victims {
			starts.Go(func() { v.Start() })
		}
		starts.Wait()
	}
	w.await(t, 50)
	w.end()
	last := uint64(0)
	for _, acknowledged := range []map[string]uint64{w.registered, w.stopped} {
		for _, index := range acknowledged {
			last = max(last, index)
		}
	}
	for i, s := range servers {
		q := &api.QueryOptions{AllowStale: true}
		for {
			jobs, meta, err := s.Client.Jobs().List(limited(t), q)
			if err != nil {
				t.Fatal(err)
			}
			if meta.LastIndex < last { // a follower that is still catching up
				q.WaitIndex, q.WaitTime = meta.LastIndex, 5*time.Second
				continue
			}
			w.check(t, fmt.Sprintf("server %d", i+1), jobs)
			break
		}
	}
	w.purge(t, servers[0].Client)
}

// purge removes all jobs, so that nobody need stop them one by one when the servers end one by one.
func (w *writers) purge(t *testing.T, c *api.Client) {
	t.Helper()
	ids := make(chan string)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for id := range ids {
				if _, _, err := c.Jobs().Deregister(limited(t), id, &api.DeregisterOptions{Purge: true}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	list, _, err := c.Jobs().List(limited(t), nil)
	if err != nil {
		t.Error(err)
	}
	for _, j := range list {
		ids <- j.ID
	}
	close(ids)
	wg.Wait()
}

func (w *writers) check(t *testing.T, who string, jobs []*structs.JobListStub) {
	t.Helper()
	found := map[string]*structs.JobListStub{}
	for _, j := range jobs {
		found[j.ID] = j
	}
	lost, running := 0, 0
	for id := range w.registered {
		if found[id] == nil {
			lost++
		} else if w.stopped[id] > 0 && !found[id].Stop {
			running++
		}
	}
	if lost > 0 || running > 0 {
		t.Errorf("%s: of %d jobs acknowledged %d are lost, of %d stops %d", who, len(w.registered), lost, len(w.stopped), running)
	}
}

// TestHostileRequestsLeaveTheLogReadable: what a server stores it must be able to read again, or else no server of the
// cluster ever starts again.
func TestHostileRequestsLeaveTheLogReadable(t *testing.T) {
	a := newAgent(t, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })
	a.Start()
	ask := func(method, path, body string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(limited(t), method, a.Addr()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	nested := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	text := `{"Job":{"ID":"deep","Name":"deep","TaskGroups":[{"Name":"g","Count":0,"Tasks":[{"Name":"t","Driver":"raw_exec","Config":{"command":%s}}]}]}}`
	if code := ask("PUT", "/v1/jobs", fmt.Sprintf(text, nested)); code != 200 {
		t.Errorf("deeply nested configuration: %d", code)
	}
	for _, path := range []string{"/v1/job/%ff", "/v1/job/%ff?purge=true", "/v1/job/%c3%28/versions/%ff/tag"} {
		if code := ask("DELETE", path, ""); code != 400 {
			t.Errorf("DELETE %s: %d", path, code)
		}
	}
	// These get as far as the parser of jobspecs; they once took all of the machine's memory.
	for _, hostile := range []string{`x = \"` + strings.Repeat("${", 50000), strings.Repeat("(", 50000), strings.Repeat("a {", 50000)} {
		if code := ask("PUT", "/v1/jobs/parse", `{"JobHCL":"`+hostile+`"}`); code != 400 {
			t.Errorf("hostile jobspec: %d", code)
		}
	}
	a.Kill()
	a.Start()
	if _, _, err := a.Client.Jobs().Info(limited(t), "deep", nil); err != nil {
		t.Error(err)
	}
}

// quickBeats makes a server miss a node after seconds.
func quickBeats(c map[string]any) {
	c["client"] = map[string]any{"enabled": false}
	c["server"] = map[string]any{"enabled": true, "bootstrap_expect": 1, "heartbeat_grace": "1s", "min_heartbeat_ttl": "1s",
		"failover_heartbeat_ttl": "5s"}
}

// TestALostNodeIsReplacedAndCleansUpOnReturn: after the TTL its work runs elsewhere; when it returns, what it still
// runs is stopped, except what wanted to wait for it. A system job has nothing lost and nothing doubled.
func TestALostNodeIsReplacedAndCleansUpOnReturn(t *testing.T) {
	c := &cluster{agent: newAgent(t, quickBeats)}
	c.Start()
	c.addNode()
	spread := func(g *structs.TaskGroup, _ *structs.Task) {
		g.Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts}}
	}
	c.addNode()
	register(t, c.Client, sleeper("moves", "service", 2, nil))
	register(t, c.Client, sleeper("waits", "service", 2, func(g *structs.TaskGroup, task *structs.Task) {
		spread(g, task)
		g.Disconnect = &structs.DisconnectStrategy{Replace: structs.Ptr(false)}
	}))
	register(t, c.Client, sleeper("everywhere", "system", 1, nil))
	for _, id := range []string{"moves", "waits", "everywhere"} {
		awaitRunning(t, c.Client, id, 2)
	}
	lost := c.nodes[1]
	lost.Kill()
	awaitRunningOn := func(id string, n int) {
		t.Helper()
		awaitAllocs(t, c.Client, id, "what runs on the first node", func(l []*structs.AllocationListStub) bool {
			first := 0
			for _, a := range withStatus(l, structs.AllocClientStatusRunning) {
				if a.NodeID != c.ids[0] {
					return false
				}
				first++
			}
			return first == n
		})
	}
	awaitRunningOn("moves", 2)
	awaitRunningOn("waits", 1)
	awaitRunningOn("everywhere", 1)
	awaitStatus(t, c.Client, "waits", structs.AllocClientStatusUnknown)
	lost.Start()
	for _, id := range []string{"moves", "waits", "everywhere"} {
		awaitRunning(t, c.Client, id, 2)
	}
	awaitAllocs(t, c.Client, "moves", "that nothing is lost or doubled", func(l []*structs.AllocationListStub) bool {
		for _, a := range l {
			if a.DesiredStatus == structs.AllocDesiredStatusStop && a.ClientStatus != structs.AllocClientStatusComplete {
				return false // an orphan that has not reported its end
			}
		}
		return len(withStatus(l, structs.AllocClientStatusRunning)) == 2
	})
}

// TestSystemJobsReachNodesThatBecomeEligible though they have nothing there yet.
func TestSystemJobsReachNodesThatBecomeEligible(t *testing.T) {
	c := newCluster(t)
	if _, errs, code := c.cli("", "node", "eligibility", "-disable", c.ids[0]); code != 0 {
		t.Fatal(errs)
	}
	awaitEval(t, c.Client, register(t, c.Client, sleeper("everywhere", "system", 1, nil)).EvalID)
	c.addNode()
	awaitRunning(t, c.Client, "everywhere", 1)
	if _, errs, code := c.cli("", "node", "eligibility", "-enable", c.ids[0]); code != 0 {
		t.Fatal(errs)
	}
	awaitRunning(t, c.Client, "everywhere", 2)
}

// TestWordsOfTheCommandLine about what is over, absent or ambiguous.
func TestWordsOfTheCommandLine(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	none := func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) { g.Count = structs.Ptr(0) }
	register(t, a.Client, job("web", "true", none))
	register(t, a.Client, job("web-two", "true", none))
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"job stop web", 0, "finished with status"},
		{"job stop web", 0, `Job "web" is stopped already`},
		{"job stop -detach web", 0, "-"},
		{"status web", 0, "= web\n"},
		{"status we", 1, "Give a longer one"},
		{"status zzz", 1, `Nothing with id or prefix "zzz" found`},
		{"alloc status zzz", 1, `No allocation with id or prefix "zzz" found`},
		{"node status zzz", 1, `No node with id or prefix "zzz" found`},
		{"eval status zzz", 1, `No evaluation with id or prefix "zzz" found`},
		{"alloc logs -n -3 zzz", 1, "No allocation"},
	} {
		out, errs, code := a.cli("", strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("%s: exit %d, want %d and %q\n%s%s", c.args, code, c.code, c.says, out, errs)
		}
	}
}

// TestInternalPathsAreOnNoPublicPort, neither on a server's nor, through its session, on that of a client agent.
func TestInternalPathsAreOnNoPublicPort(t *testing.T) {
	c := newCluster(t)
	for _, a := range []*agent{c.agent, c.nodes[0]} {
		for _, path := range []string{"/v1/internal/node/register", "/v1/internal/node/heartbeat", "/v1/internal/node/assignments",
			"/v1/internal/eval/dequeue", "/v1/internal/plan/submit", "/v1/%69nternal/node/allocs", "/v1/internal%2Fnode/allocs"} {
			for _, method := range []string{"GET", "PUT", "POST"} {
				req, err := http.NewRequestWithContext(limited(t), method, a.Addr()+path, strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Nomadlite-Caller-Kind", "server")
				req.Header.Set("X-Nomadlite-Caller-Hops", "1")
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != http.StatusNotFound {
					t.Errorf("%s %s: %d", method, path, res.StatusCode)
				}
			}
		}
	}
}
