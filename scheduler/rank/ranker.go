package rank

import (
	"maps"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/scheduler/preempt"
	"github.com/nomadlite/nomadlite/structs"
)

// Config is what ranking depends on beside the nodes.
type Config struct {
	Seed                   string // the evaluation's id; tells equal nodes apart
	Algorithm              string // binpack (or empty) or spread
	MemoryOversubscription bool
	// Candidates gives the allocations on a node that may be evicted for a placement which fits nowhere; nil when nothing
	// may.
	Candidates func(*structs.Node) []preempt.Candidate
	// Buffers are used again by later rankers, after Release; nil: by nobody else.
	Buffers *Buffers
}

// Peer is an allocation of the same job that is there already, or was placed earlier by the same plan.
type Peer struct {
	ID       string
	NodeID   string
	Group    string
	Stopping bool // is wanted to stop, by this plan or an earlier one, but still holds what it has
}

// Ranker keeps what each node of a job's scope has left during one evaluation.
type Ranker struct {
	cfg    Config
	job    *structs.Job
	scope  *feasible.Scope
	places []place
	index  map[string]int
	ties   []uint64
	peers  []Peer
	placed uint64

	placers []*Placer // all that were made

	evictables []*evictable                 // by place, nil until asked
	weighed    *Placer                      // for which evictables are weighed
	taken      map[structs.NamespacedID]int // evicted so far, by group
}

// New reads the usage of each node of the scope; usage may answer nil for an empty node.
func New(
	cfg Config, job *structs.Job, scope *feasible.Scope, peers []Peer, usage func(*feasible.Site) *structs.NodeUsage,
) *Ranker {
	if cfg.Buffers == nil {
		cfg.Buffers = &Buffers{}
	}
	r := &Ranker{
		cfg: cfg, job: job, scope: scope, peers: peers,
		places: cfg.Buffers.places.get(len(scope.Nodes)),
		ties:   cfg.Buffers.ties.get(len(scope.Nodes)),
	}
	ties(r.ties, cfg.Seed, scope.Nodes)
	for i := range r.places { // thousands: nothing here looks at the node itself, which is elsewhere in memory
		site := scope.Site(i)
		r.places[i].site = site
		r.places[i].look(site, usage(site))
	}
	return r
}

// find gives the index of a node in the scope. The map is made when it is first asked: a new job never does.
func (r *Ranker) find(nodeID string) (int, bool) {
	if r.index == nil {
		r.index = make(map[string]int, len(r.places))
		for i := range r.places {
			r.index[r.places[i].node.ID] = i
		}
	}
	i, ok := r.index[nodeID]
	return i, ok
}

// Request is one allocation to place.
type Request struct {
	// Replaces is the allocation that ends for this one, nil when there is none. On its node the new one takes over
	// what it holds.
	Replaces *structs.Allocation
	// Penalty names nodes on which the allocation failed before.
	Penalty []string
	// Prefer is the node that is taken whenever the allocation fits there, for a sticky disk. Empty for none.
	Prefer string
}

// Placement is where an allocation goes and what it gets there.
type Placement struct {
	Node      *structs.Node
	Resources *structs.AllocatedResources
	Metrics   *structs.AllocationMetric
	Evicted   []string // allocations that end for this one
	Pool      *Pool    // for whose end it waits, nil for nobody; it may still grow
}

// Placer places the allocations of one group, one after the other.
type Placer struct {
	r        *Ranker
	group    *feasible.Group
	ask      *ask
	affinity *feasible.Affinities
	spreads  []*spread
	desired  int
	name     string
	entries  []entry
	heaps    heaps
	distinct []*distinct
	hosts    []int32 // by node: the allocations that distinct_hosts counts; nil without such a constraint
	metric   structs.AllocationMetric
	hopeless bool // evictions helped no request that is like any other
	packs    [64]packed
	verdicts []verdict // of the group, by number of the class; empty when a class does not settle it
	shared   bool      // the maps of metric were handed out and must be copied before they change
}

// packed remembers the score of one way in which a node is filled: total and used cpu, total and used memory.
type packed struct {
	of    [4]int64
	score float64
	set   bool
}

