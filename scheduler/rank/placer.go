package rank

import (
	"slices"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/structs"
)

// topScores is how many nodes an allocation's metrics tell the scores of.
const topScores = 5

// special is a node which one request sees in another light: its replaced allocation is there, or it failed there.
type special struct {
	relief  *structs.Comparable
	penalty bool
	pack    float64
}

// Place finds the best node for one allocation and takes what it gets there. The placement is nil when it fits on no
// node; the metrics then say why.
func (p *Placer) Place(req Request) (*Placement, *structs.AllocationMetric) {
	ranking := p.ranking(req)
	if len(ranking) == 0 {
		if placement := p.evict(req); placement != nil {
			return placement, placement.Metrics
		}
		return nil, p.metrics(nil)
	}
	chosen := ranking[0]
	if req.Prefer != "" {
		for _, r := range ranking {
			if p.r.places[r.node].node.ID == req.Prefer {
				chosen = r
			}
		}
	}
	metrics := p.metrics(ranking[:min(len(ranking), topScores)])
	return p.take(chosen, metrics), metrics
}

// PlaceOn places one allocation on a certain node. The placement is nil when it does not fit there; the metrics, which
// are about this node alone, then say why.
func (p *Placer) PlaceOn(nodeID string, req Request) (*Placement, *structs.AllocationMetric) {
	m := &structs.AllocationMetric{
		NodesEvaluated: 1, NodesInPool: p.r.scope.InPool, NodePool: p.r.scope.Pool, NodesAvailable: p.r.scope.Available,
	}
	i, ok := p.r.find(nodeID)
	if !ok {
		return nil, m
	}
	chosen, ok := p.consider(i, req)
	if !ok {
		if placement := p.evictOn(i, req); placement != nil {
			m.ScoreMetaData, placement.Metrics = placement.Metrics.ScoreMetaData, m
			return placement, m
		}
		p.explain(i, req, m)
		return nil, m
	}
	m.ScoreMetaData = []*structs.NodeScoreMeta{p.scoreMeta(chosen)}
	return p.take(chosen, m), m
}

// explain counts into m why a request cannot go to a node.
func (p *Placer) explain(i int, req Request, m *structs.AllocationMetric) {
	pl := &p.r.places[i]
	ok, reason := p.group.Check(pl.node)
	if ok {
		reason = p.distinctReason(i, req.Replaces)
	}
	if reason != "" {
		m.NodesFiltered = 1
		count1(&m.ConstraintFiltered, reason)
		if pl.node.NodeClass != "" {
			count1(&m.ClassFiltered, pl.node.NodeClass)
		}
		return
	}
	m.NodesExhausted = 1
	relief := p.reliefOn(pl, req)
	dimension := pl.lacks(p.ask, relief)
	count1(&m.DimensionExhausted, dimension)
	least(&m.Missing, dimension, pl.missing(p.ask, relief, dimension))
	if pl.node.NodeClass != "" {
		count1(&m.ClassExhausted, pl.node.NodeClass)
	}
}

// take gives the allocation what it gets on the chosen node.
func (p *Placer) take(chosen ranked, metrics *structs.AllocationMetric) *Placement {
	pl := &p.r.places[chosen.node]
	var relief *structs.Comparable
	if chosen.special != nil {
		relief = chosen.special.relief
	}
	p.r.placed++
	resources := pl.grant(p.ask, relief, p.r.ties[chosen.node]+p.r.placed)
	used := resources.Comparable()
	pl.occupy(&used, relief)
	if p.r.evictables != nil && p.r.evictables[chosen.node] != nil {
		p.r.evictables[chosen.node].known = false
	}
	p.placedOn(chosen.node)
	return &Placement{Node: pl.node, Resources: resources, Metrics: metrics, Pool: pl.pool}
}

// reliefOn is what the allocation that the request replaces still holds on the node, nil for nothing.
func (p *Placer) reliefOn(pl *place, req Request) *structs.Comparable {
	old := req.Replaces
	if old == nil || old.NodeID != pl.node.ID || old.ClientTerminal() || old.DesiredStatus == structs.AllocDesiredStatusEvict {
		return nil // what an evicted one holds is for whom it was evicted
	}
	held := old.AllocatedResources.Comparable()
	return &held
}

