package state

import (
	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

// submissionRow is the text of which a job version was made.
type submissionRow struct {
	Namespace, JobID string
	Version          uint64
	Submission       *structs.JobSubmission
}

func jobSubmissionsTable() *table {
	t := plainTable(TableJobSubmissions, func(r *submissionRow) string { return versionKey(r.Namespace, r.JobID, r.Version) })
	t.item = func(row any) any { return row.(*submissionRow).Submission }
	return t
}

// JobSubmission gives the source of a job version, nil when it was not submitted or the version is gone.
func (r Reader) JobSubmission(ws memdb.WatchSet, namespace, id string, version uint64) *structs.JobSubmission {
	row := get[*submissionRow](r.at(), ws, TableJobSubmissions, indexID, versionKey(namespace, id, version))
	if row == nil {
		return nil
	}
	return row.Submission
}
