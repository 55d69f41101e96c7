package reconcile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// Words about an update that no rule or brake has a reason for.
const (
	whyCurrent     = "runs this version of the job already"
	whyInPlace     = "nothing differs that a running task was given at its start"
	whyDestructive = "what differs was given to the tasks at their start"
	whyCanary      = "is tried beside the old version, until it is promoted"
	whyNodeCanary  = "is tried in place of the old version on its node, the others wait for the promotion"
	whyOutOfScope  = "its node takes nothing new"
	whyEnded       = "has ended"
	whyUnheard     = "its node cannot be heard"
)

// tell notes one allocation for people who asked for a plan: which of the group's counters it is in, and why.
func (g *group) tell(update, reason string, differs []string) {
	if g.told() {
		g.out.tell(g.name, update, reason, differs)
	}
}

func (r *Result) tell(group, update, reason string, differs []string) {
	list := r.Reasons[group]
	i := slices.IndexFunc(list, func(u *structs.PlannedUpdate) bool {
		return u.Update == update && u.Reason == reason && slices.Equal(u.Differs, differs)
	})
	if i >= 0 {
		list[i].Allocs++
		return
	}
	if r.Reasons == nil {
		r.Reasons = map[string][]*structs.PlannedUpdate{}
	}
	r.Reasons[group] = append(list, &structs.PlannedUpdate{Update: update, Allocs: 1, Reason: reason, Differs: differs})
}

// told says that somebody wants to read the reasons.
func (g *group) told() bool { return g.run.in.Eval != nil && g.run.in.Eval.AnnotatePlan }

// ignore counts an allocation that stays as it is although its job may have changed.
func (g *group) ignore(s *slot, d Difference) {
	g.desired.Ignore++
	if !g.told() {
		return
	}
	reason := whyCurrent
	switch {
	case s.bucket != Keep:
		reason = s.reason
	case d.Kind == KindIgnore:
	case s.ended():
		reason = whyEnded
	case s.nodeUnheard():
		reason = whyUnheard
	default:
		reason = whyOutOfScope
	}
	g.tell(structs.UpdateIgnore, reason, d.What)
}

// wait counts an allocation whose destructive update does not begin now.
func (g *group) wait(s *slot, hold *brake) {
	g.desired.Ignore++
	if !g.told() {
		return
	}
	reason := fmt.Sprintf("waits for its turn: max_parallel is %d", structs.Val(g.tg.Update.MaxParallel))
	if hold != nil {
		reason = "waits: " + hold.reason
	}
	g.tell(structs.UpdateIgnore, reason, g.comparer.compare(s.alloc).What)
}

// inPlace counts an allocation whose node is told of the new version.
func (g *group) inPlace(u *Update) {
	g.desired.InPlaceUpdate++
	if g.told() {
		u.told = toldInPlace(u.Alloc.Job, g.run.in.Job, g.name)
		g.tell(structs.UpdateInPlace, whyInPlace, u.told)
	}
}

// Moved counts an update in place as a destructive one, since its node does not take the new version: barrier says why
// not, "" when the node is none of the job's any more.
func (r *Result) Moved(u *Update, barrier string) {
	group := structs.Val(u.Group.Name)
	d := r.Desired[group]
	d.InPlaceUpdate--
	d.DestructiveUpdate++
	list := r.Reasons[group]
	i := slices.IndexFunc(list, func(p *structs.PlannedUpdate) bool {
		return p.Update == structs.UpdateInPlace && slices.Equal(p.Differs, u.told)
	})
	if i < 0 {
		return
	}
	if list[i].Allocs--; list[i].Allocs == 0 {
		r.Reasons[group] = slices.Delete(list, i, i+1)
	}
	if barrier == "" {
		barrier = "not one of the job's nodes"
	}
	r.tell(group, structs.UpdateDestructive, "its node does not take the new version: "+barrier, u.told)
}

// aside are fields that do not say what a group is: its name and place, what Compare looks into by itself, and what
// Canonicalize hands on to the groups.
var aside = map[string]bool{"id": true, "name": true, "region": true, "namespace": true, "type": true, "group": true, "task": true,
	"update": true, "reschedule": true, "migrate": true, "meta": true}

// toldInPlace names what differs between two versions of a group that need nothing to stop, as jobspecs write it.
func toldInPlace(from, to *structs.Job, name string) []string {
	out := fieldsThatDiffer("job ", reflect.ValueOf(from).Elem(), reflect.ValueOf(to).Elem(), aside)
	a, b := from.LookupTaskGroup(name), to.LookupTaskGroup(name)
	own := map[string]bool{"name": true, "task": true}
	out = append(out, fieldsThatDiffer("", reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem(), own)...)
	for _, x := range a.Tasks {
		if y := b.LookupTask(x.Name); y != nil {
			out = append(out, fieldsThatDiffer("task "+x.Name+" ", reflect.ValueOf(x).Elem(), reflect.ValueOf(y).Elem(), own)...)
		}
	}
	slices.Sort(out)
	return out
}

func fieldsThatDiffer(in string, a, b reflect.Value, without map[string]bool) (out []string) {
	for i := range a.NumField() {
		field := a.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("hcl"), ",")
		if name != "" && !without[name] && !equal(a.Field(i), b.Field(i)) {
			out = append(out, in+name)
		}
	}
	return out
}
