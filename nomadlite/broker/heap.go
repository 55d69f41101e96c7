package broker

// before is the order of work: foreground first, then priority, then age.
func before(a, b *entry) bool {
	switch {
	case a.background != b.background:
		return b.background
	case a.eval.Priority != b.eval.Priority:
		return a.eval.Priority > b.eval.Priority
	case a.eval.CreateIndex != b.eval.CreateIndex:
		return a.eval.CreateIndex < b.eval.CreateIndex
	default:
		return a.eval.ID < b.eval.ID
	}
}

// entryHeap is a container/heap in the order of work.
type entryHeap []*entry

func (h entryHeap) Len() int           { return len(h) }
func (h entryHeap) Less(i, j int) bool { return before(h[i], h[j]) }
func (h entryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].pos, h[j].pos = i, j }

// Push is heap.Interface's.
func (h *entryHeap) Push(x any) {
	e := x.(*entry)
	e.pos = len(*h)
	*h = append(*h, e)
}

// Pop is heap.Interface's.
func (h *entryHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.pos = -1
	return e
}

// timerHeap is a container/heap by due time, then id, so that equal times have an order.
type timerHeap []*entry

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].eval.ID < h[j].eval.ID
	}
	return h[i].due.Before(h[j].due)
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].pos, h[j].pos = i, j }

// Push is heap.Interface's.
func (h *timerHeap) Push(x any) { (*entryHeap)(h).Push(x) }

// Pop is heap.Interface's.
func (h *timerHeap) Pop() any { return (*entryHeap)(h).Pop() }
