package session

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// reasonLeft is why what a node leaves behind is lost.
const reasonLeft = "left"

// leave takes a node out of the cluster in two steps: first nothing new is placed there, and what runs is to be placed
// elsewhere as soon as it was observed to have ended; in the end it is down at once.
func (p *NodeProtocol) leave(w http.ResponseWriter, r *route.Request) error {
	var req structs.NodeLeaveRequest
	if err := readCBOR(r, &req); err != nil {
		return err
	}
	node, err := p.own(r, req.NodeID, req.SecretID)
	if err != nil {
		return err
	}
	if node == nil {
		return structs.ErrNodeNotFound
	}
	now := p.cfg.Now()
	if req.Final {
		err = p.left(r.Context(), node, now)
	} else {
		err = p.write(r.Context(), fsm.KindNodeLeave, beginToLeave(node, &req, now))
	}
	if err != nil {
		return err
	}
	return writeCBOR(w, struct{}{})
}

func (p *NodeProtocol) write(ctx context.Context, kind fsm.Kind, req any) error {
	_, _, err := p.cfg.Raft.Apply(ctx, kind, req)
	return err
}

func leaveEvent(message string, now time.Time) *structs.NodeEvent {
	return &structs.NodeEvent{Message: message, Subsystem: "Cluster", Timestamp: now.UTC()}
}

// beginToLeave makes the node ineligible. No evaluation comes with it: the node ends its allocations itself, and each report
// of an end brings one, or the drain stops them.
func beginToLeave(node *structs.Node, req *structs.NodeLeaveRequest, now time.Time) *fsm.NodeLeave {
	out := &fsm.NodeLeave{NodeID: node.ID, Agent: req.Agent, Event: leaveEvent("Node is leaving", now), Now: now.UnixNano()}
	if req.Drain == nil {
		return out
	}
	out.Event.Message = "Node is leaving: it is drained"
	out.Drain = &structs.DrainStrategy{DrainSpec: *req.Drain}
	if req.Drain.Deadline > 0 {
		out.Drain.ForceDeadline = now.Add(req.Drain.Deadline).UTC()
	}
	return out
}

// returned ends the leaving of a node whose agent was killed meanwhile: agent is another process than the one that left.
// What it had told to stop goes on stopping. The node gets nothing new before it has reported what became of its
// allocations.
func (p *NodeProtocol) returned(ctx context.Context, node *structs.Node, agent string) error {
	if node == nil || node.Leaving == nil || agent == "" || agent == node.Leaving.Agent {
		return nil
	}
	now := p.cfg.Now()
	update := fsm.NodeStatusUpdate{NodeID: node.ID, EndLeaving: true, Agent: agent,
		Event: leaveEvent("Node is back: its agent ended before it had left", now)}
	if node.Status == structs.NodeStatusReady {
		update.Status = structs.NodeStatusInit
	}
	if err := p.write(ctx, fsm.KindNodeStatus, &fsm.NodeStatus{Updates: []fsm.NodeStatusUpdate{update}, Now: now.UnixNano()}); err != nil {
		return fmt.Errorf("end leaving: %w", err)
	}
	return nil
}

// left writes that the node is down: what it did not report to have ended is lost. It gets back the eligibility which it
// had, for when it comes again.
func (p *NodeProtocol) left(ctx context.Context, node *structs.Node, now time.Time) error {
	update := fsm.NodeStatusUpdate{NodeID: node.ID, Status: structs.NodeStatusDown, EndMaintenance: node.Maintenance != nil,
		EndLeaving: true, Event: leaveEvent("Node left", now), Conditions: map[string]structs.Condition{}}
	req := &fsm.NodeStatus{Now: now.UnixNano()}
	seen := map[structs.NamespacedID]bool{}
	for _, a := range p.cfg.Store.AllocsByNode(nil, node.ID) {
		if a.ClientTerminal() {
			continue
		}
		update.Conditions[a.ID] = structs.Condition{Status: structs.ConditionLost, Since: now.UTC(), Reason: reasonLeft}
		id := structs.NamespacedID{Namespace: a.Namespace, ID: a.JobID}
		if a.Job == nil || seen[id] {
			continue
		}
		seen[id] = true
		req.Evals = append(req.Evals, &structs.Evaluation{ID: uuid.New(), Namespace: a.Namespace, JobID: a.JobID, NodeID: node.ID,
			Type: structs.Val(a.Job.Type), Priority: structs.Val(a.Job.Priority), TriggeredBy: structs.EvalTriggerNodeUpdate,
			Status: structs.EvalStatusPending, CreateTime: req.Now, ModifyTime: req.Now})
	}
	req.Updates = []fsm.NodeStatusUpdate{update}
	if err := p.write(ctx, fsm.KindNodeStatus, req); err != nil {
		return err
	}
	p.cfg.Heartbeats.Forget(node.ID)
	return nil
}
