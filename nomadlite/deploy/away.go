package deploy

import (
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// pauses keep a group's deadline from counting while its allocations are on nodes that are away for an announced
// maintenance: nobody can report progress from there.
type pauses struct {
	away  map[string]struct{} // ids
	since time.Time           // when the first of them went
	over  []pause
}

type pause struct {
	from time.Time
	took time.Duration
}

// take takes an allocation in as it is now.
func (p *pauses) take(a *structs.Allocation) {
	if a.Condition.Status != structs.ConditionAway || a.TerminalStatus() {
		p.drop(a.ID, time.Unix(0, a.ModifyTime).UTC())
		return
	}
	if len(p.away) == 0 {
		p.away, p.since = map[string]struct{}{}, a.Condition.Since
	}
	p.away[a.ID] = struct{}{}
}

// drop takes out an allocation that was heard of at now, or is gone.
func (p *pauses) drop(id string, now time.Time) {
	if _, was := p.away[id]; !was {
		return
	}
	if delete(p.away, id); len(p.away) == 0 && now.After(p.since) {
		p.over = append(p.over, pause{p.since, now.Sub(p.since)})
	}
}

// extend gives a deadline with the pauses that were made before it; false while there is one.
func (p *pauses) extend(by time.Time) (time.Time, bool) {
	for _, o := range p.over {
		if by.After(o.from) {
			by = by.Add(o.took)
		}
	}
	return by, len(p.away) == 0
}
