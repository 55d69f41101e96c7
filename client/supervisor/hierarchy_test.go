package supervisor

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const hybridMounts = `22 28 0:21 / /proc rw - proc proc rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /docker/abc /sys/fs/cgroup/my\040memory rw,relatime - cgroup cgroup rw,memory
36 31 0:32 /docker/abc /elsewhere rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
torn`

func TestParseMountinfo(t *testing.T) {
	c := parseMountinfo(hybridMounts)
	want := cgroups{unified: "/sys/fs/cgroup/unified", v1: []hierarchy{
		{"/sys/fs/cgroup/cpu,cpuacct", "/", []string{"cpu", "cpuacct"}}, {"/sys/fs/cgroup/my memory", "/docker/abc", []string{"memory"}},
		{"/sys/fs/cgroup/systemd", "/", []string{"name=systemd"}},
	}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v", c)
	}
	at := c.of("9:name=systemd:/user.slice\n4:memory:/docker/abc/x\n1:cpu,cpuacct:/\n0::/y\n")
	if !reflect.DeepEqual(at, map[string]string{"/sys/fs/cgroup/systemd": "/sys/fs/cgroup/systemd/user.slice",
		"/sys/fs/cgroup/my memory": "/sys/fs/cgroup/my memory/x", "/sys/fs/cgroup/cpu,cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
		"/sys/fs/cgroup/unified": "/sys/fs/cgroup/unified/y"}) {
		t.Errorf("it is at %v", at)
	}
	if at := c.of("4:memory:/another\n"); len(at) > 0 {
		t.Errorf("a cgroup that is not to be seen here is at %v", at)
	}
}

func TestPlacement(t *testing.T) {
	hybrid := parseMountinfo(hybridMounts)
	v1 := hybrid
	v1.unified = ""
	unified := cgroups{unified: "/u", controllers: []string{"cpu", "memory"}}
	all := &Limits{CPUShares: 1, Memory: 1}
	const scope = "/sys/fs/cgroup/unified/p/t.scope"
	for name, tt := range map[string]struct {
		c          cgroups
		spec       StartSpec
		track, own string
	}{
		"nothing":           {cgroups{}, StartSpec{Limits: all}, "", ""},
		"not wanted":        {hybrid, StartSpec{NoCgroups: true, Limits: all}, "", ""},
		"hybrid":            {hybrid, StartSpec{}, scope, scope},
		"hybrid, limited":   {hybrid, StartSpec{Limits: all}, scope, scope + " /sys/fs/cgroup/my memory/p/t.scope /sys/fs/cgroup/cpu,cpuacct/p/t.scope"},
		"v1":                {v1, StartSpec{}, "/sys/fs/cgroup/systemd/p/t.scope", "/sys/fs/cgroup/systemd/p/t.scope"},
		"unified":           {unified, StartSpec{Limits: all}, "/u/p/t.scope", "/u/p/t.scope"},
		"unified and cores": {unified, StartSpec{Limits: &Limits{Cores: []uint16{1}}}, "/u/p/t.scope", "/u/p/t.scope"},
	} {
		p, err := tt.c.place(&tt.spec, taskPath("p", "t"))
		if err != nil || p.track != tt.track || strings.Join(p.own(), " ") != tt.own {
			t.Errorf("%s: tracked by %q, has %v: %v", name, p.track, p.own(), err)
		}
	}
	if _, err := hybrid.place(&StartSpec{NoCgroups: true, JoinUnified: "x"}, "/t.scope"); err == nil {
		t.Error("a cgroup was named where there is none")
	}
	for path, want := range map[string]string{"a/b": "/m/a/b", "/a": "/m/a", "/m/a": "/m/a", "../../etc": "/m/etc", "/m/../x": "/m/x"} {
		if got := inMount("/m", path); got != want {
			t.Errorf("%s is %s", path, got)
		}
	}
}

// fake makes a cgroup of ordinary files.
func fake(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestLimitsOfTheUnifiedHierarchy as they come to its files, whichever kernel runs this test.
func TestLimitsOfTheUnifiedHierarchy(t *testing.T) {
	dir := fake(t, map[string]string{"cpu.weight": "", "memory.max": "", "memory.low": "", "cpuset.cpus": ""}) // no swap
	p := placement{unified: place{dir: dir, own: true, controllers: []string{"cpu", "memory", "cpuset"}}}
	for _, late := range []bool{false, true} {
		if err := p.limit(Limits{CPUShares: 1024, Memory: 1 << 30, MemoryReserve: 1 << 20, Cores: []uint16{0, 2}}, late); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{"cpu.weight": "39", "memory.max": "1073741824", "memory.low": "1048576", "cpuset.cpus": "0,2"} {
		if got := mustRead(t, filepath.Join(dir, file)); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	p.unified.controllers = []string{"cpu"}
	if err := p.limit(Limits{CPUShares: 1, Memory: 1}, false); err == nil || !strings.Contains(err.Error(), "memory.max") {
		t.Errorf("a limit that nobody sets: %v", err)
	}
	for shares, want := range map[uint64]uint64{0: 1, 2: 1, 262144: 10000, 1 << 40: 10000, 100: 4} {
		if got := weightOf(shares); got != want {
			t.Errorf("%d shares weigh %d", shares, got)
		}
	}
}

// TestEnablingControllers goes from the top down.
func TestEnablingControllers(t *testing.T) {
	root := fake(t, map[string]string{"cgroup.controllers": "cpuset cpu io memory\n", "cgroup.subtree_control": ""})
	below := filepath.Join(root, "a")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cgroup.controllers": "memory", "cgroup.subtree_control": ""} {
		if err := os.WriteFile(filepath.Join(below, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cgroups{unified: root}.enable(below)
	for dir, want := range map[string]string{root: "+memory", below: "+memory"} { // the last that was written over the others
		if got := mustRead(t, filepath.Join(dir, "cgroup.subtree_control")); !strings.HasPrefix(got, want) {
			t.Errorf("%s has %q", dir, got)
		}
	}
}

func TestUsageOfTheUnifiedHierarchy(t *testing.T) {
	dir := fake(t, map[string]string{
		"memory.current": "1000\n", "memory.peak": "2000\n", "memory.swap.current": "5\n", "memory.stat": "anon 600\nfile 300\nkernel 100\n",
		"cpu.stat":      "usage_usec 3000\nuser_usec 2000\nsystem_usec 1000\nnr_periods 9\nnr_throttled 4\nthrottled_usec 7\n",
		"memory.events": "low 0\nmax 3\noom 1\noom_kill 1\n",
	})
	use := usageOf([]string{t.TempDir(), dir})
	if use == nil || *use.Memory != (MemoryUsage{Usage: 1000, MaxUsage: 2000, RSS: 600, Cache: 300, Swap: 5, Kernel: 100}) {
		t.Fatalf("got %+v", use)
	}
	if *use.CPU != (CPUUsage{Total: 3 * time.Millisecond, User: 2 * time.Millisecond, System: time.Millisecond, Throttled: 7 * time.Microsecond,
		ThrottledPeriods: 4}) {
		t.Errorf("got %+v", *use.CPU)
	}
	if !oomKilled([]string{t.TempDir(), dir}) || oomKilled([]string{t.TempDir()}) {
		t.Error("who was killed for want of memory is not told from who was not")
	}
	if use := usageOf([]string{t.TempDir()}); use != nil {
		t.Errorf("nothing tells %+v", use)
	}
}
