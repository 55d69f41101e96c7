package endpoint

import (
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// drainNode begins, changes or ends a drain. What leaves the node, and when, is for the leader's drain duty.
func (b *Backend) drainNode(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.NodeUpdateDrainRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	if id := r.Param("node_id"); req.NodeID != "" && req.NodeID != id {
		return structs.Errorf(structs.CodeInvalid, "NodeID %q does not match the path's %q", req.NodeID, id)
	}
	spec, err := drainSpec(&req, q)
	if err != nil {
		return err
	}
	node, snap, err := b.node(r)
	if err != nil {
		return err
	}
	now := b.now()
	cmd := &fsm.NodeDrain{NodeID: node.ID, MarkEligible: req.MarkEligible && spec == nil, Meta: req.Meta, Now: now.UnixNano()}
	event := &structs.NodeEvent{Message: "Node drain strategy unset", Subsystem: "Drain", Timestamp: stamp(now)}
	switch {
	case spec != nil:
		event.Message = "Node drain strategy set"
		cmd.Event, cmd.Strategy = event, &structs.DrainStrategy{DrainSpec: *spec}
		if spec.Deadline > 0 {
			cmd.Strategy.ForceDeadline = stamp(now.Add(spec.Deadline))
		}
		if old := node.DrainStrategy; old != nil { // it goes on with other terms
			event.Message = "Node drain strategy updated"
			cmd.Strategy.StartedAt = old.StartedAt
		}
	case node.DrainStrategy != nil:
		cmd.Event = event
	}
	if spec == nil && req.MarkEligible {
		cmd.Evals = withSystemJobs(nil, snap, node, cmd.Now)
	}
	_, index, err := b.apply(r.Context(), fsm.KindNodeDrain, cmd)
	if err != nil {
		return err
	}
	if spec != nil && node.Maintenance != nil {
		b.Heartbeats.Reconsider(node.ID) // a drain ends it
	}
	out := structs.NodeDrainUpdateResponse{NodeModifyIndex: index, EvalIDs: evalIDs(cmd.Evals)}
	if len(cmd.Evals) > 0 {
		out.EvalCreateIndex = index
	}
	return answerWrite(w, q, index, out)
}

// drainSpec is what a request asks for, nil when it ends a drain. The options of the stops may come as parameters too.
func drainSpec(req *structs.NodeUpdateDrainRequest, q *query) (*structs.DrainSpec, error) {
	how, err := q.stopOptions()
	if err != nil {
		return nil, err
	}
	if req.DrainSpec == nil {
		if how.noShutdownDelay || how.killTimeout != nil {
			return nil, structs.Errorf(structs.CodeInvalid,
				"no_shutdown_delay and kill_timeout are options of a drain that begins or goes on, not of its end")
		}
		return nil, nil
	}
	spec := *req.DrainSpec
	spec.NoShutdownDelay = spec.NoShutdownDelay || how.noShutdownDelay
	if how.killTimeout != nil {
		spec.KillTimeout = how.killTimeout
	}
	if spec.KillTimeout != nil && *spec.KillTimeout < 0 {
		return nil, structs.Errorf(structs.CodeInvalid, "KillTimeout must be 0 or more, not %s", *spec.KillTimeout)
	}
	return &spec, nil
}
