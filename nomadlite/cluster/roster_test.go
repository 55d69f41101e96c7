package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func member(id string, expect int, knows ...string) Member {
	return Member{ID: id, Name: id, Addr: id + ":4647", Region: "global", Expect: expect, Knows: knows}
}

func TestFounders(t *testing.T) {
	now := time.Unix(100, 0)
	for _, tc := range []struct {
		name  string
		heard []Member
		want  int
	}{
		{"alone", nil, 0},
		{"two of three", []Member{member("b", 3, "a", "b")}, 0},
		{"all, but one does not know all yet", []Member{member("b", 3, "a", "b", "c"), member("c", 3, "a", "c")}, 0},
		{"all know all", []Member{member("b", 3, "a", "b", "c"), member("c", 3, "a", "b", "c")}, 3},
		{"one expects another number", []Member{member("b", 5, "a", "b", "c"), member("c", 3, "a", "b", "c")}, 0},
		{"one belongs to a cluster", []Member{member("b", 3, "a", "b", "c"), func() Member {
			m := member("c", 3, "a", "b", "c")
			m.Bootstrapped = true
			return m
		}()}, 0},
		{"more than expected: the first by id", []Member{member("b", 3, "a", "b", "c", "d"),
			member("c", 3, "a", "b", "c", "d"), member("d", 3, "a", "b", "c", "d")}, 3},
		{"another region does not count", []Member{member("b", 3, "a", "b", "c"), func() Member {
			m := member("c", 3, "a", "b", "c")
			m.Region = "other"
			return m
		}()}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := NewRoster(member("a", 3), time.Second)
			for _, m := range tc.heard {
				r.Heard(m, now)
			}
			peers, ok := r.Founders(now)
			if len(peers) != tc.want || ok != (tc.want > 0) {
				t.Fatalf("founders %v", peers)
			}
			if ok && peers[0].ID != "a" {
				t.Errorf("founders %v", peers)
			}
			if peers, ok := r.Founders(now.Add(time.Hour)); ok {
				t.Errorf("founders %v that have not been heard for an hour", peers)
			}
		})
	}
}

func TestRosterMoves(t *testing.T) {
	now := time.Unix(100, 0)
	r := NewRoster(member("a", 1), time.Second)
	if !r.Heard(member("b", 1), now) || r.Heard(member("b", 1), now) {
		t.Error("news of a member once")
	}
	moved := member("b", 1)
	moved.Addr = "new:4647"
	if !r.Heard(moved, now) {
		t.Error("a member that moved is news")
	}
	anew := member("c", 1)
	anew.Addr = "new:4647"
	r.Heard(anew, now)
	if peers := r.Peers(); len(peers) != 1 || peers[0].ID != "c" {
		t.Errorf("the former self of a server that was set up anew stays: %v", peers)
	}
	r.Named(member("d", 1), now)
	if len(r.Alive(now)) != 2 || r.Status("c", now) != StatusAlive || r.Status("c", now.Add(2*time.Second)) != StatusFailed {
		t.Error("who is alive")
	}
}

// TestFoundersAgree lets servers meet in any order and checks that all who find founders find the same.
func TestFoundersAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Unix(100, 0)
		n, expect := rapid.IntRange(2, 5).Draw(rt, "servers"), 0
		expect = rapid.IntRange(n/2+1, n).Draw(rt, "expect")
		var rosters []*Roster
		for i := range n {
			rosters = append(rosters, NewRoster(member(fmt.Sprint("s", i), expect), time.Minute))
		}
		var found []Peer
		for range rapid.IntRange(1, 60).Draw(rt, "meetings") {
			a, b := rosters[rapid.IntRange(0, n-1).Draw(rt, "a")], rosters[rapid.IntRange(0, n-1).Draw(rt, "b")]
			for _, pair := range [][2]*Roster{{a, b}, {b, a}} {
				pair[1].Heard(pair[0].Self(), now)
				for _, p := range pair[0].Peers() {
					pair[1].Named(p, now)
				}
			}
			for _, r := range rosters {
				if peers, ok := r.Founders(now); ok {
					r.SetBootstrapped()
					if found == nil {
						found = peers
					}
					if !slices.Equal(found, peers) {
						rt.Fatalf("founders %v and %v", found, peers)
					}
				}
			}
		}
	})
}

// TestRosterOfOneThatLeft: it stays gone whatever it said before arrives late, and is back in its next life.
func TestRosterOfOneThatLeft(t *testing.T) {
	now := time.Unix(100, 0)
	r := NewRoster(member("a", 1), time.Second)
	b := member("b", 1)
	b.Started = 1
	r.Heard(b, now)
	gone := b
	gone.Left = true
	if !r.Heard(gone, now) || r.Heard(gone, now) {
		t.Error("that a member has left is news once")
	}
	if r.Heard(b, now) || r.Status("b", now) != StatusLeft || len(r.Alive(now)) != 1 || len(r.Self().Knows) != 1 {
		t.Errorf("a late word brought it back: %s", r.Status("b", now.Add(time.Hour)))
	}
	again := b
	again.Started = 2
	if !r.Heard(again, now) || r.Status("b", now) != StatusAlive || len(r.Alive(now)) != 2 {
		t.Error("it is not back in its next life")
	}
	r.Mark(again, true, now)
	r.Reap(now.Add(time.Minute), time.Hour)
	if len(r.Peers()) != 1 {
		t.Error("it was forgotten at once")
	}
	if r.Reap(now.Add(2*time.Hour), time.Hour); len(r.Peers()) != 0 {
		t.Error("it is never forgotten")
	}
}
