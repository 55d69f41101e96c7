package nomadlite

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadlite/nomadlite/structs"
)

// TestServersLeave one after the other, the leader among them: each is no peer any more, the rest goes on, and the last
// one keeps what was written. One that is started again is taken in again.
func TestServersLeave(t *testing.T) {
	c := startTrio(t)
	leader := leaderOf(t, c.servers...)
	first := c.without(leader)[0]
	first.Leave(t.Context())
	awaitPeers(t, leader, 2)
	awaitMember(t, leader, first.Addr(), "left")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := register(leader, "two"); err != nil {
		t.Fatal(err)
	}
	back := c.again(t, first)
	await(t, "the return of the one that left", back.Ready())
	awaitPeers(t, leader, 3)
	awaitMember(t, leader, first.Addr(), "alive")
	back.Leave(t.Context())
	if err := back.Close(); err != nil {
		t.Fatal(err)
	}
	var last *testServer
	for _, s := range c.without(leader) {
		if s != first {
			last = s
		}
	}
	leader.Leave(t.Context())
	if err := leader.Close(); err != nil {
		t.Fatal(err)
	}
	awaitPeers(t, last, 1)
	if err := register(leaderOf(t, last), "one"); err != nil {
		t.Fatal(err)
	}
	last.Leave(t.Context())
	awaitPeers(t, last, 1)
	for _, id := range []string{"two", "one"} {
		if last.store.Job(nil, structs.DefaultNamespace, id) == nil {
			t.Errorf("%s is lost", id)
		}
	}
}

// TestNoServerLeavesWithoutAMajority: of two that are left of three one stays a member.
func TestNoServerLeavesWithoutAMajority(t *testing.T) {
	c := startTrio(t)
	leader := leaderOf(t, c.servers...)
	rest := c.without(leader)
	if err := rest[0].Close(); err != nil {
		t.Fatal(err)
	}
	awaitMember(t, leader, rest[0].Addr(), "failed")
	awaitMember(t, rest[1], rest[0].Addr(), "failed")
	for _, s := range []*testServer{rest[1], leader} {
		ctx, cancel := context.WithCancel(t.Context())
		s.Leave(ctx)
		cancel()
		awaitPeers(t, leader, 3)
	}
	if err := register(leaderOf(t, leader, rest[1]), "after"); err != nil {
		t.Fatal(err)
	}
}

// awaitPeers waits until the leader counts n voters.
func awaitPeers(t *testing.T, leader *testServer, n int) {
	t.Helper()
	changes := make(chan raft.Observation, 64)
	stop := leader.lead.log().Observe(changes)
	defer stop()
	timeout := time.After(20 * time.Second)
	for len(leader.lead.Peers()) != n {
		select {
		case <-changes:
		case <-timeout:
			t.Fatalf("peers are %v, want %d", leader.lead.Peers(), n)
		}
	}
}
