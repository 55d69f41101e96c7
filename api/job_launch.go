package api

import (
	"context"
	"net/http"

	"github.com/nomadlite/nomadlite/structs"
)

// DispatchOptions are what a parameterized job is dispatched with.
type DispatchOptions struct {
	Payload          []byte
	Meta             map[string]string
	IDPrefixTemplate string // put before the epoch in the id of the new job
	Priority         int    // 0: the job's own
	// IdempotencyToken makes a dispatch with the same token answer the job that an earlier one made, with no
	// evaluation.
	IdempotencyToken string
}

// Dispatch makes a new job of a parameterized one. A nil opts means none.
func (j *Jobs) Dispatch(ctx context.Context, id string, opts *DispatchOptions, w *WriteOptions) (
	*structs.JobDispatchResponse, *WriteMeta, error,
) {
	if opts == nil {
		opts = &DispatchOptions{}
	}
	params := map[string]string{}
	if opts.IdempotencyToken != "" {
		params["idempotency_token"] = opts.IdempotencyToken
	}
	req := structs.JobDispatchRequest{JobID: id, Payload: opts.Payload, Meta: opts.Meta,
		IdPrefixTemplate: opts.IDPrefixTemplate, Priority: opts.Priority}
	var out structs.JobDispatchResponse
	meta, err := j.client.write(ctx, http.MethodPut, jobPath(id, "/dispatch"), w.with(params), req, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// PeriodicForce launches a periodic job now, whatever its schedule says and whether that overlaps.
func (j *Jobs) PeriodicForce(ctx context.Context, id string, w *WriteOptions) (
	*structs.PeriodicForceResponse, *WriteMeta, error,
) {
	var out structs.PeriodicForceResponse
	meta, err := j.client.write(ctx, http.MethodPut, jobPath(id, "/periodic/force"), w, nil, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}
