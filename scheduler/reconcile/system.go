package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// SystemInput is what the reconciliation of a system or sysbatch job looks at. Batch says that it is a sysbatch job.
type SystemInput struct {
	Input
	// Scope are the nodes that take new allocations of the job.
	Scope []*structs.Node
	// Fits says whether a node, ready or not, is one that a group is meant for.
	Fits func(group *structs.TaskGroup, node *structs.Node) bool
}

// systemRules classify an allocation of a system job: it belongs to its node, so nothing takes its place elsewhere.
// The first rule whose condition holds decides.
var systemRules = []rule{
	// Ended, or told to end.
	{"work done", func(s *subject) bool {
		return !s.jobGone() && s.in.Batch && s.ranToEnd() && s.sameVersion() && !s.replaced()
	},
		Done, "ran to its end"},
	{"work of an earlier version", func(s *subject) bool { return s.in.Batch && s.ended() && !s.sameVersion() && !s.conditionLost() },
		Ignore, "ended under an earlier version of the job"},
	{"told to stop, ended", func(s *subject) bool { return s.wantedToEnd() && s.ended() },
		Ignore, "stopped"},
	{"told to stop, node down", func(s *subject) bool { return s.wantedToEnd() && s.unheardForGood() },
		LoseStopping, reasonLost},
	{"told to stop", func(s *subject) bool { return s.wantedToEnd() },
		Stopping, "is stopping"},

	// Nobody wants it.
	{"not wanted, ended", func(s *subject) bool { return s.jobGone() && s.ended() && !s.conditionLost() },
		Ignore, "ended before its job did"},
	{"not wanted, node down", func(s *subject) bool { return s.jobGone() && (s.conditionLost() || s.unheardForGood()) },
		Lose, reasonLost},
	{"not wanted", func(s *subject) bool { return s.jobGone() },
		Unwanted, reasonNotNeeded},

	// Ended by itself, or was given up.
	{"given up", func(s *subject) bool { return s.conditionLost() },
		Lose, reasonLost},
	{"ended since its node left", func(s *subject) bool { return s.endedByLeaving() },
		Ignore, reasonNodeLeft}, // its node gets it anew when it comes again
	{"complete", func(s *subject) bool { return s.ended() && !s.failed() },
		Ignore, "ended by itself"},
	{"failed, asked to move", func(s *subject) bool { return s.failed() && s.askedToMove() },
		Again, reasonRescheduled},
	{"ended by its fence", func(s *subject) bool { return s.failed() && s.alloc.Fenced },
		Again, reasonFenced},
	{"failed at its work", func(s *subject) bool { return s.failed() && s.in.Batch },
		Exhausted, "failed, it runs once"},
	// A failure alone is for the restart policy on the node; the next evaluation for another reason tries again.
	{"failed just now", func(s *subject) bool {
		return s.failed() && s.in.Eval.TriggeredBy == structs.EvalTriggerRetryFailedAlloc
	},
		Exhausted, "failed"},
	{"failed before", func(s *subject) bool { return s.failed() },
		Again, reasonRescheduled},

	// Its node cannot be heard.
	{"node expected back", func(s *subject) bool { return s.nodeUnheard() && !s.nodeGone() && s.away() },
		Keep, "its node is expected back"},
	{"fence not closed", func(s *subject) bool { return s.nodeUnheard() && !s.nodeGone() && s.fenced() },
		Hold, reasonUnknown},
	{"node gone", func(s *subject) bool { return s.nodeGone() },
		Lose, reasonLost},
	{"never given up", func(s *subject) bool { return s.nodeUnheard() && !s.terms.replace },
		Hold, reasonUnknown},
	{"disconnected, patient", func(s *subject) bool { return s.nodeDisconnected() && s.patient() },
		Hold, reasonUnknown},
	{"node down", func(s *subject) bool { return s.nodeUnheard() },
		Lose, reasonLost},

	// It is heard and runs.
	{"drained", func(s *subject) bool { return s.node.DrainStrategy != nil && s.askedToMove() },
		Unwanted, reasonMigrating},
	{"asked to move", func(s *subject) bool { return s.askedToMove() },
		Migrate, reasonMigrating},
	{"node not meant", func(s *subject) bool { return !s.fits },
		Unwanted, reasonNotNeeded},
	{"runs", func(*subject) bool { return true },
		Keep, "runs"},
}

