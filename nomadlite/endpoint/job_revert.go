package endpoint

import (
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// revertJob registers an older version of a job anew, with the source it was made of.
func (b *Backend) revertJob(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	var req structs.JobRevertRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	id := r.Param("job_id")
	if req.JobID != "" && req.JobID != id {
		return structs.Errorf(structs.CodeInvalid, "JobID %q does not match the path's %q", req.JobID, id)
	}
	snap := b.Store.Snapshot()
	current := snap.Job(nil, ns, id)
	switch {
	case current == nil:
		return notFound("job")
	case req.EnforcePriorVersion != nil && *req.EnforcePriorVersion != current.Version:
		return structs.Errorf(structs.CodeConflict, "current job has version %d; enforcing version %d",
			current.Version, *req.EnforcePriorVersion)
	case req.JobVersion == current.Version:
		return structs.Errorf(structs.CodeInvalid, "can't revert to current version")
	}
	version := snap.JobVersion(nil, ns, id, req.JobVersion)
	if version == nil {
		return structs.Errorf(structs.CodeNotFound, "job %q in namespace %q at version %d not found", id, ns, req.JobVersion)
	}
	job := version.Copy()
	job.VersionTag = nil
	if err := b.admit(job); err != nil {
		return err
	}
	// The index makes sure that what was compared above is what is replaced.
	return b.storeJob(w, r, q, &fsm.JobRegister{
		Job: job, Submission: snap.JobSubmission(nil, ns, id, req.JobVersion),
		EnforceIndex: true, JobModifyIndex: current.JobModifyIndex, Now: b.unixNano(),
	}, 0)
}
