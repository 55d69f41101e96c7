package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/structs"
)

// pair is a server and two nodes that run one job with a single allocation, which writes a timestamp every 50 ms.
type pair struct {
	t      *testing.T
	server *agent
	nodes  []*agent
	dir    string // one file of timestamps an allocation
}

// stamps ignores all signals that can be ignored. It writes in a child of the task's main process, so that the death of
// that one alone would not end it, to a file of this life of the allocation.
const stamps = `trap "" INT TERM; f=%s/$NOMAD_ALLOC_ID.$$; date +%%s%%N >> $f; echo up
(while :; do date +%%s%%N >> $f; sleep 0.05; done) & while :; do wait; done`

func newPair(t *testing.T, client map[string]any, change func(*structs.Job, *structs.TaskGroup, *structs.Task)) *pair {
	t.Helper()
	p := preparePair(t, client)
	for _, node := range p.nodes {
		node.Start()
	}
	p.run(change)
	return p
}

// run registers the job.
func (p *pair) run(change func(*structs.Job, *structs.TaskGroup, *structs.Task)) {
	p.t.Helper()
	register(p.t, p.server.Client, job("one", fmt.Sprintf(stamps, p.dir), change))
}

// preparePair starts the server; client is added to the nodes' configuration.
func preparePair(t *testing.T, client map[string]any) *pair {
	t.Helper()
	p := newIdlePair(t, client)
	p.server.Start()
	return p
}

func newIdlePair(t *testing.T, client map[string]any) *pair {
	t.Helper()
	p := &pair{t: t, dir: t.TempDir()}
	p.server = newAgent(t, func(c map[string]any) {
		c["client"] = map[string]any{"enabled": false}
		c["server"] = map[string]any{"enabled": true, "bootstrap_expect": 1, "min_heartbeat_ttl": "1s", "heartbeat_grace": "1s"}
	})
	for i := range 2 {
		node := newAgent(t, func(c map[string]any) {
			c["name"] = fmt.Sprint("node", i)
			c["server"] = map[string]any{"enabled": false}
			block := map[string]any{"enabled": true, "servers": []string{fmt.Sprintf("127.0.0.1:%d", p.server.RPC)}}
			for key, value := range client {
				block[key] = value
			}
			c["client"] = block
		})
		p.nodes = append(p.nodes, node)
	}
	return p
}

// holder gives the allocation that runs, and its node's agent.
func (p *pair) holder() (*structs.AllocationListStub, *agent) {
	p.t.Helper()
	alloc := awaitRunning(p.t, p.server.Client, "one", 1)[0]
	for i, node := range p.nodes {
		if alloc.NodeName == fmt.Sprint("node", i) {
			return alloc, node
		}
	}
	p.t.Fatalf("allocation is on %q", alloc.NodeName)
	return nil, nil
}

// replaced waits until another allocation runs, and until it has written something.
func (p *pair) replaced(old *structs.AllocationListStub) *structs.AllocationListStub {
	p.t.Helper()
	list := awaitAllocs(p.t, p.server.Client, "one", "a replacement", func(l []*structs.AllocationListStub) bool {
		for _, a := range withStatus(l, structs.AllocClientStatusRunning) {
			if a.ID != old.ID {
				return true
			}
		}
		return false
	})
	for _, a := range withStatus(list, structs.AllocClientStatusRunning) {
		if a.ID != old.ID {
			return a
		}
	}
	return nil
}

// lives gives the files of an allocation, one for each of its lives.
func (p *pair) lives(id string) []string {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.dir, id+".*"))
	if err != nil || len(files) == 0 {
		p.t.Fatalf("files of %s: %v %v", id, files, err)
	}
	return files
}

// written gives the first and the last timestamp in a file.
func (p *pair) written(file string) (first, last time.Time) {
	p.t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	lines := strings.Fields(string(raw))
	at := func(s string) time.Time {
		ns, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		return time.Unix(0, ns)
	}
	return at(lines[0]), at(lines[len(lines)-1])
}

// noOverlap checks that the old process had ended before the new one began, and not long before it had to.
func (p *pair) noOverlap(old, replacement *structs.AllocationListStub, cut time.Time, lease time.Duration) {
	p.t.Helper()
	if old.NodeID == replacement.NodeID {
		p.t.Errorf("the replacement is on the same node")
	}
	p.server.followLog(replacement.ID, "up")
	files := p.lives(old.ID)
	if len(files) > 1 {
		p.t.Errorf("the old one was started again: %v", files)
	}
	_, last := p.written(files[0])
	first, _ := p.written(p.lives(replacement.ID)[0])
	p.t.Logf("contact ended; the old one ended after %s, the new one began after %s", last.Sub(cut), first.Sub(cut))
	if !last.Before(first) {
		p.t.Errorf("the old process wrote until %s after the new one had begun", last.Sub(first))
	}
	// Without a lease left it may end at once: its last word is then from before the cut.
	if lease > 0 && last.Sub(cut) < lease/2 {
		p.t.Errorf("the old process ended after %s, it had a lease of %s", last.Sub(cut), lease)
	}
}