// systemGroup is one group of a system job under way.
type systemGroup struct {
	*group
	in     *SystemInput
	byNode map[string]*slot
	meant  []*structs.Node                // those of the scope that the group is meant for
	last   map[string]*structs.Allocation // the newest of each node, whatever became of it
}

// RunSystem compares what a system job wants, one allocation of each group on each node that is meant for it, with
// what is there.
func RunSystem(in SystemInput) *Result {
	in.System = true
	r := newRun(&in.Input)
	r.openDeployment()
	groups := r.byGroup()
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		r.systemGroup(&in, name, groups[name])
	}
	r.closeDeployment()
	r.out.Follow = r.follow
	return r.out
}

func (r *run) systemGroup(in *SystemInput, name string, allocs []*structs.Allocation) {
	g := &systemGroup{group: r.newGroup(name), in: in, byNode: map[string]*slot{}}
	if g.tg != nil && structs.Val(g.tg.Count) == 0 {
		g.tg = nil
	}
	slices.SortFunc(allocs, byName)
	onNode := map[string]*structs.Allocation{}
	for _, a := range allocs {
		s := newSubject(g.run.in, a, g.tg, g.successors[a.ID])
		s.fits = g.tg != nil && s.node != nil && in.Fits(g.tg, s.node)
		hit := firstMatch(systemRules, s)
		g.out.Decisions = append(g.out.Decisions, Decision{a, hit.bucket, hit.name, hit.reason})
		g.settle(s, hit, onNode)
	}
	if g.tg == nil {
		return
	}
	g.leaveNodes()
	for _, id := range slices.Sorted(maps.Keys(g.byNode)) {
		g.slots = append(g.slots, g.byNode[id])
	}
	g.lookAtNodes()
	g.deploy = r.deploymentOf(g.group)
	updates := g.updates()
	g.deploy.nodes, g.deploy.updatable = len(g.meant), len(updates.destructive)
	missing := g.missing()
	g.deploy.require(updates.destructive != nil, updates.inPlace != nil, len(missing))
	g.replaceOnNode()
	g.update(updates, g.gaps(missing))
	for _, node := range missing {
		g.desired.Place++
		g.placeOn(node, onNode[node], g.last[node])
	}
	g.setAwaits()
	g.completeRollout()
}

// lookAtNodes finds the nodes that the group is meant for, and what each node had last.
func (g *systemGroup) lookAtNodes() {
	for _, node := range g.in.Scope {
		if g.in.Fits(g.tg, node) {
			g.meant = append(g.meant, node)
		}
	}
	g.last = map[string]*structs.Allocation{}
	for _, a := range g.run.in.Allocs {
		if a.TaskGroup == g.name && (g.last[a.NodeID] == nil || newer(a, g.last[a.NodeID])) {
			g.last[a.NodeID] = a
		}
	}
}

// gaps counts the nodes that miss what they had: a rollout does not go on over them. A node that never had room is none.
func (g *systemGroup) gaps(missing []string) int {
	n := 0
	for _, node := range missing {
		if g.last[node] != nil {
			n++
		}
	}
	return n
}

// missing are the nodes that have no allocation of the group and are to have one. While a rollout is paused, or its
// canaries wait for their promotion, none comes to a node that had none before.
func (g *systemGroup) missing() []string {
	held := g.deploy.paused() || g.deploy.strategy != nil && g.deploy.awaitsPromotion()
	var out []string
	for _, node := range g.meant {
		if g.byNode[node.ID] == nil && (!held || g.last[node.ID] != nil) {
			out = append(out, node.ID)
		}
	}
	return out
}

