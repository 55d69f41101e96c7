package clustersim

import "github.com/nomadlite/nomadlite/structs"

// Names that a group has, has had and was not asked to give back. It is the rule by which the group of a rollout that was
// held up or failed is kept at what it had, once more and in another way than the reconciler's: the reconciler reads it
// off what is left of the allocations, this counts along.

// counts notes how many names each job has had at once.
func (w *watcher) counts() {
	for _, p := range w.s.jobs {
		if !p.running {
			p.had = 0
			continue
		}
		p.had = min(max(p.had, len(w.names(p))), p.count)
	}
}

// names gives the names of a job that somebody has, canaries aside.
func (w *watcher) names(p *jobPlan) map[string]bool {
	names := map[string]bool{}
	job := w.s.store.Job(nil, structs.DefaultNamespace, p.id)
	if job == nil {
		return names
	}
	for _, a := range w.s.store.AllocsByJob(nil, structs.DefaultNamespace, p.id) {
		canary := a.DeploymentStatus != nil && a.DeploymentStatus.Canary
		ended := a.ObservedTerminal() && a.JobVersion < p.since // before its job was stopped, say
		if a.DesiredStatus == structs.AllocDesiredStatusRun && !canary && !ended && a.Job.CreateIndex == job.CreateIndex {
			names[a.Name] = true
		}
	}
	return names
}

// least is how many allocations of those that are wanted are to run in the end: all of them, but for those that a failed
// rollout was still to bring, and those that failed in it. What failed of a system job is not tried again until something
// happens to its node.
func (w *watcher) least(p *jobPlan, want int) int {
	if p.kind == structs.JobTypeSystem {
		newest := map[string]*structs.Allocation{}
		for _, a := range w.s.store.AllocsByJob(nil, structs.DefaultNamespace, p.id) {
			if old := newest[a.NodeID]; old == nil || a.CreateIndex > old.CreateIndex {
				newest[a.NodeID] = a
			}
		}
		for _, a := range newest {
			if a.DesiredStatus == structs.AllocDesiredStatusRun && a.ObservedStatus == structs.AllocClientStatusFailed {
				want--
			}
		}
		return want
	}
	d := w.s.store.LatestDeployment(nil, structs.DefaultNamespace, p.id)
	if !p.running || d == nil || d.Status != structs.DeploymentStatusFailed {
		return want
	}
	least := p.had
	for _, a := range w.s.store.AllocsByJob(nil, structs.DefaultNamespace, p.id) {
		if a.DesiredStatus == structs.AllocDesiredStatusRun && a.ObservedTerminal() && a.DeploymentID == d.ID {
			least--
		}
	}
	return least
}