func leaseOf(d, kill time.Duration) func(*structs.Job, *structs.TaskGroup, *structs.Task) {
	return func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		g.Disconnect = &structs.DisconnectStrategy{StopOnClientAfter: &d}
		task.KillTimeout = &kill
	}
}

// TestFenceFrozenAgent freezes the agent: its supervisor kills the task, which ignores all signals and whose
// kill_timeout is longer than its lease.
func TestFenceFrozenAgent(t *testing.T) {
	t.Parallel()
	p := newPair(t, nil, leaseOf(2*time.Second, 3*time.Second))
	old, node := p.holder()
	p.server.followLog(old.ID, "up")
	cut := time.Now()
	if err := syscall.Kill(node.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(node.PID(), syscall.SIGCONT) })
	replacement := p.replaced(old)
	p.noOverlap(old, replacement, cut, 2*time.Second)
	// It comes back, finds its task ended, and does not start it again.
	if err := syscall.Kill(node.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	awaitAllocs(t, p.server.Client, "one", "the end of the old one", func(l []*structs.AllocationListStub) bool {
		for _, a := range l {
			if a.ID == old.ID {
				return a.ClientStatus == structs.AllocClientStatusFailed || a.ClientStatus == structs.AllocClientStatusComplete
			}
		}
		return false
	})
	p.noOverlap(old, replacement, cut, 2*time.Second)
}

// TestFenceKilledAgent kills the agent (-9), on a node that gives everything a lease.
func TestFenceKilledAgent(t *testing.T) {
	t.Parallel()
	p := newPair(t, map[string]any{"lease": "3s", "max_kill_timeout": "1s"}, nil)
	old, node := p.holder()
	p.server.followLog(old.ID, "up")
	cut := time.Now()
	node.Kill()
	p.noOverlap(old, p.replaced(old), cut, 3*time.Second)
}

// TestFenceKilledSupervisor kills the supervisor (-9): the agent, which lives, lets nothing of the task survive it, and
// starts it anew.
func TestFenceKilledSupervisor(t *testing.T) {
	t.Parallel()
	p := newPair(t, nil, func(j *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		leaseOf(time.Minute, time.Second)(j, g, task)
		task.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(3), Delay: structs.Ptr(100 * time.Millisecond),
			Interval: structs.Ptr(time.Minute), Mode: structs.Ptr("fail")}
	})
	old, node := p.holder()
	p.server.followLog(old.ID, "up")
	first := p.lives(old.ID)[0]
	pid := supervisorOf(t, node)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.server.followLog(old.ID, "up\nup\n")
	files := p.lives(old.ID)
	second := files[0]
	if second == first {
		second = files[len(files)-1]
	}
	_, last := p.written(first)
	began, _ := p.written(second)
	t.Logf("the old process wrote until %s before the new one began", began.Sub(last))
	if len(files) != 2 || !last.Before(began) {
		t.Errorf("lives %v: the old process wrote until %s after the new one had begun", files, last.Sub(began))
	}
	if same, _ := p.holder(); same.ID != old.ID {
		t.Errorf("allocation %s became %s", old.ID, same.ID)
	}
}

// TestFenceFrozenSupervisor freezes the supervisor: the agent, which lives and is in contact, cannot renew the lease and
// kills the task itself when it has run out.
func TestFenceFrozenSupervisor(t *testing.T) {
	t.Parallel()
	p := newPair(t, nil, leaseOf(2*time.Second, time.Second))
	old, node := p.holder()
	p.server.followLog(old.ID, "up")
	pid := supervisorOf(t, node)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	task := p.lives(old.ID)[0]
	cut := time.Now()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, task)
	if took := time.Since(cut); took > 8*time.Second {
		t.Errorf("it was killed after %s", took)
	}
	if _, last := p.written(task); last.Sub(cut) < time.Second {
		t.Errorf("it was killed after %s", last.Sub(cut))
	}
}

// TestFenceBothKilled kills agent and supervisor (-9) together: what writes is a child of the task's main process, and
// the kernel ends only that one.
func TestFenceBothKilled(t *testing.T) {
	t.Parallel()
	p := newPair(t, nil, leaseOf(2*time.Second, time.Second))
	old, node := p.holder()
	p.server.followLog(old.ID, "up")
	supervisor, cut := supervisorOf(t, node), time.Now()
	node.Kill()
	if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	replacement := p.replaced(old)
	p.noOverlap(old, replacement, cut, 0)
	if _, last := p.written(p.lives(old.ID)[0]); last.Sub(cut) > 2*time.Second {
		t.Errorf("the old process wrote until %s after both had been killed", last.Sub(cut))
	}
}

