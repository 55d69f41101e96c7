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
}

// RunSystem compares what a system job wants, one allocation of each group on each node that is meant for it, with
// what is there.
func RunSystem(in SystemInput) *Result {
	r := newRun(&in.Input)
	groups := r.byGroup()
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		r.systemGroup(&in, name, groups[name])
	}
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
	g.replaceOnNode()
	g.update()
	for _, node := range in.Scope {
		if g.byNode[node.ID] == nil && in.Fits(g.tg, node) {
			g.desired.Place++
			g.placeOn(node.ID, onNode[node.ID])
		}
	}
	g.setAwaits()
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

// replaceOnNode places anew what was asked to move or is tried again, on its own node when that takes it.
func (g *systemGroup) replaceOnNode() {
	for _, id := range slices.Sorted(maps.Keys(g.byNode)) {
		s := g.byNode[id]
		switch s.bucket {
		case Hold:
			g.note(s.subject, s.reason)
		case Migrate, Again:
			g.stop(s.subject, s.reason)
			if g.inScope(id) {
				g.desired.Place++
				g.placeOn(id, s.alloc)
			}
		}
	}
}

func (g *systemGroup) inScope(nodeID string) bool {
	return slices.ContainsFunc(g.in.Scope, func(n *structs.Node) bool { return n.ID == nodeID })
}

func (g *systemGroup) placeOn(nodeID string, previous *structs.Allocation) {
	g.out.Places = append(g.out.Places, Place{
		Group: g.tg, Name: structs.AllocName(g.run.in.JobID, g.name, 0), Previous: previous, Node: nodeID,
	})
}

// update brings what runs to the current version; destructive updates as many at a time as the update block lets, and
// the next ones a stagger later.
func (g *systemGroup) update() {
	var destructive []*slot
	for _, id := range slices.Sorted(maps.Keys(g.byNode)) {
		s := g.byNode[id]
		if s.bucket != Keep && s.bucket != Exhausted {
			continue
		}
		d := g.comparer.compare(s.alloc)
		if d.Kind != KindIgnore {
			g.out.Decisions = append(g.out.Decisions, Decision{s.alloc, s.bucket, "update", describe(d)})
		}
		switch {
		case d.Kind == KindDestructive && g.inScope(id):
			destructive = append(destructive, s)
		case d.Kind == KindInPlace && !s.ended() && !s.nodeUnheard():
			g.desired.InPlaceUpdate++
			g.out.InPlace = append(g.out.InPlace, Update{Alloc: s.alloc, Group: g.tg, Difference: d})
		default:
			g.desired.Ignore++
		}
	}
	g.rollNodes(destructive)
}

func (g *systemGroup) rollNodes(destructive []*slot) {
	limit, stagger := len(destructive), time.Duration(0)
	if u := g.tg.Update; u != nil && structs.Val(u.MaxParallel) > 0 && structs.Val(u.Stagger) > 0 {
		stagger = *u.Stagger
		limit = max(0, *u.MaxParallel-g.begunSince(g.run.in.Now.Add(-stagger)))
	}
	for i, s := range destructive {
		if i >= limit {
			g.desired.Ignore++
			continue
		}
		g.desired.DestructiveUpdate++
		g.out.Places = append(g.out.Places, Place{
			Group: g.tg, Name: s.alloc.Name, Previous: s.alloc, Destructive: true, Node: s.alloc.NodeID,
			StopPrevious: &Stop{Alloc: s.alloc, Desired: structs.AllocDesiredStatusStop, Description: reasonUpdating},
		})
	}
	// Who began some goes on with the rest; a run that may begin none leaves that to the one before it.
	if limit > 0 && limit < len(destructive) {
		g.followUp(g.run.in.Now.Add(stagger), structs.EvalTriggerRollingUpdate, "created for the next step of a rolling update")
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
