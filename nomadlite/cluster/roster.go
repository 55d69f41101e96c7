package cluster

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Statuses of a member, as the public API names them.
const (
	StatusAlive  = "alive"
	StatusFailed = "failed"
	StatusLeft   = "left"
)

// Member is one server as it introduces itself.
type Member struct {
	ID           string
	Name         string
	Addr         string // host:port of its 4647
	HTTPAddr     string // host:port of its public API
	Region       string
	Datacenter   string
	Expect       int      // servers to wait for before the first bootstrap; 0 never bootstraps
	Bootstrapped bool     // it belongs to a cluster
	Started      int64    // unix ns; tells its lives apart
	Left         bool     // it went for good in this life
	Knows        []string // ids of all members it knows, its own included, sorted
}

// Roster is the pure core of membership: who is known, when each was last heard, and whether all agree on who begins a
// cluster.
type Roster struct {
	self  Member
	peers map[string]*seen
	// failAfter is how long a member may be silent before it counts as failed.
	failAfter time.Duration
}

type seen struct {
	Member
	heard  time.Time
	direct bool // it answered itself; else another member named it
}

// NewRoster makes a roster of self alone.
func NewRoster(self Member, failAfter time.Duration) *Roster {
	return &Roster{self: self, peers: map[string]*seen{}, failAfter: failAfter}
}

// Self is this server as it introduces itself now.
func (r *Roster) Self() Member {
	m := r.self
	m.Knows = r.ids()
	return m
}

// SetBootstrapped records that this server belongs to a cluster.
func (r *Roster) SetBootstrapped() { r.self.Bootstrapped = true }

func (r *Roster) ids() []string {
	out := []string{r.self.ID}
	for id, p := range r.peers {
		if !p.Left {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// Leave records that this server goes for good.
func (r *Roster) Leave() { r.self.Left = true }

// Mark records that a member leaves, or that it could not.
func (r *Roster) Mark(m Member, left bool, now time.Time) {
	m.Left = left
	r.peers[m.ID] = &seen{Member: m, heard: now, direct: true}
}

// Reap forgets members that have left and were not heard for longer than after.
func (r *Roster) Reap(now time.Time, after time.Duration) {
	for id, p := range r.peers {
		if p.Left && now.Sub(p.heard) > after {
			delete(r.peers, id)
		}
	}
}

// Heard takes in what a member said of itself. It says whether the member was not known before, or has moved, left or
// returned. What one that has left said before may arrive later.
func (r *Roster) Heard(m Member, now time.Time) (changed bool) {
	if m.ID == "" || m.ID == r.self.ID || m.Region != r.self.Region {
		return false
	}
	// Another id at the same address is a server that was set up anew: its former self is gone.
	for id, old := range r.peers {
		if id != m.ID && old.Addr == m.Addr {
			delete(r.peers, id)
		}
	}
	old := r.peers[m.ID]
	if old != nil && old.Left && old.Started == m.Started {
		m.Left = true
	}
	r.peers[m.ID] = &seen{Member: m, heard: now, direct: true}
	return old == nil || !old.direct || old.Addr != m.Addr || old.Left != m.Left
}

// Named takes in what another member said of a third one; it is worth a visit, but does not count as heard.
func (r *Roster) Named(m Member, now time.Time) {
	if m.ID == "" || m.ID == r.self.ID || m.Region != r.self.Region || r.peers[m.ID] != nil {
		return
	}
	for _, old := range r.peers {
		if old.Addr == m.Addr {
			return
		}
	}
	r.peers[m.ID] = &seen{Member: m, heard: now}
}

// Forget drops a member.
func (r *Roster) Forget(id string) { delete(r.peers, id) }

// Peers are the other members, by id.
func (r *Roster) Peers() []Member {
	out := make([]Member, 0, len(r.peers))
	for _, id := range slices.Sorted(maps.Keys(r.peers)) {
		out = append(out, r.peers[id].Member)
	}
	return out
}

// Status says whether a member is alive, has failed, or has left.
func (r *Roster) Status(id string, now time.Time) string {
	if id == r.self.ID {
		return StatusAlive
	}
	switch p := r.peers[id]; {
	case p != nil && p.Left:
		return StatusLeft
	case p == nil || now.Sub(p.heard) > r.failAfter:
		return StatusFailed
	}
	return StatusAlive
}

// Alive are the members that answered lately, this server included, by id.
func (r *Roster) Alive(now time.Time) []Member {
	out := []Member{r.Self()}
	for _, p := range r.peers {
		if p.direct && r.Status(p.ID, now) == StatusAlive {
			out = append(out, p.Member)
		}
	}
	slices.SortFunc(out, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Founders are the servers that begin a new cluster: as many as each of them expects, when all of them know exactly
// each other and none belongs to a cluster. All founders come to the same answer; who is not among them waits to be
// admitted. Two clusters could begin only if there were twice as many servers as expected.
func (r *Roster) Founders(now time.Time) ([]Peer, bool) {
	if r.self.Expect < 1 || r.self.Bootstrapped {
		return nil, false
	}
	members := r.Alive(now)
	ids := r.ids()
	if len(members) < r.self.Expect || len(members) != len(ids) {
		return nil, false // who was only named may belong to a cluster
	}
	for _, m := range members {
		if m.Bootstrapped || m.Expect != r.self.Expect || !slices.Equal(m.Knows, ids) {
			return nil, false
		}
	}
	var out []Peer
	among := false
	for _, m := range members[:r.self.Expect] {
		out = append(out, Peer{ID: m.ID, Addr: m.Addr})
		among = among || m.ID == r.self.ID
	}
	if !among {
		return nil, false
	}
	return out, true
}
