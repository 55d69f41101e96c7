package clustersim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

// The names of the invariants. Faults are seeded against them by name.
const (
	invTwice       = "one name runs twice"
	invLease       = "a leased allocation overlaps its replacement"
	invObserved    = "observed status goes back"
	invClient      = "client status is not what follows from the facts"
	invFlag        = "an allocation that runs on has options of a stop"
	invRoom        = "a node is over-committed"
	invPort        = "a port is given twice"
	invEval        = "an evaluation is lost"
	invIdempotent  = "an evaluation has a further effect"
	invAsked       = "a job does not end as asked"
	invAskedToStop = "an acknowledged stop does not end stopped"
	invTask        = "a task has two processes"
	invAttempt     = "an attempt runs twice"
	invAwaits      = "an allocation waits for ever"
	invGrace       = "a change of leader expires a node"
	invAway        = "an announced absence is not waited for"
)

// watcher holds what happens against the invariants.
type watcher struct {
	s           *sim
	wasCanary   map[string]bool
	wasUnheard  map[string]bool
	stopAsked   map[string]bool // allocations that an operator stopped
	purged      map[string]bool // allocations on nodes that an operator purged
	disturbance int
	found       *fault // in a goroutine of the product, where the run cannot be ended
}

func (w *watcher) broken(invariant, detail string) {
	if w.found == nil {
		w.found = &fault{invariant, detail}
	}
}

func newWatcher(s *sim) *watcher {
	return &watcher{s: s, wasCanary: map[string]bool{}, wasUnheard: map[string]bool{}, stopAsked: map[string]bool{},
		purged: map[string]bool{}}
}

// change looks at one committed entry.
func (w *watcher) change(change state.Change) {
	nodes := map[string]bool{}
	for _, item := range change.Items {
		w.node(item)
		before, _ := item.Before.(*structs.Allocation)
		after, _ := item.After.(*structs.Allocation)
		if item.Table != state.TableAllocs || after == nil {
			continue
		}
		nodes[after.NodeID] = true
		w.alloc(before, after)
	}
	for _, id := range sortedKeys(nodes) {
		w.room(id)
	}
	if len(nodes) > 0 {
		w.counts()
	}
}

// grace is how long after its election a leader cannot know yet that a node is gone: a heartbeat is due only then.
const grace = 19 * time.Second

func (w *watcher) node(item state.Item) {
	before, _ := item.Before.(*structs.Node)
	after, _ := item.After.(*structs.Node)
	if before == nil || after == nil || before.Down() || !after.Down() {
		return
	}
	if l := w.s.leader; l != nil && l.elected.After(w.s.began) && time.Since(l.elected) < grace {
		w.s.breaks(invGrace, "%s is %s %s after the election", after.ID, after.Status, time.Since(l.elected))
	}
}

func (w *watcher) alloc(before, after *structs.Allocation) {
	s := w.s
	if after.DeploymentStatus != nil && after.DeploymentStatus.Canary {
		w.wasCanary[after.ID] = true
	}
	if after.Condition.Status == structs.ConditionUnknown {
		w.wasUnheard[after.ID] = true
	}
	// The table of legal transitions, once more: nothing comes after an end, and nothing before what was.
	rank := map[string]int{"": 0, "pending": 0, "running": 1, "complete": 2, "failed": 2}
	if before != nil {
		from, to := before.ObservedStatus, after.ObservedStatus
		if rank[to] < rank[from] || rank[from] == 2 && from != to {
			s.breaks(invObserved, "%s of %s from %q to %q", after.ID, after.NodeID, from, to)
		}
		if before.Condition.Status == structs.ConditionLost && after.Condition.Status != structs.ConditionLost {
			s.breaks(invObserved, "%s was lost and is %q", after.ID, after.Condition.Status)
		}
		w.away(before, after)
	}
	if want := clientStatus(after); after.ClientStatus != want {
		s.breaks(invClient, "%s is %q, observed %q, condition %q", after.ID, after.ClientStatus, after.ObservedStatus, after.Condition.Status)
	}
	w.flag(after)
}

// away says that what has no lease is not given up while its node's absence is one that was announced. What could not be
// heard before that has its own time.
func (w *watcher) away(before, after *structs.Allocation) {
	from, to := before.Condition.Status, after.Condition.Status
	if to != structs.ConditionLost || from == structs.ConditionLost || from == structs.ConditionUnknown {
		return
	}
	node := w.s.store.Node(nil, after.NodeID)
	if node != nil && node.Maintenance.Covers(time.Now()) && after.Group().FenceOn(node) == 0 {
		w.broken(invAway, fmt.Sprintf("%s was %q and is lost, though %s is away until %s", after.ID, from, node.ID, node.Maintenance.Until))
	}
}

