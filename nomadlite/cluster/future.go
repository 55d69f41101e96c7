package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// drainLimit bounds how long Close lets raft take in what was asked of it. Without a quorum nothing is committed any
// more; raft then answers when it stops.
const drainLimit = 200 * time.Millisecond

// futures counts what raft was asked and has not answered. Raft never answers what still lies in its queue when it
// stops: who waits for that is let go by closed.
type futures struct {
	closed chan struct{} // raft has stopped

	mu    sync.Mutex
	asked int
	none  chan struct{} // closed when asked falls to 0; nil: nobody waits for that
}

func newFutures() *futures { return &futures{closed: make(chan struct{})} }

// settle waits for a future, the end of ctx, or that of raft.
func (f *futures) settle(ctx context.Context, future raft.Future) error {
	f.add(1)
	done := make(chan error, 1)
	go func() { // ends with the future
		err := future.Error()
		f.add(-1)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-f.closed:
		return raft.ErrRaftShutdown
	}
}

func (f *futures) add(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked += n; f.asked == 0 && f.none != nil {
		close(f.none)
		f.none = nil
	}
}

// drain waits, for a while, until raft has answered everything.
func (f *futures) drain() {
	f.mu.Lock()
	if f.asked == 0 {
		f.mu.Unlock()
		return
	}
	if f.none == nil {
		f.none = make(chan struct{})
	}
	none := f.none
	f.mu.Unlock()
	timer := time.NewTimer(drainLimit)
	defer timer.Stop()
	select {
	case <-none:
	case <-timer.C:
	}
}
