package reconcile

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// followWindow folds follow-up evaluations that would come shortly one after the other into one.
const followWindow = 5 * time.Second

// run is one reconciliation under way.
type run struct {
	in         *Input
	out        *Result
	comparer   *comparer
	byID       map[string]*structs.Allocation
	successors map[string]*structs.Allocation // by id of the allocation that is replaced
	follow     []*structs.Evaluation
	deploy     deployment
}

// Run compares what a service or batch job wants, a number of allocations, with what is there.
func Run(in Input) *Result {
	r := newRun(&in)
	r.openDeployment()
	groups := r.byGroup()
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		r.group(name, groups[name])
	}
	r.closeDeployment()
	r.out.Follow = r.follow
	return r.out
}

func newRun(in *Input) *run {
	r := &run{
		in:         in,
		out:        &Result{Desired: map[string]*structs.DesiredUpdates{}},
		comparer:   &comparer{job: in.Job, known: map[comparison]Difference{}},
		successors: successorsOf(in.Allocs),
		byID:       make(map[string]*structs.Allocation, len(in.Allocs)),
	}
	for _, a := range in.Allocs {
		r.byID[a.ID] = a
	}
	return r
}

// byGroup gives the allocations of each group that the job has or had.
func (r *run) byGroup() map[string][]*structs.Allocation {
	groups := map[string][]*structs.Allocation{}
	for _, a := range r.in.Allocs {
		groups[a.TaskGroup] = append(groups[a.TaskGroup], a)
	}
	if !r.in.Job.Stopped() {
		for _, tg := range r.in.Job.TaskGroups {
			if name := structs.Val(tg.Name); groups[name] == nil {
				groups[name] = []*structs.Allocation{}
			}
		}
	}
	return groups
}

// successorsOf finds for each allocation the newest one that follows it.
func successorsOf(allocs []*structs.Allocation) map[string]*structs.Allocation {
	m := make(map[string]*structs.Allocation)
	for _, a := range allocs {
		if a.PreviousAllocation == "" {
			continue
		}
		if old := m[a.PreviousAllocation]; old == nil || newer(a, old) {
			m[a.PreviousAllocation] = a
		}
	}
	return m
}

// newer orders allocations by when they took their name. One plan may place an old version again and a canary beside it,
// which has the name once it was promoted.
func newer(a, b *structs.Allocation) bool {
	return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.JobVersion, b.JobVersion), strings.Compare(a.ID, b.ID)) > 0
}

// slot is one of a group's places and what becomes of who has it.
type slot struct {
	*subject
	bucket Bucket
	reason string
	index  int
}

// group decides one group: classify, drop duplicates and surplus, replace, fill up, update.
func (r *run) group(name string, allocs []*structs.Allocation) {
	g := r.newGroup(name)
	slices.SortFunc(allocs, byName)
	for _, a := range allocs {
		g.sort(a)
	}
	if g.tg == nil {
		return
	}
	g.deploy = r.deploymentOf(g)
	g.resolveReconnected()
	g.setCanariesApart()
	g.dropDuplicates()
	g.dropSurplus()
	g.settleShadows()
	missing := g.missing()
	g.updates(missing)
	g.replace()
	g.fill(missing)
	g.setAwaits()
	r.completeDeployment(g)
}

func (r *run) newGroup(name string) *group {
	g := &group{
		run: r, name: name, tg: wantedGroup(r.in.Job, name), desired: &structs.DesiredUpdates{},
		stopping: map[string]*structs.Allocation{}, ending: map[string]bool{},
		holders: holders{stops: len(r.out.Stops), places: len(r.out.Places)},
	}
	r.out.Desired[name] = g.desired
	return g
}

func wantedGroup(job *structs.Job, name string) *structs.TaskGroup {
	if job.Stopped() {
		return nil
	}
	return job.LookupTaskGroup(name)
}

func byName(a, b *structs.Allocation) int {
	return cmp.Or(cmp.Compare(a.NameIndex(), b.NameIndex()), cmp.Compare(a.CreateIndex, b.CreateIndex), strings.Compare(a.ID, b.ID))
}

// group is one group's reconciliation under way.
type group struct {
	*run
	name     string
	tg       *structs.TaskGroup // nil when it is not wanted
	desired  *structs.DesiredUpdates
	slots    []*slot
	canaries []*slot
	shadows  []*slot                        // unknown ones whose replacement has the place
	stopping map[string]*structs.Allocation // by name: told to stop, not ended, nothing follows it yet
	ending   map[string]bool                // ids that this reconciliation stops
	holders  holders
	deploy   *groupDeployment
}

