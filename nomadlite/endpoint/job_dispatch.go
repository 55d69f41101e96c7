package endpoint

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// maxIDPrefix bounds what a dispatch adds to the id of a child, in bytes.
const maxIDPrefix = 256

func jobLaunchRoutes(b *Backend) []route.Route {
	return []route.Route{
		write("/v1/job/{job_id}/dispatch", b.handler(b.dispatchJob)),
		write("/v1/job/{job_id}/dispatch/payload", b.handler(b.dispatchPayload)),
		write("/v1/job/{job_id}/periodic/force", b.handler(b.forcePeriodic)),
	}
}

// dispatchJob makes a child of a parameterized job.
func (b *Backend) dispatchJob(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.JobDispatchRequest
	if _, err := decodeOptional(r, &req); err != nil {
		return err
	}
	if id := r.Param("job_id"); req.JobID != "" && req.JobID != id {
		return structs.Errorf(structs.CodeInvalid, "JobID %q does not match the path's %q", req.JobID, id)
	}
	return b.dispatch(w, r, q, &req)
}

// dispatchPayload makes one whose payload is the whole body, whatever it is.
func (b *Backend) dispatchPayload(w http.ResponseWriter, r *route.Request, q *query) error {
	// One byte more than allowed is enough to be refused.
	payload, err := io.ReadAll(io.LimitReader(r.Body, structs.DispatchPayloadLimit+1))
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return err // the mux answers with the limit
	} else if err != nil {
		return structs.Errorf(structs.CodeInvalid, "cannot read the request body: %s", err)
	}
	return b.dispatch(w, r, q, &structs.JobDispatchRequest{Payload: payload})
}

// dispatch commits a dispatch and answers. A child that an earlier dispatch with the same idempotency token made is
// answered without an evaluation, and with the index of its creation.
func (b *Backend) dispatch(w http.ResponseWriter, r *route.Request, q *query, req *structs.JobDispatchRequest) error {
	ns, err := q.one()
	if err != nil {
		return err
	}
	parent := b.Store.Job(nil, ns, r.Param("job_id"))
	if parent == nil {
		return notFound("job")
	}
	if err := b.mayLaunch(); err != nil {
		return err
	}
	d := structs.Dispatch{Payload: req.Payload, Meta: req.Meta, Priority: req.Priority,
		IdempotencyToken: q.values.Get("idempotency_token")}
	if err := parent.CheckDispatch(d); err != nil {
		return err
	}
	if limit := b.Limits.JobMaxPriority; limit > 0 && d.Priority > limit {
		return structs.Errorf(structs.CodeInvalid, "job priority must be at most %d, not %d", limit, d.Priority)
	}
	if len(req.IdPrefixTemplate) > maxIDPrefix || strings.ContainsAny(req.IdPrefixTemplate, " \x00") {
		return structs.Errorf(structs.CodeInvalid, "id prefix %q holds a space or a null character, or has more than %d bytes",
			req.IdPrefixTemplate, maxIDPrefix)
	}
	now := b.now()
	cmd := &fsm.JobDispatch{
		Namespace: ns, JobID: structs.Val(parent.ID), Payload: d.Payload, Meta: d.Meta, Priority: d.Priority,
		IdempotencyToken: d.IdempotencyToken, EvalID: uuid.New(), Now: now.UnixNano(),
		ChildID: structs.DispatchedChildID(structs.Val(parent.ID), req.IdPrefixTemplate, now, uuid.New()[:8]),
	}
	resp, index, err := b.apply(r.Context(), fsm.KindJobDispatch, cmd)
	if err != nil {
		return err
	}
	result, ok := resp.(fsm.LaunchResult)
	if !ok || result.Child == nil {
		return structs.Errorf(structs.CodeInternal, "dispatch job: the state answers %T", resp)
	}
	out := structs.JobDispatchResponse{DispatchedJobID: structs.Val(result.Child.ID), JobCreateIndex: result.Child.CreateIndex}
	if result.New && result.Child.HasOwnAllocations() {
		out.EvalID, out.EvalCreateIndex = cmd.EvalID, index
	}
	return answerWrite(w, q, index, out)
}

// mayLaunch says why jobs are not launched by hand now.
func (b *Backend) mayLaunch() error {
	if cfg := b.Store.SchedulerConfig(nil); cfg.RejectJobRegistration {
		return structs.Errorf(structs.CodePermission, "job registration is rejected by the scheduler configuration")
	}
	return nil
}
