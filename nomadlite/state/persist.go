package state

import (
	"bufio"
	"cmp"
	"fmt"
	"io"

	"github.com/fxamacker/cbor/v2"

	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/structs"
)

// A snapshot is a sequence of CBOR values: the header, then for each record the name of its table and the record,
// then tagEnd and the number of records. Later versions may add tables and fields; SnapshotFormat grows when an
// older program could no longer read it.
const (
	snapshotMagic = "nomadlite-state"
	// SnapshotFormat is the newest format that this program reads, and the one it writes.
	SnapshotFormat = 1
	tagEnd         = "."
)

type snapshotHeader struct {
	Magic   string
	Format  int
	Index   uint64
	Epoch   string
	Version string // of the program that wrote it
}

// Persist streams the snapshot to w.
func (s *Snapshot) Persist(w io.Writer) error { return s.PersistWith(w, PersistOptions{}) }

// PersistOptions change what is written; the zero value writes the state as it is.
type PersistOptions struct {
	// Epoch names the history, as it is to be after a restore. Empty leaves the state's own.
	Epoch string
	// Keep says which keys are written; nil keeps them all.
	Keep func(*structs.RootKey) bool
}

// PersistWith streams the snapshot to w with changes.
func (s *Snapshot) PersistWith(w io.Writer, opts PersistOptions) error {
	v := s.at()
	buf := bufio.NewWriterSize(w, 256<<10)
	enc := codec.NewEncoder(buf)
	header := snapshotHeader{Magic: snapshotMagic, Format: SnapshotFormat, Index: v.index, Epoch: cmp.Or(opts.Epoch, v.epoch),
		Version: structs.Version}
	if err := enc.Encode(header); err != nil {
		return fmt.Errorf("write snapshot header: %w", err)
	}
	var count uint64
	err := s.Records(func(table string, record any) error {
		if key, ok := record.(*structs.RootKey); ok && opts.Keep != nil && !opts.Keep(key) {
			return nil
		}
		count++
		if err := enc.Encode(table); err != nil {
			return err
		}
		return enc.Encode(record)
	})
	if err != nil {
		return err
	}
	if err := enc.Encode(tagEnd); err != nil {
		return fmt.Errorf("write snapshot end: %w", err)
	}
	if err := enc.Encode(count); err != nil {
		return fmt.Errorf("write snapshot end: %w", err)
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// Records gives every record that a snapshot holds, with its table, in the order in which they are restored. They are
// not to be changed.
func (s *Snapshot) Records(put func(table string, record any) error) error {
	reg, err := newRegistry(tables())
	if err != nil {
		return err
	}
	v := s.at()
	for _, t := range reg.list {
		if t.derived {
			continue
		}
		if err := t.save(v, func(record any) error { return put(t.name, record) }); err != nil {
			return fmt.Errorf("write snapshot of table %s: %w", t.name, err)
		}
	}
	return nil
}

// Restore puts the state that r holds in the place of the present one: watches on that fire, subscribers get
// structs.ErrLagged. When r cannot be read the present state stays as it is.
func (s *Store) Restore(r io.Reader) error {
	s.write.Lock()
	defer s.write.Unlock()
	old := s.gen.Load()
	dec := codec.NewDecoder(bufio.NewReaderSize(r, 256<<10))
	header, err := readHeader(dec)
	if err != nil {
		return err
	}
	epoch := header.Epoch
	if was := old.head.Load(); was.index > 0 {
		epoch = nextEpoch(was, header.Index)
	}
	gen, err := s.newGeneration(epoch)
	if err != nil {
		return err
	}
	tx := s.begin(gen, header.Index, 0)
	if err := s.readRecords(tx, dec); err != nil {
		return err
	}
	tx.finishRows()
	tx.finishUsage()
	tx.finishSpecs()
	tx.index = 0 // the tables' indexes are those of the snapshot
	if err := tx.flush(); err != nil {
		return err
	}
	gen.refresh(header.Index)
	s.gen.Store(gen)
	close(old.abandon)
	s.feed.cut()
	s.wakeWaiters()
	return nil
}

func readHeader(dec *cbor.Decoder) (snapshotHeader, error) {
	var header snapshotHeader
	if err := dec.Decode(&header); err != nil || header.Magic != snapshotMagic {
		return header, fmt.Errorf("read snapshot: this is no snapshot of the state")
	}
	if header.Format > SnapshotFormat {
		return header, fmt.Errorf("read snapshot: it was written by a newer version (%s) in format %d, this one reads up to %d",
			header.Version, header.Format, SnapshotFormat)
	}
	return header, nil
}

func (s *Store) readRecords(tx *Txn, dec *cbor.Decoder) error {
	var count uint64
	for {
		var tag string
		if err := dec.Decode(&tag); err != nil {
			return fmt.Errorf("read snapshot after %d records: %w", count, err)
		}
		if tag == tagEnd {
			break
		}
		t := s.tables.byName[tag]
		if t == nil || t.derived {
			return fmt.Errorf("read snapshot: table %q is unknown, it was written by a newer version", tag)
		}
		if err := t.restore(tx, dec.Decode); err != nil {
			return fmt.Errorf("restore table %s: %w", tag, err)
		}
		count++
	}
	var wrote uint64
	if err := dec.Decode(&wrote); err != nil || wrote != count {
		return fmt.Errorf("read snapshot: it holds %d records, but should hold %d", count, wrote)
	}
	return nil
}
