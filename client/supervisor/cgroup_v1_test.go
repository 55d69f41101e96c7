package supervisor

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hidden gives a view of what is mounted that lacks some hierarchies: by controller, or "unified".
func hidden(t testing.TB, without ...string) string {
	t.Helper()
	data, err := os.ReadFile(mountinfoFile)
	if err != nil {
		t.Fatal(err)
	}
	var keep strings.Builder
	for line := range strings.Lines(string(data)) {
		c := parseMountinfo(line)
		if slices.ContainsFunc(without, func(w string) bool { _, v1 := c.find(w); return v1 || (w == "unified" && c.unified != "") }) {
			continue
		}
		keep.WriteString(line)
	}
	path := filepath.Join(t.TempDir(), "mountinfo")
	if err := os.WriteFile(path, []byte(keep.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// needV1 gives the hierarchies, among which there are v1 ones with these controllers.
func needV1(t testing.TB, controllers ...string) cgroups {
	t.Helper()
	c := findCgroups("")
	for _, name := range controllers {
		if _, ok := c.find(name); !ok {
			t.Skipf("no cgroup v1 hierarchy with controller %q to write to", name)
		}
	}
	return c
}

func mustRead(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func nothingLeft(t testing.TB, info *TaskInfo) {
	t.Helper()
	if len(info.Cgroups) == 0 {
		t.Error("it had no cgroups")
	}
	for _, dir := range info.Cgroups {
		if exists(dir) {
			t.Errorf("cgroup %s is left, with processes %v", dir, cgroupPIDs(dir))
		}
	}
}

// pureV1 are hosts without a unified hierarchy, by what keeps a task's processes together there.
func pureV1(t *testing.T, f func(t *testing.T, n *node)) {
	for name, without := range map[string][]string{
		"freezer": {"unified"}, "pids": {"unified", "freezer"}, "neither": {"unified", "freezer", "pids"},
	} {
		t.Run(name, func(t *testing.T) {
			needV1(t, "freezer", "pids", "cpu")
			f(t, newNode(t, Config{Mountinfo: hidden(t, without...)}))
		})
	}
}

// TestWithoutUnifiedHierarchyTheWholeTreeGoes with a task that ignores signals, leaves its session and its parents,
// empties its environment and forks without end.
func TestWithoutUnifiedHierarchyTheWholeTreeGoes(t *testing.T) {
	pureV1(t, func(t *testing.T, n *node) {
		up := filepath.Join(t.TempDir(), "up")
		spec := n.spec("bomb", `trap "" INT TERM; (setsid env -i sh -c 'sleep 1000 & sleep 1000' &)
			bomb() { while :; do env -i setsid sh -c 'sleep 0.05 & sleep 0.05 & exit' & sleep 0.01; done; }
			bomb & bomb & echo > `+up+`.tmp; mv `+up+`.tmp `+up+`; while :; do sleep 1000; done`)
		spec.Env = append(spec.Env, "NOMAD_ALLOC_ID=bomb", "NOMAD_TASK_NAME=t")
		info := n.start(spec)
		awaitFile(t, up)
		if len(cgroupPIDs(info.Cgroup)) < 3 {
			t.Errorf("processes %v in %s", cgroupPIDs(info.Cgroup), info.Cgroup)
		}
		if got, err := n.Stop(n.ctx, "bomb", unix.SIGTERM, 10*time.Millisecond); err != nil || got.Exit == nil || got.Exit.Signal != 9 {
			t.Errorf("got %+v, %v", got, err)
		}
		nothingLeft(t, info)
	})
}

// awaitFile waits until a file is there.
func awaitFile(t testing.TB, path string) {
	t.Helper()
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, filepath.Dir(path), unix.IN_CREATE|unix.IN_MOVED_TO); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); !exists(path); {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come", path)
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(watch), Events: unix.POLLIN}}, 1000)
		_, _ = unix.Read(watch, make([]byte, 4096))
	}
}

