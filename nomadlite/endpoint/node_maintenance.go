package endpoint

import (
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// maintainNode announces a downtime of a node, or ends one.
func (b *Backend) maintainNode(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.NodeMaintenanceRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	if id := r.Param("node_id"); req.NodeID != "" && req.NodeID != id {
		return structs.Errorf(structs.CodeInvalid, "NodeID %q does not match the path's %q", req.NodeID, id)
	}
	switch {
	case req.Disable && req.For != 0:
		return structs.Errorf(structs.CodeInvalid, "For and Disable exclude each other")
	case !req.Disable && req.For <= 0:
		return structs.Errorf(structs.CodeInvalid, "For must be a duration above 0")
	case req.For > structs.MaxNodeMaintenance && !req.Force:
		return structs.Errorf(structs.CodeInvalid, "a maintenance of more than %s has to be forced", structs.MaxNodeMaintenance)
	}
	node, snap, err := b.node(r)
	if err != nil {
		return err
	}
	now := b.now()
	cmd := &fsm.NodeMaintenance{NodeID: node.ID, Now: now.UnixNano(),
		Event: &structs.NodeEvent{Subsystem: "Cluster", Timestamp: stamp(now)}}
	switch {
	case req.Disable && node.Maintenance == nil:
		return answerWrite(w, q, snap.Index(), structs.NodeMaintenanceResponse{NodeModifyIndex: node.ModifyIndex})
	case req.Disable && node.Down():
		// It ends now; the leader then judges the node's silence as if nothing had been announced.
		ended := *node.Maintenance
		ended.Until = now.UTC()
		cmd.Maintenance, cmd.Event.Message = &ended, "Node maintenance ended by an operator while the node was away"
	case req.Disable:
		cmd.Event.Message = "Node maintenance ended by an operator"
		cmd.Evals = withSystemJobs(nil, snap, node, cmd.Now)
	case node.DrainStrategy != nil:
		return structs.Errorf(structs.CodeInvalid, "node is draining: that overrides a maintenance")
	case node.Down() && node.Maintenance == nil:
		return structs.Errorf(structs.CodeInvalid, "node is %s already: a maintenance is announced beforehand", node.Status)
	default:
		cmd.Maintenance = &structs.NodeMaintenance{Since: now.UTC(), Until: now.Add(req.For).UTC(), Reason: req.Reason}
		if m := node.Maintenance; m != nil {
			cmd.Maintenance.Since = m.Since
		}
		cmd.Event.Message = "Node maintenance announced until " + cmd.Maintenance.Until.Format("2006-01-02T15:04:05Z07:00")
	}
	_, index, err := b.apply(r.Context(), fsm.KindNodeMaintenance, cmd)
	if err != nil {
		return err
	}
	b.Heartbeats.Reconsider(node.ID)
	return answerWrite(w, q, index, structs.NodeMaintenanceResponse{NodeModifyIndex: index, Maintenance: cmd.Maintenance})
}
