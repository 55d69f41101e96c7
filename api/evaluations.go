package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/nomadlite/nomadlite/structs"
)

// Evaluations are the calls about evaluations.
type Evaluations struct{ client *Client }

// Evaluations gives the calls about evaluations.
func (c *Client) Evaluations() *Evaluations { return &Evaluations{client: c} }

// List gives evaluations, the oldest first.
func (e *Evaluations) List(ctx context.Context, q *QueryOptions) ([]*structs.Evaluation, *QueryMeta, error) {
	var out []*structs.Evaluation
	meta, err := e.client.get(ctx, "/v1/evaluations", q, &out)
	return out, meta, err
}

// Count gives how many evaluations there are.
func (e *Evaluations) Count(ctx context.Context, q *QueryOptions) (int, *QueryMeta, error) {
	var out structs.EvalCountResponse
	meta, err := e.client.get(ctx, "/v1/evaluations/count", q, &out)
	return out.Count, meta, err
}

// Info gives one evaluation with the stubs of those related to it.
func (e *Evaluations) Info(ctx context.Context, id string, q *QueryOptions) (*structs.Evaluation, *QueryMeta, error) {
	var out structs.Evaluation
	meta, err := e.client.get(ctx, "/v1/evaluation/"+url.PathEscape(id), q.with("related", "true"), &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Allocations gives the stubs of the allocations which an evaluation placed.
func (e *Evaluations) Allocations(ctx context.Context, id string, q *QueryOptions) (
	[]*structs.AllocationListStub, *QueryMeta, error,
) {
	var out []*structs.AllocationListStub
	meta, err := e.client.get(ctx, "/v1/evaluation/"+url.PathEscape(id)+"/allocations", q, &out)
	return out, meta, err
}

// Delete removes evaluations by id or by filter; the evaluation broker must be paused. It gives how many it removed.
func (e *Evaluations) Delete(ctx context.Context, req structs.EvalDeleteRequest, w *WriteOptions) (
	int, *WriteMeta, error,
) {
	var out structs.EvalDeleteResponse
	meta, err := e.client.write(ctx, http.MethodDelete, "/v1/evaluations", w, req, &out)
	return out.Count, meta, err
}