// TestWithoutUnifiedHierarchyWhatATaskLeavesGoesToo: its main process ends by itself.
func TestWithoutUnifiedHierarchyWhatATaskLeavesGoesToo(t *testing.T) {
	pureV1(t, func(t *testing.T, n *node) {
		info := n.start(n.spec("a", `(setsid env -i sleep 1000 &) ; (setsid env -i sleep 1000 &); exit 3`))
		if got := n.wait("a"); got.Exit == nil || got.Exit.Code != 3 {
			t.Errorf("got %+v", got)
		}
		nothingLeft(t, info)
	})
}

// TestATaskIsInItsCgroupsFromItsFirstMomentOn: what it sees of itself, and where the supervisor is afterwards.
func TestATaskIsInItsCgroupsFromItsFirstMomentOn(t *testing.T) {
	c := needV1(t, "memory", "cpu", "cpuset")
	for name, without := range map[string][]string{"hybrid": nil, "pure": {"unified"}} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, Config{Mountinfo: hidden(t, without...)})
			if err := n.Ensure(n.ctx); err != nil {
				t.Fatal(err)
			}
			where := func() string { return mustRead(t, fmt.Sprintf("/proc/%d/cgroup", n.supervisorPID())) }
			before := where()
			up := filepath.Join(t.TempDir(), "up")
			spec := n.spec("a", "cat /proc/self/cgroup; mkdir "+up+"; exec sleep 1000")
			spec.Limits = &Limits{CPUShares: 500, Memory: 64 << 20, MemoryReserve: 32 << 20, Cores: []uint16{0}, Required: true}
			info := n.start(spec)
			awaitFile(t, up)
			if after := where(); after != before {
				t.Errorf("the supervisor was in\n%s\nand is in\n%s", before, after)
			}
			at := c.of(mustRead(t, fmt.Sprintf("/proc/%d/cgroup", info.PID)))
			for _, dir := range info.Cgroups {
				if !slices.Contains(slices.Collect(maps.Values(at)), dir) {
					t.Errorf("it is not in %s but in %v", dir, at)
				}
			}
			for controller, files := range map[string]map[string]string{
				"cpu":    {"cpu.shares": "500"},
				"memory": {"memory.limit_in_bytes": strconv.Itoa(64 << 20), "memory.soft_limit_in_bytes": strconv.Itoa(32 << 20)},
				"cpuset": {"cpuset.cpus": "0"},
			} {
				h, _ := c.find(controller)
				for file, want := range files {
					if got := mustRead(t, filepath.Join(at[h.mount], file)); got != want {
						t.Errorf("%s is %q, want %q", file, got, want)
					}
				}
			}
			if _, err := n.Stop(n.ctx, "a", unix.SIGTERM, time.Second); err != nil {
				t.Fatal(err)
			}
			if seen := n.output("a"); strings.Count(seen, ".scope") != len(info.Cgroups) {
				t.Errorf("it was in\n%s", seen)
			}
			nothingLeft(t, info)
		})
	}
}

// TestCgroupsOfADeadSupervisorGo: it is killed, with the task that it had, or while the task runs on.
func TestCgroupsOfADeadSupervisorGo(t *testing.T) {
	needV1(t, "memory", "freezer")
	for name, without := range map[string][]string{"hybrid": nil, "pure": {"unified"}} {
		for _, survives := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s survives=%t", name, survives), func(t *testing.T) {
				n := newNode(t, Config{Mountinfo: hidden(t, without...)})
				spec := n.spec("a", "sleep 1000 & exec sleep 1000")
				spec.Limits = &Limits{CPUShares: 100, Memory: 64 << 20}
				info := n.start(spec)
				if len(info.Cgroups) < 3 {
					t.Errorf("cgroups %v", info.Cgroups)
				}
				pid := n.supervisorPID()
				n.Client.Close()
				kill9(t, pid)
				if !survives {
					kill9(t, info.PID)
				}
				n.restart()
				if survives {
					if _, err := n.Stop(n.ctx, "a", unix.SIGTERM, time.Second); err != nil {
						t.Fatal(err)
					}
				}
				n.wait("a")
				nothingLeft(t, info)
			})
		}
	}
}

