package heartbeat

import (
	"container/heap"
	"time"
)

// Kind says what a timer stands for.
type Kind uint8

const (
	// Missed is due when a node's heartbeat did not come.
	Missed Kind = iota
	// Tolerance is due when allocations of a silent node have been unknown for as long as their groups allow.
	Tolerance
	// Announced is due when a maintenance is over.
	Announced
)

// Key names one timer.
type Key struct {
	NodeID string
	Kind   Kind
}

type timer struct {
	key Key
	due time.Time
	pos int
}

// Timers is the pure core: a heap of what is due when.
type Timers struct {
	byKey map[Key]*timer
	heap  timerHeap
}

// NewTimers makes an empty set.
func NewTimers() *Timers { return &Timers{byKey: map[Key]*timer{}} }

// Set begins or moves a timer.
func (t *Timers) Set(key Key, due time.Time) {
	if old := t.byKey[key]; old != nil {
		old.due = due
		heap.Fix(&t.heap, old.pos)
		return
	}
	n := &timer{key: key, due: due}
	t.byKey[key] = n
	heap.Push(&t.heap, n)
}

// Drop ends a timer, if there is one.
func (t *Timers) Drop(key Key) {
	if old := t.byKey[key]; old != nil {
		heap.Remove(&t.heap, old.pos)
		delete(t.byKey, key)
	}
}

// Due takes out what is due at now, at most limit (0: all), earliest first.
func (t *Timers) Due(now time.Time, limit int) []Key {
	var out []Key
	for len(t.heap) > 0 && !t.heap[0].due.After(now) && (limit == 0 || len(out) < limit) {
		n := heap.Pop(&t.heap).(*timer)
		delete(t.byKey, n.key)
		out = append(out, n.key)
	}
	return out
}

// Next says when something is due; false when there is no timer.
func (t *Timers) Next() (time.Time, bool) {
	if len(t.heap) == 0 {
		return time.Time{}, false
	}
	return t.heap[0].due, true
}

// Has says whether the timer runs.
func (t *Timers) Has(key Key) bool { return t.byKey[key] != nil }

// Len is the number of timers.
func (t *Timers) Len() int { return len(t.heap) }

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	if h[i].key.NodeID != h[j].key.NodeID {
		return h[i].key.NodeID < h[j].key.NodeID
	}
	return h[i].key.Kind < h[j].key.Kind
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].pos, h[j].pos = i, j }

// Push is heap.Interface's.
func (h *timerHeap) Push(x any) {
	n := x.(*timer)
	n.pos = len(*h)
	*h = append(*h, n)
}

// Pop is heap.Interface's.
func (h *timerHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return n
}