// verdict is what the group says of a class.
type verdict struct {
	known, ok bool
	reason    string
}

// entry states of a node.
const (
	nodeOpen      = iota // feasible, fits
	nodeFiltered         // not feasible
	nodeExhausted        // feasible, does not fit
)

// entry is what a placer knows of one node.
type entry struct {
	state      uint8
	collisions int32   // live allocations of the group on the node
	affinity   float64 // score of the affinities
	pack       float64
	sum        float64 // of all scores but the spread
	scores     int     // how many scores apply, the spread aside
	bucket     int32
	pos        int32 // in the bucket's heap
	values     int32 // which tuple of spread values the node has
	meta       *structs.NodeScoreMeta
}

// Group prepares the placement of a group: it asks each node of the scope whether the group is feasible and fits.
func (r *Ranker) Group(tg *structs.TaskGroup, group *feasible.Group) *Placer {
	p := &Placer{
		r: r, group: group, name: structs.Val(tg.Name), desired: structs.Val(tg.Count),
		ask:      newAsk(tg, r.cfg.MemoryOversubscription),
		affinity: feasible.NewAffinities(r.job, tg),
		spreads:  newSpreads(r.job, tg, r.scope.Nodes),
		entries:  r.cfg.Buffers.entries.get(len(r.places)),
	}
	r.placers = append(r.placers, p)
	p.heaps.init(p)
	if group.ClassDecides() {
		p.verdicts = make([]verdict, r.scope.Classes())
	}
	p.metric = structs.AllocationMetric{
		NodesEvaluated: len(r.places),
		NodesInPool:    r.scope.InPool,
		NodePool:       r.scope.Pool,
		NodesAvailable: r.scope.Available,
	}
	p.countPeers()
	for i := range p.entries {
		p.admit(i)
	}
	p.heaps.build(p)
	return p
}

// countPeers counts the job's allocations for anti-affinity, spread and the distinct constraints.
func (p *Placer) countPeers() {
	for _, d := range p.group.DistinctProperties {
		p.distinct = append(p.distinct, newDistinct(d, p.r.scope.Nodes))
	}
	if p.group.DistinctHostsJob || p.group.DistinctHostsGroup {
		p.hosts = make([]int32, len(p.entries))
	}
	for _, peer := range p.r.peers {
		i, ok := p.r.find(peer.NodeID)
		if !ok {
			continue
		}
		if p.hosts != nil && (p.group.DistinctHostsJob || peer.Group == p.name) {
			p.hosts[i]++
		}
		if peer.Group == p.name && !peer.Stopping {
			p.entries[i].collisions++
			for _, s := range p.spreads {
				s.add(p.r.places[i].node)
			}
		}
		for _, d := range p.distinct {
			if d.rule.WholeJob || peer.Group == p.name {
				d.add(i)
			}
		}
	}
	for _, s := range p.spreads {
		s.rescore()
	}
}

// admit decides the state of a node and scores it when it is open.
func (p *Placer) admit(i int) {
	e, pl := &p.entries[i], &p.r.places[i]
	ok, reason := p.check(pl)
	if ok {
		reason = p.distinctReason(i, nil)
	}
	if reason != "" {
		p.filter(i, reason)
		return
	}
	e.affinity = p.affinity.Score(pl.node)
	e.values = p.heaps.valuesOf(p, pl.node)
	if lack := pl.lacks(p.ask, nil); lack != "" {
		p.exhaust(i, lack)
		return
	}
	p.rate(i)
}

// check says whether the group may run on a node, and if not, why; a class is asked about once.
func (p *Placer) check(pl *place) (ok bool, reason string) {
	if class := int(pl.site.Class); class >= 0 && class < len(p.verdicts) {
		v := &p.verdicts[class]
		if !v.known {
			v.known = true
			v.ok, v.reason = p.group.Check(pl.node)
		}
		return v.ok, v.reason
	}
	return p.group.Check(pl.node)
}

