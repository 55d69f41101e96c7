package plan

import (
	"container/heap"
	"context"
	"sync"

	"github.com/nomadlite/nomadlite/structs"
)

// pending is a plan that waits for the applier, and where its result goes.
type pending struct {
	plan   *structs.Plan
	number uint64
	done   chan outcome // buffered: the applier never waits for a worker
}

type outcome struct {
	result *structs.PlanResult
	err    error
}

// Queue holds submitted plans in the order of priority, then arrival. It accepts plans only while it is open, that is
// on the leader.
type Queue struct {
	mu     sync.Mutex
	open   bool
	number uint64
	heap   pendingHeap
	wake   chan struct{} // holds a token while there may be plans
}

// NewQueue makes a closed queue.
func NewQueue() *Queue { return &Queue{wake: make(chan struct{}, 1)} }

// Submit hands a plan to the applier and waits for its result. It fails with structs.ErrNoLeader when this server
// does not lead, or stops to while the plan waits: then it is not known whether the plan was committed.
func (q *Queue) Submit(ctx context.Context, plan *structs.Plan) (*structs.PlanResult, error) {
	q.mu.Lock()
	if !q.open {
		q.mu.Unlock()
		return nil, structs.ErrNoLeader
	}
	q.number++
	p := &pending{plan: plan, number: q.number, done: make(chan outcome, 1)}
	heap.Push(&q.heap, p)
	q.mu.Unlock()
	q.signal()
	select {
	case o := <-p.done:
		return o.result, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Len is the number of plans that wait.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.heap)
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Queue) setOpen(open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = open
	if !open {
		for _, p := range q.heap {
			p.done <- outcome{err: structs.ErrNoLeader}
		}
		q.heap = nil
	}
}

// take gives up to limit waiting plans; it waits for the first.
func (q *Queue) take(ctx context.Context, limit int) ([]*pending, error) {
	for {
		q.mu.Lock()
		var out []*pending
		for len(q.heap) > 0 && len(out) < limit {
			out = append(out, heap.Pop(&q.heap).(*pending))
		}
		q.mu.Unlock()
		if len(out) > 0 {
			return out, nil
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

type pendingHeap []*pending

func (h pendingHeap) Len() int { return len(h) }
func (h pendingHeap) Less(i, j int) bool {
	if h[i].plan.Priority != h[j].plan.Priority {
		return h[i].plan.Priority > h[j].plan.Priority
	}
	return h[i].number < h[j].number
}
func (h pendingHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is heap.Interface's.
func (h *pendingHeap) Push(x any) { *h = append(*h, x.(*pending)) }

// Pop is heap.Interface's.
func (h *pendingHeap) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return p
}
