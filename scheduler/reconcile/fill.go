package reconcile

import (
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// fill places what is missing. A name whose last holder still stops is linked to it, so that the node waits for its end.
//
// While a rollout is paused, has failed or waits for the promotion of its canaries, the group gets only what it is owed:
// it is kept at what it had, up to its count, and nothing of the new version comes where there was nothing.
func (g *group) fill(names []string) {
	if g.deploy.holds() {
		for _, last := range g.owed(len(names)) {
			g.restore(last)
		}
		return
	}
	for _, name := range names {
		g.desired.Place++
		g.out.Places = append(g.out.Places, Place{
			Group: g.tg, Name: name, Previous: g.stopping[name], Deploys: g.deploy.active(),
		})
	}
}

// restore places anew what an allocation ran which its group lost: by its version when that one is still to be used.
func (g *group) restore(last *structs.Allocation) {
	p := Place{Group: g.tg, Name: last.Name, Previous: g.stopping[last.Name], History: last, Deploys: g.deploy.active()}
	if old := g.deploy.proven(last); old != nil {
		p.Job, p.Group, p.Deploys = old, old.LookupTaskGroup(g.name), false
	}
	g.desired.Place++
	g.out.Places = append(g.out.Places, p)
}

// owed gives, for at most so many names that nobody has, the last allocation of the name when neither the job nor its
// operator did without it: it was lost, moved away or evicted when there was no room for what was to follow it. Canaries
// count only once they were promoted.
func (g *group) owed(most int) []*structs.Allocation {
	if most == 0 {
		return nil
	}
	last := map[string]*structs.Allocation{}
	for _, a := range g.in.Allocs {
		if a.TaskGroup == g.name && !a.Canary() && (last[a.Name] == nil || newer(a, last[a.Name])) {
			last[a.Name] = a
		}
	}
	for _, s := range g.slots {
		delete(last, s.alloc.Name)
	}
	var out []*structs.Allocation
	for _, a := range last {
		if a.Taken() && a.Job != nil && a.Job.CreateIndex == g.in.Job.CreateIndex {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, byName)
	return out[:min(most, len(out))]
}
