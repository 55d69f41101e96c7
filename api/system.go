package api

import (
	"context"
	"net/http"
)

// System are the calls that tend the cluster.
type System struct{ client *Client }

// System gives the calls that tend the cluster.
func (c *Client) System() *System { return &System{client: c} }

// GarbageCollect removes at once all that nothing refers to any more.
func (s *System) GarbageCollect(ctx context.Context) error {
	_, err := s.client.write(ctx, http.MethodPut, "/v1/system/gc", nil, nil, nil)
	return err
}

// ReconcileSummaries counts all job summaries anew.
func (s *System) ReconcileSummaries(ctx context.Context) error {
	_, err := s.client.write(ctx, http.MethodPut, "/v1/system/reconcile/summaries", nil, nil, nil)
	return err
}
