package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/nomadlite/nomadlite/structs"
)

// NodePools are the calls about node pools.
type NodePools struct{ client *Client }

// NodePools gives the calls about node pools.
func (c *Client) NodePools() *NodePools { return &NodePools{client: c} }

// List gives all node pools.
func (n *NodePools) List(ctx context.Context, q *QueryOptions) ([]*structs.NodePool, *QueryMeta, error) {
	var out []*structs.NodePool
	meta, err := n.client.get(ctx, "/v1/node/pools", q, &out)
	return out, meta, err
}

// Info gives one node pool.
func (n *NodePools) Info(ctx context.Context, name string, q *QueryOptions) (*structs.NodePool, *QueryMeta, error) {
	var out structs.NodePool
	meta, err := n.client.get(ctx, "/v1/node/pool/"+url.PathEscape(name), q, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Register stores a node pool.
func (n *NodePools) Register(ctx context.Context, pool *structs.NodePool, w *WriteOptions) (*WriteMeta, error) {
	return n.client.write(ctx, http.MethodPut, "/v1/node/pools", w, pool, nil)
}

// Delete removes a node pool; no node and no job may be in it.
func (n *NodePools) Delete(ctx context.Context, name string, w *WriteOptions) (*WriteMeta, error) {
	return n.client.write(ctx, http.MethodDelete, "/v1/node/pool/"+url.PathEscape(name), w, nil, nil)
}

// Nodes gives the stubs of a pool's nodes.
func (n *NodePools) Nodes(ctx context.Context, name string, q *QueryOptions) (
	[]*structs.NodeListStub, *QueryMeta, error,
) {
	var out []*structs.NodeListStub
	meta, err := n.client.get(ctx, "/v1/node/pool/"+url.PathEscape(name)+"/nodes", q, &out)
	return out, meta, err
}

// Jobs gives the stubs of a pool's jobs.
func (n *NodePools) Jobs(ctx context.Context, name string, q *QueryOptions) ([]*structs.JobListStub, *QueryMeta, error) {
	var out []*structs.JobListStub
	meta, err := n.client.get(ctx, "/v1/node/pool/"+url.PathEscape(name)+"/jobs", q, &out)
	return out, meta, err
}