// clientStatus is the rule of the three facts, written down a second time.
func clientStatus(a *structs.Allocation) string {
	ended := a.ObservedStatus == "complete" || a.ObservedStatus == "failed"
	switch {
	case !ended && a.Condition.Status == "lost":
		return "lost"
	case !ended && a.Condition.Status == "unknown":
		return "unknown"
	case a.ObservedStatus == "":
		return "pending"
	}
	return a.ObservedStatus
}

// flag says that what runs on must not skip a delay later.
func (w *watcher) flag(a *structs.Allocation) {
	t := &a.DesiredTransition
	if a.TerminalStatus() || t.NoShutdownDelay == nil && t.KillTimeout == nil || t.ShouldMigrate() {
		return
	}
	job := w.s.store.Job(nil, a.Namespace, a.JobID)
	if job == nil || job.Stop {
		return // its stop is under way
	}
	w.s.breaks(invFlag, "%s (%s), desired %s", a.ID, a.Name, a.DesiredStatus)
}

// claim is what an allocation holds on its node, together with those that it takes the place of there.
type claim struct {
	cpu, memory int64
	ports       map[int]bool
}

// room adds up what is held on a node.
func (w *watcher) room(nodeID string) {
	held := map[string]*structs.Allocation{}
	for _, a := range w.s.store.AllocsByNode(nil, nodeID) {
		if !slices.Contains([]string{"complete", "failed", "lost"}, clientStatus(a)) {
			held[a.ID] = a
		}
	}
	heir := map[string]string{}
	evicted := map[string]bool{}    // those whose place another one has taken
	preemptors := map[string]bool{} // those that have
	for _, id := range sortedKeys(held) {
		if p := held[held[id].PreviousAllocation]; p != nil && p.DesiredStatus != structs.AllocDesiredStatusRun {
			if other := heir[p.ID]; other != "" {
				w.s.breaks(invRoom, "%s and %s both take the place of %s on %s", other, id, p.ID, nodeID)
			}
			heir[p.ID] = id
		}
		if by := held[id].PreemptedByAllocation; held[id].DesiredStatus == structs.AllocDesiredStatusEvict && held[by] != nil {
			evicted[id], preemptors[by] = true, true
		}
	}
	w.fits(nodeID, held, func(id string) bool { return heir[id] == "" && !evicted[id] })
	if len(evicted) > 0 {
		w.fits(nodeID, held, func(id string) bool { return heir[id] == "" && !preemptors[id] })
	}
}

// fits adds up what some of those on a node hold.
func (w *watcher) fits(nodeID string, held map[string]*structs.Allocation, counts func(id string) bool) {
	var sum claim
	ports := map[int]string{}
	for _, id := range sortedKeys(held) {
		if !counts(id) {
			continue
		}
		c := claimOf(id, held)
		sum.cpu, sum.memory = sum.cpu+c.cpu, sum.memory+c.memory
		for port := range c.ports {
			if other := ports[port]; other != "" {
				w.s.breaks(invPort, "%d of %s: %s and %s", port, nodeID, other, id)
			}
			ports[port] = id
		}
	}
	if sum.cpu > 4000 || sum.memory > 8192 {
		w.s.breaks(invRoom, "%s: %d MHz, %d MB", nodeID, sum.cpu, sum.memory)
	}
}

func claimOf(id string, held map[string]*structs.Allocation) claim {
	a := held[id]
	c := claim{ports: map[int]bool{}}
	for _, t := range a.AllocatedResources.Tasks {
		c.cpu += t.Cpu.CpuShares
		c.memory += t.Memory.MemoryMB
	}
	for _, p := range a.AllocatedResources.Shared.Ports {
		c.ports[p.Value] = true
	}
	if p := held[a.PreviousAllocation]; p != nil && p.DesiredStatus != structs.AllocDesiredStatusRun {
		old := claimOf(p.ID, held)
		c.cpu, c.memory = max(c.cpu, old.cpu), max(c.memory, old.memory)
		for port := range old.ports {
			c.ports[port] = true
		}
	}
	return c
}

// processes are all that run, on all nodes.
func (s *sim) processes() []*process {
	var out []*process
	for _, n := range s.nodes {
		out = append(out, n.sup.sorted()...)
	}
	return out
}

