package state

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

func jobKey(j *structs.Job) string { return joinKey(structs.Val(j.Namespace), structs.Val(j.ID)) }

func jobsTable() *table {
	t := plainTable(TableJobs, jobKey, manyIndex(indexToken, dispatchTokenKey))
	t.save = func(v *view, put func(any) error) error { return saveJobs(v, TableJobs, put) }
	t.restore = func(tx *Txn, decode func(any) error) error { return restoreJob(tx, TableJobs, decode) }
	return t
}

// jobRecord is a job or version in a snapshot: what it has beside its specification, which is saved once.
type jobRecord struct {
	Namespace, ID     string
	JobModifyIndex    uint64
	Status            string
	StatusDescription string
	Stable            bool
	VersionTag        *structs.JobVersionTag
	ModifyIndex       uint64
}

func saveJobs(v *view, tableName string, put func(any) error) error {
	for job := range scan[*structs.Job](v, nil, tableName, indexID, "") {
		err := put(&jobRecord{Namespace: structs.Val(job.Namespace), ID: structs.Val(job.ID), JobModifyIndex: job.JobModifyIndex,
			Status: job.Status, StatusDescription: job.StatusDescription, Stable: job.Stable, VersionTag: job.VersionTag,
			ModifyIndex: job.ModifyIndex})
		if err != nil {
			return err
		}
	}
	return nil
}

func restoreJob(tx *Txn, tableName string, decode func(any) error) error {
	var rec jobRecord
	if err := decode(&rec); err != nil {
		return err
	}
	spec := tx.spec(rec.Namespace, rec.ID, rec.JobModifyIndex)
	if spec == nil {
		return fmt.Errorf("job %q of namespace %q, specification %d: %w", rec.ID, rec.Namespace, rec.JobModifyIndex, errNotHere)
	}
	job := *spec
	job.Status, job.StatusDescription = rec.Status, rec.StatusDescription
	job.Stable, job.VersionTag, job.ModifyIndex = rec.Stable, rec.VersionTag, rec.ModifyIndex
	tx.refJob(&job, 1)
	tx.put(tableName, &job)
	return nil
}

// Job gives the current row of a job, nil when there is none.
func (r Reader) Job(ws memdb.WatchSet, namespace, id string) *structs.Job {
	return get[*structs.Job](r.at(), ws, TableJobs, indexID, joinKey(namespace, id))
}

// Jobs gives the jobs of a namespace (structs.AllNamespaces: of all), by namespace and id.
func (r Reader) Jobs(ws memdb.WatchSet, namespace string) iter.Seq[*structs.Job] {
	return r.JobsByPrefix(ws, namespace, "")
}

// JobsByPrefix gives the jobs whose id begins with prefix, in one or all namespaces, by namespace and id.
func (r Reader) JobsByPrefix(ws memdb.WatchSet, namespace, prefix string) iter.Seq[*structs.Job] {
	if namespace != structs.AllNamespaces {
		return scan[*structs.Job](r.at(), ws, TableJobs, indexID, joinKey(namespace, prefix))
	}
	all := scan[*structs.Job](r.at(), ws, TableJobs, indexID, "")
	if prefix == "" {
		return all
	}
	return filter(all, func(j *structs.Job) bool { return strings.HasPrefix(structs.Val(j.ID), prefix) })
}

func (tx *Txn) job(namespace, id string) *structs.Job {
	return lookup[*structs.Job](tx, TableJobs, joinKey(namespace, id))
}

func (tx *Txn) refJob(job *structs.Job, n int) {
	tx.refSpec(structs.Val(job.Namespace), structs.Val(job.ID), job.JobModifyIndex, n)
}

// putJob replaces the current row of a job.
func (tx *Txn) putJob(old, row *structs.Job) {
	if old != nil {
		tx.refJob(old, -1)
	}
	tx.refJob(row, 1)
	tx.put(TableJobs, row)
	tx.childStatus(old, row)
	tx.touchJob(structs.Val(row.Namespace), structs.Val(row.ID))
}

