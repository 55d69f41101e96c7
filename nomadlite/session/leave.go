package session

import (
	"context"
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
	if req.Final {
		if err := p.left(r.Context(), node, req.Eligibility); err != nil {
			return err
		}
		return writeCBOR(w, &structs.NodeLeaveResponse{})
	}
	now := p.cfg.Now()
	if req.Drain != nil {
		err = p.write(r.Context(), fsm.KindNodeDrain, drainToLeave(node, req.Drain, now))
	} else {
		err = p.stopToLeave(r.Context(), node, now)
	}
	if err != nil {
		return err
	}
	return writeCBOR(w, &structs.NodeLeaveResponse{Eligibility: node.SchedulingEligibility})
}

func (p *NodeProtocol) write(ctx context.Context, kind fsm.Kind, req any) error {
	_, _, err := p.cfg.Raft.Apply(ctx, kind, req)
	return err
}

func leaveEvent(message string, now time.Time) *structs.NodeEvent {
	return &structs.NodeEvent{Message: message, Subsystem: "Cluster", Timestamp: now.UTC()}
}

func drainToLeave(node *structs.Node, spec *structs.DrainSpec, now time.Time) *fsm.NodeDrain {
	strategy := &structs.DrainStrategy{DrainSpec: *spec}
	if spec.Deadline > 0 {
		strategy.ForceDeadline = now.Add(spec.Deadline).UTC()
	}
	return &fsm.NodeDrain{NodeID: node.ID, Strategy: strategy, Now: now.UnixNano(),
		Event: leaveEvent("Node is leaving: it is drained", now)}
}

// stopToLeave makes the node ineligible and lets what runs there be placed elsewhere once its end is observed. No
// evaluation comes with it: the node ends its allocations itself, and each report of an end brings one.
func (p *NodeProtocol) stopToLeave(ctx context.Context, node *structs.Node, now time.Time) error {
	err := p.write(ctx, fsm.KindNodeEligibility, &fsm.NodeEligibility{NodeID: node.ID, Eligibility: structs.NodeIneligible,
		Event: leaveEvent("Node is leaving", now), Now: now.UnixNano()})
	if err != nil {
		return err
	}
	moves := map[string]*structs.DesiredTransition{}
	for _, a := range p.cfg.Store.AllocsByNode(nil, node.ID) {
		if !a.TerminalStatus() {
			moves[a.ID] = &structs.DesiredTransition{Reschedule: structs.Ptr(true)}
		}
	}
	if len(moves) == 0 {
		return nil
	}
	return p.write(ctx, fsm.KindAllocTransition, &fsm.AllocTransition{Transitions: moves, Now: now.UnixNano()})
}

// left writes that the node is down: what it did not report to have ended is lost. Then it gets back the eligibility
// which it had, for when it comes again.
func (p *NodeProtocol) left(ctx context.Context, node *structs.Node, eligibility string) error {
	now := p.cfg.Now()
	update := fsm.NodeStatusUpdate{NodeID: node.ID, Status: structs.NodeStatusDown, EndMaintenance: node.Maintenance != nil,
		Event: leaveEvent("Node left", now), Conditions: map[string]structs.Condition{}}
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
	if node.DrainStrategy != nil {
		return p.write(ctx, fsm.KindNodeDrain, &fsm.NodeDrain{NodeID: node.ID, Complete: true,
			MarkEligible: eligibility == structs.NodeEligible, Now: req.Now})
	}
	if eligibility == "" || eligibility == node.SchedulingEligibility {
		return nil
	}
	return p.write(ctx, fsm.KindNodeEligibility, &fsm.NodeEligibility{NodeID: node.ID, Eligibility: eligibility, Now: req.Now})
}
