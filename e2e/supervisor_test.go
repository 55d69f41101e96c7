package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// TestAStoppedSupervisorHoldsTheAgentUpOnlyBriefly stops the supervisor (SIGSTOP) under an agent, which ends and starts
// and runs other jobs all the same; once continued the supervisor's task is as it was, and can be stopped.
func TestAStoppedSupervisorHoldsTheAgentUpOnlyBriefly(t *testing.T) {
	a := courseAgent(t)
	c := newCourse(t, a, "held", nil)
	c.run("t")
	pids := a.supervisors()
	if len(pids) != 1 {
		t.Fatalf("supervisors %v", pids)
	}
	if err := syscall.Kill(pids[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pids[0], syscall.SIGCONT)
	begin := time.Now()
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
	ended := time.Since(begin)
	started := a.Start()
	if ended > 3*time.Second || started > 3*time.Second {
		t.Errorf("the agent ended in %s and started in %s", ended, started)
	}
	t.Logf("the agent ended in %s and started in %s", ended, started)
	begin = time.Now()
	other := newCourse(t, a, "other", nil)
	other.run("t")
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("another job ran after %s", took)
	}
	c.stop()
	c.never("t", "term")
	if err := syscall.Kill(pids[0], syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	alloc := c.ended()
	c.inOrder("t up", "t term", "t end")
	if s := alloc.TaskStates["t"]; s.Restarts != 0 || s.Failed || hasEvent(s, structs.TaskRestoreFailed) {
		t.Errorf("task state %+v", s)
	}
	if n := len(c.said("t", "up")); n != 1 {
		t.Errorf("the task was started %d times", n)
	}
}

// TestADamagedRecordLeavesNoSecondProcess kills agent and supervisor and destroys what the supervisor had written of a
// task: the next agent ends the old process before it starts the new one, and says so.
func TestADamagedRecordLeavesNoSecondProcess(t *testing.T) {
	a := courseAgent(t)
	c := newCourse(t, a, "damaged", func(_ *structs.TaskGroup, task *structs.Task) {
		task.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(3), Delay: structs.Ptr(time.Second), Interval: structs.Ptr(time.Hour),
			Mode: structs.Ptr("fail")}
	})
	c.run("t")
	old := a.tasks()
	a.killSupervisors()
	a.Kill()
	records, err := filepath.Glob(filepath.Join(a.dataDir(), "client", "supervisor", "s-*", "*.task"))
	if err != nil || len(records) == 0 {
		t.Fatalf("records %v, %v", records, err)
	}
	for _, file := range records {
		if err := os.WriteFile(file, bytes.Repeat([]byte{0xff}, 64), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.Start()
	c.await("t", "up", 2)
	for _, pid := range a.tasks() {
		if slices.Contains(old, pid) {
			t.Errorf("process %d still runs beside its successor", pid)
		}
	}
	a.awaitLog("a task that no supervisor knows was running and is killed")
	a.awaitLog("the record of a task was damaged")
	alloc := awaitRunning(t, a.Client, "damaged", 1)[0]
	if !hasEvent(alloc.TaskStates["t"], structs.TaskRestoreFailed) {
		t.Errorf("events: %s", describe([]*structs.AllocationListStub{alloc}))
	}
}

// TestSecretsGoWithTheAllocation: what is in a task's secrets is gone once its allocation has ended, not only when it is
// collected.
func TestSecretsGoWithTheAllocation(t *testing.T) {
	a := courseAgent(t)
	c := newCourse(t, a, "secret", nil)
	alloc := c.run("t")
	secrets := filepath.Join(a.dataDir(), "alloc", alloc.ID, "t", "secrets")
	if err := os.WriteFile(filepath.Join(secrets, "key"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	mounted := func() bool {
		raw, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(raw), secrets)
	}
	if !mounted() {
		t.Skip("no right to mount file systems")
	}
	if err := a.Client.Allocations().Restart(limited(t), alloc.ID, api.RestartOptions{NoShutdownDelay: true}, nil); err != nil {
		t.Fatal(err)
	}
	c.await("t", "up", 2)
	if _, err := os.Stat(filepath.Join(secrets, "key")); err != nil {
		t.Errorf("after a restart of its tasks: %v", err)
	}
	c.stop()
	c.ended()
	entries, err := os.ReadDir(secrets)
	if mounted() || err != nil || len(entries) > 0 {
		t.Errorf("after the end: mounted %t, entries %v, %v", mounted(), entries, err)
	}
}