// JobRegistration is a job to store; see RegisterJob.
type JobRegistration struct {
	Job        *structs.Job // canonical
	Submission *structs.JobSubmission
	// EnforceIndex wants the stored job's JobModifyIndex to be JobModifyIndex, 0 for no job.
	EnforceIndex                      bool
	JobModifyIndex                    uint64
	PreserveCounts, PreserveResources bool
	// SameKind wants a stored job to be of this one's type, and to be launched as it is: periodic, parameterized, or by
	// itself.
	SameKind bool
	Eval     *structs.Evaluation
	Now      int64
}

// RegisterJob stores a job, as a new version when its specification changed, and its evaluation. It gives the stored
// row. Registering what is there already makes an evaluation and changes nothing else. It fails with CodeConflict when
// EnforceIndex does not match, and with CodeValidation when SameKind does not, or the namespace or the node pool does not
// exist.
func (tx *Txn) RegisterJob(r JobRegistration) (*structs.Job, error) {
	namespace, id := structs.Val(r.Job.Namespace), structs.Val(r.Job.ID)
	old := tx.job(namespace, id)
	if err := tx.checkRegistration(r, old); err != nil {
		return nil, err
	}
	tx.noteSchedule(r, old)
	job := r.preserve(old)
	job.CreateIndex, job.ModifyIndex, job.JobModifyIndex = tx.index, tx.index, tx.index
	job.Version, job.Stable, job.VersionTag = 0, false, nil
	job.Status, job.StatusDescription = structs.JobStatusPending, ""
	job.SubmitTime = r.Now
	if old != nil {
		job.CreateIndex, job.Version = old.CreateIndex, old.Version
		job.Status, job.StatusDescription = old.Status, old.StatusDescription
		if old.Status == structs.JobStatusDead {
			job.Status = structs.JobStatusPending
		}
		if old.SpecEqual(&job) {
			job = tx.touchSpec(old, job.Status)
		} else {
			job.Version++
		}
	}
	if job.JobModifyIndex == tx.index {
		tx.storeJob(old, &job)
	}
	if r.Submission != nil {
		tx.put(TableJobSubmissions, &submissionRow{Namespace: namespace, JobID: id, Version: job.Version, Submission: r.Submission})
	}
	tx.ensureSummary(&job)
	if !job.Stop {
		tx.clearStopOptions(tx.allocsByJob(namespace, id), r.Now)
	}
	tx.upsertJobEval(r.Eval, job.JobModifyIndex, r.Now)
	return &job, nil
}

// touchSpec registers a job again as it is: its specification, and with it what runs, stays the same one.
func (tx *Txn) touchSpec(old *structs.Job, status string) structs.Job {
	job := *old
	job.Status, job.ModifyIndex = status, tx.index
	if status != old.Status {
		job.StatusDescription = ""
	}
	tx.putJob(old, &job)
	version := job
	tx.putVersion(&version)
	return job
}

// storeJob writes a job's current row, its specification and its version.
func (tx *Txn) storeJob(old, job *structs.Job) {
	if job.HasScalingPolicies() {
		job.NumberScalingPolicies(old, tx.index)
	}
	tx.putSpec(job)
	tx.putJob(old, job)
	version := *job
	tx.putVersion(&version)
	tx.pruneVersions(job)
}