// settle does what the bucket says, or gives the allocation its node's place.
func (g *systemGroup) settle(s *subject, hit *rule, onNode map[string]*structs.Allocation) {
	switch hit.bucket {
	case Ignore:
	case Stopping:
		g.holders.stopping = append(g.holders.stopping, s.alloc)
		if g.follower(s.alloc) == nil {
			onNode[s.alloc.NodeID] = s.alloc
		}
	case LoseStopping, Lose:
		g.lose(s, hit.reason)
	case Unwanted:
		g.stop(s, hit.reason)
	default:
		mine := &slot{subject: s, bucket: hit.bucket, reason: hit.reason}
		other := g.byNode[s.alloc.NodeID]
		switch {
		case other == nil:
			g.byNode[s.alloc.NodeID] = mine
		case g.prefer(mine, other):
			g.drop(other)
			g.byNode[s.alloc.NodeID] = mine
		default:
			g.drop(mine)
		}
	}
}

// leaveNodes stops what is to move or to be tried again on a node that takes nothing now. A rollout goes on without it at
// once: the next evaluation would not see it any more.
func (g *systemGroup) leaveNodes() {
	for _, id := range slices.Sorted(maps.Keys(g.byNode)) {
		if s := g.byNode[id]; (s.bucket == Migrate || s.bucket == Again) && !g.inScope(id) {
			g.stop(s.subject, s.reason)
			delete(g.byNode, id)
		}
	}
}

// replaceOnNode places anew, on its own node, what was asked to move or is tried again.
func (g *systemGroup) replaceOnNode() {
	for _, id := range slices.Sorted(maps.Keys(g.byNode)) {
		s := g.byNode[id]
		switch s.bucket {
		case Hold:
			g.note(s.subject, s.reason)
		case Migrate, Again:
			g.stop(s.subject, s.reason)
			g.desired.Place++
			g.placeOn(id, s.alloc, s.alloc)
		}
	}
}

func (g *systemGroup) inScope(nodeID string) bool {
	return slices.ContainsFunc(g.in.Scope, func(n *structs.Node) bool { return n.ID == nodeID })
}

// placeOn places an allocation on a node, after previous if that is not nil; last is what the node had last. Until canaries
// are promoted that is placed again by its own version, and a canary as a canary.
func (g *systemGroup) placeOn(nodeID string, previous, last *structs.Allocation) {
	p := Place{Group: g.tg, Name: structs.AllocName(g.run.in.JobID, g.name, 0), Previous: previous, Node: nodeID,
		Deploys: g.deploy.active()}
	if last != nil {
		if old := g.deploy.proven(last); old != nil {
			p.Job, p.Group, p.Deploys = old, old.LookupTaskGroup(g.name), false
		} else {
			p.Canary = p.Deploys && g.deploy.awaitsPromotion() && last.Canary()
		}
	}
	g.out.Places = append(g.out.Places, p)
}

// nodeUpdates are the allocations that another version of the job reaches.
type nodeUpdates struct {
	destructive []*slot
	inPlace     []Update
}

// updates compares what runs with the current version.
func (g *systemGroup) updates() nodeUpdates {
	var u nodeUpdates
	for _, s := range g.slots {
		if s.bucket != Keep && s.bucket != Exhausted {
			continue
		}
		d := g.comparer.compare(s.alloc)
		if d.Kind != KindIgnore {
			g.out.Decisions = append(g.out.Decisions, Decision{s.alloc, s.bucket, "update", describe(d)})
		}
		switch {
		case d.Kind == KindDestructive && g.inScope(s.alloc.NodeID):
			u.destructive = append(u.destructive, s)
		case d.Kind == KindInPlace && !s.ended() && !s.nodeUnheard():
			u.inPlace = append(u.inPlace, Update{Alloc: s.alloc, Group: g.tg, Difference: d})
		default:
			g.ignore(s, d)
		}
	}
	return u
}

// update brings what runs to the current version: in place at once; destructively as many at a time as the rollout lets,
// or, where there is none, max_parallel and the next ones a stagger later.
func (g *systemGroup) update(u nodeUpdates, missing int) {
	for _, in := range u.inPlace {
		in.Deploys = g.deploy.active()
		g.inPlace(&in)
		g.out.InPlace = append(g.out.InPlace, in)
	}
	if g.deploy.strategy == nil {
		g.stagger(u.destructive)
		return
	}
	limit, hold := g.limit(len(u.destructive), missing)
	for i, s := range u.destructive {
		if i < limit {
			g.replaceBy(s, g.deploy.active() && g.deploy.awaitsPromotion())
			continue
		}
		g.wait(s, hold)
	}
	if hold != nil && len(u.destructive) > limit {
		g.out.Held = append(g.out.Held, Held{Group: g.name, Waiting: len(u.destructive) - limit, Brake: hold.name, Reason: hold.reason})
	}
}

