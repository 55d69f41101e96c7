package session

import (
	"net/http"
	"time"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// reasonAway is why a node is in a maintenance that its own agent announced.
const reasonAway = "agent expects to be back"

// away announces a downtime at the wish of the node's agent, which is about to end. What an operator announced is never
// made shorter by that, and stays his.
func (p *NodeProtocol) away(w http.ResponseWriter, r *route.Request) error {
	var req structs.NodeAwayRequest
	if err := readCBOR(r, &req); err != nil {
		return err
	}
	node, err := p.own(r, req.NodeID, req.SecretID)
	switch {
	case err != nil:
		return err
	case node == nil:
		return structs.ErrNodeNotFound
	case req.For <= 0 || req.For > structs.MaxNodeMaintenance:
		return structs.Errorf(structs.CodeInvalid, "a node may be expected back within %s, not within %s", structs.MaxNodeMaintenance, req.For)
	case node.DrainStrategy != nil:
		return structs.Errorf(structs.CodeInvalid, "node is draining: that overrides a maintenance")
	}
	now := p.cfg.Now()
	m := &structs.NodeMaintenance{Since: now.UTC(), Until: now.Add(req.For).UTC(), Reason: reasonAway, UntilBack: true}
	if old := node.Maintenance; old != nil && !old.UntilBack {
		m = old.Copy()
		if until := now.Add(req.For).UTC(); until.After(m.Until) {
			m.Until = until
		}
	}
	err = p.write(r.Context(), fsm.KindNodeMaintenance, &fsm.NodeMaintenance{NodeID: node.ID, Maintenance: m, Now: now.UnixNano(),
		Event: leaveEvent("Node's agent ends and expects to be back until "+m.Until.Format(time.RFC3339), now)})
	if err != nil {
		return err
	}
	p.cfg.Heartbeats.Reconsider(node.ID)
	return writeCBOR(w, &structs.NodeAwayResponse{Until: m.Until})
}

// back ends the maintenance that the agent before this one announced. The node gets nothing new all the same before it has
// reported what became of its allocations.
func (p *NodeProtocol) back(r *route.Request, node *structs.Node) error {
	now := p.cfg.Now()
	update := fsm.NodeStatusUpdate{NodeID: node.ID, EndMaintenance: true,
		Event: leaveEvent("Node is back, its maintenance is over", now)}
	if node.Status == structs.NodeStatusReady {
		update.Status = structs.NodeStatusInit
	}
	req := &fsm.NodeStatus{Updates: []fsm.NodeStatusUpdate{update}, Now: now.UnixNano()}
	if err := p.write(r.Context(), fsm.KindNodeStatus, req); err != nil {
		return err
	}
	p.cfg.Heartbeats.Reconsider(node.ID)
	return nil
}
