package api

import (
	"context"
	"net/http"

	"github.com/nomadlite/nomadlite/structs"
)

// Search are the calls that find objects by what their ids begin with.
type Search struct{ client *Client }

// Search gives the calls that find objects by what their ids begin with.
func (c *Client) Search() *Search { return &Search{client: c} }

// Prefix finds up to 20 ids for each kind of object; kind is "jobs", "allocs", "evals", "nodes", "deployment",
// "node_pools", "namespaces" or "all".
func (s *Search) Prefix(ctx context.Context, prefix, kind string, q *QueryOptions) (
	*structs.SearchResponse, *QueryMeta, error,
) {
	var out structs.SearchResponse
	req := struct{ Prefix, Context string }{prefix, kind}
	meta, err := s.client.query(ctx, http.MethodPut, "/v1/search", q, req, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}
