package scheduler

import (
	"context"
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/scheduler/rank"
	"github.com/nomadlite/nomadlite/scheduler/reconcile"
	"github.com/nomadlite/nomadlite/structs"
)

// systemAttempts is how often a system job's plan is tried again; each node has its own, so conflicts are rare.
const systemAttempts = 5

// reconcileSystem compares a system job with the nodes that are meant for it.
func (s *generic) reconcileSystem(in reconcile.Input) *reconcile.Result {
	s.scope = nil
	sys := reconcile.SystemInput{Input: in}
	if !s.job.Stopped() {
		s.scope = s.scopeOf(s.job)
		sys.Scope = s.scope.Nodes
		sys.Fits = func(tg *structs.TaskGroup, node *structs.Node) bool {
			if !feasible.Contains(s.job, node) {
				return false
			}
			ok, _ := s.feasibleGroup(s.job, tg).Check(node)
			return ok
		}
	}
	return reconcile.RunSystem(sys)
}

// planSystem places each allocation on the node it belongs to. What does not fit there waits for that node alone.
func (s *generic) planSystem() {
	places := append(s.inPlace(), s.result.Places...)
	s.waiting = map[string]bool{}
	if s.scope == nil {
		return
	}
	ranker := rank.New(s.rankConfig(s.scope.Pool), s.job, s.scope, s.peers(places), s.usage)
	defer ranker.Release()
	placers := map[string]*rank.Placer{}
	for i := range places {
		p := &places[i]
		if p.Node == "" {
			p.Node = p.Previous.NodeID // an update in place that its node does not allow
		}
		name := structs.Val(p.Group.Name)
		placer := placers[name]
		if placer == nil {
			placer = ranker.Group(p.Group, s.feasibleGroup(s.job, p.Group))
			placers[name] = placer
		}
		start := s.clock()
		placement, metrics := placer.PlaceOn(p.Node, rank.Request{Replaces: p.Previous})
		if s.cfg.Clock != nil {
			metrics.AllocationTime = s.cfg.Clock().Sub(start)
		}
		if placement == nil {
			s.queued[name]++
			s.waiting[p.Node] = true
			s.failed[name] = mergeMetrics(s.failed[name], metrics)
			continue
		}
		s.commit(p, placement)
	}
	s.shareEvictions()
}

// mergeMetrics adds up what the nodes of a system job answered.
func mergeMetrics(sum, m *structs.AllocationMetric) *structs.AllocationMetric {
	if sum == nil {
		return m.Copy()
	}
	sum.NodesEvaluated += m.NodesEvaluated
	sum.NodesFiltered += m.NodesFiltered
	sum.NodesExhausted += m.NodesExhausted
	sum.AllocationTime += m.AllocationTime
	add := func(to *map[string]int, from map[string]int) {
		for k, n := range from {
			if *to == nil {
				*to = map[string]int{}
			}
			(*to)[k] += n
		}
	}
	add(&sum.ConstraintFiltered, m.ConstraintFiltered)
	add(&sum.ClassFiltered, m.ClassFiltered)
	add(&sum.DimensionExhausted, m.DimensionExhausted)
	add(&sum.ClassExhausted, m.ClassExhausted)
	for dimension, amount := range m.Missing {
		if old, ok := sum.Missing[dimension]; !ok || amount < old {
			if sum.Missing == nil {
				sum.Missing = map[string]int64{}
			}
			sum.Missing[dimension] = amount
		}
	}
	return sum
}

// blockNodes makes a blocked evaluation for each node that had no room, woken by that node alone. An evaluation that
// was blocked for a node itself is not repeated for it.
func (s *generic) blockNodes(ctx context.Context) error {
	for _, nodeID := range slices.Sorted(maps.Keys(s.waiting)) {
		b := s.blockedEval(structs.EvalTriggerQueuedAllocs, blockedPlacements)
		b.NodeID = nodeID
		if err := s.createBlocked(ctx, b); err != nil {
			return err
		}
	}
	return nil
}
