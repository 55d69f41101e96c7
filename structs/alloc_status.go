package structs

import (
	"strconv"
	"strings"
	"time"
)

// DeriveClientStatus is the one rule for the public status: the condition speaks while the node has not reported an
// end, else the node's own report does. It is pure; the store calls it in the transaction that changes either fact.
func (a *Allocation) DeriveClientStatus() string {
	switch a.ObservedStatus {
	case AllocClientStatusComplete, AllocClientStatusFailed:
		return a.ObservedStatus
	}
	switch a.Condition.Status {
	case ConditionLost:
		return AllocClientStatusLost
	case ConditionUnknown:
		return AllocClientStatusUnknown
	}
	if a.ObservedStatus == "" {
		return AllocClientStatusPending
	}
	return a.ObservedStatus
}

// observedRank orders the observed statuses; observation only moves to a higher rank.
func observedRank(status string) int {
	switch status {
	case "", AllocClientStatusPending:
		return 0
	case AllocClientStatusRunning:
		return 1
	case AllocClientStatusComplete, AllocClientStatusFailed:
		return 2
	default:
		return -1
	}
}

// ObservedTransitionLegal says whether a node may report status to after status from. A repeated report is legal,
// a step back is not, and complete and failed are both final.
func ObservedTransitionLegal(from, to string) bool {
	f, t := observedRank(from), observedRank(to)
	if f < 0 || t < 0 || to == "" {
		return false
	}
	if f == 2 {
		return from == to
	}
	return t >= f
}

// ServerTerminal says that the servers want the allocation to stop.
func (a *Allocation) ServerTerminal() bool {
	return a.DesiredStatus == AllocDesiredStatusStop || a.DesiredStatus == AllocDesiredStatusEvict
}

// ClientTerminal says that the allocation has ended (complete, failed) or was given up (lost).
func (a *Allocation) ClientTerminal() bool {
	switch a.ClientStatus {
	case AllocClientStatusComplete, AllocClientStatusFailed, AllocClientStatusLost:
		return true
	}
	return false
}

// TerminalStatus says that the allocation has ended or is wanted to end.
func (a *Allocation) TerminalStatus() bool { return a.ServerTerminal() || a.ClientTerminal() }

// ObservedTerminal says that the node has reported the end: nothing runs any more, whatever the condition is.
func (a *Allocation) ObservedTerminal() bool { return observedRank(a.ObservedStatus) == 2 }

// OrphansText tells of orphaned allocations on a node, n above 0.
func OrphansText(n int) string {
	if n == 1 {
		return "1 allocation is an orphan: it may still run there"
	}
	return strconv.Itoa(n) + " allocations are orphans: they may still run there"
}

// Orphaned says that the cluster has given the allocation up, but has not heard that it stopped.
func (a *Allocation) Orphaned() bool {
	return a.Condition.Status == ConditionLost && !a.ObservedTerminal()
}

// Canary says that the allocation runs beside the one of its name until its deployment is promoted.
func (a *Allocation) Canary() bool { return a.DeploymentStatus != nil && a.DeploymentStatus.Canary }

// Taken says that the allocation was ended, or given up, for a reason that is not its job's: it was lost, moved away or
// evicted, and its group wants another one in its place.
func (a *Allocation) Taken() bool {
	if !a.ServerTerminal() || Val(a.DesiredTransition.MigrateDisablePlacement) {
		return false
	}
	return a.Condition.Status == ConditionLost || a.DesiredStatus == AllocDesiredStatusEvict || a.DesiredTransition.ShouldMigrate()
}

// HoldsResources says whether the allocation counts against its node: until it is observed terminal or lost.
func (a *Allocation) HoldsResources() bool { return !a.ClientTerminal() }

// AllocName gives the name of the idx-th allocation of a group.
func AllocName(job, group string, idx int) string {
	return job + "." + group + "[" + strconv.Itoa(idx) + "]"
}

