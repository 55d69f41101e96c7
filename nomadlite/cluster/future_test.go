package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// promise is a future that a test settles.
type promise chan error

func (p promise) Error() error { return <-p }

func TestFuturesSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFutures()
		p := make(promise, 1)
		p <- raft.ErrNotLeader
		if err := f.settle(t.Context(), p); !errors.Is(err, raft.ErrNotLeader) {
			t.Errorf("got %v", err)
		}
		began := time.Now()
		f.drain()
		if took := time.Since(began); took != 0 {
			t.Errorf("with nothing asked draining took %v", took)
		}

		gone, cancel := context.WithCancel(t.Context())
		cancel()
		slow := make(promise)
		if err := f.settle(gone, slow); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		answered := time.AfterFunc(drainLimit/2, func() { slow <- nil })
		defer answered.Stop()
		f.drain()
		if took := time.Since(began); took != drainLimit/2 {
			t.Errorf("draining took %v, the answer %v", took, drainLimit/2)
		}
	})
}

func TestWhatRaftNeverAnswersEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFutures()
		never := make(promise)
		result := make(chan error)
		go func() { result <- f.settle(context.Background(), never) }()
		synctest.Wait()
		began := time.Now()
		f.drain()
		if took := time.Since(began); took != drainLimit {
			t.Errorf("draining took %v, its limit is %v", took, drainLimit)
		}
		close(f.closed)
		if err := <-result; !errors.Is(err, raft.ErrRaftShutdown) {
			t.Errorf("got %v", err)
		}
		close(never) // the bubble wants every goroutine to end
	})
}
