package fsm

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadlite/nomadlite/nomadlite/state"
)

// FSM applies raft's log to a store. Apply answers with the command's value, or with an error.
//
// An entry that this program cannot read was written by a newer one, or is damaged. To skip it would let this server's
// state part from the others', so the FSM stops there for good: it applies nothing more, makes no snapshot, and Failed
// says so to the server, which ends the process.
type FSM struct {
	store    *state.Store
	log      hclog.Logger
	commands *[256]*command
	failed   chan struct{}
	applied  [256]atomic.Uint64
	mu       sync.Mutex
	err      error
}

var _ raft.FSM = (*FSM)(nil)

// New makes the FSM of a store.
func New(store *state.Store, logger hclog.Logger) *FSM {
	if logger == nil {
		logger = hclog.NewNullLogger()
	}
	return &FSM{store: store, log: logger.Named("fsm"), commands: registered(), failed: make(chan struct{})}
}

// Failed is closed when an entry could not be read; Err then says why.
func (f *FSM) Failed() <-chan struct{} { return f.failed }

// Err is why the FSM stopped, nil while it works.
func (f *FSM) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Applied counts the entries of each command, by its name, which this process has applied.
func (f *FSM) Applied() map[string]uint64 {
	out := map[string]uint64{}
	for kind := range f.applied {
		if n := f.applied[kind].Load(); n > 0 {
			out[Kind(kind).String()] = n
		}
	}
	return out
}

// Apply applies one entry. raft calls it in the order of the log.
func (f *FSM) Apply(entry *raft.Log) any {
	if err := f.Err(); err != nil {
		return err
	}
	if len(entry.Data) == 0 {
		return f.fail(fmt.Errorf("apply raft entry %d: it is empty", entry.Index))
	}
	kind := Kind(entry.Data[0])
	c := f.commands[kind]
	if c == nil {
		return f.fail(fmt.Errorf("apply raft entry %d: its command %d is unknown, it was written by a newer version",
			entry.Index, uint8(kind)))
	}
	f.applied[kind].Add(1)
	req, err := c.decode(entry.Data[1:])
	if err != nil {
		return f.fail(fmt.Errorf("apply raft entry %d: %w", entry.Index, err))
	}
	resp, err := f.store.Write(entry.Index, uint8(kind), func(tx *state.Txn) (any, error) { return c.apply(tx, req) })
	if err != nil {
		return err
	}
	return resp
}

func (f *FSM) fail(err error) error {
	f.log.Error("cannot go on with the raft log", "error", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		close(f.failed)
	}
	return err
}

// Snapshot takes the newest state; raft streams it to disk while entries go on being applied.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.Err(); err != nil {
		return nil, fmt.Errorf("take snapshot: %w", err)
	}
	return snapshot{f.store.Snapshot()}, nil
}

// Restore puts a snapshot in the place of the state. On an error the state is as it was.
func (f *FSM) Restore(r io.ReadCloser) error {
	defer r.Close()
	return f.store.Restore(r)
}

type snapshot struct{ state *state.Snapshot }

func (s snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.state.Persist(sink); err != nil {
		_ = sink.Cancel() // the error that matters is the one before
		return err
	}
	return sink.Close()
}

func (s snapshot) Release() {}
