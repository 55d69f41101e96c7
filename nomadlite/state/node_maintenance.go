package state

import (
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// SetNodeMaintenance announces a downtime of a node, or ends it (m nil). A later end also holds for the allocations that
// are away already. It fails with structs.ErrNodeNotFound.
func (tx *Txn) SetNodeMaintenance(id string, m *structs.NodeMaintenance, event *structs.NodeEvent, now int64) error {
	err := tx.editNode(id, func(row *structs.Node) {
		row.Maintenance = m.Copy()
		tx.addNodeEvent(row, event, now)
	})
	if err != nil || m == nil {
		return err
	}
	for _, alloc := range slices.Clone(tx.allocsByNode(id)) {
		if c := alloc.Condition; c.Status == structs.ConditionAway {
			c.Until, c.Reason = m.Until, m.Reason
			tx.setCondition(alloc, c, now)
		}
	}
	return nil
}

// overrideMaintenance ends a node's maintenance because the node is drained. What is away on one that is silent would be
// waited for all the same: there the maintenance is over as of now, and the leader judges the node's silence.
func (tx *Txn) overrideMaintenance(id string, now int64) error {
	node := tx.node(id)
	if node.Maintenance == nil {
		return nil
	}
	if !node.Down() {
		return tx.SetNodeMaintenance(id, nil, nil, now)
	}
	ended := *node.Maintenance
	ended.Until = unixTime(now)
	return tx.SetNodeMaintenance(id, &ended, nil, now)
}
