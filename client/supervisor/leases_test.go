package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/internal/boottime"
)

// leased is a task that ignores signals, with a grandchild which has left session, group and parent.
type leased struct {
	info             *TaskInfo
	main, grandchild int // pidfds
	began            time.Duration
}

// startLeased starts one with a lease of d.
func (n *node) startLeased(id string, d time.Duration) *leased {
	n.t.Helper()
	spec := n.spec(id, `trap "" TERM INT; (setsid sh -c 'trap "" TERM INT; echo $$ >$PIDS; sleep 1000' &); while :; do sleep 1000; done`)
	pids := filepath.Join(n.t.TempDir(), "pids")
	if err := unix.Mkfifo(pids, 0o600); err != nil {
		n.t.Fatal(err)
	}
	spec.Env = append(spec.Env, "PIDS="+pids, "NOMAD_ALLOC_ID="+n.dir, "NOMAD_TASK_NAME="+id)
	l := &leased{}
	l.began, _ = boottime.System().Boot() // before the lease: it is not over sooner than that long after
	until := boottime.After(boottime.System(), d)
	spec.Lease = &until
	l.info = n.start(spec)
	data, err := os.ReadFile(pids)
	if err != nil {
		n.t.Fatal(err)
	}
	var pid int
	fmt.Sscan(string(data), &pid)
	var errs [2]error
	l.main, errs[0] = unix.PidfdOpen(l.info.PID, 0)
	l.grandchild, errs[1] = unix.PidfdOpen(pid, 0)
	if err := errors.Join(errs[0], errs[1]); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { unix.Close(l.main); unix.Close(l.grandchild) })
	return l
}

// gone waits until all of the task has ended and gives the time since its start.
func (l *leased) gone(t testing.TB) time.Duration {
	t.Helper()
	awaitExit(t, l.main)
	awaitExit(t, l.grandchild)
	now, _ := boottime.System().Boot()
	return now - l.began
}

func (l *leased) alive() bool {
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(l.main), Events: unix.POLLIN}}, 0)
	return n == 0
}

func eachHierarchy(t *testing.T, test func(t *testing.T, n *node)) {
	for _, noCgroups := range []bool{false, true} {
		t.Run(fmt.Sprintf("no cgroups %v", noCgroups), func(t *testing.T) { test(t, newNode(t, Config{NoCgroups: noCgroups})) })
	}
}

func (n *node) keepLeases() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { n.KeepLeases(ctx); close(done) }()
	n.t.Cleanup(func() { cancel(); <-done })
}

func TestLeaseRunsOut(t *testing.T) {
	eachHierarchy(t, func(t *testing.T, n *node) {
		l := n.startLeased("a", 300*time.Millisecond)
		other := n.start(n.spec("other", "exec sleep 1000"))
		if took := l.gone(t); took < 300*time.Millisecond || took > 2*time.Second {
			t.Errorf("it was killed after %s", took)
		}
		if e := n.wait("a").Exit; e == nil || e.Signal != 9 {
			t.Errorf("exit %+v", e)
		}
		if info, err := n.Status(n.ctx, "other"); err != nil || !info.Running || info.PID != other.PID {
			t.Errorf("a task without a lease: %+v, %v", info, err)
		}
	})
}

