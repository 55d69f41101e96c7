package state

import (
	"maps"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

// keptScalingEvents is how many events of a group are kept.
const keptScalingEvents = 20

// JobScaling is what was asked and told about the scaling of a job's groups, the newest first.
type JobScaling struct {
	Namespace, JobID string
	Groups           map[string][]*structs.ScalingEvent
	ModifyIndex      uint64
}

func scalingTable() *table {
	return plainTable(TableScalingEvents, func(r *JobScaling) string { return joinKey(r.Namespace, r.JobID) })
}

// ScalingEvents gives the events of a job by group, the newest first, and the index of their last change.
func (r Reader) ScalingEvents(ws memdb.WatchSet, namespace, jobID string) (map[string][]*structs.ScalingEvent, uint64) {
	row := get[*JobScaling](r.at(), ws, TableScalingEvents, indexID, joinKey(namespace, jobID))
	if row == nil {
		return nil, 0
	}
	return row.Groups, row.ModifyIndex
}

// JobScale is a new count of a group, or only a word about its scaling; see ScaleJob.
type JobScale struct {
	Namespace, JobID, Group string
	// Count is nil when nothing is to change. Else JobModifyIndex must be that of the stored job.
	Count          *int64
	JobModifyIndex uint64
	Event          structs.ScalingEvent
	Eval           *structs.Evaluation
	Now            int64
}

// ScaleJob gives a group another count, as a new version of its job, together with the evaluation, and keeps the event.
// Options of stops which ride on the evaluation also reach what stops already in the group.
// It gives the job's row as it is then. It fails with CodeNotFound, with CodeInvalid when there is no such group, and
// with CodeConflict when the job was changed meanwhile.
func (tx *Txn) ScaleJob(s JobScale) (*structs.Job, error) {
	job := tx.job(s.Namespace, s.JobID)
	if job == nil {
		return nil, structs.Errorf(structs.CodeNotFound, "job not found")
	}
	group := job.LookupTaskGroup(s.Group)
	if group == nil {
		return nil, structs.Errorf(structs.CodeInvalid, "task group %q specified for scaling does not exist in job", s.Group)
	}
	event := s.Event
	event.PreviousCount = int64(structs.Val(group.Count))
	event.Time, event.CreateIndex = uint64(s.Now), tx.index
	if s.Count != nil {
		scaled, err := tx.RegisterJob(JobRegistration{Job: withCount(job, s.Group, int(*s.Count)), EnforceIndex: true,
			JobModifyIndex: s.JobModifyIndex, Eval: s.Eval, Now: s.Now})
		if err != nil {
			return nil, err
		}
		job, event.Count = scaled, s.Count
		tx.shortenStops(s.Namespace, s.JobID, s.Eval, s.Now, func(a *structs.Allocation) bool { return a.TaskGroup == s.Group })
		if s.Eval != nil {
			event.EvalID = &s.Eval.ID
		}
	}
	tx.addScalingEvent(s.Namespace, s.JobID, s.Group, &event)
	return job, nil
}

// withCount is a copy of a job in which one group has another count.
func withCount(job *structs.Job, group string, count int) *structs.Job {
	scaled := *job
	scaled.TaskGroups = make([]*structs.TaskGroup, len(job.TaskGroups))
	for i, tg := range job.TaskGroups {
		if structs.Val(tg.Name) == group {
			changed := *tg
			changed.Count = &count
			tg = &changed
		}
		scaled.TaskGroups[i] = tg
	}
	return &scaled
}

func (tx *Txn) addScalingEvent(namespace, jobID, group string, event *structs.ScalingEvent) {
	row := &JobScaling{Namespace: namespace, JobID: jobID, Groups: map[string][]*structs.ScalingEvent{}, ModifyIndex: tx.index}
	if old := lookup[*JobScaling](tx, TableScalingEvents, joinKey(namespace, jobID)); old != nil {
		row.Groups = maps.Clone(old.Groups)
	}
	events := append([]*structs.ScalingEvent{event}, row.Groups[group]...)
	row.Groups[group] = events[:min(len(events), keptScalingEvents)]
	tx.put(TableScalingEvents, row)
}
