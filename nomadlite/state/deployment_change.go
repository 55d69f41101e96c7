package state

import (
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

const deploymentRunning = "Deployment is running"

// activeDeployment gives a deployment that goes on. It fails with CodeNotFound, and with CodeInvalid when the deployment
// is over.
func (tx *Txn) activeDeployment(id string) (*structs.Deployment, error) {
	d := lookup[*structs.Deployment](tx, TableDeployments, id)
	if d == nil {
		return nil, structs.Errorf(structs.CodeNotFound, "deployment %q not found", id)
	}
	if !d.Active() {
		return nil, structs.Errorf(structs.CodeInvalid, "deployment %q has terminal status %q", id, d.Status)
	}
	return d, nil
}

// PromoteDeployment makes the canaries of some groups ordinary allocations of theirs; no names mean all groups whose
// canaries wait for it. It fails, and changes nothing, unless each of these groups has its canaries, all of them well.
func (tx *Txn) PromoteDeployment(id string, names []string, now int64) error {
	old, err := tx.activeDeployment(id)
	if err != nil {
		return err
	}
	var faults structs.Errors
	row := *old
	row.TaskGroups = maps.Clone(old.TaskGroups)
	promoted := 0
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(old.TaskGroups))
	} else {
		for _, name := range names {
			if g := old.TaskGroups[name]; g == nil || g.DesiredCanaries == 0 {
				faults.Addf("task group %q has no canaries in this deployment", name)
			}
		}
	}
	for _, name := range names {
		group := old.TaskGroups[name]
		if group == nil || group.DesiredCanaries == 0 || group.Promoted {
			continue
		}
		promoted++
		if n := tx.healthyCanaries(group); n < group.DesiredCanaries {
			faults.Addf("task group %q has %d/%d healthy canaries", name, n, group.DesiredCanaries)
			continue
		}
		row.TaskGroups[name] = promoteGroup(group, now)
	}
	if promoted == 0 && len(faults) == 0 {
		faults.Addf("no canaries to promote")
	}
	if err := faults.Err(); err != nil {
		return &structs.CodedError{Code: structs.CodeInvalid, Text: err.Error(), Err: err}
	}
	waits := func(g *structs.DeploymentState) bool { return g.DesiredCanaries > 0 && !g.Promoted }
	if row.Status == structs.DeploymentStatusRunning && !slices.ContainsFunc(slices.Collect(maps.Values(row.TaskGroups)), waits) {
		row.StatusDescription = deploymentRunning
	}
	row.ModifyIndex, row.ModifyTime = tx.index, now
	tx.put(TableDeployments, &row)
	for _, name := range names {
		if g := row.TaskGroups[name]; g != nil && g.Promoted {
			tx.promoteCanaries(g, now)
		}
	}
	return nil
}

// promoteGroup is a group after its promotion: its deadline begins anew.
func promoteGroup(old *structs.DeploymentState, now int64) *structs.DeploymentState {
	group := *old
	group.Promoted = true
	if group.ProgressDeadline > 0 {
		group.RequireProgressBy = unixTime(now).Add(group.ProgressDeadline)
	}
	return &group
}

func (tx *Txn) healthyCanaries(group *structs.DeploymentState) int {
	n := 0
	for _, id := range group.PlacedCanaries {
		if a := tx.alloc(id); a != nil && !a.TerminalStatus() && a.DeploymentStatus != nil && structs.Val(a.DeploymentStatus.Healthy) {
			n++
		}
	}
	return n
}

// promoteCanaries tells the allocations, and so their nodes, that they are no canaries any more.
func (tx *Txn) promoteCanaries(group *structs.DeploymentState, now int64) {
	for _, id := range group.PlacedCanaries {
		old := tx.alloc(id)
		if old == nil || old.DeploymentStatus == nil || !old.DeploymentStatus.Canary {
			continue
		}
		alloc, status := *old, *old.DeploymentStatus
		status.Canary, status.ModifyIndex = false, tx.index
		alloc.DeploymentStatus, alloc.AllocModifyIndex = &status, tx.index
		tx.putAlloc(old, &alloc, now)
	}
}

// SetDeploymentHealth takes an operator's word on the health of allocations. It fails, and changes nothing, when one of
// them is not in the deployment.
func (tx *Txn) SetDeploymentHealth(id string, healthy, unhealthy []string, now int64) error {
	if _, err := tx.activeDeployment(id); err != nil {
		return err
	}
	for _, allocID := range slices.Concat(healthy, unhealthy) {
		if a := tx.alloc(allocID); a == nil || a.DeploymentID != id {
			return structs.Errorf(structs.CodeInvalid, "allocation %q is not in deployment %q", allocID, id)
		}
	}
	set := func(ids []string, healthy bool) {
		for _, allocID := range ids {
			old := tx.alloc(allocID)
			alloc := *old
			tx.setHealth(&alloc, healthy, &structs.AllocDeploymentStatus{Timestamp: unixTime(now)}, now)
			tx.putAlloc(old, &alloc, now)
		}
	}
	set(healthy, true)
	set(unhealthy, false)
	return nil
}

// resumed lets the deadlines of a deployment that was paused begin anew.
func resumed(d *structs.Deployment, now int64) {
	groups := make(map[string]*structs.DeploymentState, len(d.TaskGroups))
	for name, old := range d.TaskGroups {
		group := *old
		if group.ProgressDeadline > 0 {
			group.RequireProgressBy = unixTime(now).Add(group.ProgressDeadline)
		}
		groups[name] = &group
	}
	d.TaskGroups = groups
}

// ShortenDeploymentStops gives the options of stops which ride on an evaluation to what stops already in a deployment.
func (tx *Txn) ShortenDeploymentStops(id string, eval *structs.Evaluation, now int64) {
	if d := lookup[*structs.Deployment](tx, TableDeployments, id); d != nil {
		tx.shortenStops(d.Namespace, d.JobID, eval, now, func(a *structs.Allocation) bool { return a.DeploymentID == id })
	}
}
