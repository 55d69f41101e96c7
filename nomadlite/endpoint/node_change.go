package endpoint

import (
	"net/http"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func nodeWriteRoutes(b *Backend) []route.Route {
	return []route.Route{
		write("/v1/node/{node_id}/evaluate", b.handler(b.evaluateNode)),
		write("/v1/node/{node_id}/eligibility", b.handler(b.setNodeEligibility)),
		write("/v1/node/{node_id}/drain", b.handler(b.drainNode)),
		write("/v1/node/{node_id}/maintenance", b.handler(b.maintainNode)),
		write("/v1/node/{node_id}/purge", b.handler(b.purgeNode)),
	}
}

// nodeEvals makes an evaluation for each job with live allocations on the node.
func nodeEvals(snap *state.Snapshot, node *structs.Node, trigger string, now int64) []*structs.Evaluation {
	var evals []*structs.Evaluation
	seen := map[structs.NamespacedID]bool{}
	for _, alloc := range snap.AllocsByNode(nil, node.ID) {
		id := structs.NamespacedID{Namespace: alloc.Namespace, ID: alloc.JobID}
		if alloc.TerminalStatus() || alloc.Job == nil || seen[id] {
			continue
		}
		seen[id] = true
		eval := jobEval(alloc.Job, trigger, now)
		eval.NodeID, eval.NodeModifyIndex = node.ID, node.ModifyIndex
		evals = append(evals, eval)
	}
	return evals
}

// withSystemJobs adds an evaluation for each system job that is meant for the node and has none yet: it may have no
// allocation there.
func withSystemJobs(evals []*structs.Evaluation, snap *state.Snapshot, node *structs.Node, now int64) []*structs.Evaluation {
	has := map[structs.NamespacedID]bool{}
	for _, e := range evals {
		has[structs.NamespacedID{Namespace: e.Namespace, ID: e.JobID}] = true
	}
	for _, job := range snap.SystemJobs(node) {
		if has[structs.NamespacedID{Namespace: structs.Val(job.Namespace), ID: structs.Val(job.ID)}] {
			continue
		}
		eval := jobEval(job, structs.EvalTriggerNodeUpdate, now)
		eval.NodeID, eval.NodeModifyIndex = node.ID, node.ModifyIndex
		evals = append(evals, eval)
	}
	return evals
}

func evalIDs(evals []*structs.Evaluation) []string {
	ids := []string{}
	for _, eval := range evals {
		ids = append(ids, eval.ID)
	}
	return ids
}

// node reads the node which a write's path names.
func (b *Backend) node(r *route.Request) (*structs.Node, *state.Snapshot, error) {
	snap := b.Store.Snapshot()
	node := snap.Node(nil, r.Param("node_id"))
	if node == nil {
		return nil, nil, notFound("node")
	}
	return node, snap, nil
}

func (b *Backend) evaluateNode(w http.ResponseWriter, r *route.Request, q *query) error {
	node, snap, err := b.node(r)
	if err != nil {
		return err
	}
	now := b.unixNano()
	out := structs.NodePurgeResponse{NodeModifyIndex: node.ModifyIndex, EvalIDs: []string{}}
	evals := withSystemJobs(nodeEvals(snap, node, structs.EvalTriggerNodeUpdate, now), snap, node, now)
	if len(evals) == 0 {
		return answerWrite(w, q, snap.Index(), out)
	}
	_, index, err := b.apply(r.Context(), fsm.KindEvalUpdate, &fsm.EvalUpdate{Evals: evals, Now: now})
	if err != nil {
		return err
	}
	out.EvalIDs, out.EvalCreateIndex = evalIDs(evals), index
	return answerWrite(w, q, index, out)
}

func (b *Backend) setNodeEligibility(w http.ResponseWriter, r *route.Request, q *query) error {
	var req structs.NodeUpdateEligibilityRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	if req.Eligibility != structs.NodeEligible && req.Eligibility != structs.NodeIneligible {
		return structs.Errorf(structs.CodeInvalid, "invalid scheduling eligibility %q: expected %q or %q",
			req.Eligibility, structs.NodeEligible, structs.NodeIneligible)
	}
	if id := r.Param("node_id"); req.NodeID != "" && req.NodeID != id {
		return structs.Errorf(structs.CodeInvalid, "NodeID %q does not match the path's %q", req.NodeID, id)
	}
	node, snap, err := b.node(r)
	if err != nil {
		return err
	}
	if node.DrainStrategy != nil && req.Eligibility == structs.NodeEligible {
		return structs.Errorf(structs.CodeInvalid,
			"can not set node's scheduling eligibility to eligible while it is draining")
	}
	if node.SchedulingEligibility == req.Eligibility && node.Leaving == nil { // else it would get back what it had
		return answerWrite(w, q, snap.Index(), structs.NodeEligibilityUpdateResponse{NodeModifyIndex: node.ModifyIndex})
	}
	now := b.now()
	cmd := &fsm.NodeEligibility{
		NodeID:      node.ID,
		Eligibility: req.Eligibility,
		Event: &structs.NodeEvent{
			Message: "Node marked as " + req.Eligibility + " for scheduling", Subsystem: "Cluster", Timestamp: stamp(now),
		},
		Now: now.UnixNano(),
	}
	if req.Eligibility == structs.NodeEligible {
		// What waits for room is woken by the change itself; system jobs do not wait, they have nothing here.
		cmd.Evals = withSystemJobs(nil, snap, node, cmd.Now)
	}
	_, index, err := b.apply(r.Context(), fsm.KindNodeEligibility, cmd)
	if err != nil {
		return err
	}
	out := structs.NodeEligibilityUpdateResponse{NodeModifyIndex: index, EvalIDs: evalIDs(cmd.Evals)}
	if len(cmd.Evals) > 0 {
		out.EvalCreateIndex = index
	}
	return answerWrite(w, q, index, out)
}

// purgeNode removes a node, gives up what runs there and makes the evaluations that replace it.
func (b *Backend) purgeNode(w http.ResponseWriter, r *route.Request, q *query) error {
	node, snap, err := b.node(r)
	if err != nil {
		return err
	}
	cmd := &fsm.NodeDeregister{NodeIDs: []string{node.ID}, Reason: "purged by an operator", Now: b.unixNano()}
	cmd.Evals = nodeEvals(snap, node, structs.EvalTriggerNodeUpdate, cmd.Now)
	_, index, err := b.apply(r.Context(), fsm.KindNodeDeregister, cmd)
	if err != nil {
		return err
	}
	b.Heartbeats.Forget(node.ID)
	out := structs.NodePurgeResponse{NodeModifyIndex: index, EvalIDs: evalIDs(cmd.Evals)}
	if len(cmd.Evals) > 0 {
		out.EvalCreateIndex = index
	}
	// The public client reads this answer as that of a query.
	b.setReadHeaders(w, index)
	return answer(w, q, out)
}

// NodeOfAlloc finds the node which runs the allocation that the path names: for routes that only that node can answer.
func (b *Backend) NodeOfAlloc(r *route.Request) (string, error) {
	id := r.Param("alloc_id")
	alloc := b.Store.Alloc(nil, id)
	if alloc == nil {
		return "", structs.Errorf(structs.CodeNotFound, "Unknown allocation %q", id)
	}
	return b.known(alloc.NodeID)
}

// NodeOfParam finds the node which the parameter node_id names. Without one it is the client in the agent that was
// asked; an agent without a client refuses.
func (b *Backend) NodeOfParam(r *route.Request) (string, error) {
	return b.nodeOr(r.URL.Query().Get("node_id"))
}

// NodeOfBody is NodeOfParam for requests that may name the node in their body.
func (b *Backend) NodeOfBody(r *route.Request) (string, error) {
	id, err := r.NamedNode()
	if err != nil {
		return "", err
	}
	return b.nodeOr(id)
}

// nodeOr gives the node with that id, or the agent's own for none.
func (b *Backend) nodeOr(id string) (string, error) {
	if id == "" && b.LocalNode != nil {
		id = b.LocalNode()
	}
	if id == "" {
		return "", structs.Errorf(structs.CodeInvalid, "parameter node_id is missing: this agent runs no client")
	}
	return b.known(id)
}

func (b *Backend) known(nodeID string) (string, error) {
	if b.Store.Node(nil, nodeID) == nil {
		return "", structs.Errorf(structs.CodeNotFound, "Unknown node %q", nodeID)
	}
	return nodeID, nil
}
