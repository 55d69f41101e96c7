package e2e

import (
	"syscall"
	"testing"
	"time"

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
