package state

import (
	"fmt"
	"iter"

	"github.com/hashicorp/go-memdb"
)

// view is one consistent state of the database. It may be read by many goroutines.
type view struct {
	txn     *memdb.Txn
	abandon <-chan struct{} // closed when a restored snapshot takes this database's place
	epoch   string
	index   uint64
	commit  uint64
	fleets  *fleets // of the generation
}

// get gives the row with that key, T's zero value when there is none. ws hears of any change to it.
func get[T any](v *view, ws memdb.WatchSet, table, index, key string) T {
	var (
		raw any
		err error
	)
	if ws == nil {
		raw, err = v.txn.First(table, index, key)
	} else {
		var changed <-chan struct{}
		changed, raw, err = v.txn.FirstWatch(table, index, key)
		ws.Add(v.abandon)
		ws.Add(changed)
	}
	mustRead(err, table, index)
	row, _ := raw.(T)
	return row
}

// scan gives the rows whose key begins with prefix, in key order. ws hears of any change among them.
func scan[T any](v *view, ws memdb.WatchSet, table, index, prefix string) iter.Seq[T] {
	if ws != nil {
		it, err := v.txn.Get(table, index+indexPrefix, prefix)
		mustRead(err, table, index)
		ws.Add(v.abandon)
		ws.Add(it.WatchCh())
	}
	return func(yield func(T) bool) {
		it, err := v.txn.Get(table, index+indexPrefix, prefix)
		mustRead(err, table, index)
		for raw := it.Next(); raw != nil; raw = it.Next() {
			if !yield(raw.(T)) {
				return
			}
		}
	}
}

// scanReverse is scan from the last key to the first.
func scanReverse[T any](v *view, ws memdb.WatchSet, table, index, prefix string) iter.Seq[T] {
	if ws != nil {
		scan[T](v, ws, table, index, prefix)
	}
	return func(yield func(T) bool) {
		it, err := v.txn.GetReverse(table, index+indexPrefix, prefix)
		mustRead(err, table, index)
		for raw := it.Next(); raw != nil; raw = it.Next() {
			if !yield(raw.(T)) {
				return
			}
		}
	}
}

// mustRead panics: a read fails only when it names a table or an index that is not in the schema.
func mustRead(err error, table, index string) {
	if err != nil {
		panic(fmt.Sprintf("read index %s of table %s: %v", index, table, err))
	}
}

func filter[T any](seq iter.Seq[T], keep func(T) bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		for row := range seq {
			if keep(row) && !yield(row) {
				return
			}
		}
	}
}
