package deploy

import (
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// health is what is known of a live allocation's health.
type health uint8

const (
	awaited health = iota // its node has not judged it yet
	healthy
	unhealthy
)

func healthOf(a *structs.Allocation) health {
	switch s := a.DeploymentStatus; {
	case s == nil || s.Healthy == nil:
		return awaited
	case *s.Healthy:
		return healthy
	default:
		return unhealthy
	}
}

// group is what is known of a group's allocations in a rollout.
type group struct {
	live     map[string]health // by id, those that have not ended
	count    [3]int            // of live, by health
	reported uint64            // the newest index at which health was reported
	extended time.Time         // the deadline of a replacement for one that was healthy
}

// needed is how many healthy allocations a group has to have: its canaries as long as nobody promoted them, then all.
func needed(s *structs.DeploymentState) int {
	if s.DesiredCanaries > 0 && !s.Promoted {
		return s.DesiredCanaries
	}
	return s.DesiredTotal
}

// take counts an allocation as it is now. One that was healthy and ended leaves its group unfinished again, perhaps long
// after the group's deadline: what replaces it has the deadline's time from there.
func (g *group) take(before, after *structs.Allocation, deadline time.Duration) {
	was, known := g.live[after.ID]
	g.drop(after.ID)
	is := healthOf(after)
	if is != awaited {
		g.reported = max(g.reported, after.DeploymentStatus.ModifyIndex)
	}
	if !after.TerminalStatus() {
		g.live[after.ID] = is
		g.count[is]++
	}
	lost := known && was == healthy || before == nil && is == healthy // the latter when the state is read as a whole
	if lost && (is != healthy || after.TerminalStatus()) {
		if by := time.Unix(0, after.ModifyTime).UTC().Add(deadline); by.After(g.extended) {
			g.extended = by
		}
	}
}

func (g *group) drop(id string) {
	if h, ok := g.live[id]; ok {
		g.count[h]--
		delete(g.live, id)
	}
}

// waits says that the scheduler can do nothing for the group until more is reported: all that it needs has been placed,
// is not all healthy, and at least one still has to be judged. Else hundreds of allocations that become healthy one by
// one would be evaluated one by one.
func (g *group) waits(needed int) bool {
	return len(g.live) >= needed && g.count[healthy] < needed && g.count[awaited] > 0
}
