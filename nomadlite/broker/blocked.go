package broker

import (
	"cmp"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// wakeLimit is how many evaluations may be woken and not yet done, at once: the rest must not stand before fresh work
// for long. More are woken when half of these are done.
const wakeLimit = 128

// blockedKey is what at most one evaluation is blocked for. NodeID is set only for evaluations of one node (system
// jobs): they are woken by that node alone.
type blockedKey struct {
	Namespace, JobID, NodeID string
}

// Blocked is the pure core that holds evaluations which found no room, and says which of them a change could help.
// Indexes are raft indexes.
//
// Room that appears is an event in a log. Evaluations of one shape look at it together, and each looks until it has
// seen that its ask does not fit on the node, or was woken: as many are woken at a time as the room could hold, the
// most urgent first, and the next when these are done and room is still left.
type Blocked struct {
	evals   map[blockedKey]*blocked
	byID    map[string]*blocked
	shapes  map[string]*shape
	byNode  map[string]map[blockedKey]*blocked // those that wait for one node
	events  *events
	woken   map[string]promise       // by evaluation
	taken   map[string]Size          // what was promised of each node
	retries map[blockedKey]time.Time // when those that did not fail for want of room run again by themselves
	floor   uint64                   // what happened up to here is not known: evaluations older than this are woken on arrival
	escaped int
	full    bool // as many were woken as may be, and not half of them are done
	stirred bool // Wake has something to look at
}

// promise is what a woken evaluation may find, until it is done.
type promise struct {
	node string
	size Size
}

// Rooms tells what is free on a node that takes allocations; false for one that takes none.
type Rooms interface {
	Free(nodeID string) (Size, bool)
}

// NewBlocked makes an empty set. What happened up to index floor is unknown to it.
func NewBlocked(floor uint64) *Blocked {
	return &Blocked{
		evals: map[blockedKey]*blocked{}, byID: map[string]*blocked{}, shapes: map[string]*shape{},
		byNode: map[string]map[blockedKey]*blocked{}, events: newEvents(), woken: map[string]promise{},
		taken: map[string]Size{}, retries: map[blockedKey]time.Time{}, floor: floor,
	}
}

func keyOf(eval *structs.Evaluation) blockedKey {
	k := blockedKey{Namespace: eval.Namespace, JobID: eval.JobID}
	if eval.Type == structs.JobTypeSystem || eval.Type == structs.JobTypeSysBatch {
		k.NodeID = eval.NodeID
	}
	return k
}

// Block takes a blocked evaluation in, with what it waits for; no asks mean that this cannot be told and any change may
// help. wake is true when it must run again at once: it is older than what is known. superseded is the older evaluation
// of the same job, if any, which nothing needs any more; it may be eval itself.
func (b *Blocked) Block(eval *structs.Evaluation, asks []Ask) (wake bool, superseded *structs.Evaluation) {
	k := keyOf(eval)
	if old := b.evals[k]; old != nil {
		switch {
		case old.eval.ID == eval.ID:
		case newer(old.eval, eval):
			return false, eval
		default:
			superseded = old.eval
		}
		b.drop(old)
	}
	if eval.SnapshotIndex < b.floor || k.NodeID != "" && b.happened(k.NodeID, eval.SnapshotIndex) {
		return true, superseded
	}
	w := &blocked{eval: eval, key: k, asks: asks}
	b.evals[k], b.byID[eval.ID] = w, w
	if eval.EscapedComputedClass {
		b.escaped++
	}
	if k.NodeID != "" {
		if b.byNode[k.NodeID] == nil {
			b.byNode[k.NodeID] = map[blockedKey]*blocked{}
		}
		b.byNode[k.NodeID][k] = w
		return false, superseded
	}
	key := shapeKey(eval, asks)
	s := b.shapes[key]
	if s == nil {
		s = newShape(key, eval, asks)
		s.from = len(b.events.log)
		b.shapes[key] = s
	}
	w.shape = s
	s.add(w)
	// It has not seen what happened since its state.
	if from := b.events.after(eval.SnapshotIndex); from < len(b.events.log) {
		s.from = min(s.from, from)
		b.stirred = true
	}
	return false, superseded
}

// happened says whether something happened on the node after index.
func (b *Blocked) happened(nodeID string, index uint64) bool {
	e := b.events.byNode[nodeID]
	return e != nil && e.index > index
}

// Contended says that an evaluation is blocked because its plans kept meeting others: no change need ever come that
// could help it, so it runs again after some time.
func Contended(eval *structs.Evaluation) bool {
	return eval.TriggeredBy == structs.EvalTriggerMaxPlans && eval.EscapedComputedClass
}

// RetryAt lets a blocked evaluation run again at due, if nothing wakes it before.
func (b *Blocked) RetryAt(evalID string, due time.Time) {
	if w := b.byID[evalID]; w != nil {
		b.retries[w.key] = due
	}
}

// Due takes out the evaluations whose time has come, oldest first.
func (b *Blocked) Due(now time.Time) []*structs.Evaluation {
	var out []*structs.Evaluation
	for k, due := range b.retries {
		if !due.After(now) {
			out = append(out, b.drop(b.evals[k]))
		}
	}
	return sorted(out)
}

// Next says when Due has something; false when there is nothing to wait for.
func (b *Blocked) Next() (next time.Time, ok bool) {
	for _, due := range b.retries {
		if !ok || due.Before(next) {
			next, ok = due, true
		}
	}
	return next, ok
}

// newer says whether a saw a newer state than b, or was created later on the same.
func newer(a, b *structs.Evaluation) bool {
	if a.SnapshotIndex != b.SnapshotIndex {
		return a.SnapshotIndex > b.SnapshotIndex
	}
	return a.CreateIndex > b.CreateIndex
}

// Room says that at index room may have appeared on a node of the class. It gives what waits for that very node and must
// run again, oldest first; what else it helps, Wake gives.
func (b *Blocked) Room(nodeID, class string, index uint64) []*structs.Evaluation {
	b.events.add(nodeID, class, index)
	b.stirred = true
	var out []*structs.Evaluation
	for _, w := range b.byNode[nodeID] {
		if w.eval.SnapshotIndex < index {
			out = append(out, b.drop(w))
		}
	}
	return sorted(out)
}

// JobRoom says that at index an allocation of the job gave its place up: what the job itself may not do twice (on a node,
// in a rack) it may do now, on any node. It gives what must run again.
func (b *Blocked) JobRoom(id structs.NamespacedID, index uint64) []*structs.Evaluation {
	w := b.evals[blockedKey{Namespace: id.Namespace, JobID: id.ID}]
	if w == nil || w.eval.SnapshotIndex >= index {
		return nil
	}
	return []*structs.Evaluation{b.drop(w)}
}

// WakeAll says that at index something changed that could help any evaluation (the scheduler's configuration). It gives
// what waits for single nodes; the rest Wake gives.
func (b *Blocked) WakeAll(index uint64) []*structs.Evaluation {
	b.events.add("", "", index)
	b.stirred = true
	var out []*structs.Evaluation
	for _, waiting := range b.byNode {
		for _, w := range waiting {
			if w.eval.SnapshotIndex < index {
				out = append(out, b.drop(w))
			}
		}
	}
	return sorted(out)
}

// Wake takes out what must run again now, the most urgent first. Each of them counts as under way until Done.
func (b *Blocked) Wake(rooms Rooms) []*structs.Evaluation {
	b.events.compact(b.shapes)
	if !b.stirred || b.full {
		return nil
	}
	var out []*structs.Evaluation
	for next := b.restless(); len(next) > 0; {
		if len(b.woken) >= wakeLimit {
			b.full = true
			return out
		}
		best := 0
		for i, s := range next {
			if byUrgency(s.evals[0], next[best].evals[0]) < 0 {
				best = i
			}
		}
		s := next[best]
		if w := b.helped(s, rooms); w != nil {
			out = append(out, b.drop(w))
			if len(s.evals) > 0 {
				continue
			}
		}
		next = slices.Delete(next, best, best+1)
	}
	b.stirred = false
	return out
}

// restless are the shapes that have not looked at everything.
func (b *Blocked) restless() []*shape {
	var out []*shape
	for _, s := range b.shapes {
		if len(s.open) > 0 || s.from < len(b.events.log) {
			out = append(out, s)
		}
	}
	return out
}

// helped gives the evaluation of the shape that is next to be woken, and promises it its room; nil when nothing that
// happened helps one, or what helps is promised to others.
func (b *Blocked) helped(s *shape, rooms Rooms) *blocked {
	for i := 0; i < len(s.open); {
		if w, wait := b.consider(s, s.open[i], rooms); w != nil {
			return w
		} else if wait {
			i++
			continue
		}
		s.open = slices.Delete(s.open, i, i+1)
	}
	for s.from < len(b.events.log) {
		e := b.events.log[s.from]
		w, wait := b.consider(s, e, rooms)
		if w != nil {
			return w // and the event may help another one too
		}
		s.from++
		if wait && !slices.Contains(s.open, e) {
			s.open = append(s.open, e)
		}
	}
	return nil
}

// consider looks whether the event helps an evaluation of the shape now; wait says that it may later.
func (b *Blocked) consider(s *shape, e *event, rooms Rooms) (w *blocked, wait bool) {
	if e.dead || e.node != "" && !s.helps(e.class) {
		return nil, false
	}
	if w = s.first(e.index); w == nil {
		return nil, false
	}
	if e.node == "" || len(s.sizes) == 0 {
		b.promise(w, "", Size{})
		return w, false
	}
	free, ok := rooms.Free(e.node)
	if !ok || !s.fits(free) {
		return nil, false
	}
	taken := b.taken[e.node]
	left := free.less(taken, 1)
	if !s.fits(left) {
		return nil, taken != Size{}
	}
	b.promise(w, e.node, left)
	return w, false
}

// promise notes how much of what is left on the node the evaluation could take; node is empty when that cannot be told.
func (b *Blocked) promise(w *blocked, node string, left Size) {
	b.Done(w.eval.ID) // woken once more before it was done
	p := promise{node: node}
	if node != "" {
		for _, a := range w.asks {
			for n := a.Count; n > 0 && a.Size.fits(left); n-- {
				left, p.size = left.less(a.Size, 1), p.size.less(a.Size, -1)
			}
		}
		b.taken[node] = b.taken[node].less(p.size, -1)
	}
	b.woken[w.eval.ID] = p
}

// Done says that a woken evaluation ran, or will not do so soon: what it did not use others may have.
func (b *Blocked) Done(evalID string) {
	p, ok := b.woken[evalID]
	if !ok {
		return
	}
	delete(b.woken, evalID)
	if p.node != "" {
		if left := b.taken[p.node].less(p.size, 1); left == (Size{}) {
			delete(b.taken, p.node)
		} else {
			b.taken[p.node] = left
		}
	}
	b.stirred = true
	if len(b.woken) <= wakeLimit/2 {
		b.full = false
	}
}

// Woken are the evaluations that count as under way.
func (b *Blocked) Woken() (ids []string) {
	for id := range b.woken {
		ids = append(ids, id)
	}
	return ids
}

// Settled says that another evaluation of the job placed everything at index: what was blocked before is not needed
// any more. It gives the superseded evaluations.
func (b *Blocked) Settled(eval *structs.Evaluation) []*structs.Evaluation {
	var out []*structs.Evaluation
	keys := []blockedKey{{Namespace: eval.Namespace, JobID: eval.JobID}, {eval.Namespace, eval.JobID, eval.NodeID}}
	for _, k := range slices.Compact(keys) {
		if w := b.evals[k]; w != nil && w.eval.ID != eval.ID && w.eval.CreateIndex < eval.ModifyIndex {
			out = append(out, b.drop(w))
		}
	}
	return sorted(out)
}

// Remove forgets an evaluation that ended or was deleted.
func (b *Blocked) Remove(evalID string) {
	b.Done(evalID)
	if w := b.byID[evalID]; w != nil {
		b.drop(w)
	}
}

// ForgetNode drops what is remembered of a node that is gone. Its evaluations stay until their job settles.
func (b *Blocked) ForgetNode(nodeID string) { b.events.drop(nodeID) }

// Len is the number of blocked evaluations; escaped those which any class may help.
func (b *Blocked) Len() (total, escaped int) { return len(b.evals), b.escaped }

func (b *Blocked) drop(w *blocked) *structs.Evaluation {
	delete(b.byID, w.eval.ID)
	delete(b.evals, w.key)
	delete(b.retries, w.key)
	if w.eval.EscapedComputedClass {
		b.escaped--
	}
	if w.shape == nil {
		delete(b.byNode[w.key.NodeID], w.key)
		if len(b.byNode[w.key.NodeID]) == 0 {
			delete(b.byNode, w.key.NodeID)
		}
		return w.eval
	}
	w.shape.remove(w)
	if len(w.shape.evals) == 0 {
		delete(b.shapes, w.shape.key)
	}
	return w.eval
}

func sorted(evals []*structs.Evaluation) []*structs.Evaluation {
	slices.SortFunc(evals, func(x, y *structs.Evaluation) int {
		return cmp.Or(cmp.Compare(x.CreateIndex, y.CreateIndex), cmp.Compare(x.ID, y.ID))
	})
	return evals
}