// ranking gives the best nodes for a request, the best first: the heads of the heaps, and among them the nodes which
// the request sees differently, each in its place.
func (p *Placer) ranking(req Request) []ranked {
	var specials []int
	add := func(nodeID string) {
		if i, ok := p.r.find(nodeID); ok && !slices.Contains(specials, i) {
			specials = append(specials, i)
		}
	}
	if req.Replaces != nil && !req.Replaces.ClientTerminal() {
		add(req.Replaces.NodeID)
	}
	for _, id := range req.Penalty {
		add(id)
	}
	if req.Prefer != "" {
		add(req.Prefer)
	}
	ranking := p.heaps.top(p, topScores+len(specials), make([]ranked, 0, topScores+len(specials)))
	if len(specials) == 0 {
		return ranking
	}
	ranking = slices.DeleteFunc(ranking, func(r ranked) bool { return slices.Contains(specials, r.node) })
	for _, i := range specials {
		if r, ok := p.consider(i, req); ok {
			ranking = append(ranking, r)
		}
	}
	slices.SortFunc(ranking, func(a, b ranked) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return ranking
}

// consider scores a node as one request sees it; it is false when the allocation cannot go there.
func (p *Placer) consider(i int, req Request) (ranked, bool) {
	e, pl := &p.entries[i], &p.r.places[i]
	s := &special{penalty: slices.Contains(req.Penalty, pl.node.ID), relief: p.reliefOn(pl, req)}
	if ok, _ := p.group.Check(pl.node); !ok || p.distinctReason(i, req.Replaces) != "" {
		return ranked{}, false
	}
	if pl.lacks(p.ask, s.relief) != "" {
		return ranked{}, false
	}
	e.affinity = p.affinity.Score(pl.node)
	e.values = p.heaps.valuesOf(p, pl.node)
	s.pack = p.pack(pl, s.relief)
	sum, n := p.sum(s.pack, e.affinity, int(e.collisions), s.penalty)
	return ranked{
		node: i, final: final(sum, n, p.heaps.spreadOf(p, e.values)), tie: p.r.ties[i], special: s,
	}, true
}

// placedOn brings what depends on a placement up to date: the node that got it, the spreads, the distinct constraints.
func (p *Placer) placedOn(i int) {
	e, pl := &p.entries[i], &p.r.places[i]
	p.r.peers = append(p.r.peers, Peer{NodeID: pl.node.ID, Group: p.name})
	e.collisions++
	if p.hosts != nil {
		p.hosts[i]++
	}
	for _, s := range p.spreads {
		s.add(pl.node)
		s.rescore()
	}
	for _, d := range p.distinct {
		d.add(i)
		if d.full(i, 0) {
			p.dropValue(d, i)
		}
	}
	if e.state != nodeOpen {
		return
	}
	p.heaps.remove(p, i)
	if p.hosts != nil {
		p.filter(i, feasible.OperandDistinctHosts)
		return
	}
	if lack := pl.lacks(p.ask, nil); lack != "" {
		p.exhaust(i, lack)
		return
	}
	p.rate(i)
	p.heaps.push(p, i)
}

// dropValue takes all nodes out that share a value which is used up.
func (p *Placer) dropValue(d *distinct, node int) {
	for j := range p.entries {
		if p.entries[j].state == nodeOpen && d.same(j, node) {
			p.heaps.remove(p, j)
			p.filter(j, p.distinctReason(j, nil))
		}
	}
}

// metrics tells how the placement was decided.
func (p *Placer) metrics(top []ranked) *structs.AllocationMetric {
	m := p.metric
	p.shared = true
	if len(top) > 0 {
		m.ScoreMetaData = make([]*structs.NodeScoreMeta, len(top))
		for i, r := range top {
			m.ScoreMetaData[i] = p.scoreMeta(r)
		}
	}
	return &m
}

func (p *Placer) scoreMeta(r ranked) *structs.NodeScoreMeta {
	e := &p.entries[r.node]
	if e.meta != nil && r.special == nil && len(p.spreads) == 0 {
		return e.meta
	}
	scores := map[string]float64{
		scoreBinPack:  e.pack,
		scoreAnti:     antiAffinityScore(int(e.collisions), p.desired),
		scorePenalty:  0,
		scoreAffinity: e.affinity,
	}
	if len(p.spreads) > 0 {
		scores[scoreSpread] = p.heaps.spreadOf(p, e.values)
	}
	if r.special != nil {
		scores[scoreBinPack] = r.special.pack
		if r.special.penalty {
			scores[scorePenalty] = -1
		}
	}
	meta := &structs.NodeScoreMeta{NodeID: p.r.places[r.node].node.ID, Scores: scores, NormScore: r.final}
	if r.special == nil {
		e.meta = meta
	}
	return meta
}
