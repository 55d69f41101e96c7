package api

import (
	"context"
	"net/url"

	"github.com/nomadlite/nomadlite/structs"
)

// Deployments are the calls about deployments.
type Deployments struct{ client *Client }

// Deployments gives the calls about deployments.
func (c *Client) Deployments() *Deployments { return &Deployments{client: c} }

// List gives deployments.
func (d *Deployments) List(ctx context.Context, q *QueryOptions) ([]*structs.Deployment, *QueryMeta, error) {
	var out []*structs.Deployment
	meta, err := d.client.get(ctx, "/v1/deployments", q, &out)
	return out, meta, err
}

// Info gives one deployment.
func (d *Deployments) Info(ctx context.Context, id string, q *QueryOptions) (*structs.Deployment, *QueryMeta, error) {
	var out structs.Deployment
	meta, err := d.client.get(ctx, "/v1/deployment/"+url.PathEscape(id), q, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Allocations gives the stubs of a deployment's allocations.
func (d *Deployments) Allocations(ctx context.Context, id string, q *QueryOptions) (
	[]*structs.AllocationListStub, *QueryMeta, error,
) {
	var out []*structs.AllocationListStub
	meta, err := d.client.get(ctx, "/v1/deployment/allocations/"+url.PathEscape(id), q, &out)
	return out, meta, err
}
