package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/e2e/proc"
	"github.com/nomadlite/nomadlite/structs"
)

// processes lists those for which is says yes, by command line and environment.
func processes(is func(cmdline, environ string) bool) []int {
	entries, _ := os.ReadDir("/proc")
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		environ, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if len(cmdline) > 0 && is(string(cmdline), string(environ)) {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

func (a *agent) dataDir() string { return a.Config["data_dir"].(string) }

// supervisors are the processes that hold this agent's tasks.
func (a *agent) supervisors() []int {
	return processes(func(cmdline, _ string) bool {
		return strings.Contains(cmdline, "\x00supervisor\x00") && strings.Contains(cmdline, a.Dir+"/")
	})
}

// tasks are all processes that carry the environment of a task of this agent.
func (a *agent) tasks() []int {
	return processes(func(_, environ string) bool { return strings.Contains(environ, "NOMAD_ALLOC_DIR="+a.Dir+"/") })
}

func (a *agent) killSupervisors() {
	a.t.Helper()
	for _, pid := range a.supervisors() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			a.t.Fatal(err)
		}
		awaitEnd(a.t, pid)
	}
}

// awaitEnd waits until a process has ended.
func awaitEnd(t testing.TB, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // gone
	}
	defer unix.Close(fd)
	deadline := time.Now().Add(waitLimit)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(deadline).Milliseconds()))
		if n > 0 {
			return
		}
		if err != unix.EINTR {
			t.Fatalf("process %d has not ended: %v", pid, err)
		}
	}
}

func deregister(t testing.TB, c *api.Client, id string, opts *api.DeregisterOptions) {
	t.Helper()
	if _, _, err := c.Jobs().Deregister(limited(t), id, opts, nil); err != nil {
		t.Fatalf("stop job %q: %v", id, err)
	}
}

func awaitEnded(t testing.TB, c *api.Client, id string, count int) []*structs.AllocationListStub {
	t.Helper()
	return awaitAllocs(t, c, id, fmt.Sprintf("the end of %d allocations", count), func(l []*structs.AllocationListStub) bool {
		return len(withStatus(l, structs.AllocClientStatusComplete)) == count
	})
}

// nothingLeft checks that neither process, cgroup, FIFO, mount nor directory of any allocation is left after all jobs
// have ended and were collected, and that the supervisor goes with its agent.
func (a *agent) nothingLeft(allocs []*structs.AllocationListStub) {
	a.t.Helper()
	if pids := a.tasks(); len(pids) > 0 {
		a.t.Errorf("processes of tasks are left: %v", pids)
	}
	for _, alloc := range allocs {
		if err := a.Client.Allocations().GC(limited(a.t), alloc.ID, nil); err != nil {
			a.t.Errorf("collect %s: %v", alloc.ID, err)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		a.t.Fatal(err)
	}
	if strings.Contains(string(mounts), a.Dir+"/") {
		a.t.Errorf("mounts are left:\n%s", mounts)
	}
	entries, err := os.ReadDir(filepath.Join(a.dataDir(), "alloc"))
	if err != nil {
		a.t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			a.t.Errorf("directory %s is left", e.Name())
		}
	}
	supervisors := a.supervisors()
	if err := a.Stop(); err != nil {
		a.t.Error(err)
	}
	for _, pid := range supervisors {
		awaitEnd(a.t, pid)
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasSuffix(path, ".scope") {
			if procs, err := os.ReadFile(filepath.Join(path, "cgroup.procs")); err == nil && len(procs) == 0 {
				for _, alloc := range allocs {
					if strings.Contains(path, alloc.ID) {
						a.t.Errorf("cgroup %s is left", path)
					}
				}
			}
		}
		return nil
	})
}