// NameIndex gives the index in the allocation's name, -1 when the name holds none.
func (a *Allocation) NameIndex() int {
	open := strings.LastIndexByte(a.Name, '[')
	if open < 0 || !strings.HasSuffix(a.Name, "]") {
		return -1
	}
	n, err := strconv.Atoi(a.Name[open+1 : len(a.Name)-1])
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// FinishedAt is when the last task ended, or the allocation's last change when no task says so.
func (a *Allocation) FinishedAt() time.Time {
	var last time.Time
	for _, ts := range a.TaskStates {
		if ts.FinishedAt.After(last) {
			last = ts.FinishedAt
		}
	}
	if last.IsZero() && a.ModifyTime != 0 {
		last = time.Unix(0, a.ModifyTime).UTC()
	}
	return last
}

// Group gives the task group of the job row which the allocation runs, nil when the row is not attached.
func (a *Allocation) Group() *TaskGroup { return a.Job.LookupTaskGroup(a.TaskGroup) }

// ReschedulePolicy gives the reschedule policy of the allocation's group, nil when there is none.
func (a *Allocation) ReschedulePolicy() *ReschedulePolicy {
	if tg := a.Group(); tg != nil {
		return tg.ReschedulePolicy
	}
	return nil
}

// ShouldMigrate says that the allocation was asked to move to another node.
func (d *DesiredTransition) ShouldMigrate() bool { return Val(d.Migrate) }

// ShouldReschedule says that a failed allocation may be replaced now.
func (d *DesiredTransition) ShouldReschedule() bool { return Val(d.Reschedule) }

// ShouldForceReschedule says that a failed allocation is to be replaced whatever its policy says.
func (d *DesiredTransition) ShouldForceReschedule() bool { return Val(d.ForceReschedule) }

// Merge takes over what o sets.
func (d *DesiredTransition) Merge(o *DesiredTransition) {
	if o == nil {
		return
	}
	for _, f := range []struct{ to, from **bool }{
		{&d.Migrate, &o.Migrate},
		{&d.Reschedule, &o.Reschedule},
		{&d.ForceReschedule, &o.ForceReschedule},
		{&d.NoShutdownDelay, &o.NoShutdownDelay},
		{&d.MigrateDisablePlacement, &o.MigrateDisablePlacement},
	} {
		if *f.from != nil {
			*f.to = copyPtr(*f.from)
		}
	}
	// A kill timeout only ever gets shorter.
	if o.KillTimeout != nil && (d.KillTimeout == nil || *o.KillTimeout < *d.KillTimeout) {
		d.KillTimeout = copyPtr(o.KillTimeout)
	}
}

// Stub is the allocation as lists show it. AllocatedResources is left out; a list that was asked for resources
// sets it.
func (a *Allocation) Stub() *AllocationListStub {
	s := &AllocationListStub{
		ID:                    a.ID,
		EvalID:                a.EvalID,
		Name:                  a.Name,
		Namespace:             a.Namespace,
		NodeID:                a.NodeID,
		NodeName:              a.NodeName,
		JobID:                 a.JobID,
		JobVersion:            a.JobVersion,
		TaskGroup:             a.TaskGroup,
		DesiredStatus:         a.DesiredStatus,
		DesiredDescription:    a.DesiredDescription,
		ClientStatus:          a.ClientStatus,
		ClientDescription:     a.ClientDescription,
		TaskStates:            a.TaskStates,
		DeploymentStatus:      a.DeploymentStatus,
		FollowupEvalID:        a.FollowupEvalID,
		NextAllocation:        a.NextAllocation,
		RescheduleTracker:     a.RescheduleTracker,
		PreemptedAllocations:  a.PreemptedAllocations,
		PreemptedByAllocation: a.PreemptedByAllocation,
		CreateIndex:           a.CreateIndex,
		ModifyIndex:           a.ModifyIndex,
		CreateTime:            a.CreateTime,
		ModifyTime:            a.ModifyTime,
	}
	if a.Condition.Status != "" && a.Condition.Status != ConditionOK {
		s.Condition = Ptr(a.Condition)
	}
	if a.Job != nil {
		s.JobType = Val(a.Job.Type)
		s.JobVersion = a.Job.Version
	}
	return s
}
