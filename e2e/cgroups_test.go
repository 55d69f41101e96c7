package e2e

import (
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

// family is a task that ignores signals, with a child, one in a session of its own, and one whose parents have died.
const family = `trap "" TERM INT; sleep 1000 & setsid sleep 1000 & (setsid sh -c 'trap "" TERM; (setsid sleep 1000 &) & sleep 1000' &)
	while :; do sleep 1000; done`

// stopFamily stops such a task on an agent whose raw_exec has these options, and sees what is left. It gives where the
// family was, as in /proc/PID/cgroup.
func stopFamily(t *testing.T, options map[string]any) []string {
	t.Helper()
	a := newAgent(t, func(c map[string]any) {
		options["enabled"] = true
		c["plugin"] = map[string]any{"raw_exec": map[string]any{"config": options}}
	})
	a.Start()
	j := job("family", family, func(_ *structs.Job, _ *structs.TaskGroup, task *structs.Task) {
		task.KillSignal, task.KillTimeout = "SIGTERM", structs.Ptr(100*time.Millisecond)
	})
	register(t, a.Client, j)
	awaitRunning(t, a.Client, "family", 1)
	sleepers := func() []int {
		return processes(func(command, environ string) bool {
			return strings.HasPrefix(command, "sleep\x00") && strings.Contains(environ, "NOMAD_ALLOC_DIR="+a.Dir+"/")
		})
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(waitLimit); len(sleepers()) < 5; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("the family has %d members", len(sleepers()))
		}
	}
	var at []string
	for _, pid := range sleepers() {
		at = append(at, cgroupOf(t, pid))
	}
	if _, _, err := a.Client.Jobs().Deregister(limited(t), "family", nil, nil); err != nil {
		t.Fatal(err)
	}
	awaitAllocs(t, a.Client, "family", "its end", func(l []*structs.AllocationListStub) bool {
		return len(withStatus(l, structs.AllocClientStatusComplete)) == 1
	})
	if left := a.tasks(); len(left) > 0 {
		t.Errorf("processes %v outlived their task", left)
	}
	return at
}

func cgroupOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTheWholeTreeIsKilledWithoutCgroups: plugin option no_cgroups.
func TestTheWholeTreeIsKilledWithoutCgroups(t *testing.T) {
	at := stopFamily(t, map[string]any{"no_cgroups": true})
	for _, text := range at {
		if strings.Contains(text, ".scope") {
			t.Errorf("a process was in the cgroups\n%s", text)
		}
	}
}

// TestTheWholeTreeIsKilledByCgroups, and the cgroups are gone with it.
func TestTheWholeTreeIsKilledByCgroups(t *testing.T) {
	if unix.Access("/sys/fs/cgroup", unix.W_OK) != nil {
		t.Skip("no cgroups to write to")
	}
	at := stopFamily(t, map[string]any{})
	for _, text := range at {
		for line := range strings.Lines(text) {
			name := filepath.Base(strings.TrimSpace(line))
			if !strings.HasSuffix(name, ".scope") {
				continue
			}
			for _, pattern := range []string{"/sys/fs/cgroup/nomad.slice/", "/sys/fs/cgroup/*/nomad.slice/"} {
				if left, _ := filepath.Glob(pattern + name); len(left) > 0 {
					t.Errorf("cgroups %v are left", left)
				}
			}
		}
		if !strings.Contains(text, ".scope") {
			t.Errorf("a process was in\n%s", text)
		}
	}
}

// TestATaskOverItsMemory is killed by the kernel, and its events say so.
func TestATaskOverItsMemory(t *testing.T) {
	_, v1 := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes")
	have, _ := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if v1 != nil && !strings.Contains(string(have), "memory") {
		t.Skip("no cgroup controller of memory")
	}
	a := newAgent(t, nil)
	a.Start()
	register(t, a.Client, job("hungry", "a=x; while :; do a=$a$a; done", func(j *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
		j.Type = structs.Ptr("batch")
		g.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(0), Delay: structs.Ptr(time.Second), Interval: structs.Ptr(time.Minute),
			Mode: structs.Ptr("fail")}
		g.ReschedulePolicy = &structs.ReschedulePolicy{Attempts: structs.Ptr(0), Unlimited: structs.Ptr(false)}
	}))
	alloc := awaitAllocs(t, a.Client, "hungry", "its end", func(l []*structs.AllocationListStub) bool {
		return len(l) == 1 && l[0].ClientStatus == structs.AllocClientStatusFailed
	})[0]
	for _, e := range alloc.TaskStates["t"].Events {
		if e.Type != structs.TaskTerminated {
			continue
		}
		if e.Details["oom_killed"] != "true" || e.Signal != int(syscall.SIGKILL) || !strings.Contains(e.DisplayMessage, "OOM Killed") {
			t.Errorf("event %+v", e)
		}
		return
	}
	t.Errorf("there is no such event: %s", describe([]*structs.AllocationListStub{alloc}))
}