func TestLeaseIsRenewed(t *testing.T) {
	n := newNode(t, Config{})
	l := n.startLeased("a", 400*time.Millisecond)
	until := boottime.After(boottime.System(), time.Second)
	if err := n.Renew(n.ctx, map[string]boottime.Deadline{"a": until, "unknown": until}); err != nil {
		t.Fatal(err)
	}
	n.Client.Close() // no agent any more
	if took := l.gone(t); took < time.Second || took > 3*time.Second {
		t.Errorf("it was killed after %s", took)
	}
	n.restart()
	// What has run out is not brought back, and nothing is started with a lease that has run out.
	if err := n.Renew(n.ctx, map[string]boottime.Deadline{"a": boottime.After(boottime.System(), time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if e := n.wait("a").Exit; e == nil || e.Signal != 9 {
		t.Errorf("exit %+v", e)
	}
	late := n.spec("late", "exit 0")
	past := boottime.After(boottime.System(), -time.Millisecond)
	late.Lease = &past
	if _, err := n.Start(n.ctx, late); !errors.Is(err, ErrStart) {
		t.Errorf("start with a lease that has run out: %v", err)
	}
	before := boottime.Deadline{BootID: "another", At: 1 << 60}
	late.Lease = &before
	if info, err := n.Start(n.ctx, late); err == nil {
		t.Errorf("start with a lease of an earlier boot: %+v", info)
	}
}

// TestLeasedTasksDieWithTheirSupervisor also when no agent lives to kill them.
func TestLeasedTasksDieWithTheirSupervisor(t *testing.T) {
	eachHierarchy(t, func(t *testing.T, n *node) {
		l := n.startLeased("a", time.Hour)
		n.Client.Close()
		kill9(t, n.leaderPID())
		l.gone(t)
		n.restart()
		if e := n.wait("a").Exit; e == nil || (e.Known && e.Signal != 9) {
			t.Errorf("exit %+v", e)
		}
	})
}

// TestGuardKillsForAFrozenSupervisor, when no agent lives either.
func TestGuardKillsForAFrozenSupervisor(t *testing.T) {
	n := newNode(t, Config{})
	l := n.startLeased("a", 500*time.Millisecond)
	n.Client.Close()
	pid := n.leaderPID()
	t.Cleanup(func() { unix.Kill(pid, unix.SIGCONT) })
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l.gone(t)
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	n.restart()
	if e := n.wait("a").Exit; e == nil || e.Signal != 9 {
		t.Errorf("exit %+v", e)
	}
}

// leaderPID finds the supervisor by the name of its directory, without a connection.
func (n *node) leaderPID() int {
	n.t.Helper()
	dirs, _ := filepath.Glob(filepath.Join(n.dir, dirPrefix+"*.sock"))
	if len(dirs) != 1 {
		n.t.Fatalf("supervisors: %v", dirs)
	}
	var pid int
	var tick uint64
	if _, err := fmt.Sscanf(filepath.Base(dirs[0]), dirPrefix+"%d-%d", &pid, &tick); err != nil {
		n.t.Fatal(err)
	}
	return pid
}

func TestAgentKillsWhatItsSupervisorCannot(t *testing.T) {
	t.Run("killed", func(t *testing.T) {
		eachHierarchy(t, func(t *testing.T, n *node) {
			n.keepLeases()
			l := n.startLeased("a", time.Hour)
			kill9(t, n.supervisorPID())
			if took := l.gone(t); took > 5*time.Second {
				t.Errorf("it was killed after %s", took)
			}
		})
	})
	t.Run("frozen", func(t *testing.T) {
		eachHierarchy(t, func(t *testing.T, n *node) {
			n.keepLeases()
			l := n.startLeased("a", time.Second)
			pid := n.supervisorPID()
			t.Cleanup(func() { unix.Kill(pid, unix.SIGCONT) })
			if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			// All of its threads have to have stopped.
			if err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(n.ctx, 100*time.Millisecond)
			defer cancel()
			if err := n.Renew(ctx, map[string]boottime.Deadline{"a": boottime.After(boottime.System(), time.Hour)}); err == nil {
				t.Error("a frozen supervisor has acknowledged")
			}
			if !l.alive() {
				t.Error("it was killed too early")
			}
			awaitExit(t, l.grandchild)
			if now, _ := boottime.System().Boot(); now-l.began < time.Second || now-l.began > 4*time.Second {
				t.Errorf("it was killed after %s", now-l.began)
			}
			if err := unix.Kill(pid, unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
			l.gone(t)
			if e := n.wait("a").Exit; e == nil || e.Signal != 9 {
				t.Errorf("exit %+v", e)
			}
		})
	})
	t.Run("restarted agent", func(t *testing.T) {
		n := newNode(t, Config{})
		l := n.startLeased("a", time.Hour)
		n.restart()
		n.keepLeases()
		if err := n.Ensure(n.ctx); err != nil {
			t.Fatal(err)
		}
		if err := n.Renew(n.ctx, map[string]boottime.Deadline{"a": boottime.After(boottime.System(), time.Hour)}); err != nil {
			t.Fatal(err)
		}
		kill9(t, n.supervisorPID())
		l.gone(t)
	})
}
