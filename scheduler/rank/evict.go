package rank

import (
	"cmp"
	"slices"

	"github.com/nomadlite/nomadlite/scheduler/preempt"
	"github.com/nomadlite/nomadlite/structs"
)

// dimensionPreempting is what a node lacks that gets its room by evictions which one placement alone waits for.
const dimensionPreempting = "preemption under way"

// Pool is the room on a node which a plan makes by evictions. Whoever is placed there by the same plan afterwards may get
// a part of it, so all of them wait for the end of all victims.
type Pool struct {
	Victims []string // ids of allocations
}

// evictable is what is known of a node on which allocations may be evicted.
type evictable struct {
	candidates []preempt.Candidate
	victims    []int // of candidates, chosen for the group at hand
	fits       bool
	known      bool // victims and fits are up to date
	worst, sum int  // priorities of the victims
	over       int  // victims beyond the max_parallel of their groups
	ranked     ranked
}

// evict finds the node on which a request costs least: the lowest priority that is evicted, then the fewest and lowest,
// then the best score. It is asked when the request fits nowhere as things are. The placement is nil when evictions do not
// help.
func (p *Placer) evict(req Request) *Placement {
	if p.r.cfg.Candidates == nil {
		return nil
	}
	plain := req.Replaces == nil && len(req.Penalty) == 0
	if plain && p.hopeless {
		return nil
	}
	best := -1
	for i := range p.entries {
		if p.entries[i].state != nodeExhausted {
			continue
		}
		e := p.weigh(i, req)
		if e.fits && (best < 0 || e.cheaper(p.r.evictables[best])) {
			best = i
		}
	}
	if best < 0 {
		p.hopeless = p.hopeless || plain // what is placed later only takes more
		return nil
	}
	return p.takeEvicting(best, req)
}

// evictOn does the same for one node.
func (p *Placer) evictOn(i int, req Request) *Placement {
	if p.r.cfg.Candidates == nil || p.entries[i].state == nodeFiltered || !p.weigh(i, req).fits {
		return nil
	}
	return p.takeEvicting(i, req)
}

func (e *evictable) cheaper(other *evictable) bool {
	c := cmp.Or(cmp.Compare(e.worst, other.worst), cmp.Compare(e.over, other.over),
		cmp.Compare(e.sum, other.sum), cmp.Compare(len(e.victims), len(other.victims)))
	return c < 0 || c == 0 && e.ranked.before(other.ranked)
}

// weigh finds out what a request would cost on a node. What it found for another request of the group holds for this
// one too, unless something was placed there since or one of them has its predecessor or a failure there.
func (p *Placer) weigh(i int, req Request) *evictable {
	e, pl := p.r.evictable(i), &p.r.places[i]
	relief := p.reliefOn(pl, req)
	own := relief != nil || slices.Contains(req.Penalty, pl.node.ID)
	if e.known && !own && p.r.weighed == p {
		return e
	}
	if p.r.weighed != p { // another group has another ask
		for _, other := range p.r.evictables {
			if other != nil {
				other.known = false
			}
		}
		p.r.weighed = p
	}
	e.known, e.fits, e.victims = !own && len(p.distinct) == 0 && len(p.spreads) == 0, false, nil
	if pl.shut || relief != nil && pl.pool != nil {
		return e
	}
	if ok, _ := p.group.Check(pl.node); !ok || p.distinctReason(i, req.Replaces) != "" {
		return e
	}
	trial := &trial{place: *pl, ask: p.ask, relief: relief}
	trial.place.ports, trial.place.cores = slices.Clone(pl.ports), slices.Clone(pl.cores)
	if e.victims, e.fits = preempt.Select(e.candidates, trial, p.r.taken); !e.fits {
		return e
	}
	e.worst, e.sum = 0, 0
	for _, v := range e.victims {
		e.worst = max(e.worst, e.candidates[v].Priority)
		e.sum += e.candidates[v].Priority
	}
	e.over = preempt.Over(e.candidates, e.victims, p.r.taken)
	en := &p.entries[i]
	en.affinity, en.values = p.affinity.Score(pl.node), p.heaps.valuesOf(p, pl.node)
	s := &special{relief: relief, penalty: slices.Contains(req.Penalty, pl.node.ID), pack: p.pack(&trial.place, relief)}
	sum, n := p.sum(s.pack, en.affinity, int(en.collisions), s.penalty)
	e.ranked = ranked{node: i, final: final(sum, n, p.heaps.spreadOf(p, en.values)), tie: p.r.ties[i], special: s}
	return e
}

