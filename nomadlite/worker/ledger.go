package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/structs"
)

// ledger is what this pool's workers have decided and what their states may not show yet: who decides next counts it
// in, so that it does not plan for the same room. It is an estimate: whether a plan holds the applier says.
type ledger struct {
	mu    sync.Mutex
	lines []*line
}

// line is one plan.
type line struct {
	places []place       // that are not refused
	index  uint64        // of the state which shows them; 0: not known
	done   chan struct{} // closed when it is known what became of the plan: then the line changes no more
}

// place is one new allocation of a plan.
type place struct {
	nodeID, allocID string
	uses            structs.Comparable
}

// enter notes a plan before it is handed to the applier.
func (l *ledger) enter(plan *structs.Plan) *line {
	n := &line{done: make(chan struct{})}
	for nodeID, list := range plan.Places {
		for _, a := range list {
			if a.CreateIndex == 0 { // the others are updates in place: they are held already
				n.places = append(n.places, place{nodeID, a.ID, a.AllocatedResources.Comparable()})
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(n.places) > 0 {
		l.lines = append(l.lines, n)
	}
	return n
}

// settle notes what became of a plan; result is nil when nobody knows.
func (l *ledger) settle(n *line, result *structs.PlanResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(n.done)
	if result == nil || result.AllocIndex == 0 {
		l.lines = slices.DeleteFunc(l.lines, func(o *line) bool { return o == n })
		return
	}
	n.index = result.AllocIndex
	n.places = slices.DeleteFunc(slices.Clone(n.places), func(p place) bool { return len(result.Places[p.nodeID]) == 0 })
}

// open gives the lines that a state of the given index may not show, as they are now, and strikes out the others.
func (l *ledger) open(index uint64) (lines []*line, now []line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = slices.DeleteFunc(l.lines, func(n *line) bool { return n.index > 0 && n.index <= index })
	for _, n := range l.lines {
		now = append(now, *n)
	}
	return slices.Clone(l.lines), now
}

// written is what a pool's snapshots offer to schedulers.
type written interface {
	scheduler.State
	scheduler.UsageState
	scheduler.FleetState
	scheduler.EvalState
	scheduler.PoolState
}

// ahead is the written state with plans under way on top.
type ahead struct {
	written
	session *session
	lines   []*line
	usages  map[string]*structs.NodeUsage // of the nodes that plans under way concern
}

var _ scheduler.TentativeState = (*ahead)(nil)

// look gives the newest state, with what is under way.
func (s *session) look() scheduler.State {
	store := s.pool.cfg.Store
	lines, now := s.pool.ledger.open(store.Index()) // before the snapshot, which then shows what is struck out meanwhile
	snap := store.Snapshot()
	s.snapshot = snap.Index()
	state := snap.Scheduler()
	base, ok := state.(written)
	if !ok {
		return state
	}
	a := &ahead{written: base, session: s, usages: map[string]*structs.NodeUsage{}}
	for i, n := range now {
		shown := n.index > 0 && n.index <= s.snapshot
		// Until its result is here a plan may be written already: then it is so with all its allocations.
		if shown || slices.ContainsFunc(n.places, func(p place) bool { return snap.Alloc(nil, p.allocID) != nil }) {
			continue
		}
		a.lines = append(a.lines, lines[i])
		for _, p := range n.places {
			usage := a.usages[p.nodeID]
			if usage == nil {
				usage = base.NodeUsage(p.nodeID).Copy()
				a.usages[p.nodeID] = usage
			}
			usage.AddResources(p.uses)
		}
	}
	if len(a.usages) == 0 {
		return state
	}
	return a
}

// NodeUsage gives what the allocations on a node hold, or will.
func (a *ahead) NodeUsage(nodeID string) *structs.NodeUsage {
	if usage := a.usages[nodeID]; usage != nil {
		return usage
	}
	return a.written.NodeUsage(nodeID)
}

// Fleet gives what scheduling needs of all nodes, and what is held there or will be.
func (a *ahead) Fleet() (*feasible.Fleet, []*structs.NodeUsage) {
	fleet, usages := a.written.Fleet()
	usages = slices.Clone(usages)
	for nodeID, usage := range a.usages {
		if at, ok := fleet.Find(nodeID); ok {
			usages[at] = usage
		}
	}
	return fleet, usages
}

// Settled waits until it is known what became of the plans under way, and gives the newest state without any others.
func (a *ahead) Settled(ctx context.Context) (scheduler.State, error) {
	s := a.session
	s.desk.leave()
	var newest uint64
	for _, n := range a.lines {
		select {
		case <-n.done:
			newest = max(newest, n.index)
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for plans under way: %w", context.Cause(ctx))
		}
	}
	if err := s.pool.cfg.Store.WaitIndex(ctx, newest); err != nil {
		return nil, fmt.Errorf("wait for plans under way: %w", err)
	}
	if err := s.desk.back(ctx); err != nil {
		return nil, err
	}
	snap := s.pool.cfg.Store.Snapshot()
	s.snapshot = snap.Index()
	return snap.Scheduler(), nil
}
