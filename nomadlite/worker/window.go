package worker

import (
	"context"
	"fmt"
	"sync"
)

// window says how many evaluations may do something at once. It narrows when plans meet others and widens while they fit:
// each evaluation looks at a state without the decisions of those beside it that are not yet written, so that where room
// is tight many at once would only plan for the same.
type window struct {
	least, most int
	patience    int // so many in a row must have fitted before it widens by one

	mu    sync.Mutex
	size  int
	row   int
	used  int
	freed chan struct{} // closed when there may be a place; nil: nobody waits
}

func newWindow(least, most, patience int) *window {
	return &window{least: least, most: most, patience: patience, size: most}
}

// enter waits for a place.
func (w *window) enter(ctx context.Context) error {
	for {
		w.mu.Lock()
		if w.used < w.size {
			w.used++
			w.mu.Unlock()
			return nil
		}
		if w.freed == nil {
			w.freed = make(chan struct{})
		}
		freed := w.freed
		w.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return fmt.Errorf("wait for evaluations under way: %w", context.Cause(ctx))
		}
	}
}

// exit gives a place back.
func (w *window) exit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used--
	w.wake()
}

// fitted notes a plan that was committed whole.
func (w *window) fitted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.row++; w.size < w.most && w.row >= w.patience {
		w.row = 0
		w.size++
		w.wake()
	}
}

// met notes a plan that met another one.
func (w *window) met() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.row, w.size = 0, max(w.least, w.size/2)
}

// wake lets those who wait look again. The lock is held.
func (w *window) wake() {
	if w.freed != nil {
		close(w.freed)
		w.freed = nil
	}
}
