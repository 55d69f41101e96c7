package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/scheduler/rank"
	"github.com/nomadlite/nomadlite/scheduler/reconcile"
	"github.com/nomadlite/nomadlite/structs"
)

// keptEvents is how many reschedules a tracker keeps at least; enough for any delay to have reached its limit.
const keptEvents = 16

// planPlacements finds nodes for what is to be placed and makes the in-place updates.
func (s *generic) planPlacements() {
	places := s.inPlace()
	places = append(places, s.result.Places...)
	if len(places) == 0 {
		return
	}
	// One version after the other, those that were proven first, and of each one group after the other, so that each is
	// prepared once.
	slices.SortStableFunc(places, func(a, b reconcile.Place) int {
		return cmp.Or(cmp.Compare(s.jobOf(&a).Version, s.jobOf(&b).Version),
			cmp.Compare(structs.Val(a.Group.Name), structs.Val(b.Group.Name)))
	})
	peers := s.peers(places)
	for len(places) > 0 {
		job := s.jobOf(&places[0])
		n := slices.IndexFunc(places, func(p reconcile.Place) bool { return s.jobOf(&p) != job })
		if n < 0 {
			n = len(places)
		}
		s.planVersion(job, places[:n], peers)
		places = places[n:]
	}
	s.shareEvictions()
}

// planVersion finds nodes for what is to be placed of one version of the job.
func (s *generic) planVersion(job *structs.Job, places []reconcile.Place, peers []rank.Peer) {
	scope := s.scopeOf(job)
	ranker := rank.New(s.rankConfig(scope.Pool), job, scope, append(slices.Clone(peers), s.plannedPeers()...), s.usage)
	defer ranker.Release()
	var placer *rank.Placer
	for i := range places {
		p := &places[i]
		if i == 0 || places[i-1].Group != p.Group {
			placer = ranker.Group(p.Group, s.feasibleGroup(job, p.Group))
		}
		s.place(placer, p)
	}
}

func (s *generic) jobOf(p *reconcile.Place) *structs.Job {
	if p.Job != nil {
		return p.Job
	}
	return s.job
}

// plannedPeers are the allocations which this plan has placed already.
func (s *generic) plannedPeers() []rank.Peer {
	var peers []rank.Peer
	for nodeID, list := range s.plan.Places {
		for _, a := range list {
			if a.CreateIndex == 0 { // the others are updates in place
				peers = append(peers, rank.Peer{ID: a.ID, NodeID: nodeID, Group: a.TaskGroup})
			}
		}
	}
	return peers
}

func (s *generic) feasibleGroup(job *structs.Job, tg *structs.TaskGroup) *feasible.Group {
	group := s.feasible[tg]
	if group == nil {
		group = feasible.NewGroup(job, tg)
		s.feasible[tg] = group
	}
	return group
}

func (s *generic) rankConfig(pool string) rank.Config {
	cfg := rank.Config{Seed: s.eval.ID, Buffers: s.cfg.Buffers}
	if s.preempts() {
		cfg.Candidates = s.candidates
	}
	if sc := s.state.SchedulerConfig(); sc != nil {
		cfg.Algorithm, cfg.MemoryOversubscription = sc.SchedulerAlgorithm, sc.MemoryOversubscriptionEnabled
	}
	st, ok := s.state.(PoolState)
	if !ok {
		return cfg
	}
	if np := st.NodePool(pool); np != nil && np.SchedulerConfiguration != nil {
		if a := np.SchedulerConfiguration.SchedulerAlgorithm; a != "" {
			cfg.Algorithm = a
		}
		if m := np.SchedulerConfiguration.MemoryOversubscriptionEnabled; m != nil {
			cfg.MemoryOversubscription = *m
		}
	}
	return cfg
}

// scopeOf finds the nodes of a job's scope.
func (s *generic) scopeOf(job *structs.Job) *feasible.Scope {
	if s.fleet == nil {
		if st, ok := s.state.(FleetState); ok {
			s.fleet, s.usages = st.Fleet()
		} else {
			s.fleet = feasible.NewFleet(s.state.Nodes())
		}
	}
	return s.fleet.Scope(job)
}

// usage is what the allocations on a node hold, those included which this plan has placed there already.
func (s *generic) usage(site *feasible.Site) *structs.NodeUsage {
	if s.usages != nil {
		return s.withPlanned(site.Node, s.usages[site.At()])
	}
	return s.withPlanned(site.Node, s.held(site.Node))
}

// withPlanned adds to what a node's allocations hold (nil for nothing) what this plan has placed there already.
func (s *generic) withPlanned(node *structs.Node, held *structs.NodeUsage) *structs.NodeUsage {
	if len(s.plan.Places) == 0 {
		return held
	}
	copied := false
	for _, a := range s.plan.Places[node.ID] {
		if a.CreateIndex > 0 {
			continue // an update in place: it is held already
		}
		if !copied {
			held, copied = held.Copy(), true
		}
		held.Add(a)
	}
	return held
}

func (s *generic) held(node *structs.Node) *structs.NodeUsage {
	if st, ok := s.state.(UsageState); ok {
		return st.NodeUsage(node.ID)
	}
	var u structs.NodeUsage
	for _, a := range s.state.AllocsByNode(node.ID) {
		if a.HoldsResources() {
			u.Add(a)
		}
	}
	return &u
}

