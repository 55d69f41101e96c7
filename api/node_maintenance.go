package api

import (
	"context"
	"net/http"

	"github.com/nomadlite/nomadlite/structs"
)

// SetMaintenance announces a downtime of a node, or ends it; req.NodeID names the node by its whole id.
func (n *Nodes) SetMaintenance(ctx context.Context, req structs.NodeMaintenanceRequest, w *WriteOptions) (
	*structs.NodeMaintenanceResponse, *WriteMeta, error,
) {
	var out structs.NodeMaintenanceResponse
	meta, err := n.client.write(ctx, http.MethodPut, nodePath(req.NodeID, "/maintenance"), w, req, &out)
	if err != nil {
		return nil, nil, err
	}
	return &out, meta, nil
}
