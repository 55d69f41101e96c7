package state

import "fmt"

// indexRow says at which raft index a table changed last.
type indexRow struct {
	Table string
	Index uint64
}

func indexesTable() *table {
	t := plainTable(tableIndexes, func(r *indexRow) string { return r.Table })
	t.item = nil
	return t
}

// TableIndex is the raft index of the last change to any of the tables, 0 when none ever changed.
func (r Reader) TableIndex(tables ...string) uint64 {
	var last uint64
	for _, name := range tables {
		if row := get[*indexRow](r.at(), nil, tableIndexes, indexID, name); row != nil {
			last = max(last, row.Index)
		}
	}
	return last
}

var errNotHere = fmt.Errorf("row refers to one that is not in the snapshot")