// peers are the job's own allocations as placements see them.
func (s *generic) peers(places []reconcile.Place) []rank.Peer {
	leaving := map[string]bool{}
	for i := range s.result.Stops {
		st := &s.result.Stops[i]
		leaving[st.Alloc.ID] = st.Desired != ""
	}
	for i := range places {
		if st := places[i].StopPrevious; st != nil {
			leaving[st.Alloc.ID] = true
		}
	}
	var peers []rank.Peer
	for _, a := range s.state.AllocsByJob(s.eval.Namespace, s.eval.JobID) {
		if a.HoldsResources() {
			peers = append(peers, rank.Peer{
				ID: a.ID, NodeID: a.NodeID, Group: a.TaskGroup, Stopping: leaving[a.ID] || a.ServerTerminal(),
			})
		}
	}
	return peers
}

// place makes one allocation, or counts it as failed.
func (s *generic) place(placer *rank.Placer, p *reconcile.Place) {
	name := structs.Val(p.Group.Name)
	request := rank.Request{Replaces: p.Previous, Penalty: p.Penalty}
	if p.Previous != nil && p.Group.EphemeralDisk != nil && structs.Val(p.Group.EphemeralDisk.Sticky) &&
		!slices.Contains(p.Penalty, p.Previous.NodeID) {
		request.Prefer = p.Previous.NodeID
	}
	start := s.clock()
	placement, metrics := placer.Place(request)
	if s.cfg.Clock != nil {
		metrics.AllocationTime = s.cfg.Clock().Sub(start)
	}
	if placement == nil {
		s.queued[name]++
		if first := s.failed[name]; first != nil {
			first.CoalescedFailures++
		} else {
			s.failed[name] = metrics
		}
		return
	}
	s.commit(p, placement)
}

// commit writes a placement into the plan.
func (s *generic) commit(p *reconcile.Place, placement *rank.Placement) {
	if p.StopPrevious != nil {
		s.planStop(p.StopPrevious)
	}
	a := s.newAlloc(p, placement)
	s.planEvictions(p, a, placement)
	s.plan.Places[a.NodeID] = append(s.plan.Places[a.NodeID], a)
}

func (s *generic) newAlloc(p *reconcile.Place, placement *rank.Placement) *structs.Allocation {
	now, job := s.cfg.Now.UnixNano(), s.jobOf(p)
	a := &structs.Allocation{
		ID: s.cfg.NewID(), Namespace: s.eval.Namespace, EvalID: s.eval.ID, Name: p.Name,
		NodeID: placement.Node.ID, NodeName: placement.Node.Name,
		JobID: s.eval.JobID, Job: job, JobVersion: job.Version, JobModifyIndex: job.JobModifyIndex,
		TaskGroup: structs.Val(p.Group.Name), AllocatedResources: placement.Resources, Metrics: placement.Metrics,
		DesiredStatus: structs.AllocDesiredStatusRun, ObservedStatus: structs.AllocClientStatusPending,
		CreateTime: now, ModifyTime: now,
	}
	if p.Deploys {
		a.DeploymentID = s.result.ActiveDeployment
	}
	if p.Canary {
		a.DeploymentStatus = &structs.AllocDeploymentStatus{Canary: true}
	}
	if p.Previous != nil {
		a.PreviousAllocation = p.Previous.ID
	}
	for _, id := range p.Awaits {
		a.Awaits = append(a.Awaits, structs.AwaitedAlloc{ID: id})
	}
	if p.History != nil {
		a.RescheduleTracker = s.tracker(p)
	}
	return a
}

// tracker carries the history of reschedules on; only a replacement of a failed allocation adds to it.
func (s *generic) tracker(p *reconcile.Place) *structs.RescheduleTracker {
	old := p.History.RescheduleTracker
	if !p.Reschedule {
		return old.Copy()
	}
	t := &structs.RescheduleTracker{}
	if old != nil {
		t.Events = append(t.Events, old.Events...)
	}
	t.Events = append(t.Events, &structs.RescheduleEvent{
		RescheduleTime: s.cfg.Now.UnixNano(), PrevAllocID: p.History.ID, PrevNodeID: p.History.NodeID,
	})
	keep := keptEvents
	if policy := p.Group.ReschedulePolicy; policy != nil {
		keep = max(keep, structs.Val(policy.Attempts)+1)
	}
	if len(t.Events) > keep {
		t.Events = t.Events[len(t.Events)-keep:]
	}
	return t
}

// inPlace makes the updates that stop nothing. Where the node does not meet the new constraints any more it cannot
// stay: these become placements.
func (s *generic) inPlace() []reconcile.Place {
	var moved []reconcile.Place
	for _, u := range s.result.InPlace {
		node := s.state.Node(u.Alloc.NodeID)
		ok, barrier := node != nil && feasible.Contains(s.job, node), ""
		if ok {
			ok, barrier = s.feasibleGroup(s.job, u.Group).Check(node)
		}
		if !ok {
			s.result.Moved(&u, barrier)
			moved = append(moved, reconcile.Place{
				Group: u.Group, Name: u.Alloc.Name, Previous: u.Alloc, Destructive: true, Deploys: u.Deploys,
				StopPrevious: &reconcile.Stop{
					Alloc: u.Alloc, Desired: structs.AllocDesiredStatusStop,
					Description: "alloc is being updated due to job update",
				},
			})
			continue
		}
		a := u.Alloc.Copy()
		a.Job, a.JobVersion, a.JobModifyIndex = s.job, s.job.Version, s.job.JobModifyIndex
		a.EvalID, a.ModifyTime = s.eval.ID, s.cfg.Now.UnixNano()
		if u.Deploys {
			a.DeploymentID, a.DeploymentStatus = s.result.ActiveDeployment, nil
		}
		s.plan.Places[a.NodeID] = append(s.plan.Places[a.NodeID], a)
	}
	return moved
}

func (s *generic) clock() (t time.Time) {
	if s.cfg.Clock != nil {
		t = s.cfg.Clock()
	}
	return t
}