// TestATaskThatWasBeingKilledIsThawed: whoever froze it died before it was dead.
func TestATaskThatWasBeingKilledIsThawed(t *testing.T) {
	needV1(t, "freezer")
	n := newNode(t, Config{Mountinfo: hidden(t, "unified")})
	info := n.start(n.spec("a", "exec sleep 1000"))
	pid := n.supervisorPID()
	n.Client.Close()
	kill9(t, pid)
	if err := writeCgroup(filepath.Join(info.Cgroup, frozenFile), "FROZEN"); err != nil {
		t.Fatal(err)
	}
	n.restart()
	if got, err := n.Stop(n.ctx, "a", unix.SIGTERM, time.Hour); err != nil || got.Exit == nil {
		t.Errorf("got %+v, %v", got, err)
	}
	nothingLeft(t, info)
}

// TestAStrayWithoutRecordIsFoundByItsCgroups in all hierarchies, by its id alone.
func TestAStrayWithoutRecordIsFoundByItsCgroups(t *testing.T) {
	needV1(t, "memory", "freezer")
	for name, without := range map[string][]string{"hybrid": nil, "pure": {"unified"}} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, Config{Mountinfo: hidden(t, without...)})
			spec := n.spec("a", "env -i sleep 1000 & exec env -i sleep 1000")
			spec.Limits = &Limits{Memory: 64 << 20}
			info := n.start(spec)
			pid := n.supervisorPID()
			n.Client.Close()
			kill9(t, pid)
			records, err := filepath.Glob(filepath.Join(n.dir, dirPrefix+"*", "*"+recordSuffix))
			if err != nil || len(records) != 1 {
				t.Fatalf("records %v, %v", records, err)
			}
			if err := os.Remove(records[0]); err != nil {
				t.Fatal(err)
			}
			n.restart()
			pids, err := n.EndStray(TaskInfo{ID: "a"})
			if err != nil || !slices.Contains(pids, info.PID) {
				t.Errorf("killed %v, %v", pids, err)
			}
			nothingLeft(t, info)
		})
	}
}

// TestJoiningCgroupsThatTheJobNames: they stay, and the task's processes are found all the same.
func TestJoiningCgroupsThatTheJobNames(t *testing.T) {
	c := needV1(t, "memory", "freezer", "pids")
	for name, without := range map[string][]string{"hybrid": nil, "pure": {"unified"}} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, Config{Mountinfo: hidden(t, without...)})
			rel := fmt.Sprintf("joined-%d", os.Getpid())
			join := map[string]string{}
			for _, controller := range []string{"memory", "freezer"} {
				h, _ := c.find(controller)
				dir := filepath.Join(h.mount, rel)
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := os.Remove(dir); err != nil {
						t.Error(err)
					}
				})
				join[controller] = dir
			}
			join["memory"] = rel // as good as the absolute path
			spec := n.spec("a", "env -i setsid sleep 1000 & echo up; exec sleep 1000")
			spec.JoinV1, spec.Limits = join, &Limits{CPUShares: 100, Memory: 64 << 20, Required: true}
			info := n.start(spec)
			for _, dir := range info.Cgroups {
				if strings.Contains(dir, rel) {
					t.Errorf("%s counts as the task's own", dir)
				}
			}
			text := mustRead(t, fmt.Sprintf("/proc/%d/cgroup", info.PID))
			if strings.Count(text, "/"+rel) != 2 {
				t.Errorf("it is in\n%s", text)
			}
			if _, err := n.Stop(n.ctx, "a", unix.SIGTERM, time.Second); err != nil {
				t.Fatal(err)
			}
			nothingLeft(t, info)
			for _, bad := range []map[string]string{{"memory": "is-not-there"}, {"nonsense": rel}} {
				spec := n.spec("bad", "exit 0")
				spec.JoinV1 = bad
				if _, err := n.Start(n.ctx, spec); err == nil {
					t.Errorf("joined %v", bad)
				}
			}
		})
	}
}