// TestKillsOfAgentAndSupervisorAtAnyMoment kills one, the other and both while 50 tasks start, run and stop: each task
// runs once, in the process in which it was started, and all are gone at the end.
func TestKillsOfAgentAndSupervisorAtAnyMoment(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	started := filepath.Join(a.Dir, "started")
	never := filepath.Join(a.Dir, "never") // nobody writes: the shell itself waits, so that the task stays one process
	if err := syscall.Mkfifo(never, 0o600); err != nil {
		t.Fatal(err)
	}
	const count = 50
	register(t, a.Client, job("many", "echo $$ >> "+started+"; read -r line < "+never, func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		g.Count = structs.Ptr(count)
		task.ShutdownDelay = 300 * time.Millisecond
	}))
	for range 3 {
		a.Kill() // readiness comes before everything has been started
		a.Start()
	}
	awaitRunning(t, a.Client, "many", count)
	pids := a.tasks()
	if len(pids) != count {
		t.Errorf("%d processes, want %d", len(pids), count)
	}
	same := func(when string) {
		t.Helper()
		if now := a.tasks(); !slices.Equal(now, pids) {
			t.Errorf("%s: processes %v became %v", when, pids, now)
		}
	}
	a.killSupervisors()
	a.Kill()
	same("both were killed")
	a.Start()
	awaitRunning(t, a.Client, "many", count)
	a.killSupervisors()
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
	same("supervisor was killed, agent stopped")
	a.Start()
	a.Kill()
	a.Start()
	for _, alloc := range awaitRunning(t, a.Client, "many", count) {
		if alloc.TaskStates["t"].Restarts != 0 {
			t.Errorf("restarted: %s", describe([]*structs.AllocationListStub{alloc}))
		}
	}
	same("the agent came back")
	deregister(t, a.Client, "many", nil)
	for range 3 {
		a.Kill()
		a.Start()
	}
	a.killSupervisors()
	ended := awaitEnded(t, a.Client, "many", count)
	a.nothingLeft(ended)
}

// TestStopInItsOrderAcrossKillsOfTheAgent stops a group with all kinds of tasks while its agent is killed again and
// again, and reads the order from the times of the events.
func TestStopInItsOrderAcrossKillsOfTheAgent(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	obeys := "trap 'exit 0' INT; echo up; while :; do sleep 0.05; done"
	j := job("life", obeys, func(_ *structs.Job, g *structs.TaskGroup, main *structs.Task) {
		g.ShutdownDelay = structs.Ptr(400 * time.Millisecond)
		g.EphemeralDisk.SizeMB = structs.Ptr(900)
		add := func(name, script, hook string, sidecar bool) {
			task := *main
			task.Name, task.Config = name, map[string]any{"command": "/bin/sh", "args": []any{"-c", script}}
			if hook != "" {
				task.Lifecycle = &structs.TaskLifecycle{Hook: hook, Sidecar: sidecar}
			}
			g.Tasks = append(g.Tasks, &task)
		}
		main.Name, main.Leader, main.ShutdownDelay = "leader", true, 300*time.Millisecond
		add("main", obeys, "", false)
		add("pre", "exit 0", "prestart", false)
		add("side", obeys, "prestart", true)
		add("post", obeys, "poststart", true)
		add("last", "exit 0", "poststop", false)
		main.ShutdownDelay = 300 * time.Millisecond
		g.Tasks[1].Leader, g.Tasks[1].ShutdownDelay = false, 0
		for _, task := range g.Tasks[2:] {
			task.Leader, task.ShutdownDelay = false, 0
		}
	})
	register(t, a.Client, j)
	runs := func(l []*structs.AllocationListStub) bool {
		if len(l) != 1 {
			return false
		}
		for _, name := range []string{"leader", "main", "side", "post"} {
			if s := l[0].TaskStates[name]; s == nil || s.State != structs.TaskStateRunning {
				return false
			}
		}
		return true
	}
	alloc := awaitAllocs(t, a.Client, "life", "all tasks", runs)[0]
	a.followLog(alloc.ID, "up")
	deregister(t, a.Client, "life", nil)
	began := time.Now()
	for range 4 {
		a.Kill()
		a.Start()
	}
	alloc = awaitEnded(t, a.Client, "life", 1)[0]
	at := func(task, kind string) time.Time {
		t.Helper()
		for _, e := range alloc.TaskStates[task].Events {
			if e.Type == kind {
				return time.Unix(0, e.Time)
			}
		}
		t.Fatalf("task %s has no event %q: %s", task, kind, describe([]*structs.AllocationListStub{alloc}))
		return time.Time{}
	}
	order := []struct{ task, kind string }{
		{"leader", "Killing"}, {"leader", "Terminated"}, {"main", "Killing"}, {"main", "Terminated"},
		{"side", "Killing"}, {"side", "Terminated"}, {"last", "Started"}, {"last", "Terminated"},
	}
	for i := 1; i < len(order); i++ {
		if before, after := at(order[i-1].task, order[i-1].kind), at(order[i].task, order[i].kind); after.Before(before) {
			t.Errorf("%v came before %v: %s", order[i], order[i-1], describe([]*structs.AllocationListStub{alloc}))
		}
	}
	if waited := at("leader", "Killing").Sub(began); waited < 500*time.Millisecond {
		t.Errorf("both delays together took %s, want about 700ms", waited)
	}
	if at("post", "Killing").Before(at("main", "Terminated")) {
		t.Error("a sidecar was stopped before the main tasks had ended")
	}
	a.nothingLeft([]*structs.AllocationListStub{alloc})
}

