package rank

import (
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/structs"
)

// heaps hold the open nodes of a placer. A bucket has the nodes of one tuple of spread values with one number of
// scores: the spread adds the same to all of them, so their order does not depend on it.
type heaps struct {
	buckets []bucket
	byKey   map[[2]int32]int32 // {tuple, scores} -> bucket
	tuples  [][]int            // value indexes, one a spread
	byText  map[string]int32
	front   []cursor // scratch of top
}

type bucket struct {
	tuple  int32
	scores int
	nodes  []int32 // a heap, the best node first
}

type cursor struct{ bucket, pos int32 }

func (h *heaps) init(p *Placer) {
	h.byKey = map[[2]int32]int32{}
	if len(p.spreads) == 0 {
		h.tuples = [][]int{nil}
	} else {
		h.byText = map[string]int32{}
	}
}

// valuesOf gives the tuple of the node's spread values.
func (h *heaps) valuesOf(p *Placer, node *structs.Node) int32 {
	if len(p.spreads) == 0 {
		return 0
	}
	tuple := make([]int, len(p.spreads))
	var key strings.Builder
	for i, s := range p.spreads {
		tuple[i] = -1
		if v, ok := feasible.Resolve(node, s.attribute); ok {
			tuple[i] = s.index[v]
		}
		key.WriteString(strconv.Itoa(tuple[i]))
		key.WriteByte(',')
	}
	id, ok := h.byText[key.String()]
	if !ok {
		id = int32(len(h.tuples))
		h.tuples = append(h.tuples, tuple)
		h.byText[key.String()] = id
	}
	return id
}

// spreadOf is what the spreads add to the nodes of a tuple now.
func (h *heaps) spreadOf(p *Placer, tuple int32) float64 {
	total := 0.0
	for i, v := range h.tuples[tuple] {
		total += p.spreads[i].of(v)
	}
	return total
}

// build fills the heaps with all open nodes.
func (h *heaps) build(p *Placer) {
	for i := range p.entries {
		if p.entries[i].state == nodeOpen {
			b := h.bucketFor(p, i)
			p.entries[i].pos = int32(len(h.buckets[b].nodes))
			h.buckets[b].nodes = append(h.buckets[b].nodes, int32(i))
		}
	}
	for b := range h.buckets {
		for pos := len(h.buckets[b].nodes)/2 - 1; pos >= 0; pos-- {
			h.down(p, &h.buckets[b], pos)
		}
	}
}

// bucketFor finds the bucket to which a node belongs and notes it in its entry.
func (h *heaps) bucketFor(p *Placer, i int) int32 {
	e := &p.entries[i]
	key := [2]int32{e.values, int32(e.scores)}
	b, ok := h.byKey[key]
	if !ok {
		b = int32(len(h.buckets))
		h.buckets = append(h.buckets, bucket{tuple: e.values, scores: e.scores})
		h.byKey[key] = b
	}
	e.bucket = b
	return b
}

func (h *heaps) push(p *Placer, i int) {
	b := &h.buckets[h.bucketFor(p, i)]
	p.entries[i].pos = int32(len(b.nodes))
	b.nodes = append(b.nodes, int32(i))
	h.up(p, b, len(b.nodes)-1)
}

func (h *heaps) remove(p *Placer, i int) {
	b := &h.buckets[p.entries[i].bucket]
	pos, last := int(p.entries[i].pos), len(b.nodes)-1
	if pos != last {
		b.nodes[pos] = b.nodes[last]
		p.entries[b.nodes[pos]].pos = int32(pos)
	}
	b.nodes = b.nodes[:last]
	if pos != last {
		h.down(p, b, pos)
		h.up(p, b, pos)
	}
}

func (h *heaps) up(p *Placer, b *bucket, pos int) {
	for pos > 0 {
		parent := (pos - 1) / 2
		if !p.better(b.nodes[pos], b.nodes[parent]) {
			return
		}
		h.swap(p, b, pos, parent)
		pos = parent
	}
}

func (h *heaps) down(p *Placer, b *bucket, pos int) {
	for {
		best := pos
		for child := 2*pos + 1; child <= 2*pos+2 && child < len(b.nodes); child++ {
			if p.better(b.nodes[child], b.nodes[best]) {
				best = child
			}
		}
		if best == pos {
			return
		}
		h.swap(p, b, pos, best)
		pos = best
	}
}

func (h *heaps) swap(p *Placer, b *bucket, x, y int) {
	b.nodes[x], b.nodes[y] = b.nodes[y], b.nodes[x]
	p.entries[b.nodes[x]].pos, p.entries[b.nodes[y]].pos = int32(x), int32(y)
}

// better orders the nodes of one bucket.
func (p *Placer) better(x, y int32) bool {
	if p.entries[x].sum != p.entries[y].sum {
		return p.entries[x].sum > p.entries[y].sum
	}
	return p.r.ties[x] < p.r.ties[y]
}

// top gives the k best open nodes of all buckets, the best first, in out. It walks down from the heads: below a node
// of a heap there is never a better one.
func (h *heaps) top(p *Placer, k int, out []ranked) []ranked {
	h.front = h.front[:0]
	for b := range h.buckets {
		if len(h.buckets[b].nodes) > 0 {
			h.front = append(h.front, cursor{int32(b), 0})
		}
	}
	for len(out) < k && len(h.front) > 0 {
		bestAt, best := 0, ranked{}
		for at, c := range h.front {
			cand := p.rankedAt(int(h.buckets[c.bucket].nodes[c.pos]))
			if at == 0 || cand.before(best) {
				bestAt, best = at, cand
			}
		}
		out = append(out, best)
		c := h.front[bestAt]
		h.front[bestAt] = h.front[len(h.front)-1]
		h.front = h.front[:len(h.front)-1]
		for child := 2*c.pos + 1; child <= 2*c.pos+2 && int(child) < len(h.buckets[c.bucket].nodes); child++ {
			h.front = append(h.front, cursor{c.bucket, child})
		}
	}
	return out
}

// ranked is a node with its final score.
type ranked struct {
	node    int
	final   float64
	tie     uint64
	special *special // set when the request makes the node differ from its entry
}

func (r ranked) before(o ranked) bool {
	if r.final != o.final {
		return r.final > o.final
	}
	return r.tie < o.tie
}

func (p *Placer) rankedAt(i int) ranked {
	e := &p.entries[i]
	return ranked{
		node: i, final: final(e.sum, e.scores, p.heaps.spreadOf(p, e.values)), tie: p.r.ties[i],
	}
}

// final is the mean of all scores that apply.
func final(sum float64, scores int, spread float64) float64 {
	if spread != 0 {
		return (sum + spread) / float64(scores+1)
	}
	return sum / float64(scores)
}
