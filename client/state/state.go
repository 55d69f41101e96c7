package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/structs"
)

// Version is the layout of the file. Rows may gain fields without a new version; a change which an older binary would
// misread needs one.
const Version = 1

// Bucket is a table of the file.
type Bucket string

// The tables: allocations by id, job specifications by SpecKey, the runners' records by allocation id and by
// TaskKey, the services that are offered by their owner, the results of
// checks by allocation id, and the node's own values.
const (
	Allocs   Bucket = "allocs"
	Jobs     Bucket = "jobs"
	Runs     Bucket = "runs"
	Tasks    Bucket = "tasks"
	Services Bucket = "services"
	Checks   Bucket = "checks"
	Node     Bucket = "node"

	meta Bucket = "meta"
)

var (
	buckets    = []Bucket{Allocs, Jobs, Runs, Tasks, Services, Checks, Node, meta}
	versionKey = []byte("version")
)

// ErrNewerVersion says that the file was written by a newer version of the program.
var ErrNewerVersion = errors.New("written by a newer version")

// ErrDamaged says that the file is no database or one whose pages are broken. It is left as it is.
var ErrDamaged = errors.New("is damaged; move it away to start without it: tasks it tells of are then ended and started anew")

// ErrClosed answers writes after Close.
var ErrClosed = errors.New("client state is closed")

// Options of Open.
type Options struct {
	// NoSync leaves syncing to the kernel: for dev agents, whose data is thrown away.
	NoSync bool
	Logger hclog.Logger
}

// DB is the open file. All methods are safe for concurrent use.
type DB struct {
	bolt   *bbolt.DB
	logger hclog.Logger

	mu      sync.Mutex
	pending []write
	closed  bool
	wake    chan struct{}
	idle    chan struct{} // closed when the writer has ended

	update  func(func(*bbolt.Tx) error) error // the file's, unless a test set another
	failing bool                              // the last transaction did; told once
	owed    []write                           // what could not be written yet, one a row; only the writer touches it
}

// How long the writer waits before it tries again to write what it owes: a full disk is given time to have room.
const (
	minRetry = 250 * time.Millisecond
	maxRetry = 15 * time.Second
)

type write struct {
	bucket Bucket
	key    string
	value  []byte // nil deletes
	done   func(error)
}

// Open opens or makes the file and starts its writer; Close ends it. A file in use by another process is an error
// after one second.
func Open(path string, opts Options) (*DB, error) {
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open client state: %w", err)
	}
	var bolt *bbolt.DB
	err := guard(path, func() (err error) {
		bolt, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout: time.Second, NoSync: opts.NoSync, NoGrowSync: opts.NoSync,
			// The list of free pages is kept in the file: to find them by walking through a damaged file ends the process.
			FreelistType: bbolt.FreelistMapType, InitialMmapSize: 1 << 20,
		})
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("open client state: %s is in use by another agent", path)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch),
		tooSmall(path, err):
		return nil, fmt.Errorf("open client state: %s %w (%w)", path, ErrDamaged, err)
	case err != nil:
		return nil, fmt.Errorf("open client state: %w", err)
	}
	if err := guard(path, func() error { return prepare(bolt, path) }); err != nil {
		_ = bolt.Close()
		return nil, err
	}
	db := &DB{bolt: bolt, update: bolt.Update, logger: opts.Logger, wake: make(chan struct{}, 1), idle: make(chan struct{})}
	go db.writer()
	return db, nil
}

// tooSmall says that opening failed for a file of less than a database's first two pages; its error has no name.
func tooSmall(path string, err error) bool {
	if err == nil {
		return false
	}
	info, statErr := os.Stat(path)
	return statErr == nil && info.Size() > 0 && info.Size() < 2*int64(os.Getpagesize())
}

// guard makes an error of what a damaged file does to the code that reads it: it panics, or reads beyond the file.
func guard(path string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("client state %s %w (%v)", path, ErrDamaged, r)
		}
	}()
	return f()
}

// prepare checks the version before anything is written, then makes the tables.
func prepare(bolt *bbolt.DB, path string) error {
	var found uint64
	complete := true
	err := bolt.View(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			complete = complete && tx.Bucket([]byte(name)) != nil
		}
		if b := tx.Bucket([]byte(meta)); b != nil {
			if v := b.Get(versionKey); len(v) == 8 {
				found = binary.BigEndian.Uint64(v)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read client state: %w", err)
	}
	if found > Version {
		return fmt.Errorf("client state %s was %w (layout %d, this binary reads up to %d)",
			path, ErrNewerVersion, found, Version)
	}
	if found == Version && complete { // an older binary of this layout may have had fewer tables
		return nil
	}
	err = bolt.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte(meta)).Put(versionKey, binary.BigEndian.AppendUint64(nil, Version))
	})
	if err != nil {
		return fmt.Errorf("prepare client state: %w", err)
	}
	return nil
}

// Put writes v under key. done, which may be nil, is called once it is durable, or with the error that prevented it;
// it must not block, and never runs within the call.
func (db *DB) Put(bucket Bucket, key string, v any, done func(error)) {
	data, err := codec.Marshal(v)
	if err != nil {
		err = fmt.Errorf("encode %s %q: %w", bucket, key, err)
		db.logger.Error("client state is not written", "error", err)
		if done != nil {
			go done(err) // callers may hold locks that done takes
		}
		return
	}
	db.enqueue(write{bucket: bucket, key: key, value: data, done: done})
}

// Delete removes key.
func (db *DB) Delete(bucket Bucket, key string) { db.enqueue(write{bucket: bucket, key: key}) }

