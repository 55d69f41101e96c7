package e2e

import (
	"fmt"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// severalServers starts a cluster whose servers miss a node after seconds; change adds to the configuration of each.
func severalServers(t *testing.T, n int, change func(i int, a *agent)) []*agent {
	t.Helper()
	var all []*agent
	var addrs []string
	for i := range n {
		a := newAgent(t, func(c map[string]any) { c["name"] = fmt.Sprintf("server-%d", i+1) })
		all, addrs = append(all, a), append(addrs, fmt.Sprintf("127.0.0.1:%d", a.RPC))
	}
	var starts sync.WaitGroup
	for i, a := range all {
		a.Config["server"] = map[string]any{"enabled": true, "bootstrap_expect": n,
			"encrypt": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "min_heartbeat_ttl": "1s", "heartbeat_grace": "1s",
			"server_join": map[string]any{"retry_join": addrs, "retry_interval": "1s"}}
		change(i, a)
		starts.Go(func() { a.Start() }) // none is ready before there is a leader
	}
	starts.Wait()
	return all
}

// quorum is a pair of nodes with three servers, each of which is reached over a wire only.
type quorum struct {
	*pair
	servers []*agent
	wires   []*wire
}

func newQuorum(t *testing.T) *quorum {
	t.Helper()
	q := &quorum{pair: &pair{t: t, dir: t.TempDir()}}
	var addrs []string
	q.servers = severalServers(t, 3, func(_ int, a *agent) {
		w := newWire(t, fmt.Sprintf("127.0.0.1:%d", a.RPC))
		q.wires, addrs = append(q.wires, w), append(addrs, w.addr())
		a.Config["client"] = map[string]any{"enabled": false}
		a.Config["advertise"] = map[string]any{"rpc": w.addr()}
	})
	q.server = q.servers[0]
	for i := range 2 {
		q.nodes = append(q.nodes, newAgent(t, func(c map[string]any) {
			c["name"], c["server"] = fmt.Sprint("node", i), map[string]any{"enabled": false}
			c["client"] = map[string]any{"enabled": true, "servers": addrs}
		}))
	}
	t.Cleanup(q.release)
	return q
}

func (q *quorum) release() {
	for _, w := range q.wires {
		w.release()
	}
}

// leads is the index of the leader.
func (q *quorum) leads() int {
	q.t.Helper()
	addr, err := q.server.Client.Status().Leader(limited(q.t))
	if err != nil {
		q.t.Fatal(err)
	}
	for i, w := range q.wires {
		if w.addr() == addr {
			return i
		}
	}
	q.t.Fatalf("server at %q leads", addr)
	return -1
}

func freeze(t *testing.T, pid int) (thaw func()) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	thaw = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(thaw)
	return thaw
}

var elected = regexp.MustCompile(`(\S+) \[INFO\].*this server was elected leader`)

