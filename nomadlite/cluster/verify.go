package cluster

import (
	"context"
	"sync"
)

// verifier asks whether this server leads, once for all who want to know at one time: thousands of nodes with leases
// heartbeat side by side, and each question goes to every other server.
type verifier struct {
	ask func() error // begins when it is called: an answer says nothing of who led afterwards

	mu      sync.Mutex
	running bool
	next    *verification // of those who came while a question was under way, nil when nobody did
}

type verification struct {
	done chan struct{}
	err  error // read after done
}

// verify gives the answer to a question that is asked after it was called: one under way may have been asked before the
// caller got what it is to confirm.
func (v *verifier) verify(ctx context.Context) error {
	v.mu.Lock()
	if v.next == nil {
		v.next = &verification{done: make(chan struct{})}
	}
	mine := v.next
	if !v.running {
		v.running = true
		go v.run() // ends when nobody asks any more
	}
	v.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (v *verifier) run() {
	for {
		v.mu.Lock()
		current := v.next
		v.next = nil
		v.running = current != nil
		v.mu.Unlock()
		if current == nil {
			return
		}
		current.err = v.ask()
		close(current.done)
	}
}