// started looks at a process that has just been started beside all others.
func (w *watcher) started(p *process) {
	s := w.s
	mine := s.store.Alloc(nil, p.allocID)
	if mine == nil {
		return // it has vanished, and is stopped
	}
	for _, n := range s.nodes {
		for _, q := range n.sup.live {
			if q.allocID == p.allocID {
				if q != p && q.task == p.task {
					w.broken(invTask, fmt.Sprintf("%s beside %s on %s", p.id, q.id, n.id))
				}
				continue
			}
			other := s.store.Alloc(nil, q.allocID)
			if other == nil {
				continue
			}
			w.beside(mine, other)
		}
	}
}

// beside says what two running allocations break, if anything.
func (w *watcher) beside(a, b *structs.Allocation) {
	if a.NodeID == b.NodeID && !a.Orphaned() && !b.Orphaned() {
		for _, p := range a.AllocatedResources.Shared.Ports {
			for _, q := range b.AllocatedResources.Shared.Ports {
				if p.Value == q.Value {
					w.broken(invPort, fmt.Sprintf("%d really, on %s: %s and %s", p.Value, a.NodeID, a.ID, b.ID))
				}
			}
		}
	}
	system := structs.Val(a.Job.Type) == structs.JobTypeSystem && a.NodeID != b.NodeID
	if a.Name != b.Name || system || w.wasCanary[a.ID] || w.wasCanary[b.ID] {
		return
	}
	older := a
	if b.CreateIndex < a.CreateIndex {
		older = b
	}
	if w.leased(older) && !w.purged[older.ID] {
		w.broken(invLease, twoTexts(a, b))
		return
	}
	if a.Orphaned() || b.Orphaned() {
		return
	}
	if (w.wasUnheard[a.ID] || w.wasUnheard[b.ID]) && a.Group().ReplacedUnheard() && b.Group().ReplacedUnheard() {
		return // the job wants one beside what cannot be heard
	}
	w.broken(invTwice, twoTexts(a, b))
}

func twoTexts(a, b *structs.Allocation) string {
	text := a.Name
	for _, x := range []*structs.Allocation{a, b} {
		text += fmt.Sprintf("; %s on %s: desired %s, observed %s, condition %q, after %q, awaits %v", x.ID, x.NodeID, x.DesiredStatus,
			x.ObservedStatus, x.Condition.Status, x.PreviousAllocation, x.Awaits)
	}
	return text
}

func (w *watcher) leased(a *structs.Allocation) bool {
	lease, _ := a.Group().LeaseOn(&structs.Node{Lease: w.s.byID[a.NodeID].lease})
	return lease > 0
}

// check looks at everything once more; each entry was looked at before.
func (s *sim) check() {
	for a := range s.store.Allocs(nil, structs.AllNamespaces) {
		s.watch.alloc(nil, a)
	}
}

// stopsAreUnderWay says that of a job which nobody wants all is told to stop, or an evaluation that does so is open.
func (s *sim) stopsAreUnderWay() {
	for _, p := range s.jobs {
		if p.running {
			continue
		}
		for _, a := range s.store.AllocsByJob(nil, structs.DefaultNamespace, p.id) {
			if !a.TerminalStatus() && !slices.ContainsFunc(s.store.EvalsByJob(nil, structs.DefaultNamespace, p.id),
				func(e *structs.Evaluation) bool { return !e.TerminalStatus() }) {
				s.breaks(invAskedToStop, "%s (%s) on %s is wanted though its job is not, and nothing is under way", a.ID, a.Name, a.NodeID)
			}
		}
	}
}

// recorder is a planner that only notes.
type recorder struct{ plans []*structs.Plan }

func (r *recorder) SubmitPlan(_ context.Context, p *structs.Plan) (*structs.PlanResult, scheduler.State, error) {
	r.plans = append(r.plans, p)
	return &structs.PlanResult{Stops: p.Stops, Places: p.Places, Preemptions: p.Preemptions, Deployment: p.Deployment,
		DeploymentUpdates: p.DeploymentUpdates}, nil, nil
}
func (r *recorder) UpdateEval(context.Context, *structs.Evaluation) error  { return nil }
func (r *recorder) CreateEval(context.Context, *structs.Evaluation) error  { return nil }
func (r *recorder) ReblockEval(context.Context, *structs.Evaluation) error { return nil }