// distinctReason says which distinct constraint keeps another allocation off the node, "" for none. replaced does not
// count, since it ends first.
func (p *Placer) distinctReason(i int, replaced *structs.Allocation) string {
	if p.hosts != nil {
		count := p.hosts[i]
		if count > 0 && replaced != nil && replaced.NodeID == p.r.places[i].node.ID && p.isPeer(replaced.ID) {
			count--
		}
		if count > 0 {
			return feasible.OperandDistinctHosts
		}
	}
	for _, d := range p.distinct {
		relief := 0
		if replaced != nil && replaced.NodeID != "" {
			if j, ok := p.r.find(replaced.NodeID); ok && d.same(i, j) && p.isPeer(replaced.ID) {
				relief = 1
			}
		}
		if d.full(i, relief) {
			return feasible.ConstraintText(d.rule.Constraint)
		}
	}
	return ""
}

func (p *Placer) isPeer(id string) bool {
	for _, peer := range p.r.peers {
		if peer.ID == id {
			return true
		}
	}
	return false
}

func (p *Placer) filter(i int, reason string) {
	p.own()
	p.entries[i].state = nodeFiltered
	p.metric.NodesFiltered++
	count1(&p.metric.ConstraintFiltered, reason)
	if class := p.r.places[i].node.NodeClass; class != "" {
		count1(&p.metric.ClassFiltered, class)
	}
}

func (p *Placer) exhaust(i int, dimension string) {
	p.own()
	p.entries[i].state = nodeExhausted
	p.metric.NodesExhausted++
	count1(&p.metric.DimensionExhausted, dimension)
	least(&p.metric.Missing, dimension, p.r.places[i].missing(p.ask, nil, dimension))
	if class := p.r.places[i].node.NodeClass; class != "" {
		count1(&p.metric.ClassExhausted, class)
	}
}

// own makes the metric's maps writable: those that were handed out are never changed.
func (p *Placer) own() {
	if !p.shared {
		return
	}
	p.shared = false
	p.metric.ConstraintFiltered = maps.Clone(p.metric.ConstraintFiltered)
	p.metric.ClassFiltered = maps.Clone(p.metric.ClassFiltered)
	p.metric.DimensionExhausted = maps.Clone(p.metric.DimensionExhausted)
	p.metric.ClassExhausted = maps.Clone(p.metric.ClassExhausted)
	p.metric.Missing = maps.Clone(p.metric.Missing)
}

func count1(m *map[string]int, key string) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[key]++
}

// least keeps the smallest amount under a key; 0 is no amount.
func least(m *map[string]int64, key string, amount int64) {
	if amount <= 0 {
		return
	}
	if *m == nil {
		*m = map[string]int64{}
	}
	if old, ok := (*m)[key]; !ok || amount < old {
		(*m)[key] = amount
	}
}

// rate computes the scores of an open node, the spread aside.
func (p *Placer) rate(i int) {
	e, pl := &p.entries[i], &p.r.places[i]
	e.meta = nil
	e.pack = p.pack(pl, nil)
	e.sum, e.scores = p.sum(e.pack, e.affinity, int(e.collisions), false)
}

func (p *Placer) pack(pl *place, relief *structs.Comparable) float64 {
	cpu, mem := pl.usedCPU+p.ask.cpu, pl.usedMem+p.ask.memory
	if p.ask.cores > 0 {
		cpu += int64(p.ask.cores) * pl.site.CoreMHz
	}
	if relief != nil {
		cpu, mem = cpu-relief.CPU, mem-relief.MemoryMB
	}
	// Many nodes are filled alike.
	key := [4]int64{pl.cpu, cpu, pl.memory, mem}
	known := &p.packs[uint64(key[0]^key[1]*31^key[2]*127^key[3]*8191)%uint64(len(p.packs))]
	if !known.set || known.of != key {
		known.set, known.of = true, key
		known.score = packScore(p.r.cfg.Algorithm, free(pl.cpu, cpu), free(pl.memory, mem))
	}
	return known.score
}

// sum adds up the scores that apply; those that say nothing do not count.
func (p *Placer) sum(pack, affinity float64, collisions int, penalty bool) (float64, int) {
	sum, n := pack, 1
	if collisions > 0 {
		sum, n = sum+antiAffinityScore(collisions, p.desired), n+1
	}
	if penalty {
		sum, n = sum-1, n+1
	}
	if affinity != 0 {
		sum, n = sum+affinity, n+1
	}
	return sum, n
}
