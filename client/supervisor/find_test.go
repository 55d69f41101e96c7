package supervisor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An agent may die while it starts a supervisor, which goes on starting, and takes the tasks over while the next agent
// already looks for them: that agent waits for it, instead of taking the tasks for lost.
func TestASupervisorThatIsStartingIsWaitedFor(t *testing.T) {
	n := newNode(t, Config{})
	task := n.start(n.spec("task", "exec sleep 600"))
	kill9(t, n.supervisorPID())
	n.Close()
	held, err := lockDir(n.dir, true) // it cannot get farther than this
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: n.dir, Idle: 2 * time.Second, LogLevel: "info"}
	cmd := exec.Command(self, append([]string{"supervisor"}, o.args()...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait() // it ends when the node is cleaned up
	name := awaitDir(t, n.dir, cmd.Process.Pid)
	n.restart()
	type answer struct {
		info *TaskInfo
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		info, err := n.Status(n.ctx, "task")
		got <- answer{info, err}
	}()
	select {
	case a := <-got:
		t.Fatalf("it did not wait: %+v, %v", a.info, a.err)
	case <-time.After(100 * time.Millisecond):
	}
	held.Close()
	a := <-got
	if a.err != nil || a.info.PID != task.PID || !a.info.Running {
		t.Fatalf("got %+v, %v; want process %d", a.info, a.err, task.PID)
	}
	if all, err := n.Supervisors(n.ctx); err != nil || len(all) != 1 || all[0].Name != name {
		t.Errorf("supervisors %+v, %v; want %s alone", all, err, name)
	}
}

// A supervisor that came unnoticed is found when the others do not know a task.
func TestAnUnnoticedSupervisorIsFound(t *testing.T) {
	n := newNode(t, Config{})
	if err := n.Ensure(n.ctx); err != nil {
		t.Fatal(err)
	}
	other := NewClient(n.cfg)
	defer other.Close()
	if _, err := other.launch(context.Background()); err != nil { // the newest one gets the task
		t.Fatal(err)
	}
	if _, err := other.Start(n.ctx, n.spec("task", "exec sleep 600")); err != nil {
		t.Fatal(err)
	}
	if info, err := n.Status(n.ctx, "task"); err != nil || !info.Running {
		t.Errorf("got %+v, %v", info, err)
	}
}

// awaitDir waits until the supervisor of this pid has its directory, and gives its name.
func awaitDir(t *testing.T, dir string, pid int) string {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	self, err := readProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if p, err := readProcess(pid); e.IsDir() && strings.HasPrefix(e.Name(), dirPrefix) && lives(e.Name()) && err == nil && p.startTick == self.startTick {
				if _, err := os.Stat(filepath.Join(dir, e.Name(), lockName)); err == nil {
					return e.Name()
				}
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the supervisor makes no directory")
		}
	}
}

// A supervisor that is held up may have any task: no task is called unknown before it answers, and others start.
func TestASilentSupervisorMayHaveTheTask(t *testing.T) {
	n := newNode(t, Config{FindLimit: 200 * time.Millisecond})
	task := n.start(n.spec("task", "exec sleep 600"))
	pid := n.supervisorPID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() { // all of its threads
		t.Fatalf("stop supervisor: %v, %v", ws, err)
	}
	n.restart()
	if info, err := n.Status(n.ctx, "task"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("got %+v, %v", info, err)
	}
	if _, err := n.Start(n.ctx, n.spec("other", "exec sleep 600")); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if info, err := n.Status(n.ctx, "task"); err != nil || info.PID != task.PID {
		t.Errorf("got %+v, %v; want process %d", info, err, task.PID)
	}
}

// A supervisor killed while it makes a process leaves its lock to that process for a moment: it counts as dead, and
// its tasks are taken over.
func TestALockThatOutlivesItsHolder(t *testing.T) {
	n := newNode(t, Config{})
	dir := filepath.Join(n.dir, dirPrefix+"4194399-1") // more than any process's number
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := appendRecord(filepath.Join(dir, recordName("task")), record{Task: &taskRecord{ID: "task", BootID: "another"}}); err != nil {
		t.Fatal(err)
	}
	lock, err := lockDir(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	release := time.AfterFunc(50*time.Millisecond, func() { lock.Close() })
	defer release.Stop()
	info, err := n.Wait(n.ctx, "task")
	if err != nil || info.Running || info.Exit == nil || info.Exit.Known {
		t.Errorf("got %+v, %v", info, err)
	}
}
