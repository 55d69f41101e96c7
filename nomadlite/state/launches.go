package state

import (
	"iter"
	"reflect"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

// indexToken finds the children of a parameterized job by their idempotency token.
const indexToken = "dispatch_token"

func dispatchTokenKey(j *structs.Job) (string, bool) {
	if j.DispatchIdempotencyToken == "" || j.ParentID == "" {
		return "", false
	}
	return joinKey(structs.Val(j.Namespace), j.ParentID, j.DispatchIdempotencyToken), true
}

// Launch is how far the schedule of a periodic job has come: all times up to Time are done with, whether they were
// launched, left out because of prohibit_overlap, or lie before the job had its schedule.
type Launch struct {
	Namespace, JobID string
	Time             int64  // unix nanoseconds
	Skipped          uint64 // how many launches prohibit_overlap left out since the last one that was
	ModifyIndex      uint64
}

func launchesTable() *table {
	return plainTable(TableLaunches, func(l *Launch) string { return joinKey(l.Namespace, l.JobID) })
}

// Launch gives how far the schedule of a periodic job has come, nil when it has none.
func (r Reader) Launch(ws memdb.WatchSet, namespace, jobID string) *Launch {
	return get[*Launch](r.at(), ws, TableLaunches, indexID, joinKey(namespace, jobID))
}

// Launches gives those of all periodic jobs, by namespace and id.
func (r Reader) Launches(ws memdb.WatchSet) iter.Seq[*Launch] {
	return scan[*Launch](r.at(), ws, TableLaunches, indexID, "")
}

// Children gives the children of a periodic or parameterized job, by id.
func (r Reader) Children(ws memdb.WatchSet, namespace, parent string) iter.Seq[*structs.Job] {
	under := scan[*structs.Job](r.at(), ws, TableJobs, indexID, joinKey(namespace, parent+"/"))
	return filter(under, func(j *structs.Job) bool { return j.ParentID == parent })
}

// checkKind refuses to make a job one of another type, or one that is launched otherwise: what is there already, running
// or as history, would mean something else, and another scheduler would look after it. The job is purged first.
func checkKind(job, old *structs.Job) error {
	if old == nil {
		return nil
	}
	from, to := "", ""
	switch {
	case structs.Val(job.Type) != structs.Val(old.Type):
		return structs.Errorf(structs.CodeValidation, "cannot update job from type %q to %q: stop it with purge first",
			structs.Val(old.Type), structs.Val(job.Type))
	case job.IsPeriodic() != old.IsPeriodic():
		from, to = "periodic", "non-periodic"
		if job.IsPeriodic() {
			from, to = to, from
		}
	case job.IsParameterized() != old.IsParameterized():
		from, to = "parameterized", "non-parameterized"
		if job.IsParameterized() {
			from, to = to, from
		}
	default:
		return nil
	}
	return structs.Errorf(structs.CodeValidation, "cannot update %s job to being %s: stop it with purge first", from, to)
}

// noteSchedule lets the schedule of a job begin when it is new, or has changed. A job that is registered again with the
// same schedule keeps its place in it, so that a launch which is due just then is not lost.
func (tx *Txn) noteSchedule(r JobRegistration, old *structs.Job) {
	namespace, id := structs.Val(r.Job.Namespace), structs.Val(r.Job.ID)
	row := lookup[*Launch](tx, TableLaunches, joinKey(namespace, id))
	switch {
	case !r.Job.IsPeriodicActive():
		if row != nil {
			tx.remove(TableLaunches, joinKey(namespace, id))
		}
	case row == nil || old == nil || !old.IsPeriodicActive() || !reflect.DeepEqual(old.Periodic, r.Job.Periodic):
		tx.put(TableLaunches, &Launch{Namespace: namespace, JobID: id, Time: r.Now, ModifyIndex: tx.index})
	}
}

// PeriodicLaunch is a launch of a periodic job; see LaunchPeriodic.
type PeriodicLaunch struct {
	Namespace, JobID string
	Time             int64 // unix nanoseconds
	// Force launches now, outside of the schedule and whatever runs.
	Force  bool
	EvalID string
	Now    int64
}

// LaunchPeriodic launches a periodic job for a time of its schedule: it stores the child and its evaluation, and that
// the time is done with. Each time is launched once, however often that is asked: one that is done with fails with
// CodeConflict. It gives the child, or nil when prohibit_overlap left it out. It fails with CodeNotFound when there is
// no such job, and with CodeInvalid when its schedule is not active.
func (tx *Txn) LaunchPeriodic(l PeriodicLaunch) (*structs.Job, error) {
	parent := tx.job(l.Namespace, l.JobID)
	switch {
	case parent == nil:
		return nil, structs.Errorf(structs.CodeNotFound, "job not found")
	case !parent.IsPeriodicActive():
		return nil, structs.Errorf(structs.CodeInvalid, "job %q has no schedule that is active", l.JobID)
	}
	at := time.Unix(0, l.Time)
	if l.Force {
		at = tx.freeSecond(parent, at)
	} else {
		existing := tx.job(l.Namespace, structs.PeriodicChildID(l.JobID, at))
		if existing != nil && existing.ParentID != l.JobID {
			return nil, structs.Errorf(structs.CodeConflict, "job %q exists, and is no child of %q", structs.Val(existing.ID), l.JobID)
		}
		skipped, err := tx.advanceSchedule(parent, l, existing != nil)
		if err != nil || skipped || existing != nil { // what exists was forced in this very second
			return existing, err
		}
	}
	return tx.registerChild(parent.PeriodicChild(at), structs.EvalTriggerPeriodicJob, l.EvalID, l.Now)
}

// freeSecond is the newest second up to at whose child does not exist. Later ones belong to the schedule.
func (tx *Txn) freeSecond(parent *structs.Job, at time.Time) time.Time {
	for tx.job(structs.Val(parent.Namespace), structs.PeriodicChildID(structs.Val(parent.ID), at)) != nil {
		at = at.Add(-time.Second)
	}
	return at
}

// advanceSchedule notes that a time of a job's schedule is done with.
func (tx *Txn) advanceSchedule(parent *structs.Job, l PeriodicLaunch, exists bool) (skipped bool, err error) {
	row := &Launch{Namespace: l.Namespace, JobID: l.JobID, Time: l.Time, ModifyIndex: tx.index}
	old := lookup[*Launch](tx, TableLaunches, joinKey(l.Namespace, l.JobID))
	if old != nil && l.Time <= old.Time {
		return false, structs.Errorf(structs.CodeConflict, "job %q was launched for this time already", l.JobID)
	}
	if !exists && structs.Val(parent.Periodic.ProhibitOverlap) && tx.hasLiveChild(parent) {
		skipped, row.Skipped = true, 1
		if old != nil {
			row.Skipped += old.Skipped
		}
	}
	tx.put(TableLaunches, row)
	return skipped, nil
}

// hasLiveChild says whether a child of the job has not ended.
func (tx *Txn) hasLiveChild(parent *structs.Job) bool {
	s := tx.summary(structs.Val(parent.Namespace), structs.Val(parent.ID))
	return s != nil && s.Children != nil && s.Children.Pending+s.Children.Running > 0
}

// registerChild stores a child with its evaluation; a child that is periodic itself has none.
func (tx *Txn) registerChild(child *structs.Job, trigger, evalID string, now int64) (*structs.Job, error) {
	var eval *structs.Evaluation
	if child.HasOwnAllocations() && evalID != "" {
		eval = &structs.Evaluation{ID: evalID, Namespace: structs.Val(child.Namespace), Priority: structs.Val(child.Priority),
			Type: structs.Val(child.Type), TriggeredBy: trigger, JobID: structs.Val(child.ID),
			Status: structs.EvalStatusPending, CreateTime: now, ModifyTime: now}
	}
	return tx.RegisterJob(JobRegistration{Job: child, Eval: eval, Now: now})
}

// JobDispatch is a dispatch of a parameterized job; see DispatchJob.
type JobDispatch struct {
	Namespace, JobID, ChildID string
	structs.Dispatch
	EvalID string
	Now    int64
}

// DispatchJob stores a child of a parameterized job, with its evaluation. When there is a child with the same
// idempotency token, whatever became of it, that one is given and nothing is stored: isNew is false then. It fails with
// CodeNotFound, and with CodeInvalid when the job does not take the dispatch.
func (tx *Txn) DispatchJob(d JobDispatch) (child *structs.Job, isNew bool, err error) {
	parent := tx.job(d.Namespace, d.JobID)
	if parent == nil {
		return nil, false, structs.Errorf(structs.CodeNotFound, "job not found")
	}
	if d.IdempotencyToken != "" {
		key := joinKey(d.Namespace, d.JobID, d.IdempotencyToken)
		if same := get[*structs.Job](tx.base, nil, TableJobs, indexToken, key); same != nil {
			return same, false, nil
		}
	}
	if err := parent.CheckDispatch(d.Dispatch); err != nil {
		return nil, false, err
	}
	if tx.job(d.Namespace, d.ChildID) != nil {
		return nil, false, structs.Errorf(structs.CodeConflict, "job %q exists", d.ChildID)
	}
	child, err = tx.registerChild(parent.DispatchedChild(d.ChildID, d.Dispatch), structs.EvalTriggerJobRegister, d.EvalID, d.Now)
	return child, err == nil, err
}
