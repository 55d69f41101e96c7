package state

import (
	"iter"
	"slices"
	"strings"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadlite/nomadlite/structs"
)

// Kinds of rows: allocations by what they belong to. rowAll has one row with every allocation. The rows of rowByID are the
// table of allocations itself: one for each beginning of an id, in order of ids.
const (
	rowAll          = "*"
	rowByID         = "i"
	rowByNode       = "n"
	rowByJob        = "j"
	rowByEval       = "e"
	rowByDeployment = "d"
)

// idShelf is how much of an id names its row: of ids that are uuids there are 256 rows at most. A read of one allocation
// hears of changes to any in its row.
const idShelf = 2

// rowChunk is the length at which a chunk is split. A changed allocation costs a copy of one chunk a row.
const rowChunk = 128

// allocRow is an immutable set of allocations in order of creation (index, then id) or, in rows by id, of ids, in chunks.
// A memdb index for each of the six orders would cost 450 to 620 bytes an allocation and index; a row costs one pointer.
type allocRow struct {
	key    string
	chunks [][]*structs.Allocation // none empty
	count  int
	live   int // those with no terminal status
}

func allocRowKey(kind, of string) string { return joinKey(kind, of) }

// shelfOf gives the row by id in which an allocation is, or those whose id begins with prefix are.
func shelfOf(id string) string { return id[:min(len(id), idShelf)] }

func allocRowsTable() *table {
	key := func(r *allocRow) string { return r.key }
	return &table{
		name:    tableAllocRows,
		indexes: []*memdb.IndexSchema{idIndex(key)},
		rowKey:  func(row any) string { return key(row.(*allocRow)) },
		derived: true,
	}
}

// byID gives an allocation of a row by id, nil when there is none.
func (r *allocRow) byID(id string) *structs.Allocation {
	if r == nil {
		return nil
	}
	chunk, _ := slices.BinarySearchFunc(r.chunks, id, func(c []*structs.Allocation, id string) int {
		return strings.Compare(c[len(c)-1].ID, id)
	})
	if chunk == len(r.chunks) {
		return nil
	}
	at, found := slices.BinarySearchFunc(r.chunks[chunk], id, func(a *structs.Allocation, id string) int {
		return strings.Compare(a.ID, id)
	})
	if !found {
		return nil
	}
	return r.chunks[chunk][at]
}

// all gives the allocations in the row's order; a nil row has none.
func (r *allocRow) all() iter.Seq[*structs.Allocation] {
	return func(yield func(*structs.Allocation) bool) {
		if r == nil {
			return
		}
		for _, chunk := range r.chunks {
			for _, alloc := range chunk {
				if !yield(alloc) {
					return
				}
			}
		}
	}
}

// newestFirst is all from the end.
func (r *allocRow) newestFirst() iter.Seq[*structs.Allocation] {
	return func(yield func(*structs.Allocation) bool) {
		if r == nil {
			return
		}
		for _, chunk := range slices.Backward(r.chunks) {
			for _, alloc := range slices.Backward(chunk) {
				if !yield(alloc) {
					return
				}
			}
		}
	}
}

// list gives the allocations in the row's order.
func (r *allocRow) list() []*structs.Allocation {
	if r == nil {
		return nil
	}
	out := make([]*structs.Allocation, 0, r.count)
	for _, chunk := range r.chunks {
		out = append(out, chunk...)
	}
	return out
}

func compareAllocs(a, b *structs.Allocation) int {
	switch {
	case a.CreateIndex < b.CreateIndex:
		return -1
	case a.CreateIndex > b.CreateIndex:
		return 1
	default:
		return strings.Compare(a.ID, b.ID)
	}
}

func compareIDs(a, b *structs.Allocation) int { return strings.Compare(a.ID, b.ID) }

// rowEdit is a row while a transaction changes it. Chunks are copied when first touched.
type rowEdit struct {
	row     allocRow
	compare func(a, b *structs.Allocation) int
	owned   map[int]bool // chunks which are ours to change, by position; nil: all are
}

func editRow(kind, key string, base *allocRow) *rowEdit {
	e := &rowEdit{row: allocRow{key: key}, compare: compareAllocs}
	if kind == rowByID {
		e.compare = compareIDs
	}
	if base != nil {
		e.row = *base
		e.row.chunks = slices.Clone(base.chunks)
		e.owned = make(map[int]bool)
	}
	return e
}

// find gives the chunk in which alloc is or belongs, and its place there.
func (e *rowEdit) find(alloc *structs.Allocation) (chunk, at int, found bool) {
	chunks := e.row.chunks
	if len(chunks) == 0 {
		return 0, 0, false
	}
	chunk, _ = slices.BinarySearchFunc(chunks, alloc, func(c []*structs.Allocation, a *structs.Allocation) int {
		return e.compare(c[len(c)-1], a)
	})
	if chunk == len(chunks) {
		return chunk - 1, len(chunks[chunk-1]), false
	}
	at, found = slices.BinarySearchFunc(chunks[chunk], alloc, e.compare)
	return chunk, at, found
}

// own makes the chunk ours to change.
func (e *rowEdit) own(chunk int) {
	if e.owned != nil && !e.owned[chunk] {
		e.row.chunks[chunk] = slices.Clone(e.row.chunks[chunk])
		e.owned[chunk] = true
	}
}