// again runs a copy of an evaluation that has just been processed: nothing may be left for it.
func (s *sim) again(eval *structs.Evaluation, disturbance int) {
	stored := s.store.Eval(nil, eval.ID)
	if stored == nil || stored.Status != structs.EvalStatusComplete || s.watch.disturbance != disturbance {
		return
	}
	r := &recorder{}
	sched, err := scheduler.New(eval.Type, scheduler.Config{State: s.store.Snapshot().Scheduler(), Planner: r, Now: time.Now(), NewID: s.newID})
	if err == nil {
		err = sched.Process(context.Background(), eval.Copy())
	}
	if err != nil {
		s.breaks(invIdempotent, "evaluation %s cannot run again: %v", eval.ID, err)
	}
	for _, p := range r.plans {
		if len(stored.FailedTGAllocs) > 0 && len(p.Stops) == 0 && p.Deployment == nil && len(p.DeploymentUpdates) == 0 {
			continue // what had no room may have found some: that of another one of its name which the first run told to stop
		}
		if !p.IsEmpty() {
			s.breaks(invIdempotent, "%s of %s, deployment %v, updates %d: %s", eval.ID, eval.JobID, p.Deployment != nil,
				len(p.DeploymentUpdates), planText(p))
		}
	}
}

// unfinished says why the cluster is not as asked yet, in the order of the invariants; nil when it is.
func (s *sim) unfinished() *fault {
	for eval := range s.store.Evals(nil, structs.AllNamespaces) {
		if eval.Status == structs.EvalStatusPending || eval.Status == structs.EvalStatusBlocked {
			return &fault{invEval, fmt.Sprintf("%s of %s (%s) is %s since %s", eval.ID, eval.JobID, eval.TriggeredBy, eval.Status,
				time.Since(time.Unix(0, eval.ModifyTime)))}
		}
	}
	running := map[string]int{}
	names := map[string]map[string]bool{}
	for _, p := range s.processes() {
		a := s.store.Alloc(nil, p.allocID)
		if a == nil {
			return &fault{invAskedToStop, fmt.Sprintf("process %s on %s is nobody's", p.id, p.node)}
		}
		if a.ServerTerminal() || a.ClientTerminal() {
			return &fault{invAskedToStop, fmt.Sprintf("process %s on %s still runs: desired %s, client %s", p.id, p.node, a.DesiredStatus, a.ClientStatus)}
		}
		if p.task == "main" {
			running[a.JobID]++
		}
	}
	for a := range s.store.Allocs(nil, structs.AllNamespaces) {
		t := a.DesiredTransition
		switch {
		case a.ServerTerminal() && !a.ObservedTerminal() && !a.Orphaned():
			return &fault{invAskedToStop, fmt.Sprintf("%s (%s) on %s was told to stop and is %s", a.ID, a.Name, a.NodeID, a.ClientStatus)}
		case a.TerminalStatus():
		case t.NoShutdownDelay != nil || t.KillTimeout != nil:
			return &fault{invFlag, fmt.Sprintf("%s (%s) in the end", a.ID, a.Name)}
		default:
			if names[a.JobID] == nil {
				names[a.JobID] = map[string]bool{}
			}
			names[a.JobID][a.Name+"@"+a.NodeID] = true
			for _, awaited := range a.Awaits {
				if other := s.store.Alloc(nil, awaited.ID); other != nil && !other.ClientTerminal() {
					return &fault{invAwaits, fmt.Sprintf("%s for %s, which is %s", a.ID, other.ID, other.ClientStatus)}
				}
			}
			if s.watch.stopAsked[a.ID] {
				return &fault{invAskedToStop, fmt.Sprintf("%s (%s) was stopped by hand and runs on", a.ID, a.Name)}
			}
		}
	}
	for _, p := range s.jobs {
		want := p.count
		switch {
		case !p.running && len(names[p.id]) > 0:
			return &fault{invAskedToStop, fmt.Sprintf("%s was stopped, and is wanted: %v", p.id, sortedKeys(names[p.id]))}
		case !p.running:
			want = 0
		case p.kind == structs.JobTypeSystem:
			want = len(s.nodes)
		case p.kind == structs.JobTypeBatch:
			if f := s.batchFault(p); f != nil {
				return f
			}
			want = 0
		}
		least := s.watch.least(p, want)
		if n := len(names[p.id]); running[p.id] != n || n > want || n < least {
			return &fault{invAsked, fmt.Sprintf("%s: %d processes, allocations %v, of %d to %d", p.id, running[p.id], sortedKeys(names[p.id]), least, want)}
		}
	}
	return nil
}

// batchFault says why a batch job is not done.
func (s *sim) batchFault(p *jobPlan) *fault {
	done := map[string]bool{}
	for _, a := range s.store.AllocsByJob(nil, structs.DefaultNamespace, p.id) {
		// What a drain ended at its deadline is not done again, by whatever it ended.
		if a.ObservedStatus == structs.AllocClientStatusComplete || structs.Val(a.DesiredTransition.MigrateDisablePlacement) {
			done[a.Name] = true
		}
	}
	if len(done) < p.count {
		return &fault{invAsked, fmt.Sprintf("%s: only %v of %d are complete", p.id, sortedKeys(done), p.count)}
	}
	return nil
}
