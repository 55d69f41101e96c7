package state

import (
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

func versionKey(namespace, id string, version uint64) string {
	return withNumber(joinKey(namespace, id), version)
}

func jobVersionKey(j *structs.Job) string {
	return versionKey(structs.Val(j.Namespace), structs.Val(j.ID), j.Version)
}

func jobVersionsTable() *table {
	t := plainTable(TableJobVersions, jobVersionKey)
	t.save = func(v *view, put func(any) error) error { return saveJobs(v, TableJobVersions, put) }
	t.restore = func(tx *Txn, decode func(any) error) error { return restoreJob(tx, TableJobVersions, decode) }
	return t
}

// JobVersions gives the kept versions of a job, the newest first.
func (r Reader) JobVersions(ws memdb.WatchSet, namespace, id string) []*structs.Job {
	prefix := joinKey(namespace, id, "")
	return slices.Collect(scanReverse[*structs.Job](r.at(), ws, TableJobVersions, indexID, prefix))
}

// JobVersion gives one version of a job, nil when it is not kept.
func (r Reader) JobVersion(ws memdb.WatchSet, namespace, id string, version uint64) *structs.Job {
	return get[*structs.Job](r.at(), ws, TableJobVersions, indexID, versionKey(namespace, id, version))
}

// versions gives a job's versions as this transaction sees them, the oldest first.
func (tx *Txn) versions(namespace, id string) []*structs.Job {
	prefix := joinKey(namespace, id, "")
	var out []*structs.Job
	for row := range scan[*structs.Job](tx.base, nil, TableJobVersions, indexID, prefix) {
		if tx.changes[TableJobVersions][jobVersionKey(row)] == nil {
			out = append(out, row)
		}
	}
	for _, c := range tx.changes[TableJobVersions] {
		if row, ok := c.after.(*structs.Job); ok && structs.Val(row.Namespace) == namespace && structs.Val(row.ID) == id {
			out = append(out, row)
		}
	}
	slices.SortFunc(out, func(a, b *structs.Job) int { return int(int64(a.Version) - int64(b.Version)) })
	return out
}

// putVersion stores a version row and counts its reference to the specification.
func (tx *Txn) putVersion(row *structs.Job) {
	if old := lookup[*structs.Job](tx, TableJobVersions, jobVersionKey(row)); old != nil {
		tx.refJob(old, -1)
	}
	tx.refJob(row, 1)
	tx.put(TableJobVersions, row)
}

func (tx *Txn) removeVersion(row *structs.Job) {
	tx.refJob(row, -1)
	tx.remove(TableJobVersions, jobVersionKey(row))
	tx.remove(TableJobSubmissions, jobVersionKey(row))
}

// pruneVersions keeps structs.JobTrackedVersions untagged versions of a job. The current one, the newest stable one
// and tagged ones are never the ones to go.
func (tx *Txn) pruneVersions(job *structs.Job) {
	versions := tx.versions(structs.Val(job.Namespace), structs.Val(job.ID))
	var stable *structs.Job
	untagged := 0
	for _, v := range versions {
		if v.Stable {
			stable = v
		}
		if v.VersionTag == nil {
			untagged++
		}
	}
	for _, v := range versions {
		if untagged <= structs.JobTrackedVersions {
			return
		}
		if v.VersionTag != nil || v == stable || v.Version == job.Version {
			continue
		}
		tx.removeVersion(v)
		untagged--
	}
}

// SetJobStability marks a version of a job stable or not. It gives the job's ModifyIndex. It fails with CodeNotFound.
func (tx *Txn) SetJobStability(namespace, id string, version uint64, stable bool) (uint64, error) {
	old := lookup[*structs.Job](tx, TableJobVersions, versionKey(namespace, id, version))
	if old == nil {
		return 0, structs.Errorf(structs.CodeNotFound, "job %q in namespace %q has no version %d", id, namespace, version)
	}
	tx.editVersion(old, func(row *structs.Job) { row.Stable = stable })
	return tx.index, nil
}

// editVersion changes a version's own fields, in the job's row too when it is the current one.
func (tx *Txn) editVersion(old *structs.Job, edit func(*structs.Job)) {
	row := *old
	edit(&row)
	row.ModifyIndex = tx.index
	tx.putVersion(&row)
	if job := tx.job(structs.Val(old.Namespace), structs.Val(old.ID)); job != nil && job.Version == old.Version {
		current := *job
		edit(&current)
		current.ModifyIndex = tx.index
		tx.put(TableJobs, &current)
	}
}

// TagJobVersion names a version of a job, or takes the name away (tag nil). It fails with CodeNotFound when there is
// no such version or name, with CodeValidation when another version has the name.
func (tx *Txn) TagJobVersion(namespace, id, name string, version uint64, tag *structs.JobVersionTag) error {
	for _, v := range tx.versions(namespace, id) {
		named := v.VersionTag != nil && v.VersionTag.Name == name
		switch {
		case tag == nil && named:
			tx.editVersion(v, func(row *structs.Job) { row.VersionTag = nil })
			if job := tx.job(namespace, id); job != nil {
				tx.pruneVersions(job)
			}
			return nil
		case tag != nil && named && v.Version != version:
			return structs.Errorf(structs.CodeValidation, "tag %q already exists on a different version of job %q", name, id)
		}
	}
	if tag == nil {
		return structs.Errorf(structs.CodeNotFound, "tag %q not found on job %q", name, id)
	}
	old := lookup[*structs.Job](tx, TableJobVersions, versionKey(namespace, id, version))
	if old == nil {
		return structs.Errorf(structs.CodeNotFound, "job %q version %d not found", id, version)
	}
	named := *tag
	named.Name = name
	tx.editVersion(old, func(row *structs.Job) { row.VersionTag = &named })
	return nil
}
