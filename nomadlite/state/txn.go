package state

import (
	"fmt"

	"github.com/nomadlite/nomadlite/structs"
)

// Txn is the one transaction of a raft entry. It holds what will change over an immutable base, and writes it all at
// commit; a Txn that is dropped has changed nothing. Its methods are what commands are made of.
//
// Rows that were put in this transaction may still be replaced in it, never modified: someone may have read them.
type Txn struct {
	store *Store
	gen   *generation
	base  *view
	index uint64

	changes map[string]map[string]*rowChange // by table and key
	order   []*rowChange                     // in order of the first change

	rows      map[string]*rowEdit // of table alloc_rows
	usage     map[string]*structs.NodeUsage
	usageOf   []string // nodes whose usage changed
	shared    shared
	specRefs  map[string]int
	summaries map[string]*structs.JobSummary
	evalsOf   map[string][]string             // ids of the evaluations put, by job
	touched   map[string]structs.NamespacedID // jobs whose status may have changed
	touchedAt []string

	regressions, unknownAllocs uint64
	changed                    Change
}

// rowChange is what becomes of one row. A nil any is no row.
type rowChange struct {
	table         *table
	before, after any
}

func (s *Store) begin(gen *generation, index uint64, kind uint8) *Txn {
	return &Txn{
		store: s, gen: gen, base: gen.head.Load(), index: index,
		changes:   make(map[string]map[string]*rowChange),
		rows:      make(map[string]*rowEdit),
		usage:     make(map[string]*structs.NodeUsage),
		specRefs:  make(map[string]int),
		summaries: make(map[string]*structs.JobSummary),
		evalsOf:   make(map[string][]string),
		touched:   make(map[string]structs.NamespacedID),
		changed:   Change{Index: index, Kind: kind},
	}
}

// Index is the raft index of the entry.
func (tx *Txn) Index() uint64 { return tx.index }

// lookup gives the row as this transaction sees it, T's zero value when there is none.
func lookup[T any](tx *Txn, table, key string) T {
	if c := tx.changes[table][key]; c != nil {
		row, _ := c.after.(T)
		return row
	}
	row, _ := tx.store.tables.byName[table].row(tx.base, key).(T)
	return row
}

// put stores a row under its own key.
func (tx *Txn) put(tableName string, row any) {
	t := tx.store.tables.byName[tableName]
	tx.change(t, t.rowKey(row)).after = row
}

// remove deletes the row with that key, if it is there.
func (tx *Txn) remove(tableName, key string) {
	t := tx.store.tables.byName[tableName]
	tx.change(t, key).after = nil
}

func (tx *Txn) change(t *table, key string) *rowChange {
	rows := tx.changes[t.name]
	if rows == nil {
		rows = make(map[string]*rowChange)
		tx.changes[t.name] = rows
	}
	c := rows[key]
	if c == nil {
		c = &rowChange{table: t, before: t.row(tx.base, key)}
		c.after = c.before
		rows[key] = c
		tx.order = append(tx.order, c)
	}
	return c
}

// commit brings what is derived up to date, writes everything in one memdb transaction and makes it visible.
func (tx *Txn) commit() error {
	tx.finishRows()
	tx.finishUsage()
	tx.finishJobs()
	tx.finishSpecs()
	return tx.flush()
}

// flush writes the changed rows as they are.
func (tx *Txn) flush() error {
	mtx := tx.gen.db.Txn(true)
	defer mtx.Abort()
	indexes := make(map[string]bool)
	for i := 0; i < len(tx.order); i++ {
		c := tx.order[i]
		var err error
		switch {
		case c.after == nil && c.before == nil:
			continue
		case c.table.held != nil: // written by the table that holds it
		case c.after == nil:
			err = mtx.Delete(c.table.name, c.before)
		default:
			err = mtx.Insert(c.table.name, c.after)
		}
		if err != nil {
			return fmt.Errorf("write table %s: %w", c.table.name, err)
		}
		tx.record(c)
		if !c.table.derived && c.table.name != tableIndexes && !indexes[c.table.name] {
			indexes[c.table.name] = true
			if tx.index > 0 {
				tx.put(tableIndexes, &indexRow{Table: c.table.name, Index: tx.index})
			}
		}
	}
	mtx.Commit()
	tx.gen.refresh(max(tx.index, tx.base.index), tx.usageOf...)
	tx.store.stats.regressions.Add(tx.regressions)
	tx.store.stats.unknownAllocs.Add(tx.unknownAllocs)
	return nil
}

// record adds the change to what subscribers will hear.
func (tx *Txn) record(c *rowChange) {
	if c.table.item == nil {
		return
	}
	item := Item{Table: c.table.name}
	if c.before != nil {
		item.Before = c.table.item(c.before)
	}
	if c.after != nil {
		item.After = c.table.item(c.after)
	}
	if item.Before != item.After {
		tx.changed.Items = append(tx.changed.Items, item)
	}
}

// bootstrap stores what every cluster has from the start. Its rows carry index 1 on all servers.
func (tx *Txn) bootstrap() {
	tx.put(TableNamespaces, &structs.Namespace{
		Name: structs.DefaultNamespace, Description: "Default shared namespace", CreateIndex: 1, ModifyIndex: 1})
	tx.put(TableNodePools, &structs.NodePool{
		Name: structs.NodePoolAll, Description: "Node pool with all nodes in the cluster.", CreateIndex: 1, ModifyIndex: 1})
	tx.put(TableNodePools, &structs.NodePool{
		Name: structs.NodePoolDefault, Description: "Default node pool.", CreateIndex: 1, ModifyIndex: 1})
	tx.put(TableConfig, &configRow{Key: configScheduler, Scheduler: defaultSchedulerConfig()})
	for _, name := range []string{TableNamespaces, TableNodePools, TableConfig} {
		tx.put(tableIndexes, &indexRow{Table: name, Index: 1})
	}
}
