package state

import (
	"context"
	"fmt"
	"sync"

	"github.com/nomadlite/nomadlite/structs"
)

// Change is what one raft entry changed. It is shared by all subscribers: do not change it.
type Change struct {
	Index uint64
	Kind  uint8 // the command's number, see package fsm; 0 when none
	Items []Item
}

// Item is one changed row. Before is nil for a new row, After for a deleted one. Rows have the types which the reads
// give: *structs.Job in TableJobs, TableJobVersions and TableJobSpecs, *structs.JobSummary in TableSummaries, and so
// on.
type Item struct {
	Table         string
	Before, After any
}

// feed hands changes to subscribers, in commit order. The zero value is ready.
type feed struct {
	mu   sync.Mutex
	subs map[*Subscription]struct{}
}

// Subscription is one reader's bounded queue of changes. It is made for one goroutine, Close for any.
type Subscription struct {
	feed   *feed
	limit  int
	wake   chan struct{} // holds one token while the queue is not empty
	mu     sync.Mutex
	queue  []Change
	lagged bool
	closed bool
}

// Subscribe begins a queue of at most buf changes (at least 1), starting after the newest state: whoever subscribes
// first and reads a snapshot then misses nothing, and skips changes that the snapshot's index covers.
func (s *Store) Subscribe(buf int) *Subscription {
	sub := &Subscription{feed: &s.feed, limit: max(buf, 1), wake: make(chan struct{}, 1)}
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	if s.feed.subs == nil {
		s.feed.subs = make(map[*Subscription]struct{})
	}
	s.feed.subs[sub] = struct{}{}
	return sub
}

// Next waits for the next change. It gives structs.ErrLagged once when changes were dropped because the queue was
// full, or because a snapshot was restored; a reader that then reads the whole state may go on with Next, an event
// reader gives up. After Close it gives an error that wraps context.Canceled.
func (s *Subscription) Next(ctx context.Context) (Change, error) {
	for {
		if change, ok, err := s.take(); ok || err != nil {
			return change, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Change{}, context.Cause(ctx)
		}
	}
}

func (s *Subscription) take() (Change, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return Change{}, false, fmt.Errorf("read change feed: subscription is closed: %w", context.Canceled)
	case s.lagged:
		s.lagged = false
		return Change{}, false, structs.ErrLagged
	case len(s.queue) == 0:
		return Change{}, false, nil
	}
	change := s.queue[0]
	s.queue[0] = Change{}
	s.queue = s.queue[1:]
	return change, true, nil
}

// Close ends the subscription and wakes its reader. It may be called again.
func (s *Subscription) Close() {
	s.feed.mu.Lock()
	delete(s.feed.subs, s)
	s.feed.mu.Unlock()
	s.mu.Lock()
	s.closed, s.queue = true, nil
	s.mu.Unlock()
	s.signal()
}

func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Subscription) push(change Change) {
	s.mu.Lock()
	switch {
	case s.closed || s.lagged:
	case len(s.queue) >= s.limit:
		s.lagged, s.queue = true, nil
	default:
		s.queue = append(s.queue, change)
	}
	s.mu.Unlock()
	s.signal()
}

func (f *feed) publish(change Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sub := range f.subs {
		sub.push(change)
	}
}

// cut tells all subscribers that they must read the whole state.
func (f *feed) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sub := range f.subs {
		sub.mu.Lock()
		sub.lagged, sub.queue = true, nil
		sub.mu.Unlock()
		sub.signal()
	}
}

func (f *feed) subscribers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs)
}
