package state

import (
	"iter"
	"maps"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

func deploymentsTable() *table {
	t := plainTable(TableDeployments, func(d *structs.Deployment) string { return d.ID },
		manyIndex(indexJob, func(d *structs.Deployment) (string, bool) { return joinKey(d.Namespace, d.JobID, ""), true }))
	t.restore = func(tx *Txn, decode func(any) error) error {
		var d *structs.Deployment
		if err := decode(&d); err != nil {
			return err
		}
		tx.refDeployment(d, 1)
		tx.put(TableDeployments, d)
		return nil
	}
	return t
}

// refDeployment counts a deployment's reference to the specification which it rolls out.
func (tx *Txn) refDeployment(d *structs.Deployment, n int) {
	tx.refSpec(d.Namespace, d.JobID, d.JobSpecModifyIndex, n)
}

// Deployment gives a deployment by id, nil when there is none.
func (r Reader) Deployment(ws memdb.WatchSet, id string) *structs.Deployment {
	return get[*structs.Deployment](r.at(), ws, TableDeployments, indexID, id)
}

// Deployments gives the deployments of a namespace (structs.AllNamespaces: of all), by id.
func (r Reader) Deployments(ws memdb.WatchSet, namespace string) iter.Seq[*structs.Deployment] {
	return r.DeploymentsByPrefix(ws, namespace, "")
}

// DeploymentsByPrefix gives the deployments whose id begins with prefix, by id.
func (r Reader) DeploymentsByPrefix(ws memdb.WatchSet, namespace, prefix string) iter.Seq[*structs.Deployment] {
	all := scan[*structs.Deployment](r.at(), ws, TableDeployments, indexID, prefix)
	if namespace == structs.AllNamespaces {
		return all
	}
	return filter(all, func(d *structs.Deployment) bool { return d.Namespace == namespace })
}

// DeploymentsByJob gives the deployments of a job id, those of an earlier purged job included, by id.
func (r Reader) DeploymentsByJob(ws memdb.WatchSet, namespace, jobID string) []*structs.Deployment {
	return slices.Collect(scan[*structs.Deployment](r.at(), ws, TableDeployments, indexJob, joinKey(namespace, jobID, "")))
}

// LatestDeployment gives the newest deployment of a job id, nil when there is none.
func (r Reader) LatestDeployment(ws memdb.WatchSet, namespace, jobID string) *structs.Deployment {
	var latest *structs.Deployment
	for d := range scan[*structs.Deployment](r.at(), ws, TableDeployments, indexJob, joinKey(namespace, jobID, "")) {
		if latest == nil || d.CreateIndex > latest.CreateIndex {
			latest = d
		}
	}
	return latest
}

func (tx *Txn) hasActiveDeployment(namespace, jobID string) bool {
	for d := range scan[*structs.Deployment](tx.base, nil, TableDeployments, indexJob, joinKey(namespace, jobID, "")) {
		if tx.changes[TableDeployments][d.ID] == nil && d.Active() {
			return true
		}
	}
	for _, c := range tx.changes[TableDeployments] {
		if d, ok := c.after.(*structs.Deployment); ok && d.JobID == jobID && d.Namespace == namespace && d.Active() {
			return true
		}
	}
	return false
}

// UpsertDeployment stores a deployment that a scheduler made or changed. What allocations have told of it is kept.
func (tx *Txn) UpsertDeployment(d *structs.Deployment, now int64) {
	row := *d
	row.TaskGroups = make(map[string]*structs.DeploymentState, len(d.TaskGroups))
	row.CreateIndex, row.ModifyIndex, row.ModifyTime = tx.index, tx.index, now
	old := lookup[*structs.Deployment](tx, TableDeployments, d.ID)
	if old != nil {
		tx.refDeployment(old, -1)
		row.CreateIndex, row.CreateTime = old.CreateIndex, old.CreateTime
	}
	if row.CreateTime == 0 {
		row.CreateTime = now
	}
	for name, given := range d.TaskGroups {
		group := *given
		if old != nil && old.TaskGroups[name] != nil {
			known := old.TaskGroups[name]
			group.PlacedAllocs, group.HealthyAllocs, group.UnhealthyAllocs =
				known.PlacedAllocs, known.HealthyAllocs, known.UnhealthyAllocs
			group.PlacedCanaries, group.RequireProgressBy = known.PlacedCanaries, known.RequireProgressBy
			group.Promoted = group.Promoted || known.Promoted
			group.Away, group.Pauses = known.Away, known.Pauses
		}
		row.TaskGroups[name] = &group
	}
	tx.refDeployment(&row, 1)
	tx.put(TableDeployments, &row)
	tx.touchJob(row.Namespace, row.JobID)
	if old == nil || old.Status != row.Status {
		tx.deploymentEnded(&row)
	}
}

// UpdateDeploymentStatus changes a deployment's status. It fails with CodeNotFound, and with CodeInvalid when the
// deployment is over already.
func (tx *Txn) UpdateDeploymentStatus(u *structs.DeploymentStatusUpdate, now int64) error {
	old := lookup[*structs.Deployment](tx, TableDeployments, u.DeploymentID)
	if old == nil {
		return structs.Errorf(structs.CodeNotFound, "deployment %q not found", u.DeploymentID)
	}
	if !old.Active() {
		return structs.Errorf(structs.CodeInvalid, "deployment %q has terminal status %q", old.ID, old.Status)
	}
	row := *old
	row.Status, row.StatusDescription = u.Status, u.StatusDescription
	row.ModifyIndex, row.ModifyTime = tx.index, now
	if old.Status == structs.DeploymentStatusPaused && row.Status == structs.DeploymentStatusRunning {
		resumed(&row, now)
	}
	tx.put(TableDeployments, &row)
	tx.touchJob(row.Namespace, row.JobID)
	tx.deploymentEnded(&row)
	return nil
}

// deploymentEnded marks the job version stable which a successful deployment has proved.
func (tx *Txn) deploymentEnded(d *structs.Deployment) {
	if d.Status != structs.DeploymentStatusSuccessful {
		return
	}
	version := lookup[*structs.Job](tx, TableJobVersions, versionKey(d.Namespace, d.JobID, d.JobVersion))
	if version != nil && version.CreateIndex == d.JobCreateIndex && !version.Stable {
		tx.editVersion(version, func(row *structs.Job) { row.Stable = true })
	}
}

// ReapDeployment deletes a deployment that is over. It says whether it did.
func (tx *Txn) ReapDeployment(id string) bool {
	old := lookup[*structs.Deployment](tx, TableDeployments, id)
	if old == nil || old.Active() {
		return false
	}
	tx.refDeployment(old, -1)
	tx.remove(TableDeployments, id)
	return true
}

// editGroup changes a group of a deployment, when both exist.
func (tx *Txn) editGroup(deploymentID, name string, now int64, edit func(*structs.DeploymentState)) {
	old := lookup[*structs.Deployment](tx, TableDeployments, deploymentID)
	if old == nil || old.TaskGroups[name] == nil {
		return
	}
	group := *old.TaskGroups[name]
	edit(&group)
	row := *old
	row.TaskGroups = maps.Clone(old.TaskGroups)
	row.TaskGroups[name] = &group
	row.ModifyIndex, row.ModifyTime = tx.index, now
	tx.put(TableDeployments, &row)
}

// placeInDeployment counts allocations of a group that joined a deployment.
func (tx *Txn) placeInDeployment(deploymentID, name string, allocs []*structs.Allocation, now int64) {
	tx.editGroup(deploymentID, name, now, func(group *structs.DeploymentState) {
		group.PlacedAllocs += len(allocs)
		canaries := slices.Clone(group.PlacedCanaries)
		for _, alloc := range allocs {
			if alloc.DeploymentStatus != nil && alloc.DeploymentStatus.Canary && !slices.Contains(canaries, alloc.ID) {
				canaries = append(canaries, alloc.ID)
			}
		}
		group.PlacedCanaries = canaries
		if group.RequireProgressBy.IsZero() && group.ProgressDeadline > 0 {
			group.RequireProgressBy = unixTime(now).Add(group.ProgressDeadline)
		}
	})
}

// observeHealth takes over a reported health of an allocation and counts it in its deployment, if it is in one. Whether
// it is a canary is the servers' word.
func (tx *Txn) observeHealth(alloc *structs.Allocation, reported *structs.AllocDeploymentStatus, now int64) {
	if reported == nil || reported.Healthy == nil {
		return
	}
	tx.setHealth(alloc, *reported.Healthy, reported, now)
}

func (tx *Txn) setHealth(alloc *structs.Allocation, healthy bool, reported *structs.AllocDeploymentStatus, now int64) {
	old := alloc.DeploymentStatus
	if old != nil && old.Healthy != nil && *old.Healthy == healthy {
		return
	}
	status := structs.AllocDeploymentStatus{Healthy: structs.Ptr(healthy), Timestamp: reported.Timestamp, ModifyIndex: tx.index}
	if status.Timestamp.IsZero() {
		status.Timestamp = unixTime(now)
	}
	if old != nil {
		status.Canary = old.Canary
	}
	alloc.DeploymentStatus = &status
	tx.editGroup(alloc.DeploymentID, alloc.TaskGroup, now, func(group *structs.DeploymentState) {
		if old != nil && old.Healthy != nil {
			if *old.Healthy {
				group.HealthyAllocs--
			} else {
				group.UnhealthyAllocs--
			}
		}
		if !healthy {
			group.UnhealthyAllocs++
			return
		}
		group.HealthyAllocs++
		if by := status.Timestamp.Add(group.ProgressDeadline); group.ProgressDeadline > 0 && by.After(group.RequireProgressBy) {
			group.RequireProgressBy = by
		}
	})
}

// pauseDeployment counts an allocation in or out of those of its deployment which are away, so that the next leader, too,
// knows how long the deadline did not count.
func (tx *Txn) pauseDeployment(before, after *structs.Allocation, now int64) {
	away := func(a *structs.Allocation) bool {
		return a != nil && a.DeploymentID != "" && a.Condition.Status == structs.ConditionAway && !a.TerminalStatus()
	}
	was, is := away(before), away(after)
	if was == is && (!is || before.DeploymentID == after.DeploymentID) {
		return
	}
	edit := func(a *structs.Allocation, change func(*structs.DeploymentState)) {
		if d := lookup[*structs.Deployment](tx, TableDeployments, a.DeploymentID); d != nil && d.Active() {
			tx.editGroup(a.DeploymentID, a.TaskGroup, now, change)
		}
	}
	if was {
		edit(before, func(group *structs.DeploymentState) { group.AllocBack(unixTime(now)) })
	}
	if is {
		edit(after, func(group *structs.DeploymentState) { group.AllocAway(after.Condition.Since) })
	}
}
