package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/nomadlite/nomadlite/structs"
)

// Services are the calls about the cluster's own registry of services.
type Services struct{ client *Client }

// Services gives the calls about services.
func (c *Client) Services() *Services { return &Services{client: c} }

// List gives the names of services with the tags of their instances, by namespace.
func (s *Services) List(ctx context.Context, q *QueryOptions) ([]*structs.ServiceRegistrationListStub, *QueryMeta, error) {
	var out []*structs.ServiceRegistrationListStub
	meta, err := s.client.get(ctx, "/v1/services", q, &out)
	return out, meta, err
}

// Get gives the instances of a service; there may be none.
func (s *Services) Get(ctx context.Context, name string, q *QueryOptions) ([]*structs.ServiceRegistration, *QueryMeta, error) {
	var out []*structs.ServiceRegistration
	meta, err := s.client.get(ctx, "/v1/service/"+url.PathEscape(name), q, &out)
	return out, meta, err
}

// Delete removes one instance from the registry. What offers it goes on.
func (s *Services) Delete(ctx context.Context, name, id string, w *WriteOptions) (*WriteMeta, error) {
	return s.client.write(ctx, http.MethodDelete, "/v1/service/"+url.PathEscape(name)+"/"+url.PathEscape(id), w, nil, nil)
}

// Services gives the instances of services which a job's allocations offer.
func (j *Jobs) Services(ctx context.Context, jobID string, q *QueryOptions) ([]*structs.ServiceRegistration, *QueryMeta, error) {
	var out []*structs.ServiceRegistration
	meta, err := j.client.get(ctx, "/v1/job/"+url.PathEscape(jobID)+"/services", q, &out)
	return out, meta, err
}

// Services gives the instances of services which an allocation offers.
func (a *Allocations) Services(ctx context.Context, id string, q *QueryOptions) ([]*structs.ServiceRegistration, *QueryMeta, error) {
	var out []*structs.ServiceRegistration
	meta, err := a.client.get(ctx, "/v1/allocation/"+url.PathEscape(id)+"/services", q, &out)
	return out, meta, err
}
