package state

import (
	"iter"
	"maps"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

const (
	indexSecret = "secret"
	// keptNodeEvents is how many events of a node are kept.
	keptNodeEvents = 10

	nodeEventCluster = "Cluster"
	nodeEventDrain   = "Drain"
)

func nodesTable() *table {
	return plainTable(TableNodes, func(n *structs.Node) string { return n.ID },
		manyIndex(indexSecret, func(n *structs.Node) (string, bool) { return n.SecretID, n.SecretID != "" }))
}

// Node gives a node by id, nil when there is none.
func (r Reader) Node(ws memdb.WatchSet, id string) *structs.Node {
	return get[*structs.Node](r.at(), ws, TableNodes, indexID, id)
}

// Nodes gives all nodes by id.
func (r Reader) Nodes(ws memdb.WatchSet) iter.Seq[*structs.Node] { return r.NodesByPrefix(ws, "") }

// NodesByPrefix gives the nodes whose id begins with prefix.
func (r Reader) NodesByPrefix(ws memdb.WatchSet, prefix string) iter.Seq[*structs.Node] {
	return scan[*structs.Node](r.at(), ws, TableNodes, indexID, prefix)
}

// NodeBySecretID gives the node with that secret, nil when there is none or secret is empty.
func (r Reader) NodeBySecretID(secret string) *structs.Node {
	if secret == "" {
		return nil
	}
	for node := range scan[*structs.Node](r.at(), nil, TableNodes, indexSecret, secret) {
		if node.SecretID == secret {
			return node
		}
	}
	return nil
}

func (tx *Txn) node(id string) *structs.Node { return lookup[*structs.Node](tx, TableNodes, id) }

// RegisterNode stores what a node says of itself. Status, eligibility, drain and events are the servers' and stay as
// they are; a new node may say that it is ready. The node's pool is made when it does not exist. It fails with
// CodePermission when the node is known by another secret.
func (tx *Txn) RegisterNode(node *structs.Node, now int64) error {
	row := *node
	old := tx.node(node.ID)
	message := ""
	if old == nil {
		row.Canonicalize()
		if row.Status != structs.NodeStatusReady {
			row.Status = structs.NodeStatusInit
		}
		row.CreateIndex, row.StatusUpdatedAt, row.Events = tx.index, wholeSeconds(now), nil
		row.LastDrain, row.Maintenance, row.Leaving = nil, nil, nil
		message = "Node registered"
	} else {
		if old.SecretID != "" && old.SecretID != node.SecretID {
			return structs.Errorf(structs.CodePermission, "node secret ID does not match that of node %s", node.ID)
		}
		keepServerOwned(&row, old)
		row.Canonicalize()
		if old.Status == structs.NodeStatusDown || old.Status == structs.NodeStatusDisconnected {
			message = "Node re-registered"
		}
	}
	row.ModifyIndex = tx.index
	row.ComputeClass()
	if message != "" {
		tx.addNodeEvent(&row, &structs.NodeEvent{Message: message, Subsystem: nodeEventCluster, Timestamp: unixTime(now)}, now)
	}
	if lookup[*structs.NodePool](tx, TableNodePools, row.NodePool) == nil {
		tx.putNodePool(&structs.NodePool{Name: row.NodePool})
	}
	tx.put(TableNodes, &row)
	if old != nil && (row.Lease != old.Lease || row.MaxKillTimeout != old.MaxKillTimeout) {
		tx.releaseOnNode(row.ID, now)
	}
	return nil
}

// wholeSeconds rounds a time in nanoseconds up: what counts from a status change never ends early, and the change is
// later than every whole second before it.
func wholeSeconds(now int64) int64 { return (now + 1e9 - 1) / 1e9 }

func keepServerOwned(row, old *structs.Node) {
	row.Status, row.StatusDescription, row.StatusUpdatedAt = old.Status, old.StatusDescription, old.StatusUpdatedAt
	row.SchedulingEligibility = old.SchedulingEligibility
	row.Drain, row.DrainStrategy, row.LastDrain = old.Drain, old.DrainStrategy, old.LastDrain
	row.Events, row.CreateIndex, row.Maintenance, row.Leaving = old.Events, old.CreateIndex, old.Maintenance, old.Leaving
}

func (tx *Txn) addNodeEvent(row *structs.Node, event *structs.NodeEvent, now int64) {
	if event == nil {
		return
	}
	e := *event
	e.CreateIndex = tx.index
	if e.Timestamp.IsZero() {
		e.Timestamp = unixTime(now)
	}
	events := append(slices.Clone(row.Events), &e)
	row.Events = events[max(0, len(events)-keptNodeEvents):]
}

// editNode changes a node's row. It fails with structs.ErrNodeNotFound.
func (tx *Txn) editNode(id string, edit func(*structs.Node)) error {
	old := tx.node(id)
	if old == nil {
		return structs.ErrNodeNotFound
	}
	row := *old
	edit(&row)
	row.ModifyIndex = tx.index
	tx.put(TableNodes, &row)
	return nil
}

// SetNodeStatus changes a node's status, and the conditions of the allocations named that are on it. It fails with
// structs.ErrNodeNotFound.
func (tx *Txn) SetNodeStatus(id, status string, event *structs.NodeEvent, conditions map[string]structs.Condition, now int64) error {
	err := tx.editNode(id, func(row *structs.Node) {
		if status != "" && status != row.Status {
			row.Status, row.StatusUpdatedAt = status, wholeSeconds(now)
		}
		tx.addNodeEvent(row, event, now)
	})
	if err != nil {
		return err
	}
	for _, allocID := range slices.Sorted(maps.Keys(conditions)) {
		if alloc := tx.alloc(allocID); alloc != nil && alloc.NodeID == id {
			tx.setCondition(alloc, conditions[allocID], now)
		}
	}
	return nil
}

// DeregisterNode removes a node. What ran there and was not observed to end is lost. What its group does not want replaced
// is also told to stop: no plan ever would, and a node that lives and registers anew would run it on for ever, lost. It
// says whether the node was there.
func (tx *Txn) DeregisterNode(id, reason string, now int64) bool {
	if tx.node(id) == nil {
		return false
	}
	lost := structs.Condition{Status: structs.ConditionLost, Since: unixTime(now), Reason: reason}
	for _, alloc := range tx.allocsByNode(id) {
		if !alloc.ObservedTerminal() {
			given := tx.setCondition(tx.alloc(alloc.ID), lost, now) // the loss of one may have released another
			if given.DesiredStatus == structs.AllocDesiredStatusRun && !given.Group().ReplacedUnheard() {
				stop := *given
				stop.DesiredStatus, stop.DesiredDescription = structs.AllocDesiredStatusStop, "its node was removed"
				stop.AllocModifyIndex = tx.index
				tx.putAlloc(given, &stop, now)
			}
		}
	}
	tx.remove(TableNodes, id)
	return true
}

// ReapNode removes a node that is down together with the allocations which ended or were orphaned there. It says
// whether it did: a node that came back, or on which something may still be wanted, stays.
func (tx *Txn) ReapNode(id, reason string, now int64) bool {
	node := tx.node(id)
	if node == nil || node.Status != structs.NodeStatusDown {
		return false
	}
	allocs := tx.allocsByNode(id)
	for _, alloc := range allocs {
		if !alloc.ClientTerminal() {
			return false
		}
	}
	for _, alloc := range allocs {
		if alloc.Orphaned() {
			tx.store.log.Info("removed an orphaned allocation with its node", "alloc_id", alloc.ID, "node_id", id, "reason", reason)
			tx.deleteAlloc(alloc)
		}
	}
	tx.remove(TableNodes, id)
	return true
}

// SetNodeEligibility makes a node eligible or not; of one that leaves that is then what counts. A draining node cannot be
// made eligible (CodeValidation). It fails with structs.ErrNodeNotFound.
func (tx *Txn) SetNodeEligibility(id, eligibility string, event *structs.NodeEvent, now int64) error {
	if old := tx.node(id); old != nil && old.DrainStrategy != nil && eligibility == structs.NodeEligible {
		return structs.Errorf(structs.CodeValidation, "can not set node's scheduling eligibility to eligible while it is draining")
	}
	return tx.editNode(id, func(row *structs.Node) {
		row.SchedulingEligibility, row.Leaving = eligibility, nil
		tx.addNodeEvent(row, event, now)
	})
}

// NodeDrainChange begins, changes or ends a node's drain; see SetNodeDrain.
type NodeDrainChange struct {
	NodeID   string
	Strategy *structs.DrainStrategy // nil ends the drain
	Complete bool                   // the drain ended because nothing is left to drain, not because it was cancelled
	// NodeModifyIndex makes the end of a drain count only for the node as it was then; 0 for any.
	NodeModifyIndex uint64
	MarkEligible    bool
	Meta            map[string]string
	Event           *structs.NodeEvent
	Now             int64
}

// SetNodeDrain begins, changes or ends a node's drain. A drain that is cancelled takes the options of its stops from
// the allocations that run on. It fails with structs.ErrNodeNotFound.
func (tx *Txn) SetNodeDrain(c NodeDrainChange) error {
	if old := tx.node(c.NodeID); c.Complete && old != nil && c.NodeModifyIndex != 0 && old.ModifyIndex != c.NodeModifyIndex {
		return nil // somebody was quicker: it is judged again
	}
	err := tx.editNode(c.NodeID, func(row *structs.Node) {
		was := row.DrainStrategy != nil
		row.LastDrain = drainMetadata(row.LastDrain, was, c)
		row.DrainStrategy, row.Drain = nil, c.Strategy != nil
		if !c.Complete { // else it is a leaving node's own that is over
			row.Leaving = nil
		}
		switch {
		case c.Strategy != nil:
			strategy := *c.Strategy
			if strategy.StartedAt.IsZero() {
				strategy.StartedAt = row.LastDrain.StartedAt
			}
			row.DrainStrategy = &strategy
			row.SchedulingEligibility = structs.NodeIneligible
		case c.MarkEligible:
			row.SchedulingEligibility = structs.NodeEligible
		}
		tx.addNodeEvent(row, c.Event, c.Now)
	})
	if err != nil {
		return err
	}
	if c.Strategy != nil {
		return tx.overrideMaintenance(c.NodeID, c.Now)
	}
	if !c.Complete {
		tx.clearStopOptions(tx.notStoppedOnNode(c.NodeID), c.Now)
	}
	return nil
}

// notStoppedOnNode gives a node's allocations without those of jobs that were stopped or purged: the scheduler may not
// have come to these yet, and the options which they have are those of that stop.
func (tx *Txn) notStoppedOnNode(nodeID string) []*structs.Allocation {
	var out []*structs.Allocation
	for _, a := range tx.allocsByNode(nodeID) {
		if job := tx.job(a.Namespace, a.JobID); job != nil && !job.Stop {
			out = append(out, a)
		}
	}
	return out
}

// drainMetadata is what the node tells of its last drain after the change.
func drainMetadata(old *structs.DrainMetadata, was bool, c NodeDrainChange) *structs.DrainMetadata {
	now := unixTime(c.Now)
	var m structs.DrainMetadata
	if old != nil && was {
		m = *old
	} else if c.Strategy == nil {
		return old // there was no drain to end
	}
	m.UpdatedAt = now
	if c.Meta != nil {
		m.Meta = c.Meta
	}
	switch {
	case c.Strategy != nil && !was:
		m.StartedAt, m.Status = now, "draining"
	case c.Strategy != nil:
		m.Status = "draining"
	case c.Complete:
		m.Status = "complete"
	default:
		m.Status = "canceled"
	}
	return &m
}

// AddNodeEvents appends events to a node. It fails with structs.ErrNodeNotFound.
func (tx *Txn) AddNodeEvents(id string, events []*structs.NodeEvent, now int64) error {
	return tx.editNode(id, func(row *structs.Node) {
		for _, event := range events {
			tx.addNodeEvent(row, event, now)
		}
	})
}
