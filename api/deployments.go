package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

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

// change makes a call that changes a deployment.
func (d *Deployments) change(ctx context.Context, what, id string, body any, w *WriteOptions) (
	*structs.DeploymentUpdateResponse, *WriteMeta, error,
) {
	var out structs.DeploymentUpdateResponse
	meta, err := d.client.write(ctx, http.MethodPut, "/v1/deployment/"+what+"/"+url.PathEscape(id), w, body, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// FailOptions are the options of the stops which the failure of a deployment causes.
type FailOptions struct {
	NoShutdownDelay bool
	KillTimeout     *time.Duration // shortens the wait before SIGKILL for these stops alone
}

// Fail ends a deployment. A nil opts means none.
func (d *Deployments) Fail(ctx context.Context, id string, opts *FailOptions, w *WriteOptions) (
	*structs.DeploymentUpdateResponse, *WriteMeta, error,
) {
	params := map[string]string{}
	if opts != nil {
		setTrue(params, "no_shutdown_delay", opts.NoShutdownDelay)
		if opts.KillTimeout != nil {
			params["kill_timeout"] = opts.KillTimeout.String()
		}
	}
	return d.change(ctx, "fail", id, structs.DeploymentFailRequest{DeploymentID: id}, w.with(params))
}

// Pause holds a deployment, or lets it go on.
func (d *Deployments) Pause(ctx context.Context, id string, pause bool, w *WriteOptions) (
	*structs.DeploymentUpdateResponse, *WriteMeta, error,
) {
	return d.change(ctx, "pause", id, structs.DeploymentPauseRequest{DeploymentID: id, Pause: pause}, w)
}

// Promote makes the canaries of groups ordinary allocations; no names mean all groups.
func (d *Deployments) Promote(ctx context.Context, id string, groups []string, w *WriteOptions) (
	*structs.DeploymentUpdateResponse, *WriteMeta, error,
) {
	req := structs.DeploymentPromoteRequest{DeploymentID: id, All: len(groups) == 0, Groups: groups}
	return d.change(ctx, "promote", id, req, w)
}

// SetAllocHealth says which allocations of a deployment are well and which are not; one that is not fails it.
func (d *Deployments) SetAllocHealth(ctx context.Context, id string, healthy, unhealthy []string, w *WriteOptions) (
	*structs.DeploymentUpdateResponse, *WriteMeta, error,
) {
	req := structs.DeploymentAllocHealthRequest{DeploymentID: id, HealthyAllocationIDs: healthy, UnhealthyAllocationIDs: unhealthy}
	return d.change(ctx, "allocation-health", id, req, w)
}

// Unblock lets a deployment end that waits for other regions of its job; any other is refused.
func (d *Deployments) Unblock(ctx context.Context, id string, w *WriteOptions) (
	*structs.DeploymentUpdateResponse, *WriteMeta, error,
) {
	return d.change(ctx, "unblock", id, structs.DeploymentUnblockRequest{DeploymentID: id}, w)
}
