package state

import (
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

// States of a root key, as the public API names them.
const (
	keyActive   = "active"
	keyInactive = "inactive"
)

func keysTable() *table {
	return plainTable(TableKeys, func(k *structs.RootKey) string { return k.KeyID })
}

// RootKeys gives all root keys, by id. Their material is wrapped.
func (r Reader) RootKeys(ws memdb.WatchSet) []*structs.RootKey {
	return slices.Collect(scan[*structs.RootKey](r.at(), ws, TableKeys, indexID, ""))
}

// RootKey gives a root key by id, nil when there is none.
func (r Reader) RootKey(ws memdb.WatchSet, id string) *structs.RootKey {
	return get[*structs.RootKey](r.at(), ws, TableKeys, indexID, id)
}

// UpsertRootKey stores a root key. When it is active, the one that was is no longer.
func (tx *Txn) UpsertRootKey(key *structs.RootKey, now int64) {
	row := *key
	row.CreateIndex, row.ModifyIndex = tx.index, tx.index
	if row.CreateTime == 0 {
		row.CreateTime = now
	}
	if old := lookup[*structs.RootKey](tx, TableKeys, key.KeyID); old != nil {
		row.CreateIndex, row.CreateTime = old.CreateIndex, old.CreateTime
	}
	if row.State == keyActive {
		for other := range scan[*structs.RootKey](tx.base, nil, TableKeys, indexID, "") {
			if other.KeyID != row.KeyID && other.State == keyActive {
				demoted := *other
				demoted.State, demoted.ModifyIndex = keyInactive, tx.index
				tx.put(TableKeys, &demoted)
			}
		}
	}
	tx.put(TableKeys, &row)
}

// DeleteRootKey removes a root key, but never the active one (CodeValidation).
func (tx *Txn) DeleteRootKey(id string) error {
	old := lookup[*structs.RootKey](tx, TableKeys, id)
	if old == nil {
		return nil
	}
	if old.State == keyActive {
		return structs.Errorf(structs.CodeValidation, "active root key cannot be deleted - call rotate first")
	}
	tx.remove(TableKeys, id)
	return nil
}