func (e *rowEdit) set(alloc *structs.Allocation) {
	if len(e.row.chunks) == 0 {
		e.row.chunks = [][]*structs.Allocation{{alloc}}
		e.owned = nil
		e.count(alloc, 1)
		return
	}
	chunk, at, found := e.find(alloc)
	e.own(chunk)
	if found {
		e.count(e.row.chunks[chunk][at], -1)
		e.row.chunks[chunk][at] = alloc
		e.count(alloc, 1)
		return
	}
	e.row.chunks[chunk] = slices.Insert(e.row.chunks[chunk], at, alloc)
	e.count(alloc, 1)
	if len(e.row.chunks[chunk]) > rowChunk {
		e.split(chunk)
	}
}

// split halves a chunk, but leaves the last one full when it grows at its end, as it does with new allocations.
func (e *rowEdit) split(chunk int) {
	full := e.row.chunks[chunk]
	at := len(full) / 2
	if chunk == len(e.row.chunks)-1 {
		at = len(full) * 7 / 8
	}
	rest := slices.Clone(full[at:])
	e.row.chunks[chunk] = slices.Clip(full[:at])
	e.row.chunks = slices.Insert(e.row.chunks, chunk+1, rest)
	e.shiftOwned(chunk+1, 1)
	if e.owned != nil {
		e.owned[chunk+1] = true
	}
}

func (e *rowEdit) unset(alloc *structs.Allocation) {
	chunk, at, found := e.find(alloc)
	if !found {
		return
	}
	e.own(chunk)
	e.count(e.row.chunks[chunk][at], -1)
	e.row.chunks[chunk] = slices.Delete(e.row.chunks[chunk], at, at+1)
	if len(e.row.chunks[chunk]) == 0 {
		e.row.chunks = slices.Delete(e.row.chunks, chunk, chunk+1)
		e.shiftOwned(chunk, -1)
	}
}

// shiftOwned moves the marks of the chunks from position on by n.
func (e *rowEdit) shiftOwned(from, n int) {
	if e.owned == nil {
		return
	}
	moved := make(map[int]bool, len(e.owned)+1)
	for chunk := range e.owned {
		switch {
		case chunk < from:
			moved[chunk] = true
		case n < 0 && chunk == from: // the chunk that is gone
		default:
			moved[chunk+n] = true
		}
	}
	e.owned = moved
}

func (e *rowEdit) count(alloc *structs.Allocation, n int) {
	e.row.count += n
	if !alloc.TerminalStatus() {
		e.row.live += n
	}
}

// editAllocRow gives a row which this transaction changes.
func (tx *Txn) editAllocRow(kind, of string) *rowEdit {
	key := allocRowKey(kind, of)
	e := tx.rows[key]
	if e == nil {
		e = editRow(kind, key, lookup[*allocRow](tx, tableAllocRows, key))
		tx.rows[key] = e
	}
	return e
}

// allocRow gives a row as this transaction sees it, nil when it is empty. Do not keep it beyond the next change.
func (tx *Txn) allocRow(kind, of string) *allocRow {
	key := allocRowKey(kind, of)
	if e := tx.rows[key]; e != nil {
		return &e.row
	}
	return lookup[*allocRow](tx, tableAllocRows, key)
}

// indexAlloc puts an allocation into the rows it belongs to and takes it out of those it does not belong to any
// more; before and after may be nil.
func (tx *Txn) indexAlloc(before, after *structs.Allocation) {
	for _, row := range []struct {
		kind string
		of   func(*structs.Allocation) string
	}{
		{rowByID, func(a *structs.Allocation) string { return shelfOf(a.ID) }},
		{rowAll, func(*structs.Allocation) string { return rowAll }},
		{rowByNode, func(a *structs.Allocation) string { return a.NodeID }},
		{rowByJob, func(a *structs.Allocation) string { return joinKey(a.Namespace, a.JobID) }},
		{rowByEval, func(a *structs.Allocation) string { return a.EvalID }},
		{rowByDeployment, func(a *structs.Allocation) string { return a.DeploymentID }},
	} {
		var was, is string
		if before != nil {
			was = row.of(before)
		}
		if after != nil {
			is = row.of(after)
		}
		if was != "" && was != is {
			tx.editAllocRow(row.kind, was).unset(before)
		}
		if is != "" {
			tx.editAllocRow(row.kind, is).set(after)
		}
	}
}

// finishRows stores the changed rows.
func (tx *Txn) finishRows() {
	for key, e := range tx.rows {
		if e.row.count == 0 {
			tx.remove(tableAllocRows, key)
			continue
		}
		row := e.row
		tx.put(tableAllocRows, &row)
	}
	clear(tx.rows)
}

func (tx *Txn) liveAllocs(namespace, jobID string) int {
	if row := tx.allocRow(rowByJob, joinKey(namespace, jobID)); row != nil {
		return row.live
	}
	return 0
}

func (tx *Txn) allocsByJob(namespace, jobID string) []*structs.Allocation {
	return tx.allocRow(rowByJob, joinKey(namespace, jobID)).list()
}

func (tx *Txn) allocsByNode(nodeID string) []*structs.Allocation {
	return tx.allocRow(rowByNode, nodeID).list()
}
