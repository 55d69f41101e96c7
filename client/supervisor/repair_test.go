package supervisor

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// brokenPoller is one whose first n waits fail.
func brokenPoller(t *testing.T, n int32) (*poller, chan error) {
	t.Helper()
	failed := make(chan error, 1)
	p, err := newPoller(hclog.NewNullLogger(), func(err error) { failed <- err })
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	p.wait = func(fd int, events []unix.EpollEvent, msec int) (int, error) {
		switch i := calls.Add(1); {
		case i == 1:
			return 0, unix.EINTR
		case i <= n+1:
			return 0, unix.EBADF
		}
		return unix.EpollWait(fd, events, msec)
	}
	return p, failed
}

// TestPollerGoesOnAfterAFault: what it watched before is still watched.
func TestPollerGoesOnAfterAFault(t *testing.T) {
	p, failed := brokenPoller(t, rebuilds)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	heard := make(chan struct{}, 1)
	if err := p.add(int(r.Fd()), func(buf []byte) {
		_, _ = unix.Read(int(r.Fd()), buf)
		heard <- struct{}{}
	}); err != nil {
		t.Fatal(err)
	}
	go p.run()
	defer p.close()
	if _, err := w.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-heard:
	case err := <-failed:
		t.Fatal(err)
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was heard")
	}
}

// TestPollerThatCannotGoOnSaysSo to who can end the supervisor.
func TestPollerThatCannotGoOnSaysSo(t *testing.T) {
	p, failed := brokenPoller(t, rebuilds+1)
	go p.run()
	if err := <-failed; !errors.Is(err, unix.EBADF) {
		t.Errorf("error %v", err)
	}
	p.close()
}

// TestABrokenSupervisorEndsThoughItHasTasks, and with an error: the agent then does as after its death (TestKilledSupervisor).
func TestABrokenSupervisorEndsThoughItHasTasks(t *testing.T) {
	s := &server{logger: hclog.NewNullLogger(), quit: make(chan string, 1), tasks: map[string]*task{"a": {phase: phaseRunning}}}
	s.broken(unix.EBADF)
	if why := <-s.quit; why != "broken" || !errors.Is(s.fault, unix.EBADF) || !s.closing {
		t.Errorf("ends for %q, fault %v, closing %t", why, s.fault, s.closing)
	}
}

