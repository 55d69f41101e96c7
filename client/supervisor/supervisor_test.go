package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/client/allocdir"
	"github.com/nomadlite/nomadlite/client/logs"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervisor":
			os.Exit(Main(os.Args[2:]))
		case "agent":
			agentMain(os.Args[2], os.Args[3])
		}
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// agentMain is an agent that starts a task and is then killed.
func agentMain(dir, script string) {
	c := NewClient(Config{Dir: dir, IdleTimeout: 2 * time.Second})
	info, err := c.Start(context.Background(), &StartSpec{TaskID: "task", Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: "/"})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("started", info.PID)
	select {}
}

// node is a node's directory with an agent's client on it.
type node struct {
	t    testing.TB
	ctx  context.Context
	dir  string
	logs string
	cfg  Config
	*Client
}

func newNode(t testing.TB, cfg Config) *node {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	n := &node{t: t, ctx: ctx, dir: filepath.Join(t.TempDir(), "supervisor"), logs: t.TempDir()}
	allocdir.Spread(n.logs)
	cfg.Dir = n.dir
	if cfg.IdleTimeout == 0 {
		cfg.IdleTimeout = 2 * time.Second
	}
	n.cfg = cfg
	n.Client = NewClient(cfg)
	t.Cleanup(func() {
		ctx := context.Background()
		if tasks, err := n.List(ctx); err == nil {
			for _, task := range tasks {
				n.Destroy(ctx, task.ID, true)
			}
		}
		if err := n.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		n.Close()
		log, _ := os.ReadFile(filepath.Join(n.dir, "supervisor.log"))
		if strings.Contains(string(log), "DATA RACE") || strings.Contains(string(log), "panic") {
			t.Errorf("supervisor's log:\n%s", log)
		}
	})
	return n
}

// restart makes the client of the next agent.
func (n *node) restart() {
	n.Client.Close()
	n.Client = NewClient(n.cfg)
}

func (n *node) spec(id, script string) *StartSpec {
	return &StartSpec{TaskID: id, Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: "/", Env: os.Environ(),
		StdoutPath: logs.FIFOPath(n.logs, id, logs.Stdout), StderrPath: logs.FIFOPath(n.logs, id, logs.Stderr)}
}

func (n *node) start(spec *StartSpec) *TaskInfo {
	n.t.Helper()
	info, err := n.Start(n.ctx, spec)
	if err != nil {
		n.t.Fatal(err)
	}
	return info
}

func (n *node) wait(id string) *TaskInfo {
	n.t.Helper()
	info, err := n.Wait(n.ctx, id)
	if err != nil {
		n.t.Fatal(err)
	}
	return info
}

func (n *node) output(id string) string {
	n.t.Helper()
	var out strings.Builder
	for i := 0; ; i++ {
		data, err := os.ReadFile(filepath.Join(n.logs, logs.FileName(id, logs.Stdout, i)))
		if err != nil {
			return out.String()
		}
		out.Write(data)
	}
}

// supervisorPID is that of the only one.
func (n *node) supervisorPID() int {
	n.t.Helper()
	all, err := n.Supervisors(n.ctx)
	if err != nil || len(all) != 1 {
		n.t.Fatalf("supervisors: %v, %v", all, err)
	}
	return all[0].PID
}

// kill9 kills a process and waits until it is gone.
func kill9(t testing.TB, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	awaitExit(t, fd)
}

func awaitExit(t testing.TB, pidfd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 20000)
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			t.Fatal("the process does not end")
		}
		return
	}
}

func TestKilledAgentFindsItsTasks(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		ends         bool
	}{
		{"running", "exec sleep 1000", false},
		{"ended meanwhile", "read x < GATE; exit 23", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, Config{})
			gate := filepath.Join(t.TempDir(), "gate")
			if err := unix.Mkfifo(gate, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/proc/self/exe", "agent", n.dir, strings.ReplaceAll(tt.script, "GATE", gate))
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			// In a group of its own, all of which is killed: the supervisor must not be in it.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Fscanf(out, "started %d", &pid); err != nil {
				t.Fatal(err)
			}
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			cmd.Wait()
			if tt.ends {
				fd, err := unix.PidfdOpen(pid, 0)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
					t.Fatal(err)
				}
				awaitExit(t, fd)
				unix.Close(fd)
			}
			if !tt.ends {
				info, err := n.Status(n.ctx, "task")
				if err != nil || info.PID != pid || !info.Running || info.Adopted {
					t.Errorf("got %+v: %v", info, err)
				}
				return
			}
			if info := n.wait("task"); info.PID != pid || info.Exit == nil || !info.Exit.Known || info.Exit.Code != 23 {
				t.Errorf("got %+v %+v", info, info.Exit)
			}
			if err := n.Ack(n.ctx, "task"); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Status(n.ctx, "task"); !errors.Is(err, ErrNotFound) {
				t.Errorf("after ack: %v", err)
			}
		})
	}
}

