package state

import (
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// specRow is one immutable job specification. It is kept while a current job, a version, an allocation or a
// deployment refers to it. Refs is counted anew on restore.
type specRow struct {
	Job  *structs.Job
	Refs int
}

func specKey(namespace, id string, jobModifyIndex uint64) string {
	return withNumber(joinKey(namespace, id), jobModifyIndex)
}

func (r *specRow) key() string {
	return specKey(structs.Val(r.Job.Namespace), structs.Val(r.Job.ID), r.Job.JobModifyIndex)
}

func jobSpecsTable() *table {
	t := plainTable(TableJobSpecs, (*specRow).key)
	t.item = func(row any) any { return row.(*specRow).Job }
	t.save = func(v *view, put func(any) error) error {
		for row := range scan[*specRow](v, nil, TableJobSpecs, indexID, "") {
			if err := put(row.Job); err != nil {
				return err
			}
		}
		return nil
	}
	t.restore = func(tx *Txn, decode func(any) error) error {
		var job *structs.Job
		if err := decode(&job); err != nil {
			return err
		}
		tx.put(TableJobSpecs, &specRow{Job: job})
		return nil
	}
	return t
}

// JobSpec gives a specification row, nil when it is not kept any more. Its status fields are empty.
func (r Reader) JobSpec(namespace, id string, jobModifyIndex uint64) *structs.Job {
	if row := get[*specRow](r.at(), nil, TableJobSpecs, indexID, specKey(namespace, id, jobModifyIndex)); row != nil {
		return row.Job
	}
	return nil
}

func (tx *Txn) spec(namespace, id string, jobModifyIndex uint64) *structs.Job {
	if row := lookup[*specRow](tx, TableJobSpecs, specKey(namespace, id, jobModifyIndex)); row != nil {
		return row.Job
	}
	return nil
}

// putSpec stores the specification of a job row and gives it. Nothing that changes later is left in it.
func (tx *Txn) putSpec(job *structs.Job) *structs.Job {
	spec := *job
	spec.Status, spec.StatusDescription = "", ""
	spec.Stable, spec.VersionTag = false, nil
	spec.ModifyIndex = spec.JobModifyIndex
	tx.put(TableJobSpecs, &specRow{Job: &spec})
	return &spec
}

// refSpec counts references; finishSpecs drops the rows that have none left.
func (tx *Txn) refSpec(namespace, id string, jobModifyIndex uint64, n int) {
	tx.specRefs[specKey(namespace, id, jobModifyIndex)] += n
}

func (tx *Txn) finishSpecs() {
	for _, key := range slices.Sorted(maps.Keys(tx.specRefs)) {
		n := tx.specRefs[key]
		row := lookup[*specRow](tx, TableJobSpecs, key)
		if row == nil || n == 0 && row.Refs > 0 {
			continue
		}
		if refs := row.Refs + n; refs > 0 {
			tx.put(TableJobSpecs, &specRow{Job: row.Job, Refs: refs})
		} else {
			tx.remove(TableJobSpecs, key)
		}
	}
	clear(tx.specRefs)
}