// leftRecord writes a record as a supervisor that is dead has left it.
func (n *node) leftRecord(rec record) string {
	n.t.Helper()
	dir := filepath.Join(n.dir, dirPrefix+"4194399-1") // more than any process's number
	if err := os.MkdirAll(dir, 0o700); err != nil {
		n.t.Fatal(err)
	}
	path := filepath.Join(dir, recordName("task"))
	if err := appendRecord(path, rec); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// TestARecordStaysWithItsCgroup: a task whose cgroup cannot be removed is not forgotten, the agent is told, and the next
// attempt succeeds once it can be.
func TestARecordStaysWithItsCgroup(t *testing.T) {
	n := newNode(t, Config{})
	cgroup := filepath.Join(t.TempDir(), "task.scope")
	busy := filepath.Join(cgroup, "busy")
	if err := os.Mkdir(cgroup, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(busy, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.leftRecord(record{Task: &taskRecord{ID: "task", BootID: bootID(), Cgroup: cgroup}, Started: &startRecord{PID: 1 << 22, StartTick: 1},
		Exit: &Exit{Known: true}})
	err := n.Destroy(n.ctx, "task", true)
	if err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), cgroup) {
		t.Fatalf("destroyed: %v", err)
	}
	if info, err := n.Status(n.ctx, "task"); err != nil || info.Running {
		t.Fatalf("got %+v, %v", info, err)
	}
	if err := os.Remove(busy); err != nil {
		t.Fatal(err)
	}
	if err := n.Destroy(n.ctx, "task", true); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Status(n.ctx, "task"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after all it is known: %v", err)
	}
}

// TestClearingACgroupKillsWhatIsInIt where there is a unified hierarchy.
func TestClearingACgroupKillsWhatIsInIt(t *testing.T) {
	c := findCgroups("")
	if !c.usable() {
		t.Skip("no unified cgroup hierarchy to write to")
	}
	n := newNode(t, Config{})
	info := n.start(n.spec("a", "sleep 1000 & sleep 1000"))
	below := filepath.Join(info.Cgroup, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := clearCgroup(info.Cgroup); err != nil {
		t.Error(err)
	}
	if exists(info.Cgroup) {
		t.Error("it is still there")
	}
	n.wait("a")
}

// stopped stops a process and all its threads.
func stopped(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatalf("stop supervisor: %v, %v", ws, err)
	}
}

// TestAStoppedSupervisorHoldsNothingUp on a connection that is open: calls about its tasks fail at once and say why,
// other tasks start under another supervisor; continued it does what it was asked.
func TestAStoppedSupervisorHoldsNothingUp(t *testing.T) {
	n := newNode(t, Config{})
	task := n.start(n.spec("task", "exec sleep 600"))
	pid := n.supervisorPID()
	waited := make(chan error, 1)
	go func() {
		_, err := n.Wait(n.ctx, "task")
		waited <- err
	}()
	stopped(t, pid)
	begin := time.Now()
	_, statusErr := n.Status(n.ctx, "task")
	_, stopErr := n.Stop(n.ctx, "task", unix.SIGTERM, time.Second)
	_, listErr := n.List(n.ctx)
	for what, err := range map[string]error{"status": statusErr, "stop": stopErr, "list": listErr, "signal": n.Signal(n.ctx, "task", unix.SIGHUP),
		"destroy": n.Destroy(n.ctx, "task", true)} {
		if !errors.Is(err, ErrSilent) || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "is stopped") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := n.Start(n.ctx, n.spec("other", "exec sleep 600")); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("all that took %s", took)
	}
	begin = time.Now()
	n.restart() // so does the next agent
	if _, err := n.Status(n.ctx, "task"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if info, err := n.Status(n.ctx, "other"); err != nil || !info.Running {
		t.Errorf("got %+v, %v", info, err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the next agent needed %s", took)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if info, err := n.Status(n.ctx, "task"); err != nil || info.PID != task.PID || !info.Running {
		t.Errorf("got %+v, %v; want process %d", info, err, task.PID)
	}
	<-waited
}

// lateReturn is a connection on which a request counts as written only when afterwards lets it.
type lateReturn struct {
	net.Conn
	afterwards func()
}

func (l lateReturn) Write(b []byte) (int, error) {
	n, err := l.Conn.Write(b)
	l.afterwards()
	return n, err
}

// TestAnAnswerInTheLastMomentCounts: who gives a start up when its answer is there already hears of the process.
func TestAnAnswerInTheLastMomentCounts(t *testing.T) {
	for range 30 { // each time it is by chance what is seen first
		ours, theirs := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		in := bufio.NewReader(theirs)
		sent := make(chan error, 1)
		c := &conn{waiting: map[uint64]chan *response{}, late: map[uint64]string{}, done: make(chan struct{})}
		c.net = lateReturn{ours, func() {
			<-sent
			cancel()
		}}
		go c.read()
		go func() {
			var req request
			err := readMessage(in, &req)
			for _, id := range []uint64{req.ID, req.ID + 1} { // the second is taken when the first was handed over
				err = errors.Join(err, writeMessage(theirs, response{ID: id, Task: &TaskInfo{ID: "a", Running: true}}))
			}
			sent <- err
		}()
		resp, err := c.call(ctx, request{Op: opStart, Start: &StartSpec{TaskID: "a"}})
		c.close() // its reader has ended then
		theirs.Close()
		cancel()
		if err != nil || resp.Task == nil || len(c.late) > 0 {
			t.Fatalf("got %+v, %v; late %v", resp, err, c.late)
		}
	}
}

// TestCallsHaveALimit: a supervisor that hangs is told of in time. What it starts after all is ended.
func TestCallsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := &conn{net: ours, waiting: map[uint64]chan *response{}, late: map[uint64]string{}, done: make(chan struct{})}
		go c.read()
		asked := make(chan request, 4)
		go func() {
			in := bufio.NewReader(theirs)
			for {
				var req request
				if readMessage(in, &req) != nil {
					return
				}
				asked <- req
			}
		}()
		begin := time.Now()
		if _, err := c.call(context.Background(), request{Op: opStatus, TaskID: "a"}); !errors.Is(err, ErrSilent) || time.Since(begin) != answerLimit {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		<-asked
		begin = time.Now()
		_, err := c.call(context.Background(), request{Op: opStart, Start: &StartSpec{TaskID: "a"}})
		if !errors.Is(err, ErrSilent) || time.Since(begin) != actLimit {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		start := <-asked
		if err := writeMessage(theirs, response{ID: start.ID, Task: &TaskInfo{ID: "a", Running: true}}); err != nil {
			t.Fatal(err)
		}
		if end := <-asked; end.Op != opDestroy || end.TaskID != "a" || !end.Force {
			t.Errorf("the late start is answered by %+v", end)
		} else if err := writeMessage(theirs, response{ID: end.ID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.close()
		theirs.Close()
		synctest.Wait()
	})
}
