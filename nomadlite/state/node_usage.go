package state

import (
	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

// usageRow is what the allocations on a node hold.
type usageRow struct {
	nodeID string
	usage  *structs.NodeUsage
}

func usageTable() *table {
	key := func(r *usageRow) string { return r.nodeID }
	return &table{
		name:    tableUsage,
		indexes: []*memdb.IndexSchema{idIndex(key)},
		rowKey:  func(row any) string { return key(row.(*usageRow)) },
		derived: true,
	}
}

var noUsage = &structs.NodeUsage{}

// NodeUsage gives what the allocations on a node hold: those whose end is neither observed nor inferred, stopping ones
// included. It is never nil.
func (r Reader) NodeUsage(nodeID string) *structs.NodeUsage {
	if row := get[*usageRow](r.at(), nil, tableUsage, indexID, nodeID); row != nil {
		return row.usage
	}
	return noUsage
}

// useNode counts an allocation out of and into its node's usage; before and after may be nil.
func (tx *Txn) useNode(before, after *structs.Allocation) {
	was := before != nil && before.HoldsResources()
	is := after != nil && after.HoldsResources()
	if was && is && before.NodeID == after.NodeID && before.AllocatedResources == after.AllocatedResources {
		return
	}
	if was {
		tx.nodeUsage(before.NodeID).Remove(before)
	}
	if is {
		tx.nodeUsage(after.NodeID).Add(after)
	}
}

func (tx *Txn) nodeUsage(nodeID string) *structs.NodeUsage {
	usage := tx.usage[nodeID]
	if usage == nil {
		usage = &structs.NodeUsage{}
		if row := lookup[*usageRow](tx, tableUsage, nodeID); row != nil {
			usage = row.usage.Copy()
		}
		tx.usage[nodeID] = usage
	}
	return usage
}

func (tx *Txn) finishUsage() {
	for nodeID, usage := range tx.usage {
		tx.usageOf = append(tx.usageOf, nodeID)
		if usage.Allocs == 0 {
			tx.remove(tableUsage, nodeID)
			continue
		}
		tx.put(tableUsage, &usageRow{nodeID: nodeID, usage: usage})
	}
	clear(tx.usage)
}
