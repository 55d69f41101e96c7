package drivertest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// testBomb: a task that makes processes faster than they can be counted is gone when its stop returns.
func testBomb(t *testing.T, b *bench) {
	dir := filepath.Join(b.alloc.SharedDir(), "bomb")
	cfg := b.task(b.suite.Bomb(dir))
	b.start(cfg)
	b.awaitDir(dir)
	if err := b.d.Stop(b.ctx, cfg.ID, "SIGTERM", 10*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	b.wait(cfg.ID)
	if left := workingIn(b.alloc.Path); len(left) > 0 {
		t.Errorf("processes %v outlived their task", left)
	}
}

// awaitDir waits until a directory is there.
func (b *bench) awaitDir(dir string) {
	b.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		if _, err := os.Stat(dir); err == nil {
			return
		}
		if b.ctx.Err() != nil {
			b.t.Fatalf("%s does not come", dir)
		}
	}
}

// workingIn lists the processes whose working directory is below dir.
func workingIn(dir string) []string {
	var out []string
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, dir) {
			out = append(out, filepath.Base(filepath.Dir(link)))
		}
	}
	return out
}

// testHungry: the kernel kills what takes more than the task was given, and the task's end says so.
func testHungry(t *testing.T, b *bench) {
	for name, memory := range map[string]structs.AllocatedMemoryResources{
		"limit": {MemoryMB: 16}, "limit above the reservation": {MemoryMB: 16, MemoryMaxMB: 32},
	} {
		cfg := b.task(b.suite.Hungry())
		cfg.Resources.Memory = memory
		b.start(cfg)
		if r := b.wait(cfg.ID); !r.OOMKilled || r.Signal != int(syscall.SIGKILL) || r.Successful() {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

// testModest: what stays below its limit is not said to have been killed, and a limit of -1 is none.
func testModest(t *testing.T, b *bench) {
	for name, memory := range map[string]structs.AllocatedMemoryResources{
		"below": {MemoryMB: 64}, "no limit": {MemoryMB: 1, MemoryMaxMB: -1}, "nothing said": {},
	} {
		cfg := b.task(b.suite.Exit(3))
		cfg.Resources.Memory = memory
		b.start(cfg)
		if r := b.wait(cfg.ID); r.OOMKilled || r.ExitCode != 3 {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}