func TestKilledSupervisor(t *testing.T) {
	for _, noCgroups := range []bool{false, true} {
		t.Run(fmt.Sprintf("no cgroups %v", noCgroups), func(t *testing.T) {
			n := newNode(t, Config{NoCgroups: noCgroups})
			ended := n.start(n.spec("ended", "exit 5"))
			n.wait("ended")
			gate := filepath.Join(t.TempDir(), "gate")
			if err := unix.Mkfifo(gate, 0o600); err != nil {
				t.Fatal(err)
			}
			runs := n.start(n.spec("runs", "echo before; read x < "+gate+"; echo after; exit 7"))
			dies := n.start(n.spec("dies", "exec sleep 1000"))
			waiting := make(chan *TaskInfo, 1)
			go func() { // a wait goes on across the death of the supervisor
				info, err := n.Wait(n.ctx, "runs")
				if err != nil {
					t.Error(err)
				}
				waiting <- info
			}()
			old := n.supervisorPID()
			fd, err := unix.PidfdOpen(dies.PID, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			kill9(t, old)
			unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			awaitExit(t, fd)

			info, err := n.Status(n.ctx, "runs")
			if err != nil || !info.Running || !info.Adopted || info.PID != runs.PID {
				t.Fatalf("got %+v: %v", info, err)
			}
			if n.supervisorPID() == old {
				t.Error("it is the old supervisor")
			}
			if e := n.wait("ended"); e.Exit == nil || !e.Exit.Known || e.Exit.Code != 5 || e.PID != ended.PID {
				t.Errorf("exit before the death: %+v %+v", e, e.Exit)
			}
			if e := n.wait("dies"); e.Exit == nil || (e.Exit.Known && e.Exit.Signal != 9) || (!e.Exit.Known && e.Exit.Error == "") {
				t.Errorf("exit without a supervisor: %+v", e.Exit)
			}
			if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
				t.Fatal(err)
			}
			info = <-waiting
			// New kernels tell how a process ended that is not our child; with others it is unknown, and never 0.
			if info == nil || info.Exit == nil || (info.Exit.Known && info.Exit.Code != 7) || (!info.Exit.Known && info.Exit.Error == "") {
				t.Errorf("exit of adopted task: %+v", info)
			} else {
				t.Logf("exit of adopted task: %+v", *info.Exit)
			}
			if out := n.output("runs"); out != "before\nafter\n" {
				t.Errorf("output %q", out)
			}
			if left, _ := filepath.Glob(filepath.Join(n.dir, dirPrefix+"*")); len(left) != 2 { // directory and socket
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestAdoptedTaskIsStoppedWithItsTree(t *testing.T) {
	for _, noCgroups := range []bool{false, true} {
		t.Run(fmt.Sprintf("no cgroups %v", noCgroups), func(t *testing.T) {
			n := newNode(t, Config{NoCgroups: noCgroups})
			spec := n.spec("tree", `trap "" TERM; (setsid sh -c 'trap "" TERM; echo $$ >$PIDS; sleep 1000' &); read x <$GATE; while :; do sleep 1000; done`)
			pids, gate := filepath.Join(t.TempDir(), "pids"), filepath.Join(t.TempDir(), "gate")
			if err := errors.Join(unix.Mkfifo(pids, 0o600), unix.Mkfifo(gate, 0o600)); err != nil {
				t.Fatal(err)
			}
			spec.Env = append(spec.Env, "PIDS="+pids, "GATE="+gate, "NOMAD_ALLOC_ID="+n.dir, "NOMAD_TASK_NAME=tree")
			n.start(spec)
			data, err := os.ReadFile(pids)
			if err != nil {
				t.Fatal(err)
			}
			var grandchild int
			fmt.Sscan(string(data), &grandchild)
			fd, err := unix.PidfdOpen(grandchild, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			if err := os.WriteFile(gate, []byte("\n"), 0); err != nil {
				t.Fatal(err)
			}
			kill9(t, n.supervisorPID())
			if _, err := n.Stop(n.ctx, "tree", unix.SIGTERM, 50*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			awaitExit(t, fd)
		})
	}
}

func TestAnotherProcessOfTheSameNumberIsNotAdopted(t *testing.T) {
	n := newNode(t, Config{})
	old := filepath.Join(n.dir, dirPrefix+"1-1")
	if err := os.MkdirAll(old, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := readProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for id, r := range map[string]record{
		"reused":   {Task: &taskRecord{ID: "reused", BootID: bootID()}, Started: &startRecord{PID: self.pid, StartTick: self.startTick - 1}},
		"rebooted": {Task: &taskRecord{ID: "rebooted", BootID: "another", Marks: []string{"PATH=" + os.Getenv("PATH")}}, Started: &startRecord{PID: self.pid, StartTick: self.startTick}},
		"never":    {Task: &taskRecord{ID: "never", BootID: bootID()}},
	} {
		if err := appendRecord(filepath.Join(old, recordName(id)), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"reused", "rebooted", "never"} {
		if info := n.wait(id); info.Exit == nil || info.Exit.Known {
			t.Errorf("%s: %+v", id, info)
		}
	}
}

func TestTornRecordEndsBeforeTheTear(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r"+recordSuffix)
	want := record{Task: &taskRecord{ID: "x"}, Started: &startRecord{PID: 7, StartTick: 8}}
	if err := appendRecord(path, record{Task: want.Task}); err != nil {
		t.Fatal(err)
	}
	if err := appendRecord(path, record{Started: want.Started}); err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(path)
	if err := appendRecord(path, record{Exit: &Exit{Code: 3, Known: true}}); err != nil {
		t.Fatal(err)
	}
	all, _ := os.ReadFile(path)
	for n := len(whole); n < len(all); n++ {
		os.WriteFile(path, all[:n], 0o600)
		got, err := readRecord(path)
		if err != nil || got.Exit != nil || got.Started == nil || got.Started.PID != 7 {
			t.Fatalf("%d of %d bytes: %+v, %v", n, len(all), got, err)
		}
	}
}

func TestIdleSupervisorEnds(t *testing.T) {
	n := newNode(t, Config{IdleTimeout: 50 * time.Millisecond})
	n.start(n.spec("a", "exit 4"))
	n.wait("a")
	gate := filepath.Join(t.TempDir(), "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	n.start(n.spec("b", "read x < "+gate))
	pid := n.supervisorPID()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	n.Client.Close()
	if err := os.WriteFile(gate, []byte("\n"), 0); err != nil { // it stays for its task, and ends after it
		t.Fatal(err)
	}
	awaitExit(t, fd)
	n.restart()
	if info := n.wait("a"); !info.Exit.Known || info.Exit.Code != 4 {
		t.Errorf("exit nobody had read: %+v", info.Exit)
	}
	if info := n.wait("b"); !info.Exit.Known {
		t.Errorf("exit nobody had read: %+v", info.Exit)
	}
}

func TestShutdownNeedsIdleness(t *testing.T) {
	n := newNode(t, Config{})
	n.start(n.spec("a", "exec sleep 1000"))
	if err := n.Shutdown(n.ctx); err == nil {
		t.Error("it ended under its task")
	}
	if info, err := n.Status(n.ctx, "a"); err != nil || !info.Running {
		t.Errorf("got %+v: %v", info, err)
	}
}

func TestTwoTasksOfOneID(t *testing.T) {
	n := newNode(t, Config{})
	n.start(n.spec("a", "exec sleep 1000"))
	if _, err := n.Start(n.ctx, n.spec("a", "exit 0")); err == nil {
		t.Error("no error")
	}
}

func TestChildrenGetTheOriginalLimitsAndSignals(t *testing.T) {
	// As if the agent ran in the background of a shell with job control off: SIGINT ignored, few files.
	n := newNode(t, Config{Command: []string{"/bin/sh", "-c", `trap "" INT; ulimit -Sn 321; exec /proc/` + fmt.Sprint(os.Getpid()) + `/exe "$@"`, "sh", "supervisor"}})
	n.start(n.spec("a", "ulimit -Sn; grep SigIgn /proc/self/status; grep SigBlk /proc/self/status; ps -o sid= -p $$ | tr -d ' '; exit 0"))
	pid := n.wait("a").PID
	fields := strings.Fields(n.output("a"))
	if len(fields) > 2 {
		ignored, err := strconv.ParseUint(fields[2], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		// Signals 32 and 33 belong to the C library, and make lets its children ignore them.
		fields[2] = fmt.Sprintf("%016x", ignored&^(3<<31))
	}
	want := []string{"321", "SigIgn:", "0000000000000000", "SigBlk:", "0000000000000000", fmt.Sprint(pid)}
	if fmt.Sprint(fields) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", fields, want)
	}
}

func TestOutputIsNeitherLostNorDoubled(t *testing.T) {
	n := newNode(t, Config{})
	spec := n.spec("a", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")
	spec.MaxFiles, spec.MaxFileBytes = 100, 10000
	n.start(spec)
	kill9(t, n.supervisorPID())
	n.wait("a")
	var want strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if got := n.output("a"); got != want.String() {
		t.Errorf("got %d bytes, want %d", len(got), want.Len())
	}
	if st, err := os.Stat(filepath.Join(n.logs, logs.FileName("a", logs.Stdout, 3))); err != nil || st.Size() != 10000 {
		t.Errorf("rotated file: %+v, %v", st, err)
	}
}

func TestRunsAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may become another user")
	}
	n := newNode(t, Config{})
	if err := os.Chmod(n.logs, 0o777); err != nil {
		t.Fatal(err)
	}
	spec := n.spec("a", "id -u; id -g; id -G; echo again >/dev/stdout; cat /proc/self/oom_score_adj")
	spec.User = &User{UID: 65534, GID: 65534, Groups: []uint32{65534, 12}}
	spec.OOMScoreAdj = 100
	n.start(spec)
	if info := n.wait("a"); info.Exit.Code != 0 {
		t.Errorf("exit %+v", info.Exit)
	}
	ours, _ := os.ReadFile("/proc/self/oom_score_adj")
	if own, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", n.supervisorPID())); err != nil || string(own) != string(ours) {
		t.Errorf("the supervisor's own score is %q, %v", own, err)
	}
	if out := n.output("a"); out != "65534\n65534\n65534 12\nagain\n100\n" {
		t.Errorf("got %q", out)
	}
}

func TestStartErrors(t *testing.T) {
	n := newNode(t, Config{})
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("#!/there/is/none\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, dir, want string }{
		{"/there/is/none", "/", "executable file not found"},
		{bad, "/", "interpreter is missing"},
		{"/bin/sh", "/there/is/none", "working directory"},
		{"/etc/passwd", "/", "permission denied"},
	} {
		_, err := n.Start(n.ctx, &StartSpec{TaskID: "a", Path: tt.path, Args: []string{"x"}, Dir: tt.dir})
		if !errors.Is(err, ErrStart) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.path, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(n.dir, "*", "*"+recordSuffix)); len(left) > 0 {
		t.Errorf("records left behind: %v", left)
	}
}

func pss(t testing.TB, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var kb int
		if _, err := fmt.Sscanf(line, "Pss: %d kB", &kb); err == nil {
			return kb
		}
	}
	t.Fatal("no Pss")
	return 0
}

// BenchmarkStart300 starts 300 tasks and stops them; it also tells what each costs the supervisor.
func BenchmarkStart300(b *testing.B) {
	const tasks = 300
	for b.Loop() {
		n := newNode(b, Config{})
		if err := n.Ensure(n.ctx); err != nil {
			b.Fatal(err)
		}
		pid := n.supervisorPID()
		before := pss(b, pid)
		var wg sync.WaitGroup
		began := time.Now()
		for i := range tasks {
			spec := n.spec(fmt.Sprintf("t%d", i), "")
			spec.Path, spec.Args = "/bin/sleep", []string{"sleep", "1000"}
			dir := filepath.Join(n.logs, spec.TaskID) // as each allocation has its own
			if err := os.Mkdir(dir, 0o700); err != nil {
				b.Fatal(err)
			}
			spec.StdoutPath, spec.StderrPath = logs.FIFOPath(dir, "task", logs.Stdout), logs.FIFOPath(dir, "task", logs.Stderr)
			wg.Go(func() {
				if _, err := n.Start(n.ctx, spec); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		started := time.Since(began)
		after := pss(b, pid)
		began = time.Now()
		for i := range tasks {
			wg.Go(func() {
				if _, err := n.Stop(n.ctx, fmt.Sprintf("t%d", i), unix.SIGTERM, time.Minute); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		b.ReportMetric(started.Seconds(), "s/start300")
		b.ReportMetric(time.Since(began).Seconds(), "s/stop300")
		b.ReportMetric(float64(after-before)/tasks, "KiB/task")
		b.ReportMetric(float64(before), "KiB/idle")
	}
}

// TestProtocolGrows: an agent of a later version sends fields and operations that this supervisor does not know.
func TestProtocolGrows(t *testing.T) {
	n := newNode(t, Config{})
	n.start(n.spec("a", "exec sleep 1000"))
	all, err := n.Supervisors(n.ctx)
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.Open(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	c, err := net.Dial("unix", socketPath(base, all[0].Name))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(req map[string]any) map[string]any {
		t.Helper()
		if err := writeMessage(c, req); err != nil {
			t.Fatal(err)
		}
		var resp map[string]any
		if err := readMessage(c, &resp); err != nil {
			t.Fatal(err)
		}
		return resp
	}
	if r := ask(map[string]any{"ID": 1, "Op": "dance", "Steps": []int{1, 2}}); r["Code"] != codeInvalid {
		t.Errorf("got %v", r)
	}
	r := ask(map[string]any{"ID": 2, "Op": "status", "TaskID": "a", "New": map[string]any{"x": 1}})
	if task, _ := r["Task"].(map[string]any); task["ID"] != "a" || task["Running"] != true || r["ID"] != int64(2) {
		t.Errorf("got %v", r)
	}
	if r := ask(map[string]any{"ID": 3, "Op": "hello", "Version": 99}); r["Hello"].(map[string]any)["Version"] != int64(ProtocolVersion) {
		t.Errorf("got %v", r)
	}
	if _, err := c.Write([]byte{0xff, 0xff, 0xff, 0xff, 1}); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("nonsense is not hung up on")
	}
}

func TestGivenUpStartLeavesNothing(t *testing.T) {
	n := newNode(t, Config{})
	if err := n.Ensure(n.ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		ctx, cancel := context.WithCancel(n.ctx)
		go cancel()
		id := fmt.Sprint("t", i)
		_, err := n.Start(ctx, n.spec(id, "exec sleep 1000"))
		if err == nil {
			err = n.Destroy(n.ctx, id, true)
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if tasks, err := n.List(n.ctx); err != nil || len(tasks) > 0 {
		t.Errorf("left behind: %v, %v", tasks, err)
	}
}

// TestCgroupThatCannotBeMade: the task runs all the same, and is followed as on hosts without cgroups.
func TestCgroupThatCannotBeMade(t *testing.T) {
	n := newNode(t, Config{})
	spec := n.spec("a", "sleep 1000 & sleep 1000")
	spec.CgroupParent = "cgroup.procs" // a file
	n.start(spec)
	info, err := n.Status(n.ctx, "a")
	if err != nil || info.Cgroup != "" || !info.Running {
		t.Fatalf("got %+v, %v", info, err)
	}
	kill9(t, n.supervisorPID())
	if info, err = n.Status(n.ctx, "a"); err != nil || info.Cgroup != "" || !info.Running {
		t.Fatalf("adopted: %+v, %v", info, err)
	}
	if _, err := n.Stop(n.ctx, "a", unix.SIGTERM, time.Minute); err != nil {
		t.Fatal(err)
	}
	if left := (tree{leader: info.PID, tick: info.StartTick}).pids(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestSupervisorThatKeepsDying is an error in the end, not a loop.
func TestSupervisorThatKeepsDying(t *testing.T) {
	n := newNode(t, Config{})
	if err := n.Ensure(n.ctx); err != nil {
		t.Fatal(err)
	}
	killer := make(chan struct{})
	stop := make(chan struct{})
	n.start(n.spec("a", "exec sleep 1000"))
	go func() {
		defer close(killer)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if all, err := n.Supervisors(n.ctx); err == nil {
				unix.Kill(all[0].PID, unix.SIGKILL)
			}
		}
	}()
	for {
		if _, err := n.Wait(n.ctx, "a"); err != nil {
			break
		}
	}
	close(stop)
	<-killer
	if info, err := n.Status(n.ctx, "a"); err != nil || !info.Running {
		t.Errorf("the task did not live through it: %+v, %v", info, err)
	}
}