func (tx *Txn) checkRegistration(r JobRegistration, old *structs.Job) error {
	namespace, id := structs.Val(r.Job.Namespace), structs.Val(r.Job.ID)
	if lookup[*structs.Namespace](tx, TableNamespaces, namespace) == nil {
		return structs.Errorf(structs.CodeValidation, "job %q is in nonexistent namespace %q", id, namespace)
	}
	if pool := structs.Val(r.Job.NodePool); pool != "" && lookup[*structs.NodePool](tx, TableNodePools, pool) == nil {
		return structs.Errorf(structs.CodeValidation, "job %q is in nonexistent node pool %q", id, pool)
	}
	if r.SameKind {
		if err := checkKind(r.Job, old); err != nil {
			return err
		}
	}
	if !r.EnforceIndex {
		return nil
	}
	const prefix = "Enforcing job modify index"
	switch {
	case r.JobModifyIndex == 0 && old != nil:
		return structs.Errorf(structs.CodeConflict, "%s 0: job already exists", prefix)
	case r.JobModifyIndex != 0 && old == nil:
		return structs.Errorf(structs.CodeConflict, "%s %d: job does not exist", prefix, r.JobModifyIndex)
	case old != nil && old.JobModifyIndex != r.JobModifyIndex:
		return structs.Errorf(structs.CodeConflict, "%s %d: job exists with conflicting job modify index: %d",
			prefix, r.JobModifyIndex, old.JobModifyIndex)
	}
	return nil
}

// preserve gives a copy of the job in which counts or resources of the stored one are kept, where that was asked.
func (r *JobRegistration) preserve(old *structs.Job) structs.Job {
	job := *r.Job
	if old == nil || !r.PreserveCounts && !r.PreserveResources {
		return job
	}
	job.TaskGroups = make([]*structs.TaskGroup, len(r.Job.TaskGroups))
	for i, given := range r.Job.TaskGroups {
		job.TaskGroups[i] = given
		was := old.LookupTaskGroup(structs.Val(given.Name))
		if was == nil {
			continue
		}
		group := *given
		if r.PreserveCounts {
			group.Count = was.Count
		}
		if r.PreserveResources {
			group.Tasks = preserveResources(group.Tasks, was)
		}
		job.TaskGroups[i] = &group
	}
	return job
}

func preserveResources(tasks []*structs.Task, was *structs.TaskGroup) []*structs.Task {
	out := make([]*structs.Task, len(tasks))
	for i, given := range tasks {
		out[i] = given
		if old := was.LookupTask(given.Name); old != nil {
			task := *given
			task.Resources = old.Resources
			out[i] = &task
		}
	}
	return out
}

// JobStop is a job to stop or purge; see StopJob.
type JobStop struct {
	Namespace, JobID string
	Purge            bool
	NoShutdownDelay  bool
	KillTimeout      *time.Duration
	Eval             *structs.Evaluation
	Now              int64
}

// StopJob marks a job stopped, or deletes it, sets the transitions on its live allocations (those whose end no node
// has reported) and stores the evaluation. A job that is not there is no error: what it left behind is stopped all
// the same. It gives the row that was stored, as it is after the stop, nil when there was none.
func (tx *Txn) StopJob(s JobStop) *structs.Job {
	old := tx.job(s.Namespace, s.JobID)
	result := old
	switch {
	case old == nil:
	case s.Purge:
		tx.purgeJob(old)
	case !old.Stop:
		job := *old
		job.Stop = true
		job.Version++
		job.Stable, job.VersionTag = false, nil
		job.ModifyIndex, job.JobModifyIndex = tx.index, tx.index
		job.SubmitTime = s.Now
		tx.storeJob(old, &job)
		result = &job
	}
	tx.remove(TableLaunches, joinKey(s.Namespace, s.JobID))
	if s.NoShutdownDelay || s.KillTimeout != nil {
		want := &structs.DesiredTransition{KillTimeout: s.KillTimeout}
		if s.NoShutdownDelay {
			want.NoShutdownDelay = structs.Ptr(true)
		}
		for _, alloc := range tx.allocsByJob(s.Namespace, s.JobID) {
			if !alloc.ObservedTerminal() {
				tx.mergeTransition(alloc, want, s.Now)
			}
		}
	}
	tx.upsertJobEval(s.Eval, tx.index, s.Now)
	return result
}

// upsertJobEval stores the evaluation which comes with a change of its job, if any: it acts on the specification of
// that index.
func (tx *Txn) upsertJobEval(eval *structs.Evaluation, jobModifyIndex uint64, now int64) {
	if eval == nil {
		return
	}
	row := *eval
	if row.JobModifyIndex == 0 {
		row.JobModifyIndex = jobModifyIndex
	}
	tx.UpsertEval(&row, now)
}