// TestLostAndDamagedClientState damages, then removes what the agent knows of its tasks: the damage is told in one line,
// and an agent without records ends what it cannot account for and starts it anew.
func TestLostAndDamagedClientState(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	register(t, a.Client, job("web", "exec sleep 600", nil))
	first := awaitRunning(t, a.Client, "web", 1)[0]
	old := a.tasks()
	a.Kill()
	state := filepath.Join(a.dataDir(), "client", "state.db")
	whole, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	broken := slices.Clone(whole)
	for i := 2 * os.Getpagesize(); i < len(broken); i++ {
		broken[i] = byte(rand.Uint32())
	}
	if err := os.WriteFile(state, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(proc.Binary(t), "agent", "-config", filepath.Join(a.Dir, "agent.json"))
	out, err := cmd.CombinedOutput()
	last := strings.Split(strings.TrimSpace(string(out)), "\n")
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(last[len(last)-1], state) || strings.Contains(string(out), "goroutine") {
		t.Errorf("damaged state: %v, code %d, output %s", err, cmd.ProcessState.ExitCode(), out)
	}
	if now, err := os.ReadFile(state); err != nil || !slices.Equal(now, broken) {
		t.Errorf("the damaged file was changed: %v", err)
	}
	if now := a.tasks(); !slices.Equal(now, old) {
		t.Errorf("tasks %v became %v under an agent that did not start", old, now)
	}
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	stray := filepath.Join(a.dataDir(), "alloc", "00000000-1111-2222-3333-444444444444")
	if err := os.MkdirAll(filepath.Join(stray, "alloc"), 0o755); err != nil {
		t.Fatal(err)
	}
	a.Start()
	for _, pid := range old {
		awaitEnd(t, pid)
	}
	again := awaitAllocs(t, a.Client, "web", "a new start", func(l []*structs.AllocationListStub) bool {
		return len(withStatus(l, "running")) == 1 && withStatus(l, "running")[0].TaskStates["t"].StartedAt.After(first.TaskStates["t"].StartedAt)
	})
	if now := a.tasks(); len(now) != 1 || slices.Equal(now, old) {
		t.Errorf("processes %v became %v", old, now)
	}
	if _, err := os.Stat(stray); !os.IsNotExist(err) {
		t.Errorf("a directory that nobody knows was not removed: %v", err)
	}
	deregister(t, a.Client, "web", nil)
	awaitEnded(t, a.Client, "web", 1)
	a.nothingLeft(again)
}

// TestAFullDiskUnderTheClientState fills the file system of the node's state, starts and stops tasks meanwhile, and
// makes room again: a killed agent then still knows them all.
func TestAFullDiskUnderTheClientState(t *testing.T) {
	small := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("a file system of its own is needed, and cannot be mounted: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	a := newAgent(t, func(c map[string]any) {
		c["client"] = map[string]any{"enabled": true, "state_dir": filepath.Join(small, "state")}
	})
	a.Start()
	register(t, a.Client, job("before", "exec sleep 600", nil))
	awaitRunning(t, a.Client, "before", 1)
	fill := filepath.Join(small, "fill")
	f, err := os.Create(fill)
	if err == nil {
		_, err = io.Copy(f, io.LimitReader(zeros{}, 64<<20))
		f.Close()
	}
	if err == nil {
		t.Fatal("the file system is not full")
	}
	deregister(t, a.Client, "before", nil)
	awaitEnded(t, a.Client, "before", 1)
	large := strings.Repeat("x", 50_000)
	soon := func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		g.Count, task.Env = structs.Ptr(3), map[string]string{"A": large, "B": large, "C": large}
		g.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(1000), Interval: structs.Ptr(time.Hour),
			Delay: structs.Ptr(100 * time.Millisecond), Mode: structs.Ptr("delay")}
	}
	register(t, a.Client, job("during", "exec sleep 600", soon))
	awaitAllocs(t, a.Client, "during", "a failed start", func(l []*structs.AllocationListStub) bool {
		return strings.Contains(describe(l), "no space left on device")
	})
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, a.Client, "during", 3)
	a.awaitLog("client state is written again")
	pids := a.tasks()
	a.Kill()
	a.Start()
	if now := a.tasks(); len(now) != 3 || !slices.Equal(now, pids) {
		t.Errorf("processes %v became %v", pids, now)
	}
	deregister(t, a.Client, "during", nil)
	awaitEnded(t, a.Client, "during", 3)
	if pids := a.tasks(); len(pids) > 0 {
		t.Errorf("left: %v", pids)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// awaitLog waits until the agent has written text to its log.
func (a *agent) awaitLog(text string) {
	a.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := limited(a.t); !strings.Contains(a.Log(), text); {
		select {
		case <-tick.C:
		case <-limit.Done():
			a.t.Fatalf("the agent's log never says %q", text)
		}
	}
}

// TestNoLineOfOutputIsLost writes counted lines as fast as it can while the supervisor is killed under it and the agent
// with it, and follows the log across all that.
func TestNoLineOfOutputIsLost(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	const lines = 200_000
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line-$i; i=$((i+1)); done; exec sleep 600", lines)
	register(t, a.Client, job("count", script, func(_ *structs.Job, _ *structs.TaskGroup, task *structs.Task) {
		task.LogConfig = &structs.LogConfig{MaxFiles: structs.Ptr(20), MaxFileSizeMB: structs.Ptr(1)}
	}))
	alloc := awaitRunning(t, a.Client, "count", 1)[0]
	kills := map[int]func(){20_000: a.killSupervisors, 60_000: a.killSupervisors, 100_000: func() {
		a.killSupervisors()
		a.Kill()
		a.Start()
	}}
	seen, offset := 0, int64(0)
	for seen < lines {
		seen, offset = followLines(t, a, alloc.ID, seen, lines, offset, kills)
	}
}

// followLines reads lines from offset on until the stream breaks or all are there.
func followLines(t *testing.T, a *agent, id string, seen, lines int, offset int64, at map[int]func()) (int, int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	frames, err := a.Client.AllocFS().Logs(ctx, id, api.LogOptions{Task: "t", Follow: true, Offset: offset}, nil)
	if err != nil {
		t.Fatalf("follow log: %v", err)
	}
	defer frames.Close()
	r := bufio.NewReader(frames)
	for seen < lines {
		line, err := r.ReadString('\n')
		if err != nil {
			if ctx.Err() != nil {
				t.Fatalf("only %d of %d lines came", seen, lines)
			}
			return seen, offset
		}
		if want := fmt.Sprintf("line-%d\n", seen); line != want {
			t.Fatalf("line %q, want %q", line, want)
		}
		seen++
		offset += int64(len(line))
		if do := at[seen]; do != nil {
			do()
		}
	}
	return seen, offset
}

// TestARestartThatWasAnsweredIsNotForgotten kills the agent right after it has answered a request to restart a task.
func TestARestartThatWasAnsweredIsNotForgotten(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	register(t, a.Client, job("web", "exec sleep 600", nil))
	alloc := awaitRunning(t, a.Client, "web", 1)[0]
	for want := uint64(1); want <= 3; want++ {
		if err := a.Client.Allocations().Restart(limited(t), alloc.ID, api.RestartOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		a.Kill()
		a.Start()
		awaitAllocs(t, a.Client, "web", fmt.Sprintf("restart %d", want), func(l []*structs.AllocationListStub) bool {
			s := l[0].TaskStates["t"]
			return s.Restarts == want && s.State == structs.TaskStateRunning
		})
	}
}

// TestARemovedDirectoryIsRebuilt removes an allocation's directory under its task, which is then restarted.
func TestARemovedDirectoryIsRebuilt(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	register(t, a.Client, job("web", "rm -rf $NOMAD_ALLOC_DIR/* $NOMAD_TASK_DIR; echo up; exec sleep 600", nil))
	alloc := awaitRunning(t, a.Client, "web", 1)[0]
	for want := uint64(1); want <= 2; want++ {
		if err := a.Client.Allocations().Restart(limited(t), alloc.ID, api.RestartOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		alloc = awaitAllocs(t, a.Client, "web", "the restart", func(l []*structs.AllocationListStub) bool {
			s := l[0].TaskStates["t"]
			return s.Restarts >= want && s.State == structs.TaskStateRunning
		})[0]
		if s := alloc.TaskStates["t"]; s.Restarts != want {
			t.Errorf("%d restarts, want %d: %s", s.Restarts, want, describe([]*structs.AllocationListStub{alloc}))
		}
	}
}

// TestWholeTreesOfProcessesEnd lets a task scatter processes over sessions and parents, and lose its supervisor.
func TestWholeTreesOfProcessesEnd(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	// The last of them even drops its environment.
	script := `(setsid sleep 611 &); (setsid sh -c "setsid sleep 612 & exec env -i setsid sleep 613" &)
		nohup sleep 614 & trap "" TERM INT; echo up; while :; do sleep 1; done`
	register(t, a.Client, job("scatter", script, func(_ *structs.Job, _ *structs.TaskGroup, task *structs.Task) {
		task.KillTimeout = structs.Ptr(200 * time.Millisecond)
	}))
	alloc := awaitRunning(t, a.Client, "scatter", 1)[0]
	a.followLog(alloc.ID, "up")
	a.killSupervisors()
	stats, err := a.Client.Allocations().Stats(limited(t), alloc.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	pids := stats.Tasks["t"].Pids
	if len(pids) < 5 {
		t.Errorf("only %d processes are known: %v", len(pids), pids)
	}
	if usage := stats.Tasks["t"].ResourceUsage; !slices.Contains(usage.CpuStats.Measured, "Total Ticks") {
		t.Errorf("measured: %v", usage.CpuStats.Measured)
	}
	deregister(t, a.Client, "scatter", nil)
	ended := awaitEnded(t, a.Client, "scatter", 1)
	for pid := range pids {
		n, _ := strconv.Atoi(pid)
		// What init has not waited for yet has a name still, and no command line.
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", n)); err == nil && strings.Contains(string(line), "sleep") {
			t.Errorf("process %d still runs: %q", n, line)
		}
	}
	a.nothingLeft(ended)
}
