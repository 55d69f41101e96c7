package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/internal/codec"
)

// damaged starts a task with a child that leaves its session, kills the supervisor, damages the task's record and gives
// what the task was. alive says which of its processes live.
func damaged(t *testing.T, cfg Config, damage func(data, task, started []byte) []byte) (n *node, info *TaskInfo, alive func() []int) {
	t.Helper()
	n = newNode(t, cfg)
	const id = "alloc/web/1"
	spec := n.spec(id, "setsid sleep 1000 & echo up; exec sleep 1000")
	spec.Env = append(spec.Env, "NOMAD_ALLOC_ID=alloc", "NOMAD_TASK_NAME=web", "RUN="+n.dir)
	spec.StdoutPath, spec.StderrPath = "", ""
	alive = func() []int {
		var out []int
		for _, p := range allProcesses() {
			if p.state != 'Z' && marked(p.pid, []string{"RUN=" + n.dir}) {
				out = append(out, p.pid)
			}
		}
		return out
	}
	info = n.start(spec)
	tick := time.NewTicker(time.Millisecond) // what is being executed has no environment for a moment
	defer tick.Stop()
	for sleeps := 0; sleeps < 2; <-tick.C {
		sleeps = 0
		for _, pid := range alive() {
			if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(string(line), "sleep\x00") {
				sleeps++
			}
		}
		if n.ctx.Err() != nil {
			t.Fatal("the task's processes do not run")
		}
	}
	pid := n.supervisorPID()
	n.Client.Close()
	kill9(t, pid)
	found, err := filepath.Glob(filepath.Join(n.dir, dirPrefix+"*", recordName(id)))
	if err != nil || len(found) != 1 {
		t.Fatalf("records %v, %v", found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	rec, err := readRecord(found[0])
	if err != nil {
		t.Fatal(err)
	}
	encode := func(r record) []byte {
		raw, err := codec.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	data = damage(data, encode(record{Task: rec.Task}), encode(record{Started: rec.Started}))
	if err := os.WriteFile(found[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	n.restart()
	t.Cleanup(func() { // whatever the test found
		for _, pid := range alive() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	return n, info, alive
}

func (n *node) logged(words ...string) {
	n.t.Helper()
	log, err := os.ReadFile(filepath.Join(n.dir, "supervisor.log"))
	if err != nil {
		n.t.Fatal(err)
	}
	for _, w := range words {
		if !strings.Contains(string(log), w) {
			n.t.Errorf("supervisor's log has no %q:\n%s", w, log)
		}
	}
}

func eachWay(t *testing.T, f func(t *testing.T, cfg Config)) {
	for name, cfg := range map[string]Config{"cgroups": {}, "no cgroups": {NoCgroups: true}} {
		t.Run(name, func(t *testing.T) { f(t, cfg) })
	}
}

var garbage = bytes.Repeat([]byte{0xff}, 9)

// TestADamagedRecordThatStillTellsAll: the task goes on.
func TestADamagedRecordThatStillTellsAll(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config) {
		n, info, alive := damaged(t, cfg, func(_, task, started []byte) []byte {
			return bytes.Join([][]byte{garbage, task, garbage, started, garbage}, nil)
		})
		if got, err := n.Status(n.ctx, info.ID); err != nil || got.PID != info.PID || !got.Running {
			t.Fatalf("got %+v, %v", got, err)
		}
		n.logged("task record is damaged, going on", info.ID, ".bad")
		if _, err := n.Stop(n.ctx, info.ID, unix.SIGKILL, time.Second); err != nil {
			t.Fatal(err)
		}
		if left := alive(); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestADamagedRecordWithoutTheProcess: the task is ended by cgroup or marks, and known as such.
func TestADamagedRecordWithoutTheProcess(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config) {
		n, info, alive := damaged(t, cfg, func(_, task, _ []byte) []byte { return append(bytes.Clone(task), garbage...) })
		if got := n.wait(info.ID); got.Exit == nil || got.Exit.Known {
			t.Errorf("got %+v", got)
		}
		if left := alive(); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestADamagedRecordWithoutTheTask: its process is killed by number and start time, with its cgroup or marks.
func TestADamagedRecordWithoutTheTask(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config) {
		n, info, alive := damaged(t, cfg, func(_, _, started []byte) []byte { return append(bytes.Clone(garbage), started...) })
		if _, err := n.Status(n.ctx, info.ID); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if left := alive(); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		n.logged("task record is damaged, its process was killed", "pid="+strconv.Itoa(info.PID), ".bad")
	})
}

// TestARecordThatTellsNothing: the agent, which knows the process, ends it before anything takes its place.
func TestARecordThatTellsNothing(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config) {
		n, info, alive := damaged(t, cfg, func(data, _, _ []byte) []byte { return bytes.Repeat([]byte{0xff}, len(data)) })
		if _, err := n.Status(n.ctx, info.ID); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
		n.logged("names no process")
		if files := n.Damaged(); len(files) != 1 || !strings.HasSuffix(files[0], ".task.bad") {
			t.Errorf("damaged: %v", files)
		}
		if len(alive()) != 2 {
			t.Fatalf("processes %v", alive())
		}
		stray := *info
		stray.Cgroup = "" // as in the handles of older versions
		if pids, err := n.EndStray(stray); err != nil || len(pids) != 2 {
			t.Errorf("ended %v, %v", pids, err)
		}
		if left := alive(); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if pids, err := n.EndStray(stray); err != nil || len(pids) != 0 {
			t.Errorf("ended %v, %v", pids, err)
		}
	})
}

// TestAStrayOfTheSameNumberIsNotTouched: neither of another start time nor of another life of the machine.
func TestAStrayOfTheSameNumberIsNotTouched(t *testing.T) {
	self, err := readProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, stray := range []TaskInfo{
		{PID: self.pid, StartTick: self.startTick + 1, BootID: bootID()},
		{PID: self.pid, StartTick: self.startTick, BootID: "another"},
		{PID: self.pid, StartTick: self.startTick, BootID: bootID(), StartedAt: time.Now().Add(-24 * time.Hour)},
	} {
		if pids, err := stray.endStray(findCgroups(""), stray.StartedAt); err != nil || len(pids) > 0 {
			t.Errorf("%+v: %v, %v", stray, pids, err)
		}
	}
}