// TestJoiningAUnifiedCgroup that the job names, where v1 hierarchies find the processes, and where only their marks do.
func TestJoiningAUnifiedCgroup(t *testing.T) {
	c := findCgroups("")
	if c.unified == "" {
		t.Skip("no unified cgroup hierarchy to write to")
	}
	names := []string{}
	for _, h := range c.v1 {
		names = append(names, h.controllers...)
	}
	for name, without := range map[string][]string{"hybrid": nil, "pure": names} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, Config{Mountinfo: hidden(t, without...)})
			dir := filepath.Join(c.unified, fmt.Sprintf("joined-%d", os.Getpid()))
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.Remove(dir); err != nil {
					t.Error(err, cgroupPIDs(dir))
				}
			})
			spec := n.spec("a", "setsid sleep 1000 & exec sleep 1000")
			spec.Env = append(spec.Env, "NOMAD_ALLOC_ID=joined", "NOMAD_TASK_NAME=t")
			spec.JoinUnified = filepath.Base(dir)
			info := n.start(spec)
			if !slices.Contains(cgroupPIDs(dir), info.PID) {
				t.Errorf("%d is not among %v", info.PID, cgroupPIDs(dir))
			}
			if _, err := n.Stop(n.ctx, "a", unix.SIGTERM, time.Second); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestATaskOverItsMemoryIsToldSo: the kernel kills it, or one of its children.
func TestATaskOverItsMemoryIsToldSo(t *testing.T) {
	needV1(t, "memory")
	n := newNode(t, Config{})
	eat := `a=x; while :; do a=$a$a; done`
	for name, tt := range map[string]struct {
		script string
		oom    bool
	}{"main": {eat, true}, "child": {"(" + eat + "); exit 7", true}, "modest": {"exit 7", false}} {
		spec := n.spec(name, tt.script)
		spec.Limits = &Limits{Memory: 16 << 20, Required: true}
		info := n.start(spec)
		got := n.wait(name)
		if got.Exit == nil || got.Exit.OOM != tt.oom || (name == "main") != (got.Exit.Signal == 9) || (name != "main") != (got.Exit.Code == 7) {
			t.Errorf("%s: got %+v", name, got.Exit)
		}
		nothingLeft(t, info)
	}
}

// TestLimitsThatCannotBeSet fail the start when they are required, and leave nothing.
func TestLimitsThatCannotBeSet(t *testing.T) {
	needV1(t, "cpuset")
	n := newNode(t, Config{Mountinfo: hidden(t, "memory")})
	for name, l := range map[string]Limits{"no controller": {Memory: 16 << 20}, "no such core": {Cores: []uint16{4000}}} {
		spec := n.spec(name, "sleep 1000")
		spec.Limits = &l
		info := n.start(spec)
		if err := n.Destroy(n.ctx, name, true); err != nil {
			t.Fatal(err)
		}
		nothingLeft(t, info)
		l.Required = true
		if _, err := n.Start(n.ctx, spec); err == nil || !strings.Contains(err.Error(), "limit task") {
			t.Errorf("%s: %v", name, err)
		}
		nothingLeft(t, info)
	}
}

