package state

import (
	"iter"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

func namespacesTable() *table {
	return plainTable(TableNamespaces, func(n *structs.Namespace) string { return n.Name })
}

// Namespace gives a namespace by name, nil when there is none.
func (r Reader) Namespace(ws memdb.WatchSet, name string) *structs.Namespace {
	return get[*structs.Namespace](r.at(), ws, TableNamespaces, indexID, name)
}

// Namespaces gives all namespaces by name.
func (r Reader) Namespaces(ws memdb.WatchSet) iter.Seq[*structs.Namespace] {
	return scan[*structs.Namespace](r.at(), ws, TableNamespaces, indexID, "")
}

// UpsertNamespace stores a namespace.
func (tx *Txn) UpsertNamespace(ns *structs.Namespace) {
	row := *ns
	row.CreateIndex, row.ModifyIndex = tx.index, tx.index
	if old := lookup[*structs.Namespace](tx, TableNamespaces, ns.Name); old != nil {
		row.CreateIndex = old.CreateIndex
	}
	tx.put(TableNamespaces, &row)
}

// DeleteNamespace deletes a namespace. It fails with CodeNotFound, and with CodeValidation for the default one and
// while jobs in it are not dead.
func (tx *Txn) DeleteNamespace(name string) error {
	if lookup[*structs.Namespace](tx, TableNamespaces, name) == nil {
		return structs.Errorf(structs.CodeNotFound, "namespace %q not found", name)
	}
	if name == structs.DefaultNamespace {
		return structs.Errorf(structs.CodeValidation, "default namespace can not be deleted")
	}
	for job := range scan[*structs.Job](tx.base, nil, TableJobs, indexID, joinKey(name, "")) {
		if job.Status != structs.JobStatusDead {
			return structs.Errorf(structs.CodeValidation, "namespace %q has non-terminal jobs, such as %q", name, structs.Val(job.ID))
		}
	}
	tx.remove(TableNamespaces, name)
	return nil
}
