package state

import (
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// ApplyPlan stores what a verified plan decided. It fails, and changes nothing, with CodeNotFound when the
// specification which its new allocations run is gone, because the job was purged since.
func (tx *Txn) ApplyPlan(plan *structs.Plan, now int64) error {
	if err := tx.checkPlan(plan); err != nil {
		return err
	}
	for _, node := range slices.Sorted(maps.Keys(plan.Stops)) {
		for _, stop := range plan.Stops[node] {
			tx.stopAlloc(stop, now)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(plan.Preemptions)) {
		for _, stop := range plan.Preemptions[node] {
			tx.stopAlloc(stop, now)
		}
	}
	if plan.Deployment != nil {
		tx.UpsertDeployment(plan.Deployment, now)
	}
	joined := make(map[[2]string][]*structs.Allocation) // by deployment and group
	for _, node := range slices.Sorted(maps.Keys(plan.Places)) {
		for _, place := range plan.Places[node] {
			if alloc, joins := tx.placeAlloc(plan, place, now); joins {
				key := [2]string{alloc.DeploymentID, alloc.TaskGroup}
				joined[key] = append(joined[key], alloc)
			}
		}
	}
	for key, allocs := range joined {
		tx.placeInDeployment(key[0], key[1], allocs, now)
	}
	for _, update := range plan.DeploymentUpdates {
		if err := tx.UpdateDeploymentStatus(update, now); err != nil {
			// The deployment ended otherwise between the plan and now: that decision stands.
			tx.store.log.Debug("plan updates a deployment that is over", "deployment_id", update.DeploymentID, "error", err)
		}
	}
	return nil
}

func (tx *Txn) checkPlan(plan *structs.Plan) error {
	for _, places := range plan.Places {
		for _, place := range places {
			if tx.spec(plan.Namespace, plan.JobID, placedSpec(plan, place)) == nil {
				return structs.Errorf(structs.CodeNotFound, "apply plan of evaluation %s: specification %d of job %q is gone",
					plan.EvalID, placedSpec(plan, place), plan.JobID)
			}
		}
	}
	return nil
}

// placedSpec is the JobModifyIndex of the specification which a placed allocation runs: its own, else the plan's.
func placedSpec(plan *structs.Plan, place *structs.Allocation) uint64 {
	if place.JobModifyIndex != 0 {
		return place.JobModifyIndex
	}
	return plan.JobModifyIndex
}

// stopAlloc stops, evicts or gives up an allocation, as a plan asks.
func (tx *Txn) stopAlloc(stop *structs.AllocStop, now int64) {
	old := tx.alloc(stop.ID)
	if old == nil {
		return
	}
	alloc := *old
	if stop.DesiredStatus != "" {
		alloc.DesiredStatus, alloc.DesiredDescription = stop.DesiredStatus, stop.DesiredDescription
		limit := &structs.DesiredTransition{KillTimeout: stop.KillTimeout}
		alloc.DesiredTransition.Merge(limit)
		tx.noteUrged(&alloc, limit)
		if stop.NoShutdownDelay {
			alloc.DesiredTransition.NoShutdownDelay = structs.Ptr(true)
		}
	}
	if stop.Condition != nil && alloc.Condition.Status != structs.ConditionLost {
		alloc.Condition = *stop.Condition
	}
	if stop.FollowupEvalID != "" {
		alloc.FollowupEvalID = stop.FollowupEvalID
	}
	if stop.PreemptedBy != "" {
		alloc.PreemptedByAllocation = stop.PreemptedBy
	}
	alloc.AllocModifyIndex = tx.index
	tx.putAlloc(old, &alloc, now)
}

// placeAlloc stores a new allocation, or changes one in place. It says whether the allocation has now joined the
// deployment it names.
func (tx *Txn) placeAlloc(plan *structs.Plan, place *structs.Allocation, now int64) (*structs.Allocation, bool) {
	alloc := *place
	alloc.Namespace, alloc.JobID = plan.Namespace, plan.JobID
	alloc.Job = tx.spec(plan.Namespace, plan.JobID, placedSpec(plan, place))
	alloc.JobModifyIndex, alloc.JobVersion = alloc.Job.JobModifyIndex, alloc.Job.Version
	alloc.AllocModifyIndex = tx.index
	if alloc.EvalID == "" {
		alloc.EvalID = plan.EvalID
	}
	if alloc.DesiredStatus == "" {
		alloc.DesiredStatus = structs.AllocDesiredStatusRun
	}
	old := tx.alloc(place.ID)
	if old != nil {
		keepObserved(&alloc, old)
	} else {
		alloc.CreateIndex, alloc.CreateTime = tx.index, now
		alloc.ObservedStatus = structs.AllocClientStatusPending
		tx.linkReplaced(&alloc, now)
	}
	tx.shared.alloc(&alloc)
	joins := alloc.DeploymentID != "" && (old == nil || old.DeploymentID != alloc.DeploymentID)
	tx.putAlloc(old, &alloc, now)
	return &alloc, joins
}

// keepObserved keeps in an allocation that is changed in place what is not the scheduler's to say.
func keepObserved(alloc, old *structs.Allocation) {
	alloc.CreateIndex, alloc.CreateTime = old.CreateIndex, old.CreateTime
	alloc.ObservedStatus, alloc.ClientDescription = old.ObservedStatus, old.ClientDescription
	alloc.TaskStates, alloc.NetworkStatus = old.TaskStates, old.NetworkStatus
	alloc.Condition, alloc.DesiredTransition = old.Condition, old.DesiredTransition
	alloc.NextAllocation, alloc.PreviousAllocation = old.NextAllocation, old.PreviousAllocation
	alloc.PreemptedByAllocation = old.PreemptedByAllocation
	alloc.Awaits, alloc.AwaitedBy, alloc.Fenced, alloc.Departed = old.Awaits, old.AwaitedBy, old.Fenced, old.Departed
	if alloc.DeploymentID == old.DeploymentID {
		alloc.DeploymentStatus = old.DeploymentStatus
	}
}