// Sync waits until everything that was handed in before is durable.
func (db *DB) Sync() error {
	done := make(chan error, 1)
	db.enqueue(write{done: func(err error) { done <- err }})
	return <-done
}

func (db *DB) enqueue(w write) {
	db.mu.Lock()
	if db.closed {
		db.mu.Unlock()
		if w.done != nil {
			go w.done(ErrClosed) // callers may hold locks that done takes
		}
		return
	}
	db.pending = append(db.pending, w)
	db.mu.Unlock()
	select {
	case db.wake <- struct{}{}:
	default:
	}
}

// writer takes what has gathered and writes it in one transaction, until the file is closed and nothing is left. What
// could not be written goes with the next transaction, at the latest after a while.
func (db *DB) writer() {
	defer close(db.idle)
	retry := time.NewTimer(maxRetry)
	defer retry.Stop()
	for wait := minRetry; ; {
		var again <-chan time.Time
		if len(db.owed) > 0 {
			retry.Reset(wait)
			again = retry.C
		}
		select {
		case <-db.wake:
		case <-again:
		}
		db.mu.Lock()
		batch, closed := db.pending, db.closed
		db.pending = nil
		db.mu.Unlock()
		db.commit(batch)
		if len(db.owed) > 0 {
			wait = min(2*wait, maxRetry)
		} else {
			wait = minRetry
		}
		if closed {
			if len(db.owed) > 0 {
				db.logger.Error("client state was closed before all of it could be written", "rows", len(db.owed))
			}
			return
		}
	}
}

// commit writes a batch and what is owed. A row that the database refuses for itself is dropped, so that it does not
// keep the others out; when the transaction fails all rows are owed.
func (db *DB) commit(batch []write) {
	var err error
	if latest := fold(slices.Concat(db.owed, batch)); len(latest) > 0 {
		err = guard(db.bolt.Path(), func() error {
			return db.update(func(tx *bbolt.Tx) error {
				for _, w := range latest {
					if err := apply(tx, w); err != nil {
						db.logger.Error("row of client state is not written", "table", string(w.bucket), "error", err)
					}
				}
				return nil
			})
		})
		if db.owed = nil; err != nil {
			for _, w := range latest {
				w.done = nil
				db.owed = append(db.owed, w)
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("write client state: %w", err)
		if !db.failing {
			db.logger.Error("client state is not written, trying again", "rows", len(db.owed), "error", err)
		}
	} else if db.failing {
		db.logger.Info("client state is written again")
	}
	db.failing = err != nil
	for _, w := range batch {
		if w.done != nil {
			w.done(err)
		}
	}
}

// fold keeps the last write of each row, in order.
func fold(batch []write) []write {
	type row struct {
		bucket Bucket
		key    string
	}
	last := make(map[row]int, len(batch))
	for i, w := range batch {
		if w.bucket != "" {
			last[row{w.bucket, w.key}] = i
		}
	}
	out := batch[:0:0]
	for i, w := range batch {
		if w.bucket != "" && last[row{w.bucket, w.key}] == i {
			out = append(out, w)
		}
	}
	return out
}

func apply(tx *bbolt.Tx, w write) error {
	b := tx.Bucket([]byte(w.bucket))
	if w.value == nil {
		return b.Delete([]byte(w.key))
	}
	return b.Put([]byte(w.key), w.value)
}

// Get reads one row into v; found is false when there is none.
func (db *DB) Get(bucket Bucket, key string, v any) (found bool, err error) {
	err = guard(db.bolt.Path(), func() error {
		return db.bolt.View(func(tx *bbolt.Tx) error {
			data := tx.Bucket([]byte(bucket)).Get([]byte(key))
			if data == nil {
				return nil
			}
			found = true
			return codec.Unmarshal(data, v)
		})
	})
	if err != nil {
		return found, fmt.Errorf("read %s %q of client state: %w", bucket, key, err)
	}
	return found, nil
}

// Each decodes every row of a table into a new T. A row that cannot be decoded is reported to bad and left out, so
// that one damaged row does not keep the agent from its other allocations.
func Each[T any](db *DB, bucket Bucket, row func(key string, v *T), bad func(key string, err error)) error {
	err := guard(db.bolt.Path(), func() error {
		return db.bolt.View(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(bucket)).ForEach(func(k, data []byte) error {
				v := new(T)
				if err := codec.Unmarshal(data, v); err != nil {
					bad(string(k), err)
					return nil
				}
				row(string(k), v)
				return nil
			})
		})
	})
	if err != nil {
		return fmt.Errorf("read %s of client state: %w", bucket, err)
	}
	return nil
}

// Close writes what is left and closes the file. It may be called more than once.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.closed {
		db.mu.Unlock()
		<-db.idle
		return nil
	}
	db.closed = true
	db.mu.Unlock()
	select {
	case db.wake <- struct{}{}:
	default:
	}
	<-db.idle
	if err := guard(db.bolt.Path(), db.bolt.Close); err != nil {
		return fmt.Errorf("close client state: %w", err)
	}
	return nil
}

// SpecKey names a job specification row.
func SpecKey(namespace, jobID string, jobModifyIndex uint64) string {
	return fmt.Sprintf("%s\x00%s\x00%020d", namespace, jobID, jobModifyIndex)
}

// SpecKeyOf names the specification row that alloc runs.
func SpecKeyOf(alloc *structs.Allocation) string {
	return SpecKey(alloc.Namespace, alloc.JobID, alloc.JobModifyIndex)
}

// TaskKey names a task's record.
func TaskKey(allocID, task string) string { return allocID + "/" + task }