// electedAfter is when one of the servers was elected, first after a moment.
func (q *quorum) electedAfter(cut time.Time) time.Time {
	q.t.Helper()
	var first time.Time
	for _, s := range q.servers {
		for _, m := range elected.FindAllStringSubmatch(s.Log(), -1) {
			at, err := time.Parse("2006-01-02T15:04:05.000Z0700", m[1])
			if err != nil {
				q.t.Fatal(err)
			}
			if at.After(cut) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	if first.IsZero() {
		q.t.Fatal("nobody was elected")
	}
	return first
}

// Leases of these tests. No leader can know less than that all has ended after fenceOfTests.
const (
	leaseOfTests = 3 * time.Second
	killOfTests  = time.Second
	fenceOfTests = (leaseOfTests+killOfTests)*102/100 + 2*time.Second
)

// inTime checks that the replacement began when the new leader could be sure, and at once then: counted from its
// election, and not from the time which it gives nodes to find it.
func (q *quorum) inTime(replacement *structs.AllocationListStub, cut time.Time) {
	q.t.Helper()
	first, _ := q.written(q.lives(replacement.ID)[0])
	waited := first.Sub(q.electedAfter(cut))
	q.t.Logf("the new one began %s after the new leader's election, the fence is %s", waited, fenceOfTests)
	if waited < fenceOfTests || waited > fenceOfTests+6*time.Second {
		q.t.Errorf("the new one began %s after the new leader's election, the fence is %s", waited, fenceOfTests)
	}
}

// onlyOneRuns waits for the report of the old one's end, and checks that it was not started again.
func (q *quorum) onlyOneRuns(old *structs.AllocationListStub) {
	q.t.Helper()
	list := awaitAllocs(q.t, q.server.Client, "one", "the end of the old one", func(l []*structs.AllocationListStub) bool {
		for _, a := range l {
			if a.ID == old.ID && (a.ClientStatus == structs.AllocClientStatusFailed || a.ClientStatus == structs.AllocClientStatusComplete) {
				return true
			}
		}
		return false
	})
	if len(withStatus(list, structs.AllocClientStatusRunning)) != 1 || len(q.lives(old.ID)) != 1 {
		q.t.Errorf("lives %v, not exactly one runs:%s", q.lives(old.ID), describe(list))
	}
}

// TestFenceLeaderKilled freezes the agent and kills the leader (-9) within the lease: the next leader counts from its
// election.
func TestFenceLeaderKilled(t *testing.T) {
	t.Parallel()
	q := newQuorum(t)
	for _, node := range q.nodes {
		node.Start()
	}
	q.run(leaseOf(leaseOfTests, killOfTests))
	old, node := q.holder()
	l := q.leads()
	q.server = q.servers[(l+1)%3]
	q.server.followLog(old.ID, "up")
	cut := time.Now()
	thaw := freeze(t, node.PID())
	q.servers[l].Kill()
	replacement := q.replaced(old)
	q.noOverlap(old, replacement, cut, leaseOfTests)
	q.inTime(replacement, cut)
	thaw()
	q.onlyOneRuns(old)
	q.noOverlap(old, replacement, cut, leaseOfTests)
}

// TestFenceLeaderFrozen holds up all that passes between the node and any server, and freezes the leader. Heartbeats that
// arrive late, at the old leader, which does not know yet that it is none, and at the others, bring nothing back.
func TestFenceLeaderFrozen(t *testing.T) {
	t.Parallel()
	q := newQuorum(t)
	for _, node := range q.nodes {
		node.Start()
	}
	q.run(leaseOf(leaseOfTests, killOfTests))
	old, _ := q.holder()
	l := q.leads()
	q.server = q.servers[(l+1)%3]
	q.server.followLog(old.ID, "up")
	cut := time.Now()
	for _, w := range q.wires {
		w.of(old.NodeID)
		w.hold()
	}
	thaw := freeze(t, q.servers[l].PID())
	replacement := q.replaced(old)
	q.noOverlap(old, replacement, cut, leaseOfTests)
	q.inTime(replacement, cut)
	q.wires[l].release()
	thaw()
	q.release()
	q.onlyOneRuns(old)
	q.noOverlap(old, replacement, cut, leaseOfTests)
}

// TestFenceHeartbeatAtAFormerLeader: the node reaches the leader alone, which is frozen for twice the lease while
// heartbeats lie in its socket, and thawed when another leads who has not given the node up yet. It must confirm none.
func TestFenceHeartbeatAtAFormerLeader(t *testing.T) {
	t.Parallel()
	q := newQuorum(t)
	node := q.nodes[0]
	node.Start()
	id := q.other(q.nodes[1])
	node.Kill()
	l := q.leads()
	for i, w := range q.wires {
		if w.of(id); i != l {
			w.hold()
		}
	}
	node.Start()
	q.run(leaseOf(leaseOfTests, killOfTests))
	old, _ := q.holder()
	q.server = q.servers[(l+1)%3]
	q.server.followLog(old.ID, "up")
	q.nodes[1].Start()
	cut := time.Now()
	thaw := freeze(t, q.servers[l].PID())
	time.AfterFunc(time.Until(cut.Add(2*leaseOfTests)), thaw)
	replacement := q.replaced(old)
	q.server.followLog(replacement.ID, "up")
	_, last := q.written(q.lives(old.ID)[0])
	first, _ := q.written(q.lives(replacement.ID)[0])
	t.Logf("the old one ended after %s, the new one began after %s", last.Sub(cut), first.Sub(cut))
	if !last.Before(first) || last.Sub(cut) < leaseOfTests/2 || last.Sub(cut) > leaseOfTests+killOfTests+2*time.Second {
		t.Errorf("the old one ended after %s, the new one began after %s", last.Sub(cut), first.Sub(cut))
	}
	if waited := first.Sub(q.electedAfter(cut)); replacement.NodeID != old.NodeID && waited < fenceOfTests {
		// On the node itself it may begin sooner: the thawed server passes on its report of the end.
		t.Errorf("the new one began elsewhere %s after the new leader's election, the fence is %s", waited, fenceOfTests)
	}
	q.release()
	q.onlyOneRuns(old)
}
