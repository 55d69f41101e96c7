package reconcile

import (
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// goes says that who has the slot leaves it and something is placed instead.
func (s *slot) goes() bool {
	return s.bucket == Migrate || s.bucket == Lost || s.bucket == Again || s.bucket == Unknown
}

func (s *slot) isCanary() bool {
	return s.alloc.DeploymentStatus != nil && s.alloc.DeploymentStatus.Canary
}

// resolveReconnected decides between an allocation that is heard again and the one that replaced it meanwhile.
func (g *group) resolveReconnected() {
	byID := map[string]*slot{}
	for _, s := range g.slots {
		byID[s.alloc.ID] = s
	}
	gone := map[*slot]bool{}
	for _, s := range g.slots {
		if s.bucket != Keep && s.bucket != Migrate || s.nodeUnheard() || gone[s] {
			continue
		}
		last := g.follower(s.alloc)
		if last == nil || last.Name != s.alloc.Name || byID[last.ID] == nil {
			continue
		}
		rival := byID[last.ID]
		loser := rival
		if g.keepsReplacement(s, rival) {
			loser = s
		}
		if loser == rival {
			g.desired.Reconnect++
		}
		gone[loser] = true
		g.end(loser, reasonReconnected)
	}
	g.slots = slices.DeleteFunc(g.slots, func(s *slot) bool { return gone[s] })
}

// follower gives the last allocation of the chain of replacements after a, if one of them is live; nil when none is.
func (r *run) follower(a *structs.Allocation) *structs.Allocation {
	var live *structs.Allocation
	seen := map[string]bool{}
	for next := r.successors[a.ID]; next != nil && !seen[next.ID]; next = r.successors[next.ID] {
		seen[next.ID] = true
		if !next.TerminalStatus() {
			live = next
		}
	}
	return live
}

// keepsReplacement decides by the group's strategy; a replacement that does not run cannot win, nor can an original of
// another version that would have to be updated.
func (g *group) keepsReplacement(original, replacement *slot) bool {
	if g.comparer.compare(original.alloc).Kind == KindDestructive {
		return true
	}
	if replacement.bucket != Keep || original.bucket != Keep {
		return replacement.bucket == Keep
	}
	switch original.terms.strategy {
	case strategyKeepOriginal:
		return false
	case strategyKeepReplacement:
		return true
	case strategyLongestRunning:
		return startedAt(replacement.alloc) != 0 && startedAt(original.alloc) > startedAt(replacement.alloc)
	default:
		return placedScore(replacement.alloc) > placedScore(original.alloc)
	}
}

// startedAt is when the last of the main tasks started, 0 when none did.
func startedAt(a *structs.Allocation) int64 {
	var last int64
	for _, ts := range a.TaskStates {
		if !ts.StartedAt.IsZero() {
			last = max(last, ts.StartedAt.UnixNano())
		}
	}
	return last
}

// placedScore is the score with which an allocation's node was chosen.
func placedScore(a *structs.Allocation) float64 {
	if a.Metrics == nil {
		return 0
	}
	for _, m := range a.Metrics.ScoreMetaData {
		if m.NodeID == a.NodeID {
			return m.NormScore
		}
	}
	return 0
}

// dropDuplicates leaves each name to one: who runs, of those the one of the current version, else the older one.
func (g *group) dropDuplicates() {
	best := map[string]*slot{}
	var out []*slot
	for _, s := range g.slots {
		other := best[s.alloc.Name]
		if other == nil {
			best[s.alloc.Name] = s
			out = append(out, s)
			continue
		}
		loser := s
		if g.prefer(s, other) {
			loser, best[s.alloc.Name] = other, s
			out[slices.Index(out, other)] = s
		}
		g.drop(loser)
	}
	g.slots = out
}

func (g *group) prefer(a, b *slot) bool {
	if x, y := a.standing(), b.standing(); x != y {
		return x < y
	}
	if x, y := a.sameVersion(), b.sameVersion(); x != y {
		return x
	}
	return false
}

// standing orders those of one name: who runs before who may run, and that before who does not.
func (s *slot) standing() int {
	switch s.bucket {
	case Keep, Done:
		return 0
	case Migrate:
		return 1
	case Hold, Unknown:
		return 2
	default:
		return 3
	}
}

// drop takes a slot away: who has it is stopped, or not replaced.
func (g *group) drop(s *slot) { g.end(s, reasonNotNeeded) }

func (g *group) end(s *slot, reason string) {
	switch {
	case s.bucket == Lost:
		g.lose(s.subject, s.reason)
	case s.bucket == Done:
		// Nothing to do: it has ended.
	case s.unheardForGood():
		g.lose(s.subject, reasonLost) // nobody would hear of its end
	default:
		g.stop(s.subject, reason)
	}
}

// dropSurplus brings the group down to its count: first those that leave their place anyway are not replaced, then the
// highest index goes.
func (g *group) dropSurplus() {
	surplus := len(g.slots) - structs.Val(g.tg.Count)
	if surplus <= 0 {
		return
	}
	order := slices.Clone(g.slots)
	slices.SortStableFunc(order, func(a, b *slot) int {
		if x, y := a.dropRank(), b.dropRank(); x != y {
			return x - y
		}
		return b.index - a.index
	})
	gone := order[:surplus]
	for _, s := range gone {
		g.drop(s)
	}
	g.slots = slices.DeleteFunc(g.slots, func(s *slot) bool { return slices.Contains(gone, s) })
}

// settleShadows keeps an unknown allocation for as long as the one that replaced it keeps the place.
func (g *group) settleShadows() {
	for _, s := range g.shadows {
		if g.ending[g.follower(s.alloc).ID] {
			g.drop(s)
		} else {
			g.note(s.subject, s.reason)
		}
	}
}

// dropRank orders who leaves first when there are too many.
func (s *slot) dropRank() int {
	switch s.bucket {
	case Lost, Again:
		return 0
	case Later, Exhausted:
		return 1
	case Migrate, Unknown:
		return 2
	default:
		return 3
	}
}

// missing gives the names that nobody has, the lowest first.
func (g *group) missing() []string {
	count := structs.Val(g.tg.Count)
	need := count - len(g.slots)
	if need <= 0 {
		return nil
	}
	taken := make(map[int]bool, len(g.slots))
	for _, s := range g.slots {
		taken[s.index] = true
	}
	names := make([]string, 0, need)
	for i := 0; len(names) < need; i++ {
		if !taken[i] {
			names = append(names, structs.AllocName(g.in.JobID, g.name, i))
		}
	}
	return names
}

// replace places what takes the place of those that leave theirs, and says what is to come of those that wait.
func (g *group) replace() {
	for _, s := range g.slots {
		switch s.bucket {
		case Migrate:
			g.desired.Migrate++
			g.out.Stops = append(g.out.Stops, Stop{
				Alloc: s.alloc, Desired: structs.AllocDesiredStatusStop, Description: s.reason,
			})
			if !s.staysAway() {
				g.place(s, nil)
			}
		case Lost:
			g.desired.Stop++
			g.tell(structs.UpdateDestroy, s.reason, nil)
			g.desired.Place++
			g.out.Stops = append(g.out.Stops, g.loss(s.subject, s.reason))
			g.place(s, nil)
		case Unknown:
			g.note(s.subject, s.reason)
			g.desired.Place++
			g.place(s, nil)
		case Hold:
			g.note(s.subject, s.reason)
		case Again:
			g.desired.RescheduleNow++
			g.desired.Place++
			g.place(s, &Stop{Alloc: s.alloc, Desired: structs.AllocDesiredStatusStop, Description: s.reason})
		case Later:
			g.desired.RescheduleLater++
			g.later(s)
		}
	}
}

// place makes the placement that follows who has the slot.
func (g *group) place(s *slot, stop *Stop) {
	p := Place{
		Group: g.tg, Name: s.alloc.Name, Previous: g.predecessor(s), History: s.alloc, StopPrevious: stop,
		Reschedule: s.bucket == Again && !s.endedByFence() && !s.endedByLeaving(), Deploys: g.deploy.active(),
		Canary: s.isCanary() && slices.Contains(g.canaries, s),
	}
	if old := g.deploy.proven(s.alloc); old != nil && !p.Canary {
		p.Job, p.Group, p.Deploys = old, old.LookupTaskGroup(g.name), false
	}
	if p.Reschedule {
		p.Penalty = append(p.Penalty, s.alloc.NodeID)
		if t := s.alloc.RescheduleTracker; t != nil {
			for _, e := range t.Events {
				if !slices.Contains(p.Penalty, e.PrevNodeID) {
					p.Penalty = append(p.Penalty, e.PrevNodeID)
				}
			}
		}
	}
	g.out.Places = append(g.out.Places, p)
}

// predecessor is whom the replacement of s follows: s itself, or when s is lost (nobody hears of its end) the one before
// it that still stops, so that the node waits for that one's end.
func (g *group) predecessor(s *slot) *structs.Allocation {
	if s.bucket != Lost {
		return s.alloc
	}
	seen := map[string]bool{}
	for a := g.byID[s.alloc.PreviousAllocation]; a != nil && !seen[a.ID]; a = g.byID[a.PreviousAllocation] {
		seen[a.ID] = true
		if a.ClientTerminal() || g.ending[a.ID] {
			continue
		}
		if a.Name == s.alloc.Name && a.ServerTerminal() {
			return a
		}
		break
	}
	return s.alloc
}

// later notes when a failed allocation is replaced, once.
func (g *group) later(s *slot) {
	if g.pending(s.alloc) {
		return
	}
	at, _ := s.rescheduleAt()
	g.out.Stops = append(g.out.Stops, Stop{
		Alloc:        s.alloc,
		FollowupEval: g.followUp(at, structs.EvalTriggerRetryFailedAlloc, "created for delayed rescheduling"),
	})
}

// updates tells apart how those that keep their place get to the current version of the job.
func (g *group) updates(missing []string) {
	var destructive []*slot
	first, anew := len(g.out.InPlace), len(missing)
	for _, s := range g.slots {
		if s.goes() {
			// What takes the place of one that is lost, or is placed once there is room, is as new as what was missing.
			if s.bucket == Lost || s.bucket == Migrate || s.bucket == Again {
				anew++
			}
			continue
		}
		d := g.comparer.compare(s.alloc)
		if d.Kind != KindIgnore {
			g.out.Decisions = append(g.out.Decisions, Decision{s.alloc, s.bucket, "update", describe(d)})
		}
		switch {
		case d.Kind == KindIgnore || s.bucket == Hold || s.bucket == Done:
			g.ignore(s, d)
		case d.Kind == KindInPlace && (s.ended() || s.nodeDown()):
			g.ignore(s, d)
		case d.Kind == KindInPlace:
			u := Update{Alloc: s.alloc, Group: g.tg, Difference: d}
			g.inPlace(&u)
			g.out.InPlace = append(g.out.InPlace, u)
		default:
			destructive = append(destructive, s)
		}
	}
	g.deploy.require(len(destructive) > 0, len(g.out.InPlace) > first, anew)
	for i := first; i < len(g.out.InPlace); i++ {
		g.out.InPlace[i].Deploys = g.deploy.active()
	}
	g.placeCanaries(destructive)
	g.roll(destructive, len(missing))
}

func describe(d Difference) string {
	if d.Kind == KindInPlace {
		return "in place"
	}
	return "destructive: " + strings.Join(d.What, ", ")
}

// roll replaces as many of the old as the update's limit lets, those that do not run first.
func (g *group) roll(destructive []*slot, missing int) {
	slices.SortStableFunc(destructive, func(a, b *slot) int {
		if a.ended() != b.ended() {
			if a.ended() {
				return -1
			}
			return 1
		}
		return a.index - b.index
	})
	limit, held := g.deploy.limit(g, len(destructive), missing)
	if held != nil && len(destructive) > 0 {
		g.out.Held = append(g.out.Held, Held{Group: g.name, Waiting: len(destructive), Brake: held.name, Reason: held.reason})
	}
	for i, s := range destructive {
		if i >= limit {
			g.wait(s, held)
			continue
		}
		g.desired.DestructiveUpdate++
		g.tell(structs.UpdateDestructive, whyDestructive, g.comparer.compare(s.alloc).What)
		s.bucket = Keep // a follow-up of its failure is of no more concern
		g.out.Places = append(g.out.Places, Place{
			Group: g.tg, Name: s.alloc.Name, Previous: s.alloc, Destructive: true, Deploys: g.deploy.active(),
			StopPrevious: &Stop{Alloc: s.alloc, Desired: structs.AllocDesiredStatusStop, Description: reasonUpdating},
		})
	}
}
