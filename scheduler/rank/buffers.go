package rank

import "sync"

// Buffers are handed from one evaluation to the next: what a ranker keeps of thousands of nodes is most of what an
// evaluation allocates. The zero value is ready, and may be shared.
type Buffers struct {
	places  buffer[place]
	entries buffer[entry]
	ties    buffer[uint64]
}

type buffer[T any] struct{ free sync.Pool }

// get gives n zero values.
func (b *buffer[T]) get(n int) []T {
	if kept, ok := b.free.Get().(*[]T); ok && cap(*kept) >= n {
		return (*kept)[:n]
	}
	return make([]T, n)
}

// put takes back what nobody uses any more.
func (b *buffer[T]) put(used []T) {
	clear(used) // now, so that it keeps nothing of an old state
	b.free.Put(&used)
}

// Release gives the buffers back. Neither the ranker nor its placers may be used after it.
func (r *Ranker) Release() {
	b := r.cfg.Buffers
	for _, p := range r.placers {
		b.entries.put(p.entries)
		p.entries = nil
	}
	b.places.put(r.places)
	b.ties.put(r.ties)
	r.places, r.ties, r.placers = nil, nil, nil
}
