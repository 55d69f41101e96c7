package state

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-memdb"
)

// Config is what a Store works with.
type Config struct {
	Logger hclog.Logger // nil logs nothing
}

// Store is the database. Reads through it see the newest state, each call for itself; take a Snapshot to read
// several things that belong together.
type Store struct {
	Reader
	log    hclog.Logger
	tables *registry
	feed   feed

	write sync.Mutex // held by the one writer
	gen   atomic.Pointer[generation]
	stats stats

	waitMu sync.Mutex
	waitCh chan struct{} // closed by the next commit; nil when no one waits
}

// generation is one database from New or a restore until the next restore.
type generation struct {
	db      *memdb.MemDB
	abandon chan struct{}
	epoch   string
	head    atomic.Pointer[view] // the newest committed state
	commits uint64               // the writer's
	fleets  fleets
}

// New makes an empty store, which already has the namespace default, the node pools default and all and the default
// scheduler configuration. It panics when two tables are registered under one name: that is a fault of the program.
func New(cfg Config) *Store {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	reg, err := newRegistry(tables())
	if err != nil {
		panic(err)
	}
	s := &Store{log: cfg.Logger.Named("state"), tables: reg}
	s.Reader = Reader{at: s.head}
	gen, err := s.newGeneration("0")
	if err != nil {
		panic(err)
	}
	s.gen.Store(gen)
	tx := s.begin(gen, 0, 0)
	tx.bootstrap()
	if err := tx.commit(); err != nil {
		panic(err)
	}
	return s
}

func (s *Store) newGeneration(epoch string) (*generation, error) {
	db, err := memdb.NewMemDB(s.tables.schema)
	if err != nil {
		return nil, fmt.Errorf("make database: %w", err)
	}
	gen := &generation{db: db, abandon: make(chan struct{}), epoch: epoch}
	gen.refresh(0)
	return gen, nil
}

// refresh makes the newest committed state the one that is read; usages are the nodes whose usage changed.
func (g *generation) refresh(index uint64, usages ...string) {
	g.commits++
	g.fleets.note(g.commits, usages)
	g.head.Store(&view{txn: g.db.Txn(false), abandon: g.abandon, epoch: g.epoch, index: index, commit: g.commits, fleets: &g.fleets})
}

func (s *Store) head() *view { return s.gen.Load().head.Load() }

// Snapshot gives the newest state. It costs nothing and stays as it is for as long as it is kept.
func (s *Store) Snapshot() *Snapshot {
	v := s.head()
	return &Snapshot{Reader: Reader{at: func() *view { return v }}}
}

// AbandonCh is closed when a restored snapshot takes the place of the present state. Reads that are given a watch
// set add it by themselves.
func (s *Store) AbandonCh() <-chan struct{} { return s.head().abandon }

// History gives the epoch of the present state and a channel which is closed when a restored snapshot takes its place.
func (s *Store) History() (epoch string, replaced <-chan struct{}) {
	v := s.head()
	return v.epoch, v.abandon
}

// Write runs fn in one transaction for the raft entry index and publishes what it changed. When fn fails nothing is
// changed but the index, and its error is returned. kind is the entry's command number, for the change feed. Only
// package fsm calls it, in the order of the log.
func (s *Store) Write(index uint64, kind uint8, fn func(*Txn) (any, error)) (any, error) {
	s.write.Lock()
	defer s.write.Unlock()
	gen := s.gen.Load()
	tx := s.begin(gen, index, kind)
	resp, err := fn(tx)
	if err != nil {
		tx = s.begin(gen, index, kind)
	}
	if cerr := tx.commit(); cerr != nil {
		return nil, cerr
	}
	if len(tx.changed.Items) > 0 {
		s.feed.publish(tx.changed)
	}
	s.wakeWaiters()
	return resp, err
}

// WaitIndex waits until the state holds the raft entry index. Index must be that of a command: entries that raft
// writes for itself never reach the state.
func (s *Store) WaitIndex(ctx context.Context, index uint64) error {
	for {
		if s.head().index >= index {
			return nil
		}
		s.waitMu.Lock()
		if s.waitCh == nil {
			s.waitCh = make(chan struct{})
		}
		ch := s.waitCh
		s.waitMu.Unlock()
		if s.head().index >= index { // committed before ch was made
			return nil
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return fmt.Errorf("wait for state index %d: %w", index, context.Cause(ctx))
		}
	}
}

func (s *Store) wakeWaiters() {
	s.waitMu.Lock()
	if s.waitCh != nil {
		close(s.waitCh)
		s.waitCh = nil
	}
	s.waitMu.Unlock()
}

// nextEpoch is the epoch after a restore at run time: a digest of the old one and of the indexes at which the two
// histories part, so that no two histories share one.
func nextEpoch(old *view, restored uint64) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d %d", old.epoch, old.index, restored)
	return strconv.FormatUint(h.Sum64(), 16)
}

type stats struct {
	regressions, unknownAllocs atomic.Uint64
}

// Stats counts what the store refused since the process started.
type Stats struct {
	// RefusedObservations were reports that went back in an allocation's life (say, from complete to running).
	RefusedObservations uint64
	// UnknownObservations were reports about allocations that are not there (any more).
	UnknownObservations uint64
	Subscribers         int
}

// Stats gives the counters.
func (s *Store) Stats() Stats {
	return Stats{
		RefusedObservations: s.stats.regressions.Load(),
		UnknownObservations: s.stats.unknownAllocs.Load(),
		Subscribers:         s.feed.subscribers(),
	}
}

// Snapshot is one state, for ever.
type Snapshot struct{ Reader }

// Reader has the reads which Store and Snapshot share. What it gives is immutable. A watch set may be nil; it hears
// of changes to what was asked for. Reads do not fail.
type Reader struct{ at func() *view }

// Epoch names the line of history which indexes belong to; it changes when a snapshot is restored at run time, and
// goes into snapshots, so that a restart keeps it.
func (r Reader) Epoch() string { return r.at().epoch }

// Index is the raft index of the last command in the state.
func (r Reader) Index() uint64 { return r.at().index }
