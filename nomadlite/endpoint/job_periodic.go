package endpoint

import (
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// forcePeriodic launches a periodic job now, outside of its schedule and also where that overlaps.
func (b *Backend) forcePeriodic(w http.ResponseWriter, r *route.Request, q *query) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	job := b.Store.Job(nil, ns, r.Param("job_id"))
	switch {
	case job == nil:
		return notFound("job")
	case !job.IsPeriodic():
		return structs.Errorf(structs.CodeInvalid, "can't force launch non-periodic job")
	case !job.IsPeriodicActive():
		return structs.Errorf(structs.CodeInvalid, "can't force launch a periodic job that is stopped, disabled or a template")
	}
	if err := b.mayLaunch(); err != nil {
		return err
	}
	now := b.unixNano()
	cmd := &fsm.PeriodicLaunch{Namespace: ns, JobID: structs.Val(job.ID), Time: now, Force: true, EvalID: uuid.New(), Now: now}
	_, index, err := b.apply(r.Context(), fsm.KindPeriodicLaunch, cmd)
	if err != nil {
		return err
	}
	return answerWrite(w, q, index, structs.PeriodicForceResponse{EvalID: cmd.EvalID, EvalCreateIndex: index})
}
