package nomadlite

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadlite/nomadlite/nomadlite/cluster"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// leadership is raft as the rooms see it: there from New on, though raft itself is opened by Run only. This server
// counts as the leader once its duties have begun, not when raft elects it.
type leadership struct {
	mu          sync.Mutex
	raft        *cluster.Raft // nil before Run opened it
	established bool
	leader      string        // address which was announced last
	changed     chan struct{} // closed when IsLeader or LeaderAddr changes
}

func newLeadership() *leadership { return &leadership{changed: make(chan struct{})} }

func (l *leadership) log() *cluster.Raft {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.raft
}

func (l *leadership) open(r *cluster.Raft) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.raft = r
	l.announceLocked()
}

// establish says that the leader's duties have begun, or have ended.
func (l *leadership) establish(leading bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.established != leading {
		l.established = leading
		l.announceLocked()
	}
}

func (l *leadership) announceLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// observe announces changes of the leader's address until ctx ends.
func (l *leadership) observe(ctx context.Context, r *cluster.Raft) {
	ch := make(chan raft.Observation, 16)
	stop := r.Observe(ch)
	defer stop()
	for {
		addr := r.LeaderAddr()
		l.mu.Lock()
		if addr != l.leader {
			l.leader = addr
			l.announceLocked()
		}
		l.mu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
			return
		}
	}
}

// IsLeader says whether this server leads and has caught up.
func (l *leadership) IsLeader() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.established
}

// LeaderAddr is the leader's host:port of 4647, empty when there is none.
func (l *leadership) LeaderAddr() string {
	if r := l.log(); r != nil {
		return r.LeaderAddr()
	}
	return ""
}

// LeaderChanged gives a channel which is closed when what IsLeader or LeaderAddr say changes next.
func (l *leadership) LeaderChanged() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Peers are host:port of all raft peers.
func (l *leadership) Peers() []string {
	if r := l.log(); r != nil {
		return r.Peers()
	}
	return nil
}

// LastContact is the time since this server heard from the leader, 0 on the leader.
func (l *leadership) LastContact() time.Duration {
	if r := l.log(); r != nil {
		return r.LastContact()
	}
	return time.Hour
}

// VerifyLeader makes sure that this server still leads.
func (l *leadership) VerifyLeader(ctx context.Context) error {
	if r := l.log(); r != nil {
		return r.VerifyLeader(ctx)
	}
	return structs.ErrNoLeader
}

// Apply commits one command and waits until this server's state holds it.
func (l *leadership) Apply(ctx context.Context, kind fsm.Kind, req any) (any, uint64, error) {
	return l.Propose(kind, req)(ctx)
}

// Propose puts a command into the log; wait tells its outcome.
func (l *leadership) Propose(kind fsm.Kind, req any) func(ctx context.Context) (any, uint64, error) {
	if r := l.log(); r != nil {
		return r.Propose(kind, req)
	}
	return func(context.Context) (any, uint64, error) { return nil, 0, structs.ErrNoLeader }
}
