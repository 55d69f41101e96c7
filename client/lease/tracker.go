package lease

import (
	"sync"
	"time"

	"github.com/nomadlite/nomadlite/internal/boottime"
)

// Moment is when the last confirmed heartbeat was sent, with what the servers were told of the node by then. It is kept
// on disk for the next agent.
type Moment struct {
	BootID  string
	Sent    time.Duration // since boot
	Lease   time.Duration // of the node, 0 for none
	MaxKill time.Duration
}

// Over tells that an allocation's lease has run out, and when its processes are killed whatever happens.
type Over struct {
	AllocID string
	Kill    boottime.Deadline
}

// Tracker keeps the leases of a node. All methods are safe for concurrent use.
type Tracker struct {
	clock boottime.Clock

	mu     sync.Mutex
	last   Moment
	allocs map[string]*alloc
}

type alloc struct {
	lease, kill time.Duration
	gate        chan struct{} // closed once the lease has begun
	begun       bool
	over        bool
	dead        boottime.Deadline // when over
}

// New makes a tracker that goes on from what an earlier agent kept.
func New(clock boottime.Clock, last Moment) *Tracker {
	return &Tracker{clock: clock, last: last, allocs: map[string]*alloc{}}
}

// Last is the newest moment.
func (t *Tracker) Last() Moment {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Hold gives an allocation a lease, or changes its terms; see structs.TaskGroup.LeaseOn. The lease of one that is
// restored has begun; that of a new one begins with a heartbeat which is confirmed early enough, and nothing of it may
// be started before the channel is closed.
func (t *Tracker) Hold(id string, lease, kill time.Duration, restored bool) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.allocs[id]
	if a == nil {
		a = &alloc{gate: make(chan struct{})}
		t.allocs[id] = a
	}
	if !a.over {
		a.lease, a.kill = lease, kill
	}
	if restored || !a.over && t.age() <= lease/2 {
		a.begin()
	}
	return a.gate
}

func (a *alloc) begin() {
	if !a.begun {
		a.begun = true
		close(a.gate)
	}
}

// End notes a lease that had run out under an earlier agent.
func (t *Tracker) End(o Over) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.allocs[o.AllocID]; a != nil {
		a.over, a.dead = true, o.Kill
	}
}

// Drop forgets an allocation.
func (t *Tracker) Drop(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.allocs, id)
}

// never is the age of a heartbeat that there was none of.
const never = time.Duration(1 << 62)

// age is the time since the last confirmed heartbeat was sent; never when there was none in this boot.
func (t *Tracker) age() time.Duration {
	now, boot := t.clock.Boot()
	if t.last.BootID != boot || t.last.Sent <= 0 {
		return never
	}
	return now - t.last.Sent
}

// Confirm notes that the heartbeat which was sent then was confirmed. What had run out before stays so and is given.
func (t *Tracker) Confirm(m Moment) []Over {
	t.mu.Lock()
	defer t.mu.Unlock()
	over := t.expire()
	if m.BootID != t.last.BootID || m.Sent > t.last.Sent {
		t.last = m
	}
	for _, a := range t.allocs {
		if !a.over && t.age() <= a.lease/2 {
			a.begin()
		}
	}
	return over
}

// Expired gives the leases that have run out since it was last asked, and when to ask again on the boot-time clock,
// negative for when there is nothing to wait for.
func (t *Tracker) Expired() (over []Over, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	over, next = t.expire(), -1
	for _, a := range t.allocs {
		if at := t.last.Sent + a.lease; !a.over && (a.begun || t.age() < never) && (next < 0 || at < next) {
			next = at
		}
	}
	return over, next
}

// expire ends also what waits to begin since before contact was lost: the servers may have given it up meanwhile, and a
// heartbeat which they confirm later does not tell that they have not.
func (t *Tracker) expire() []Over {
	var out []Over
	age := t.age()
	for id, a := range t.allocs {
		if a.over || age < a.lease || !a.begun && age == never {
			continue
		}
		a.over, a.dead = true, t.deadline(a)
		out = append(out, Over{AllocID: id, Kill: a.dead})
	}
	return out
}

// deadline is when nothing of the allocation may be alive any more.
func (t *Tracker) deadline(a *alloc) boottime.Deadline {
	d := boottime.MomentAt(t.clock, t.last.Sent+a.lease+a.kill)
	d.BootID = t.last.BootID
	return d
}

// Until is when the processes of an allocation are to be killed unless its lease is renewed; false when it has none.
func (t *Tracker) Until(id string) (boottime.Deadline, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.allocs[id]
	switch {
	case a == nil:
		return boottime.Deadline{}, false
	case a.over:
		return a.dead, true
	}
	return t.deadline(a), true
}

// Renewals gives, for the allocations whose lease runs, until when it does.
func (t *Tracker) Renewals() map[string]boottime.Deadline {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]boottime.Deadline{}
	for id, a := range t.allocs {
		if a.begun && !a.over {
			out[id] = t.deadline(a)
		}
	}
	return out
}

// Pace is how often heartbeats are due for the shortest lease: thrice within it, so that one may be lost; 0 when there
// is none.
func (t *Tracker) Pace() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var shortest time.Duration
	for _, a := range t.allocs {
		if !a.over && (shortest == 0 || a.lease < shortest) {
			shortest = a.lease
		}
	}
	return shortest / 3
}