// limit is how many nodes may get the new version now: until canaries are promoted as many as miss of them, and never
// more than max_parallel whose health is not known yet.
func (g *systemGroup) limit(destructive, missing int) (int, *brake) {
	limit, hold := g.deploy.limit(g.group, destructive, missing)
	if hold == nil || hold.name != awaitsPromotion || !g.deploy.active() || g.deploy.anyUnhealthy(g.group) {
		return limit, hold
	}
	have := 0
	for _, s := range g.slots {
		if g.deploy.has(s) && s.isCanary() {
			have++
		}
	}
	left := min(g.deploy.state.DesiredCanaries-have, g.deploy.room(g.group))
	return max(left, 0), hold
}

// replaceBy stops an allocation for one of the current version on its node.
func (g *systemGroup) replaceBy(s *slot, canary bool) {
	if canary {
		g.desired.Canary++
		g.tell(structs.UpdateCanary, whyNodeCanary, g.comparer.compare(s.alloc).What)
	} else {
		g.desired.DestructiveUpdate++
		g.tell(structs.UpdateDestructive, whyDestructive, g.comparer.compare(s.alloc).What)
	}
	g.out.Places = append(g.out.Places, Place{
		Group: g.tg, Name: s.alloc.Name, Previous: s.alloc, Destructive: true, Node: s.alloc.NodeID,
		Deploys: g.deploy.active(), Canary: canary,
		StopPrevious: &Stop{Alloc: s.alloc, Desired: structs.AllocDesiredStatusStop, Description: reasonUpdating},
	})
}

// stagger rolls an update out without a deployment.
func (g *systemGroup) stagger(destructive []*slot) {
	limit, stagger := len(destructive), time.Duration(0)
	if u := g.tg.Update; u != nil && structs.Val(u.MaxParallel) > 0 && structs.Val(u.Stagger) > 0 {
		stagger = *u.Stagger
		limit = max(0, *u.MaxParallel-g.begunSince(g.run.in.Now.Add(-stagger)))
	}
	for i, s := range destructive {
		if i >= limit {
			g.wait(s, nil)
			continue
		}
		g.replaceBy(s, false)
	}
	// Who began some goes on with the rest; a run that may begin none leaves that to the one before it.
	if limit > 0 && limit < len(destructive) {
		g.followUp(g.run.in.Now.Add(stagger), structs.EvalTriggerRollingUpdate, "created for the next step of a rolling update")
	}
}

// completeRollout notes whether the group's part of the deployment is done: all that it has on its nodes are healthy and of
// the current version, and no node misses what it had. Nodes that come and go meanwhile count as they are now; one that
// never had room holds nothing up.
func (g *systemGroup) completeRollout() {
	d := g.deploy
	if !d.active() {
		return
	}
	g.run.deploy.watched = true
	healthy := 0
	for _, s := range g.slots {
		if h := healthOf(s.alloc); s.bucket == Keep && s.sameVersion() && d.has(s) && h != nil && *h {
			healthy++
		}
	}
	lost := slices.ContainsFunc(g.meant, func(n *structs.Node) bool { return g.byNode[n.ID] == nil && g.last[n.ID] != nil })
	if healthy == 0 || healthy < len(g.slots) || lost || d.awaitsPromotion() {
		g.run.deploy.incomplete = true
	}
}

// begunSince counts the updates to the current version that began after a time.
func (g *systemGroup) begunSince(after time.Time) int {
	n := 0
	for _, a := range g.run.in.Allocs {
		if a.TaskGroup == g.name && a.PreviousAllocation != "" && sameVersion(g.run.in.Job, a) && a.CreateTime > after.UnixNano() {
			n++
		}
	}
	return n
}
