package state

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/hashicorp/go-memdb"
)

// Names of the tables, as TableIndex and change feed items use them.
const (
	TableJobs           = "jobs"
	TableJobVersions    = "job_versions"
	TableJobSpecs       = "job_specs"
	TableJobSubmissions = "job_submissions"
	TableSummaries      = "job_summaries"
	TableNodes          = "nodes"
	TableAllocs         = "allocs"
	TableEvals          = "evals"
	TableDeployments    = "deployments"
	TableNodePools      = "node_pools"
	TableNamespaces     = "namespaces"
	TableConfig         = "config"
	TableKeys           = "keys"
	TableServices       = "services"
	TableScalingEvents  = "scaling_events"
	TableLaunches       = "periodic_launches"

	// Tables that no one outside needs to know of: the index of each table's last change, and what is made of
	// other tables.
	tableIndexes   = "indexes"
	tableAllocRows = "alloc_rows"
	tableUsage     = "node_usage"
)

// Index names.
const (
	indexID     = "id"
	indexPrefix = "_prefix" // appended to an index name for memdb's prefix reads
)

// table is the one registered value of a table.
type table struct {
	name    string
	indexes []*memdb.IndexSchema // none: another table holds the rows, held finds them
	held    func(v *view, key string) any
	// rowKey gives a row's key in index id.
	rowKey func(row any) string
	// item gives what the change feed shows of a row, nil for nothing. A nil func keeps the table out of the feed.
	item func(row any) any
	// derived tables are made of other tables; they are neither saved nor restored.
	derived bool
	// save calls put for each record of the table.
	save func(v *view, put func(record any) error) error
	// restore decodes one record and stores it.
	restore func(tx *Txn, decode func(record any) error) error
}

// row gives the row with that key, nil when there is none.
func (t *table) row(v *view, key string) any {
	if t.held != nil {
		return t.held(v, key)
	}
	return get[any](v, nil, t.name, indexID, key)
}

// tables lists all tables in the order in which they are restored.
func tables() []*table {
	return []*table{
		indexesTable(),
		configTable(),
		namespacesTable(),
		nodePoolsTable(),
		keysTable(),
		nodesTable(),
		jobSpecsTable(),
		jobsTable(),
		jobVersionsTable(),
		jobSubmissionsTable(),
		summariesTable(),
		evalsTable(),
		deploymentsTable(),
		allocsTable(),
		servicesTable(),
		scalingTable(),
		launchesTable(),
		allocRowsTable(),
		usageTable(),
	}
}

// registry is the checked list of tables.
type registry struct {
	list   []*table
	byName map[string]*table
	schema *memdb.DBSchema
}

func newRegistry(list []*table) (*registry, error) {
	r := &registry{list: list, byName: make(map[string]*table), schema: &memdb.DBSchema{Tables: make(map[string]*memdb.TableSchema)}}
	for _, t := range list {
		if t.name == "" || r.byName[t.name] != nil {
			return nil, fmt.Errorf("register table %q: the name is empty or taken", t.name)
		}
		if t.rowKey == nil || t.derived == (t.save != nil) || t.derived == (t.restore != nil) {
			return nil, fmt.Errorf("register table %q: a table has a key and is either saved and restored, or derived", t.name)
		}
		r.byName[t.name] = t
		if t.held != nil {
			continue
		}
		schema := &memdb.TableSchema{Name: t.name, Indexes: make(map[string]*memdb.IndexSchema)}
		for _, index := range t.indexes {
			if schema.Indexes[index.Name] != nil {
				return nil, fmt.Errorf("register table %q: index %q is there twice", t.name, index.Name)
			}
			schema.Indexes[index.Name] = index
		}
		r.schema.Tables[t.name] = schema
	}
	if err := r.schema.Validate(); err != nil {
		return nil, fmt.Errorf("register tables: %w", err)
	}
	return r, nil
}

// plainTable is a table whose rows are saved as they are.
func plainTable[T any](name string, key func(T) string, more ...*memdb.IndexSchema) *table {
	return &table{
		name:    name,
		indexes: append([]*memdb.IndexSchema{idIndex(key)}, more...),
		rowKey:  func(row any) string { return key(row.(T)) },
		item:    func(row any) any { return row },
		save: func(v *view, put func(any) error) error {
			for row := range scan[T](v, nil, name, indexID, "") {
				if err := put(row); err != nil {
					return err
				}
			}
			return nil
		},
		restore: func(tx *Txn, decode func(any) error) error {
			var row T
			if err := decode(&row); err != nil {
				return err
			}
			tx.put(name, row)
			return nil
		},
	}
}

// keyIndex makes index entries of a key function; ok false leaves the row out. Rows are looked up by the whole key
// or, with memdb's prefix reads, by its beginning.
type keyIndex[T any] struct {
	of func(T) (key string, ok bool)
}

func (k keyIndex[T]) FromObject(raw any) (bool, []byte, error) {
	key, ok := k.of(raw.(T))
	if !ok {
		return false, nil, nil
	}
	return true, []byte(key), nil
}

func (k keyIndex[T]) FromArgs(args ...any) ([]byte, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("got %d arguments for a key", len(args))
	}
	key, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("got a %T for a key", args[0])
	}
	return []byte(key), nil
}

func (k keyIndex[T]) PrefixFromArgs(args ...any) ([]byte, error) { return k.FromArgs(args...) }

func idIndex[T any](key func(T) string) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: indexID, Unique: true, Indexer: keyIndex[T]{func(row T) (string, bool) { return key(row), true }}}
}

// manyIndex is an index whose keys may be shared and may be missing.
func manyIndex[T any](name string, of func(T) (string, bool)) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: name, AllowMissing: true, Indexer: keyIndex[T]{of}}
}

// joinKey makes a key of several parts. Parts hold no zero byte, which validation sees to.
func joinKey(parts ...string) string { return strings.Join(parts, "\x00") }

// withNumber ends a key with a number so that keys sort by it.
func withNumber(key string, n uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(key+"\x00"), n))
}