// TestFenceFrozenLeader freezes the leader for twice the lease while heartbeats lie in its socket: their answers come too
// late to bring anything back. The node is heard again before the servers give anything up; the replacement of what it
// ended waits for no reschedule policy, and is no reschedule.
func TestFenceFrozenLeader(t *testing.T) {
	t.Parallel()
	lease := 2 * time.Second
	p := newPair(t, nil, func(j *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		leaseOf(lease, 500*time.Millisecond)(j, g, task)
		g.ReschedulePolicy = &structs.ReschedulePolicy{Delay: structs.Ptr(10 * time.Minute), DelayFunction: structs.Ptr("constant"),
			Unlimited: structs.Ptr(true)}
	})
	old, _ := p.holder()
	p.server.followLog(old.ID, "up")
	cut, pid := time.Now(), p.server.PID()
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, p.lives(old.ID)[0])
	ctx, cancel := context.WithDeadline(t.Context(), cut.Add(2*lease))
	defer cancel()
	if _, _, err := p.server.Client.Jobs().List(ctx, nil); err == nil {
		t.Error("a frozen leader answers")
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	replacement := p.replaced(old)
	p.server.followLog(replacement.ID, "up")
	_, last := p.written(p.lives(old.ID)[0])
	first, _ := p.written(p.lives(replacement.ID)[0])
	t.Logf("contact ended; the old one ended after %s, the new one began after %s", last.Sub(cut), first.Sub(cut))
	if r := replacement.RescheduleTracker; r != nil && len(r.Events) > 0 {
		t.Errorf("the replacement counts as a reschedule: %+v", r)
	}
	if len(p.lives(old.ID)) != 1 || !last.Before(first) || last.Sub(cut) > lease+2*time.Second {
		t.Errorf("lives %v, the old one ended after %s, the new one began after %s", p.lives(old.ID), last.Sub(cut), first.Sub(cut))
	}
}

// TestFencePartition holds up all that passes between a node and its servers: agent and supervisor live, and stop the
// task in time. Heartbeats and answers that are delivered long afterwards bring nothing back.
func TestFencePartition(t *testing.T) {
	t.Parallel()
	p := newIdlePair(t, nil)
	w := newWire(t, fmt.Sprintf("127.0.0.1:%d", p.server.RPC))
	p.server.Config["advertise"] = map[string]any{"rpc": w.addr()} // or else the node learns of a way around
	p.server.Start()
	for _, node := range p.nodes {
		node.Config["client"].(map[string]any)["servers"] = []string{w.addr()}
	}
	p.nodes[0].Start()
	p.run(leaseOf(2*time.Second, 3*time.Second))
	old, _ := p.holder()
	p.server.followLog(old.ID, "up")
	p.nodes[1].Start()
	cut := time.Now()
	w.of(old.NodeID)
	w.hold()
	replacement := p.replaced(old)
	p.noOverlap(old, replacement, cut, 2*time.Second)
	w.release()
	ended := awaitAllocs(t, p.server.Client, "one", "the end of the old one", func(l []*structs.AllocationListStub) bool {
		for _, a := range l {
			if a.ID == old.ID && (a.ClientStatus == structs.AllocClientStatusFailed || a.ClientStatus == structs.AllocClientStatusComplete) {
				return true
			}
		}
		return false
	})
	if !strings.Contains(describe(ended), "Lease has run out") {
		t.Errorf("its events do not tell why:%s", describe(ended))
	}
	if len(withStatus(ended, structs.AllocClientStatusRunning)) != 1 {
		t.Errorf("not exactly one runs:%s", describe(ended))
	}
	p.noOverlap(old, replacement, cut, 2*time.Second)
}

// supervisorOf gives the process id of a node's supervisor.
func supervisorOf(t *testing.T, node *agent) int {
	t.Helper()
	socket, err := filepath.Glob(filepath.Join(node.Dir, "data", "client", "supervisor", "s-*.sock"))
	if err != nil || len(socket) != 1 {
		t.Fatalf("supervisors: %v %v", socket, err)
	}
	var pid, tick int
	if _, err := fmt.Sscanf(filepath.Base(socket[0]), "s-%d-%d", &pid, &tick); err != nil {
		t.Fatal(err)
	}
	return pid
}

// awaitGone waits until the process is gone whose id ends the name of a file.
func awaitGone(t *testing.T, file string) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(file), "."))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	awaitPidfd(t, fd, pid)
}

func awaitPidfd(t *testing.T, fd, pid int) {
	t.Helper()
	for until := time.Now().Add(waitLimit); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(until).Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			t.Fatalf("process %d does not end: %v", pid, err)
		}
		return
	}
}
