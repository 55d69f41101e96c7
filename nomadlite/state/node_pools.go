package state

import (
	"iter"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

func nodePoolsTable() *table {
	return plainTable(TableNodePools, func(p *structs.NodePool) string { return p.Name })
}

// NodePool gives a node pool by name, nil when there is none.
func (r Reader) NodePool(ws memdb.WatchSet, name string) *structs.NodePool {
	return get[*structs.NodePool](r.at(), ws, TableNodePools, indexID, name)
}

// NodePools gives all node pools by name.
func (r Reader) NodePools(ws memdb.WatchSet) iter.Seq[*structs.NodePool] {
	return scan[*structs.NodePool](r.at(), ws, TableNodePools, indexID, "")
}

// NodePoolsByPrefix gives the node pools whose name begins with prefix.
func (r Reader) NodePoolsByPrefix(ws memdb.WatchSet, prefix string) iter.Seq[*structs.NodePool] {
	return scan[*structs.NodePool](r.at(), ws, TableNodePools, indexID, prefix)
}

// UpsertNodePool stores a node pool. The built-in ones cannot be changed (CodeValidation).
func (tx *Txn) UpsertNodePool(pool *structs.NodePool) error {
	if builtInPool(pool.Name) {
		return structs.Errorf(structs.CodeValidation, "modifying node pool %q is not allowed", pool.Name)
	}
	tx.putNodePool(pool)
	return nil
}

func (tx *Txn) putNodePool(pool *structs.NodePool) {
	row := *pool
	row.CreateIndex, row.ModifyIndex = tx.index, tx.index
	if old := lookup[*structs.NodePool](tx, TableNodePools, pool.Name); old != nil {
		row.CreateIndex = old.CreateIndex
	}
	tx.put(TableNodePools, &row)
}

// DeleteNodePool deletes a node pool. It fails with CodeNotFound, and with CodeValidation for a built-in one and while
// nodes or jobs that are not dead use it.
func (tx *Txn) DeleteNodePool(name string) error {
	if builtInPool(name) {
		return structs.Errorf(structs.CodeValidation, "deleting node pool %q is not allowed", name)
	}
	if lookup[*structs.NodePool](tx, TableNodePools, name) == nil {
		return structs.Errorf(structs.CodeNotFound, "node pool %q not found", name)
	}
	for node := range scan[*structs.Node](tx.base, nil, TableNodes, indexID, "") {
		if node.NodePool == name {
			return structs.Errorf(structs.CodeValidation, "node pool %q has nodes, such as %s", name, node.ID)
		}
	}
	for job := range scan[*structs.Job](tx.base, nil, TableJobs, indexID, "") {
		if structs.Val(job.NodePool) == name && job.Status != structs.JobStatusDead {
			return structs.Errorf(structs.CodeValidation, "node pool %q has non-terminal jobs, such as %q", name, structs.Val(job.ID))
		}
	}
	tx.remove(TableNodePools, name)
	return nil
}

func builtInPool(name string) bool {
	return name == structs.NodePoolAll || name == structs.NodePoolDefault
}
