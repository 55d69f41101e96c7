package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// act lets the nodes do what they were told since they last acted: first everything that stops, then what starts, so
// that no replacement meets its predecessor. It says whether they did anything.
func (s *Sim) act() bool {
	c := s.cluster
	changed := c.changed
	c.changed = nil
	did := false
	for _, id := range changed {
		a := c.allocs[id]
		if a.ServerTerminal() && !a.ClientTerminal() && s.heard(a) {
			c.editAlloc(id, func(a *structs.Allocation) { a.ObservedStatus = structs.AllocClientStatusComplete })
			s.freed, did = true, true
		}
	}
	rollouts := map[string]name{}
	for _, id := range changed {
		a := c.allocs[id]
		if a.TerminalStatus() || !s.heard(a) {
			continue
		}
		starts, proves := a.ObservedStatus != structs.AllocClientStatusRunning, s.provesHealth(a)
		if !starts && !proves {
			continue
		}
		did = true
		c.editAlloc(id, func(a *structs.Allocation) {
			a.ObservedStatus = structs.AllocClientStatusRunning
			if proves {
				status := structs.AllocDeploymentStatus{Healthy: structs.Ptr(true), Timestamp: c.now}
				if a.DeploymentStatus != nil {
					status.Canary = a.DeploymentStatus.Canary
				}
				a.DeploymentStatus = &status
			}
		})
		if proves {
			rollouts[a.DeploymentID] = name{a.Namespace, a.JobID}
			c.editDeployment(name{a.Namespace, a.JobID}, a.DeploymentID, func(d *structs.Deployment) {
				if g := d.TaskGroups[a.TaskGroup]; g != nil {
					g.HealthyAllocs++
				}
			})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rollouts)) {
		s.promote(rollouts[id], id)
		s.wantEval(rollouts[id].namespace, rollouts[id].id, structs.EvalTriggerDeploymentWatcher)
	}
	return did
}

func (s *Sim) heard(a *structs.Allocation) bool {
	n := s.cluster.nodes[a.NodeID]
	return n != nil && n.Status == structs.NodeStatusReady
}

func (s *Sim) provesHealth(a *structs.Allocation) bool {
	return a.DeploymentID != "" && (a.DeploymentStatus == nil || a.DeploymentStatus.Healthy == nil)
}

// promote promotes the canaries of a deployment when all of them are healthy and nobody has to be asked.
func (s *Sim) promote(job name, id string) {
	d := s.cluster.LatestDeployment(job.namespace, job.id)
	j := s.cluster.jobs[job]
	if d == nil || j == nil || d.ID != id || d.Status != structs.DeploymentStatusRunning {
		return
	}
	waits := false
	for group, state := range d.TaskGroups {
		if state.DesiredCanaries == 0 || state.Promoted {
			continue
		}
		waits = true
		tg := j.LookupTaskGroup(group)
		if tg == nil || tg.Update == nil || !structs.Val(tg.Update.AutoPromote) || s.healthyCanaries(state) < state.DesiredCanaries {
			return
		}
	}
	if !waits {
		return
	}
	s.cluster.editDeployment(job, id, func(d *structs.Deployment) {
		for _, state := range d.TaskGroups {
			if state.DesiredCanaries == 0 || state.Promoted {
				continue
			}
			state.Promoted = true
			for _, canary := range state.PlacedCanaries {
				s.cluster.editAlloc(canary, func(a *structs.Allocation) {
					status := *a.DeploymentStatus
					status.Canary = false
					a.DeploymentStatus = &status
				})
			}
		}
	})
}

func (s *Sim) healthyCanaries(state *structs.DeploymentState) int {
	n := 0
	for _, id := range state.PlacedCanaries {
		if a := s.cluster.allocs[id]; a != nil && !a.TerminalStatus() && a.DeploymentStatus != nil && structs.Val(a.DeploymentStatus.Healthy) {
			n++
		}
	}
	return n
}

func (s *Sim) waitsForPromotion(d *structs.Deployment) bool {
	for _, state := range d.TaskGroups {
		if state.DesiredCanaries > 0 && !state.Promoted {
			return true
		}
	}
	return false
}

// notes tells what a step leaves unfinished that is no lack of room.
func (s *Sim) notes() []string {
	var out []string
	for _, j := range s.cluster.sortedJobs() {
		job := nameOf(j)
		d := s.cluster.LatestDeployment(job.namespace, job.id)
		if e := s.outcomes[job]; d != nil && e != nil && len(e.FailedTGAllocs) > 0 && !s.waitsForPromotion(d) {
			continue // it waits for room, which is told already
		}
		if d != nil && d.Active() {
			out = append(out, strings.TrimSuffix("the deployment of job \""+job.id+"\" goes on: "+d.StatusDescription, "."))
		}
	}
	return out
}
