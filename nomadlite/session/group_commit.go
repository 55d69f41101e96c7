package session

import (
	"context"
	"sync"
	"time"
)

// applyTimeout bounds the writing of one entry.
const applyTimeout = 30 * time.Second

// groupCommit folds what many nodes say into few raft entries: the first goes out at once, and what arrives while an
// entry is being written goes out together in the next.
type groupCommit[T any] struct {
	limit int         // of rows in one entry, unless one request alone has more
	rows  func(T) int // of one request
	// write commits the requests of one entry, in the order in which they came.
	write func(ctx context.Context, batch []T) (index uint64, err error)

	mu       sync.Mutex
	waiting  []*commit[T]
	flushing bool
	flushes  sync.WaitGroup // for Close of the owner
}

// commit is one request that waits.
type commit[T any] struct {
	req   T
	index uint64
	err   error
	done  chan struct{}
}

// submit writes one request and waits until it is committed. When ctx ends before, it may be committed all the same.
func (g *groupCommit[T]) submit(ctx context.Context, req T) (uint64, error) {
	c := &commit[T]{req: req, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	if !g.flushing {
		g.flushing = true
		g.flushes.Add(1)
		go g.flush()
	}
	g.mu.Unlock()
	select {
	case <-c.done:
		return c.index, c.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// flush writes entries until nothing waits. It is nobody's request: who gives up must not take others along.
func (g *groupCommit[T]) flush() {
	defer g.flushes.Done()
	for {
		batch := g.take()
		if batch == nil {
			return
		}
		reqs := make([]T, len(batch))
		for i, c := range batch {
			reqs[i] = c.req
		}
		ctx, cancel := context.WithTimeout(context.Background(), applyTimeout)
		index, err := g.write(ctx, reqs)
		cancel()
		for _, c := range batch {
			c.index, c.err = index, err
			close(c.done)
		}
	}
}

// take gives the next entry's requests, or ends the flush.
func (g *groupCommit[T]) take() []*commit[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, size := 0, 0
	for n < len(g.waiting) {
		more := g.rows(g.waiting[n].req)
		if n > 0 && size+more > g.limit {
			break
		}
		size += more
		n++
	}
	if n == 0 {
		g.flushing, g.waiting = false, nil
		return nil
	}
	batch := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	return batch
}
