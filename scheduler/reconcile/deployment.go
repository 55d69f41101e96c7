package reconcile

import (
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// Descriptions of a deployment, as the public API shows them.
const (
	deployRunning     = "Deployment is running"
	deployNeedPromote = "Deployment is running but requires manual promotion"
	deployAutoPromote = "Deployment is running pending automatic promotion"
	deploySuccessful  = "Deployment completed successfully"
	deployStopped     = "Cancelled because job is stopped"
	deployNewer       = "Cancelled due to newer version of job"
)

// deployment is what a reconciliation knows of the rollout of the job's current version.
type deployment struct {
	current    *structs.Deployment // of the current version, whatever its status; nil when there is none
	created    bool                // current is new in this run
	incomplete bool                // a group still has something to do
	watched    bool                // a group of the current version is in the deployment
}

// groupDeployment is one group's part in it. A group without an update block has no part.
type groupDeployment struct {
	run      *run
	g        *group
	strategy *structs.UpdateStrategy
	state    *structs.DeploymentState
	missing  int // places that nobody has
	// Of a system job: how many nodes the group is meant for, and on how many a running allocation has to be replaced.
	nodes, updatable int
}

// openDeployment cancels a rollout that is overtaken and finds that of the current version.
func (r *run) openDeployment() {
	d := r.in.Deployment
	if d == nil {
		return
	}
	current := r.in.Job != nil && d.JobVersion == r.in.Job.Version && d.JobCreateIndex == r.in.Job.CreateIndex
	switch {
	case r.in.Job.Stopped():
		r.cancel(d, deployStopped)
	case !current:
		r.cancel(d, deployNewer)
	default:
		r.deploy.current = d
		if d.Active() {
			r.out.ActiveDeployment = d.ID
		}
	}
}

func (r *run) cancel(d *structs.Deployment, why string) {
	if !d.Active() {
		return
	}
	r.out.DeploymentUpdates = append(r.out.DeploymentUpdates, &structs.DeploymentStatusUpdate{
		DeploymentID: d.ID, Status: structs.DeploymentStatusCancelled, StatusDescription: why,
	})
}

func (r *run) deploymentOf(g *group) *groupDeployment {
	gd := &groupDeployment{run: r, g: g}
	if u := g.tg.Update; u != nil && structs.Val(u.MaxParallel) > 0 && !r.in.Batch {
		gd.strategy = u
	}
	if d := r.deploy.current; d != nil {
		gd.state = d.TaskGroups[g.name]
	}
	return gd
}

// active says that new allocations of the group belong to the deployment.
func (d *groupDeployment) active() bool {
	return d.strategy != nil && d.state != nil && d.run.out.ActiveDeployment != ""
}

func (d *groupDeployment) status() string {
	if d.run.deploy.current == nil {
		return ""
	}
	return d.run.deploy.current.Status
}

func (d *groupDeployment) paused() bool {
	return d.strategy != nil && d.status() == structs.DeploymentStatusPaused
}

// require opens the group's part in the deployment when something of it is rolled out: its first allocations of this
// version, or a change to those it has.
func (d *groupDeployment) require(destructive, inPlace bool, missing int) {
	if d.strategy == nil || d.state != nil {
		return
	}
	current := d.run.deploy.current
	if current != nil && !d.run.deploy.created {
		return // this version's rollout has begun without the group, or is over
	}
	if !destructive && !inPlace && (missing == 0 || d.hadVersion()) {
		return
	}
	if current == nil {
		current = d.run.newDeployment()
	}
	// The deadline of its progress begins when the first allocation is placed, not while it waits for room.
	d.state = &structs.DeploymentState{
		AutoRevert:       structs.Val(d.strategy.AutoRevert),
		ProgressDeadline: structs.Val(d.strategy.ProgressDeadline),
		DesiredTotal:     d.wanted(),
	}
	if destructive {
		d.state.DesiredCanaries = d.wantedCanaries()
	}
	current.TaskGroups[d.g.name] = d.state
	switch {
	case d.state.DesiredCanaries == 0:
	case !structs.Val(d.strategy.AutoPromote):
		current.StatusDescription = deployNeedPromote // one group that wants to be asked is enough
	case current.StatusDescription == deployRunning:
		current.StatusDescription = deployAutoPromote
	}
}

// wanted is how many allocations the group has to have: its count, or one on each node of a system job.
func (d *groupDeployment) wanted() int {
	if d.run.in.System {
		return d.nodes
	}
	return structs.Val(d.g.tg.Count)
}

// wantedCanaries is a number, in a system job a percentage of the nodes, rounded up.
func (d *groupDeployment) wantedCanaries() int {
	canary := structs.Val(d.strategy.Canary)
	if d.run.in.System {
		return min((min(canary, 100)*d.nodes+99)/100, d.updatable)
	}
	return canary
}

// hadVersion says that the group has had an allocation of the current version before.
func (d *groupDeployment) hadVersion() bool {
	for _, a := range d.run.in.Allocs {
		if a.TaskGroup == d.g.name && sameVersion(d.run.in.Job, a) {
			return true
		}
	}
	return false
}

func (r *run) newDeployment() *structs.Deployment {
	job := r.in.Job
	d := &structs.Deployment{
		ID: r.in.NewID(), Namespace: r.in.Namespace, JobID: r.in.JobID,
		JobVersion: job.Version, JobModifyIndex: job.ModifyIndex, JobSpecModifyIndex: job.JobModifyIndex,
		JobCreateIndex: job.CreateIndex, IsMultiregion: job.IsMultiregion(),
		TaskGroups: map[string]*structs.DeploymentState{},
		Status:     structs.DeploymentStatusRunning, StatusDescription: deployRunning,
		CreateTime: r.in.Now.UnixNano(), ModifyTime: r.in.Now.UnixNano(),
	}
	r.deploy.current, r.deploy.created = d, true
	r.out.Deployment = d
	r.out.ActiveDeployment = d.ID
	return d
}

// brake is one reason why no more of a group is updated now.
type brake struct {
	name   string
	when   func(d *groupDeployment, g *group) bool
	reason string
}

const awaitsPromotion = "awaits promotion"

// brakes hold a rolling update; the first whose condition holds says why. Without any, max_parallel decides.
var brakes = []brake{
	{"paused", func(d *groupDeployment, _ *group) bool { return d.status() == structs.DeploymentStatusPaused },
		"the deployment is paused"},
	{"failed", func(d *groupDeployment, _ *group) bool {
		return d.status() == structs.DeploymentStatusFailed || d.status() == structs.DeploymentStatusCancelled
	}, "the deployment failed"},
	{awaitsPromotion, func(d *groupDeployment, _ *group) bool { return d.awaitsPromotion() },
		"its canaries wait for their promotion"},
	{"unhealthy", func(d *groupDeployment, g *group) bool { return d.anyUnhealthy(g) },
		"an allocation of the deployment is unhealthy"},
	{"all under way", func(d *groupDeployment, g *group) bool { return d.room(g) <= 0 },
		"max_parallel allocations are under way"},
}

// limit is how many allocations may be updated now, and when that is none, why: all without an update block, else
// max_parallel minus missing places minus those of the deployment whose health is not known yet.
func (d *groupDeployment) limit(g *group, destructive, missing int) (int, *brake) {
	if d.strategy == nil {
		return destructive, nil
	}
	d.missing = missing
	for i := range brakes {
		if brakes[i].when(d, g) {
			return 0, &brakes[i]
		}
	}
	return d.room(g), nil
}

// room is how many places of max_parallel are not taken.
func (d *groupDeployment) room(g *group) int {
	room := structs.Val(d.strategy.MaxParallel) - d.missing
	for _, s := range g.slots {
		if d.has(s) && healthOf(s.alloc) == nil {
			room--
		}
	}
	return room
}

func (d *groupDeployment) anyUnhealthy(g *group) bool {
	return slices.ContainsFunc(g.slots, func(s *slot) bool {
		h := healthOf(s.alloc)
		return d.has(s) && h != nil && !*h
	})
}

// has says that an allocation is part of the deployment.
func (d *groupDeployment) has(s *slot) bool {
	return d.run.deploy.current != nil && s.alloc.DeploymentID == d.run.deploy.current.ID
}

func healthOf(a *structs.Allocation) *bool {
	if a.DeploymentStatus == nil {
		return nil
	}
	return a.DeploymentStatus.Healthy
}

func (d *groupDeployment) awaitsPromotion() bool {
	return d.state != nil && d.state.DesiredCanaries > 0 && !d.state.Promoted
}

// holds says that the rollout goes no further: nobody gets a name which the group did not have before.
func (d *groupDeployment) holds() bool {
	if d.strategy == nil {
		return false
	}
	s := d.status()
	return s == structs.DeploymentStatusPaused || s == structs.DeploymentStatusFailed || d.awaitsPromotion()
}

// proven gives the version which an allocation runs when its replacement must run that one too: until canaries are
// promoted nothing else of the new version is placed. It is nil when the replacement runs the current version.
func (d *groupDeployment) proven(a *structs.Allocation) *structs.Job {
	job := a.Job
	if d.strategy == nil || !d.awaitsPromotion() || sameVersion(d.run.in.Job, a) || job == nil || job.Stop ||
		job.CreateIndex != d.run.in.Job.CreateIndex || job.LookupTaskGroup(d.g.name) == nil {
		return nil
	}
	return job
}

// setCanariesApart takes the canaries that nobody has promoted yet out of the group's places; those of a rollout that
// is over are stopped. A canary of a rollout before the latest was promoted: else it would have been stopped by the
// plan that began the latest.
func (g *group) setCanariesApart() {
	latest := g.in.Deployment
	g.slots = slices.DeleteFunc(g.slots, func(s *slot) bool {
		if !s.isCanary() || latest == nil || s.alloc.DeploymentID != latest.ID {
			return false
		}
		if state := latest.TaskGroups[g.name]; state == nil || state.Promoted {
			return false
		}
		if latest == g.run.deploy.current && latest.Active() {
			g.canaries = append(g.canaries, s)
		} else {
			g.stop(s.subject, reasonNotNeeded)
		}
		return true
	})
}

// placeCanaries makes the canaries which the rollout still misses, beside the allocations whose names they take.
func (g *group) placeCanaries(destructive []*slot) {
	if !g.deploy.awaitsPromotion() || !g.deploy.active() || g.deploy.paused() {
		return
	}
	taken := map[string]bool{}
	have := 0
	var replaced []*slot
	for _, s := range g.canaries {
		taken[s.alloc.Name] = true
		have++
		if s.goes() || s.bucket == Hold || s.bucket == Later {
			replaced = append(replaced, s)
		} else {
			g.ignore(s, Difference{})
		}
	}
	rest := g.slots
	g.slots = replaced
	g.replace()
	g.slots = rest
	for _, s := range destructive {
		if have >= g.deploy.state.DesiredCanaries {
			return
		}
		if !taken[s.alloc.Name] {
			g.placeCanary(s.alloc.Name, g.comparer.compare(s.alloc).What)
			taken[s.alloc.Name] = true
			have++
		}
	}
	for i := 0; have < g.deploy.state.DesiredCanaries; i++ {
		if name := structs.AllocName(g.in.JobID, g.name, i); !taken[name] {
			g.placeCanary(name, nil)
			taken[name] = true
			have++
		}
	}
}

func (g *group) placeCanary(name string, differs []string) {
	g.desired.Canary++
	g.tell(structs.UpdateCanary, whyCanary, differs)
	g.out.Places = append(g.out.Places, Place{Group: g.tg, Name: name, Canary: true, Deploys: true})
}

// completeDeployment notes whether the group's part is done.
func (r *run) completeDeployment(g *group) {
	d := g.deploy
	if !d.active() {
		return
	}
	r.deploy.watched = true
	healthy := 0
	for _, s := range g.slots {
		if s.alloc.DeploymentID == r.deploy.current.ID {
			if h := healthOf(s.alloc); h != nil && *h && s.bucket == Keep && s.sameVersion() {
				healthy++
			}
		}
	}
	if healthy < d.state.DesiredTotal || d.awaitsPromotion() {
		r.deploy.incomplete = true
	}
}

// closeDeployment ends the rollout when every group's part is done.
func (r *run) closeDeployment() {
	d := r.deploy.current
	if d == nil || r.deploy.created || !d.Active() || !r.deploy.watched || r.deploy.incomplete {
		return
	}
	r.out.DeploymentUpdates = append(r.out.DeploymentUpdates, &structs.DeploymentStatusUpdate{
		DeploymentID: d.ID, Status: structs.DeploymentStatusSuccessful, StatusDescription: deploySuccessful,
	})
}
