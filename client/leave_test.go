package client

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// TestDepartOnAnEmptyNode tells the servers twice, and nothing else.
func TestDepartOnAnEmptyNode(t *testing.T) {
	a := newAgent(t).start()
	<-a.client.registered.ch
	a.client.Depart(t.Context())
	a.servers.mu.Lock()
	defer a.servers.mu.Unlock()
	if l := a.servers.left; len(l) != 2 || l[0].Final || !l[1].Final {
		t.Errorf("the servers were told %+v", l)
	}
}

// TestDrainedIsAwaitedNoLongerThanItsDeadline even when nothing is moved.
func TestDrainedIsAwaitedNoLongerThanItsDeadline(t *testing.T) {
	a := newAgent(t)
	a.cfg.DrainOnShutdown = &structs.DrainSpec{Deadline: 50 * time.Millisecond}
	a.start()
	<-a.client.registered.ch
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	a.client.Depart(ctx)
	a.servers.mu.Lock()
	defer a.servers.mu.Unlock()
	if l := a.servers.left; len(l) != 2 || l[0].Drain == nil {
		t.Errorf("the servers were told %+v", l)
	}
}

// TestWhatArrivesWhileTheNodeLeavesNeverBegins: it was placed a moment before the servers knew.
func TestWhatArrivesWhileTheNodeLeavesNeverBegins(t *testing.T) {
	a := newAgent(t).start()
	marks := t.TempDir()
	slow := shell(`trap "" TERM; echo >"` + marks + `/up"; while :; do sleep 0.02; done`)
	slow.KillTimeout = structs.Ptr(time.Second)
	a.servers.assign("a1", jobOf("j", "service", slow), nil)
	a.servers.untilStatus("a1", "running")
	waitFile(t, marks+"/up")
	left := make(chan struct{})
	go func() {
		defer close(left)
		a.client.Depart(context.Background())
	}()
	a.servers.until("the first step", func() bool { return len(a.servers.left) == 1 })
	poll(t, "leaving", func() (string, bool) {
		a.client.mu.Lock()
		defer a.client.mu.Unlock()
		return "", a.client.departing
	})
	a.servers.assign("late", jobOf("k", "batch", shell(`echo >"`+marks+`/late"`)), nil)
	o := a.servers.untilStatus("late", "complete")
	<-left
	if _, err := os.Stat(marks + "/late"); err == nil || !o.TaskStates["t"].StartedAt.IsZero() {
		t.Errorf("it was started: %+v", o.TaskStates["t"])
	}
	// It had to be killed, and that is no failure: its end was asked for. The servers replace it all the same.
	if late, o := o, a.servers.untilStatus("a1", "complete"); !late.Departed || !o.Departed || o.TaskStates["t"].Failed {
		t.Errorf("departed: %v, %v; the task's state %+v", late.Departed, o.Departed, o.TaskStates["t"])
	}
}
