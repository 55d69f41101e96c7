package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/nomadlite/nomadlite/structs"
)

// Nodes are the calls about nodes.
type Nodes struct{ client *Client }

// Nodes gives the calls about nodes.
func (c *Client) Nodes() *Nodes { return &Nodes{client: c} }

func nodePath(id, suffix string) string { return "/v1/node/" + url.PathEscape(id) + suffix }

// List gives the stubs of nodes. The parameters "os" and "resources" ask for more of each.
func (n *Nodes) List(ctx context.Context, q *QueryOptions) ([]*structs.NodeListStub, *QueryMeta, error) {
	var out []*structs.NodeListStub
	meta, err := n.client.get(ctx, "/v1/nodes", q, &out)
	return out, meta, err
}

// Info gives one node.
func (n *Nodes) Info(ctx context.Context, id string, q *QueryOptions) (*structs.Node, *QueryMeta, error) {
	var out structs.Node
	meta, err := n.client.get(ctx, nodePath(id, ""), q, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Allocations gives all allocations on a node.
func (n *Nodes) Allocations(ctx context.Context, id string, q *QueryOptions) ([]*structs.Allocation, *QueryMeta, error) {
	var out []*structs.Allocation
	meta, err := n.client.get(ctx, nodePath(id, "/allocations"), q, &out)
	return out, meta, err
}

// Evaluate makes an evaluation for each job with allocations on a node.
func (n *Nodes) Evaluate(ctx context.Context, id string, w *WriteOptions) (
	*structs.NodeDrainUpdateResponse, *WriteMeta, error,
) {
	var out structs.NodeDrainUpdateResponse
	meta, err := n.client.write(ctx, http.MethodPut, nodePath(id, "/evaluate"), w, nil, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// SetEligibility lets the scheduler use a node, or keeps it from it.
func (n *Nodes) SetEligibility(ctx context.Context, id string, eligible bool, w *WriteOptions) (
	*structs.NodeEligibilityUpdateResponse, *WriteMeta, error,
) {
	req := structs.NodeUpdateEligibilityRequest{NodeID: id, Eligibility: structs.NodeIneligible}
	if eligible {
		req.Eligibility = structs.NodeEligible
	}
	var out structs.NodeEligibilityUpdateResponse
	meta, err := n.client.write(ctx, http.MethodPut, nodePath(id, "/eligibility"), w, req, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// DrainOptions say how a node is drained, or that a drain ends.
type DrainOptions struct {
	Spec         *structs.DrainSpec // nil ends the drain
	MarkEligible bool               // with the end of a drain
	Meta         map[string]string
}

// UpdateDrain begins, changes or ends a node's drain.
func (n *Nodes) UpdateDrain(ctx context.Context, id string, opts DrainOptions, w *WriteOptions) (
	*structs.NodeDrainUpdateResponse, *WriteMeta, error,
) {
	req := structs.NodeUpdateDrainRequest{NodeID: id, DrainSpec: opts.Spec, MarkEligible: opts.MarkEligible, Meta: opts.Meta}
	var out structs.NodeDrainUpdateResponse
	meta, err := n.client.write(ctx, http.MethodPut, nodePath(id, "/drain"), w, req, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Purge removes a node and gives up what runs on it.
func (n *Nodes) Purge(ctx context.Context, id string, w *WriteOptions) (*structs.NodePurgeResponse, *WriteMeta, error) {
	var out structs.NodePurgeResponse
	meta, err := n.client.write(ctx, http.MethodPut, nodePath(id, "/purge"), w, nil, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}

// Stats gives what a node uses now; an empty id means the agent that is asked.
func (n *Nodes) Stats(ctx context.Context, id string, q *QueryOptions) (*structs.HostStats, error) {
	if id != "" {
		q = q.with("node_id", id)
	}
	var out structs.HostStats
	if _, err := n.client.get(ctx, "/v1/client/stats", q, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// Meta gives the metadata of a node; of the agent's own when id is empty.
func (n *Nodes) Meta(ctx context.Context, id string, q *QueryOptions) (*structs.NodeMetaResponse, error) {
	var out structs.NodeMetaResponse
	if id != "" {
		q = q.with("node_id", id)
	}
	if _, err := n.client.get(ctx, "/v1/client/metadata", q, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// ApplyMeta sets metadata of a node while it runs; a nil value unsets a key. Without NodeID it is the agent's own node.
func (n *Nodes) ApplyMeta(ctx context.Context, req structs.NodeMetaApplyRequest, w *WriteOptions) (*structs.NodeMetaResponse, error) {
	var out structs.NodeMetaResponse
	if _, err := n.client.write(ctx, http.MethodPost, "/v1/client/metadata", w, req, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// GC removes what stopped allocations left on a node; an empty id means the agent that is asked.
func (n *Nodes) GC(ctx context.Context, id string, q *QueryOptions) error {
	if id != "" {
		q = q.with("node_id", id)
	}
	_, err := n.client.get(ctx, "/v1/client/gc", q, nil)
	return err
}