// sort classifies one allocation and does at once what needs no look at the others.
func (g *group) sort(a *structs.Allocation) {
	s := newSubject(g.in, a, g.tg, g.successors[a.ID])
	hit := firstMatch(rules, s)
	g.out.Decisions = append(g.out.Decisions, Decision{a, hit.bucket, hit.name, hit.reason})
	switch hit.bucket {
	case Ignore:
	case Stopping:
		g.holders.stopping = append(g.holders.stopping, a)
		if g.follower(a) == nil {
			g.stopping[a.Name] = a
		}
	case LoseStopping, Lose:
		g.lose(s, hit.reason)
	case Unwanted:
		g.stop(s, hit.reason)
	default:
		has := &slot{subject: s, bucket: hit.bucket, reason: hit.reason, index: a.NameIndex()}
		if hit.bucket == Unknown && g.follower(a) != nil {
			g.shadows = append(g.shadows, has) // its replacement has the place
			return
		}
		g.slots = append(g.slots, has)
	}
}

func (g *group) stop(s *subject, reason string) {
	g.desired.Stop++
	g.tell(structs.UpdateDestroy, reason, nil)
	g.ending[s.alloc.ID] = true
	g.out.Stops = append(g.out.Stops, Stop{Alloc: s.alloc, Desired: structs.AllocDesiredStatusStop, Description: reason})
}

func (g *group) lose(s *subject, reason string) {
	g.desired.Stop++
	g.tell(structs.UpdateDestroy, reason, nil)
	g.ending[s.alloc.ID] = true
	g.out.Stops = append(g.out.Stops, g.loss(s, reason))
}

// loss gives an allocation up.
func (g *group) loss(s *subject, reason string) Stop {
	st := Stop{Alloc: s.alloc, Desired: structs.AllocDesiredStatusStop, Description: reason}
	if s.alloc.Condition.Status != structs.ConditionLost {
		st.Condition = &structs.Condition{Status: structs.ConditionLost, Since: g.in.Now, Reason: reason}
	}
	return st
}

// note marks an allocation as unknown, with an evaluation for when the patience with it ends. It says nothing twice.
func (g *group) note(s *subject, reason string) {
	var until time.Time
	switch {
	case s.fenced():
		until = s.unheardSince().Add(s.terms.fence)
	case s.terms.replace && s.terms.lostAfter > 0:
		until = s.lostAt()
	}
	if s.conditionUnknown() && (until.IsZero() || g.pending(s.alloc) || !s.alloc.Condition.Until.Before(until)) {
		return // it is noted already, and somebody comes back to it
	}
	st := Stop{Alloc: s.alloc, Description: reason}
	if !s.conditionUnknown() {
		g.desired.Disconnect++
		st.Condition = &structs.Condition{
			Status: structs.ConditionUnknown, Since: s.unheardSince(), Until: until, Reason: reason,
		}
	}
	if !until.IsZero() {
		st.FollowupEval = g.followUp(until, structs.EvalTriggerMaxDisconnect, "created for delayed disconnect timeout")
	}
	g.out.Stops = append(g.out.Stops, st)
}

// pending says that the allocation names a follow-up evaluation that is still to come.
func (g *group) pending(a *structs.Allocation) bool {
	if a.FollowupEvalID == "" || (g.in.Eval != nil && a.FollowupEvalID == g.in.Eval.ID) {
		return false
	}
	return g.in.Pending == nil || g.in.Pending(a.FollowupEvalID)
}

// followUp gives the id of an evaluation at that time, a new one when none of those under way is close enough.
func (r *run) followUp(at time.Time, trigger, description string) string {
	for _, e := range r.follow {
		if e.TriggeredBy == trigger && !e.WaitUntil.Before(at) && e.WaitUntil.Sub(at) <= followWindow {
			return e.ID
		}
	}
	e := &structs.Evaluation{
		ID: r.in.NewID(), Namespace: r.in.Namespace, JobID: r.in.JobID, Status: structs.EvalStatusPending,
		StatusDescription: description, TriggeredBy: trigger, WaitUntil: at,
		CreateTime: r.in.Now.UnixNano(), ModifyTime: r.in.Now.UnixNano(),
	}
	if r.in.Job != nil {
		e.Type, e.Priority, e.JobModifyIndex = structs.Val(r.in.Job.Type), structs.Val(r.in.Job.Priority), r.in.Job.JobModifyIndex
	}
	if r.in.Eval != nil {
		e.PreviousEval = r.in.Eval.ID
	}
	r.follow = append(r.follow, e)
	return e.ID
}