// purgeJob deletes a job with its versions, submissions and summary. Its allocations stay, with their specification.
func (tx *Txn) purgeJob(job *structs.Job) {
	namespace, id := structs.Val(job.Namespace), structs.Val(job.ID)
	tx.refJob(job, -1)
	tx.remove(TableJobs, joinKey(namespace, id))
	for _, version := range tx.versions(namespace, id) {
		tx.removeVersion(version)
	}
	tx.removeSummary(namespace, id)
	tx.remove(TableScalingEvents, joinKey(namespace, id))
	tx.childStatus(job, nil)
}

// ReapJob deletes a dead job unless something of it came alive again since it was found. It says whether it did. A
// service that no one stopped stays: it may be scaled up again.
func (tx *Txn) ReapJob(namespace, id string) bool {
	job := tx.job(namespace, id)
	if job == nil || job.Status != structs.JobStatusDead || !job.Stop && !endsByItself(job) ||
		tx.liveAllocs(namespace, id) > 0 || tx.hasOpenEval(namespace, id) {
		return false
	}
	tx.purgeJob(job)
	return true
}

func endsByItself(job *structs.Job) bool {
	kind := structs.Val(job.Type)
	return kind == structs.JobTypeBatch || kind == structs.JobTypeSysBatch
}

func (tx *Txn) touchJob(namespace, id string) {
	key := joinKey(namespace, id)
	if _, ok := tx.touched[key]; !ok {
		tx.touched[key] = structs.NamespacedID{Namespace: namespace, ID: id}
		tx.touchedAt = append(tx.touchedAt, key)
	}
}

// finishJobs brings the statuses of all jobs up to date that this transaction may have changed, and stores the
// summaries.
func (tx *Txn) finishJobs() {
	for _, key := range tx.touchedAt {
		job := lookup[*structs.Job](tx, TableJobs, key)
		if job == nil {
			continue
		}
		status := tx.jobStatus(job)
		if status == job.Status {
			continue
		}
		row := *job
		row.Status, row.ModifyIndex = status, tx.index
		tx.childStatus(job, &row)
		tx.put(TableJobs, &row)
		if old := lookup[*structs.Job](tx, TableJobVersions, jobVersionKey(job)); old != nil {
			version := *old
			version.Status = status
			tx.put(TableJobVersions, &version)
		}
	}
	tx.touchedAt = nil
	clear(tx.touched)
	tx.finishSummaries()
}

// jobStatus is the public status of a job. The first rule that fits decides.
func (tx *Txn) jobStatus(job *structs.Job) string {
	namespace, id := structs.Val(job.Namespace), structs.Val(job.ID)
	parent := job.IsPeriodic() || job.IsParameterized()
	kind := structs.Val(job.Type)
	switch {
	case tx.liveAllocs(namespace, id) > 0:
		return structs.JobStatusRunning
	case !job.Stop && (parent || kind == structs.JobTypeSystem):
		return structs.JobStatusRunning
	case job.Stop && (parent || kind == structs.JobTypeSystem):
		return structs.JobStatusDead
	case tx.hasOpenEval(namespace, id):
		return structs.JobStatusPending
	case job.Stop || job.Status == structs.JobStatusDead:
		return structs.JobStatusDead // and it stays dead when its history is collected
	case tx.hasActiveDeployment(namespace, id):
		return structs.JobStatusPending
	case tx.hasHistory(namespace, id):
		return structs.JobStatusDead // all is done: a batch that ran, a service scaled to nothing
	default:
		return structs.JobStatusPending
	}
}

// hasHistory says whether the job has any evaluation or allocation.
func (tx *Txn) hasHistory(namespace, id string) bool {
	if row := lookup[*allocRow](tx, tableAllocRows, allocRowKey(rowByJob, joinKey(namespace, id))); row != nil {
		return true
	}
	return tx.hasEval(namespace, id)
}
