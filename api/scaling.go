package api

import (
	"context"
	"net/url"

	"github.com/nomadlite/nomadlite/structs"
)

// Scaling are the calls for autoscalers.
type Scaling struct{ client *Client }

// Scaling gives the calls for autoscalers.
func (c *Client) Scaling() *Scaling { return &Scaling{client: c} }

// ListPolicies gives the stubs of scaling policies, the oldest first. The parameters "job" and "type" of q leave only those
// of a job or of a type.
func (s *Scaling) ListPolicies(ctx context.Context, q *QueryOptions) ([]*structs.ScalingPolicyListStub, *QueryMeta, error) {
	var out []*structs.ScalingPolicyListStub
	meta, err := s.client.get(ctx, "/v1/scaling/policies", q, &out)
	return out, meta, err
}

// GetPolicy gives a scaling policy by its id; one that is not there is an error coded as not found.
func (s *Scaling) GetPolicy(ctx context.Context, id string, q *QueryOptions) (*structs.ScalingPolicy, *QueryMeta, error) {
	var out structs.ScalingPolicy
	meta, err := s.client.get(ctx, "/v1/scaling/policy/"+url.PathEscape(id), q, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}
