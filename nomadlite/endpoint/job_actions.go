package endpoint

import (
	"net/http"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func (b *Backend) listJobActions(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	var job *structs.Job
	err = b.block(w, r, q, func(ws memdb.WatchSet, snap *state.Snapshot) uint64 {
		job = snap.Job(ws, ns, r.Param("job_id"))
		return snap.TableIndex(state.TableJobs)
	})
	if err != nil {
		return err
	}
	if job == nil {
		return notFound("job")
	}
	return answer(w, q, job.ListActions())
}

// nodeOfAction finds the node on which the action of a job is to run: that of the allocation which the request names.
func (b *Backend) nodeOfAction(r *route.Request) (string, error) {
	values := r.URL.Query()
	ns := values.Get("namespace")
	if ns == "" {
		ns = structs.DefaultNamespace
	}
	if b.Store.Job(nil, ns, r.Param("job_id")) == nil {
		return "", notFound("job")
	}
	id := values.Get("allocID")
	if id == "" {
		return "", structs.Errorf(structs.CodeInvalid, "an action needs the parameter allocID: the allocation in which it is to run")
	}
	alloc := b.Store.Alloc(nil, id)
	if alloc == nil {
		return "", structs.Errorf(structs.CodeNotFound, "Unknown allocation %q", id)
	}
	if alloc.JobID != r.Param("job_id") || alloc.Namespace != ns {
		return "", structs.Errorf(structs.CodeInvalid, "allocation %q is of job %q, not of %q", id, alloc.JobID, r.Param("job_id"))
	}
	return b.known(alloc.NodeID)
}