// TestUseIsReadFromCgroups: also of processes that have ended.
func TestUseIsReadFromCgroups(t *testing.T) {
	needV1(t, "memory", "cpu", "cpuacct")
	for name, without := range map[string][]string{"hybrid": nil, "pure": {"unified"}} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, Config{Mountinfo: hidden(t, without...)})
			up := filepath.Join(t.TempDir(), "up")
			spec := n.spec("a", `sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; a=x; while [ ${#a} -lt 4000000 ]; do a=$a$a; done
				mkdir `+up+`; exec 3<&1; while :; do sleep 1000; done`)
			spec.Limits = &Limits{Memory: 256 << 20, CPUShares: 100}
			n.start(spec)
			awaitFile(t, up)
			procs, use, err := n.Stats(n.ctx, "a")
			if err != nil || len(procs) == 0 || use == nil || use.CPU == nil || use.Memory == nil {
				t.Fatalf("got %v, %+v, %v", procs, use, err)
			}
			if use.Memory.Usage < 4<<20 || use.Memory.RSS < 4<<20 || use.Memory.MaxUsage < use.Memory.RSS || use.Memory.Usage > 256<<20 {
				t.Errorf("memory %+v", *use.Memory)
			}
			if use.CPU.Total < 10*time.Millisecond || use.CPU.Total > 20*time.Second {
				t.Errorf("processor %+v", *use.CPU)
			}
		})
	}
}

// TestATaskDoesNotInheritTheAgentsScore: what keeps the agent from being killed, or makes it the first, is its own.
func TestATaskDoesNotInheritTheAgentsScore(t *testing.T) {
	n := newNode(t, Config{Command: []string{"/bin/sh", "-c",
		`echo 500 >/proc/self/oom_score_adj; exec /proc/` + fmt.Sprint(os.Getpid()) + `/exe "$@"`, "sh", "supervisor"}})
	for id, score := range map[string]int{"default": 0, "own": 700} {
		spec := n.spec(id, "exec sleep 1000")
		spec.OOMScoreAdj = score
		info := n.start(spec)
		if got := mustRead(t, fmt.Sprintf("/proc/%d/oom_score_adj", info.PID)); got != fmt.Sprint(score) {
			t.Errorf("%s: %s", id, got)
		}
	}
	if got := mustRead(t, fmt.Sprintf("/proc/%d/oom_score_adj", n.supervisorPID())); got != "500" {
		t.Errorf("the supervisor's own is %s", got)
	}
}

// TestWithoutCgroupsATaskThatForksIsHeld: its processes leave session and parents, and carry its marks alone.
func TestWithoutCgroupsATaskThatForksIsHeld(t *testing.T) {
	n := newNode(t, Config{NoCgroups: true})
	up := filepath.Join(t.TempDir(), "up")
	spec := n.spec("bomb", `bomb() { while :; do setsid sh -c 'sleep 0.05 & sleep 0.05 & exit' & sleep 0.01; done; }
		trap "" TERM; bomb & bomb & mkdir `+up+`; while :; do sleep 1000; done`)
	marks := []string{"NOMAD_ALLOC_ID=" + n.dir, "NOMAD_TASK_NAME=t"}
	spec.Env = append(spec.Env, marks...)
	n.start(spec)
	awaitFile(t, up)
	if _, err := n.Stop(n.ctx, "bomb", unix.SIGTERM, 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if left := (tree{marks: marks}).pids(); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// TestTheCgroupAboveAllTasksWeighsMoreThanAProcess, unless somebody else has made it.
func TestTheCgroupAboveAllTasksWeighsMoreThanAProcess(t *testing.T) {
	h, _ := needV1(t, "cpu").find("cpu")
	top := filepath.Join(h.mount, fmt.Sprintf("weight-%d", os.Getpid()))
	t.Cleanup(func() {
		if err := removeCgroup(top); err != nil {
			t.Error(err)
		}
	})
	made := place{dir: filepath.Join(top, "below", "task"), controllers: h.controllers}
	if err := createV1(made, h.mount); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(top, "below", "cpu.shares")
	if got, want := mustRead(t, file), fmt.Sprint(min(10240*runtime.NumCPU(), maxShares)); got != want {
		t.Errorf("it weighs %q, want %q", got, want)
	}
	if err := os.WriteFile(file, []byte("77"), 0o644); err != nil {
		t.Fatal(err)
	}
	made.dir += "2"
	if err := createV1(made, h.mount); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, file); got != "77" {
		t.Errorf("what an operator had set is now %q", got)
	}
}
