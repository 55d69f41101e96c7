package client

import (
	"context"
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
	if l := a.servers.left; len(l) != 2 || l[0].Final || !l[1].Final || l[1].Eligibility != structs.NodeEligible {
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