// takeEvicting evicts what was chosen on a node and places the request there.
func (p *Placer) takeEvicting(i int, req Request) *Placement {
	e, pl := p.r.evictables[i], &p.r.places[i]
	e.known = false
	var evicted []string
	var gone []structs.NamespacedID
	spared := e.candidates[:0:0]
	for at := range e.candidates {
		c := &e.candidates[at]
		if !slices.Contains(e.victims, at) {
			spared = append(spared, *c)
			continue
		}
		pl.own()
		pl.free(&c.Holds)
		evicted = append(evicted, c.ID)
		if p.r.taken[c.Group] < c.MaxParallel { // beyond that, one more changes nothing
			gone = append(gone, c.Group)
		}
		if p.r.taken == nil {
			p.r.taken = map[structs.NamespacedID]int{}
		}
		p.r.taken[c.Group]++
	}
	e.candidates, e.victims = spared, nil
	p.r.reweigh(gone)
	if len(evicted) > 0 {
		slices.Sort(evicted)
		if pl.pool == nil {
			pl.pool = &Pool{}
		}
		pl.pool.Victims = append(pl.pool.Victims, evicted...)
		slices.Sort(pl.pool.Victims)
		// What also takes over from a predecessor waits for more than others could.
		pl.shut = p.reliefOn(pl, req) != nil
	}
	m := p.metrics([]ranked{e.ranked})
	placement := p.take(e.ranked, m)
	placement.Evicted = evicted
	return placement
}

// reweigh forgets what was found on nodes whose victims are of groups that lost another allocation: they may be beyond
// their max_parallel now.
func (r *Ranker) reweigh(groups []structs.NamespacedID) {
	if len(groups) == 0 {
		return
	}
	for _, e := range r.evictables {
		if e != nil && slices.ContainsFunc(e.victims, func(v int) bool { return slices.Contains(groups, e.candidates[v].Group) }) {
			e.known = false
		}
	}
}

// evictable gives what is known of a node, its candidates read when it is first asked.
func (r *Ranker) evictable(i int) *evictable {
	if r.evictables == nil {
		r.evictables = make([]*evictable, len(r.places))
	}
	if r.evictables[i] == nil {
		r.evictables[i] = &evictable{candidates: r.cfg.Candidates(r.places[i].node)}
	}
	return r.evictables[i]
}

// own makes the lists of a place its own.
func (p *place) own() {
	if !p.owned {
		p.ports, p.cores, p.owned = slices.Clone(p.ports), slices.Clone(p.cores), true
	}
}

// free takes an allocation out; the place owns its lists.
func (p *place) free(c *structs.Comparable) {
	p.usedCPU, p.usedMem, p.usedDisk, p.allocs = p.usedCPU-c.CPU, p.usedMem-c.MemoryMB, p.usedDisk-c.DiskMB, p.allocs-1
	p.ports, p.cores = remove(p.ports, c.Ports), remove(p.cores, c.Cores)
}

// remove takes one of each out.
func remove(sorted, gone []uint16) []uint16 {
	for _, v := range gone {
		if i, found := slices.BinarySearch(sorted, v); found {
			sorted = slices.Delete(sorted, i, i+1)
		}
	}
	return sorted
}

// trial is a place on which it is tried which evictions make an ask fit.
type trial struct {
	place  place
	ask    *ask
	relief *structs.Comparable
}

var _ preempt.Room = (*trial)(nil)

// Free is preempt.Room's.
func (t *trial) Free(c *preempt.Candidate) { t.place.free(&c.Holds) }

// Hold is preempt.Room's.
func (t *trial) Hold(c *preempt.Candidate) {
	t.place.usedCPU += c.Holds.CPU
	t.place.usedMem += c.Holds.MemoryMB
	t.place.usedDisk += c.Holds.DiskMB
	t.place.allocs++
	t.place.ports, t.place.cores = insert(t.place.ports, c.Holds.Ports), insert(t.place.cores, c.Holds.Cores)
}

// Lack is preempt.Room's.
func (t *trial) Lack() preempt.Lack {
	p := &t.place
	if p.lacks(t.ask, t.relief) == "" {
		return preempt.Lack{Fits: true}
	}
	cpu, mem, disk := p.usedCPU, p.usedMem, p.usedDisk
	if t.relief != nil {
		cpu, mem, disk = cpu-t.relief.CPU, mem-t.relief.MemoryMB, disk-t.relief.DiskMB
	}
	if t.ask.cores > 0 {
		cpu += int64(t.ask.cores) * p.site.CoreMHz
	}
	l := preempt.Lack{
		CPU: max(0, cpu+t.ask.cpu-p.cpu), MemoryMB: max(0, mem+t.ask.memory-p.memory), DiskMB: max(0, disk+t.ask.disk-p.disk),
	}
	for i := range t.ask.static {
		if port := t.ask.static[i].port.Value; !p.portFree(port, t.relief) {
			l.Ports = insert(l.Ports, []uint16{uint16(port)})
		}
	}
	return l
}
