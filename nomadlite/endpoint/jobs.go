package endpoint

import (
	"iter"
	"net/http"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func jobRoutes(b *Backend) []route.Route {
	return []route.Route{
		read("/v1/jobs", b.handler(b.listJobs)),
		read("/v1/job/{job_id}", b.handler(b.readJob)),
		read("/v1/job/{job_id}/summary", b.handler(b.readJobSummary)),
		read("/v1/job/{job_id}/versions", b.handler(b.readJobVersions)),
		read("/v1/job/{job_id}/submission", b.handler(b.readJobSubmission)),
		read("/v1/job/{job_id}/scale", b.handler(b.readJobScale)),
		write("/v1/job/{job_id}/scale", b.handler(b.scaleJob)),
		read("/v1/jobs/statuses", b.handler(b.jobStatuses)),
		{
			Methods: []string{http.MethodPost}, Path: "/v1/jobs/statuses", ServedBy: route.Leader, Callers: route.Public,
			Handle: b.handler(b.jobStatuses),
		},
	}
}

func (b *Backend) listJobs(w http.ResponseWriter, r *route.Request, q *query) error {
	return b.answerJobs(w, r, q, func(*structs.Job) bool { return true })
}

// answerJobs lists the jobs of a namespace that keep accepts.
func (b *Backend) answerJobs(w http.ResponseWriter, r *route.Request, q *query, keep func(*structs.Job) bool) error {
	withMeta, err := q.flag("meta")
	if err != nil {
		return err
	}
	var rows iter.Seq[*structs.Job]
	var at *state.Snapshot
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		// The summaries are part of the answer, so nothing is added to ws: see block.
		rows, at = snap.JobsByPrefix(nil, q.namespace, q.prefix), snap
		return snap.TableIndex(state.TableJobs, state.TableSummaries)
	})
	if err != nil {
		return err
	}
	return answerList(w, q, list[*structs.Job]{
		rows:  rows,
		token: func(j *structs.Job) string { return structs.Val(j.Namespace) + "\x00" + structs.Val(j.ID) },
		keep:  keep,
		show: func(j *structs.Job) any {
			stub := j.Stub(at.JobSummary(nil, structs.Val(j.Namespace), structs.Val(j.ID)))
			if withMeta {
				stub.Meta = j.Meta
			}
			return stub
		},
	})
}

// job reads the job which the path names.
func (b *Backend) job(w http.ResponseWriter, r *route.Request, q *query) (*structs.Job, *state.Snapshot, error) {
	ns, err := q.one()
	if err != nil {
		return nil, nil, err
	}
	var job *structs.Job
	var at *state.Snapshot
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		job, at = snap.Job(ws, ns, r.Param("job_id")), snap
		if job == nil {
			return snap.TableIndex(state.TableJobs)
		}
		return job.ModifyIndex
	})
	if err == nil && job == nil {
		err = notFound("job")
	}
	return job, at, err
}

func (b *Backend) readJob(w http.ResponseWriter, r *route.Request, q *query) error {
	job, _, err := b.job(w, r, q)
	if err != nil {
		return err
	}
	return answer(w, q, job)
}

func (b *Backend) readJobSummary(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	var summary *structs.JobSummary
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		summary = snap.JobSummary(ws, ns, r.Param("job_id"))
		if summary == nil {
			return snap.TableIndex(state.TableSummaries)
		}
		return summary.ModifyIndex
	})
	if err != nil {
		return err
	}
	if summary == nil {
		return notFound("job")
	}
	return answer(w, q, summary)
}

func (b *Backend) readJobSubmission(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	if q.values.Get("version") == "" {
		return structs.Errorf(structs.CodeInvalid, "parameter version is missing")
	}
	version, err := q.unsigned("version")
	if err != nil {
		return err
	}
	var submission *structs.JobSubmission
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		submission = snap.JobSubmission(ws, ns, r.Param("job_id"), version)
		return snap.TableIndex(state.TableJobSubmissions)
	})
	if err != nil {
		return err
	}
	if submission == nil {
		return notFound("job source")
	}
	return answer(w, q, submission)
}

func newestAlloc(allocs []*structs.Allocation) (index uint64) {
	for _, alloc := range allocs {
		index = max(index, alloc.ModifyIndex)
	}
	return index
}
