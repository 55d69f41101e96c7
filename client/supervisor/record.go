package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/internal/codec"
)

// A task's record is a file of values that are only appended: what is being started, what was started, how it ended.
// A torn value at the end (the machine died) counts as not written.
const recordSuffix = ".task"

// record is one value of the file; each adds to what the ones before it said.
type record struct {
	Task    *taskRecord
	Started *startRecord
	Exit    *Exit
}

// taskRecord is written before the process is made.
type taskRecord struct {
	ID           string
	Cgroup       string   // by which its processes are found
	Cgroups      []string `cbor:",omitempty"` // all that were made for it; nil in records of older versions
	StdoutPath   string
	StderrPath   string
	MaxFiles     int
	MaxFileBytes int64
	Marks        []string
	BootID       string
	Leased       bool `cbor:",omitempty"`
}

// cgroups are all that were made for the task.
func (r *taskRecord) cgroups() []string {
	if len(r.Cgroups) == 0 && r.Cgroup != "" {
		return []string{r.Cgroup}
	}
	return r.Cgroups
}

// startRecord is written once the process runs.
type startRecord struct {
	PID       int
	StartTick uint64
	At        time.Time
}

// recordName makes a file name of a task's id, which has slashes and no limit.
func recordName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16]) + recordSuffix
}

// appendRecord adds a value. It does not wait for the disk: the file survives the death of the process at once, that
// of the machine after the syncer got to it.
func appendRecord(path string, r record) error {
	body, err := codec.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode task record: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open task record: %w", err)
	}
	_, err = f.Write(body)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write task record: %w", err)
	}
	return nil
}

// readRecord puts the values of a file together.
func readRecord(path string) (record, error) {
	f, err := os.Open(path)
	if err != nil {
		return record{}, fmt.Errorf("open task record: %w", err)
	}
	defer f.Close()
	var out record
	dec := codec.NewDecoder(f)
	for {
		var r record
		if err := dec.Decode(&r); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return out, fmt.Errorf("decode task record: %w", err)
			}
			break
		}
		if r.Task != nil {
			out.Task = r.Task
		}
		if r.Started != nil {
			out.Started = r.Started
		}
		if r.Exit != nil {
			out.Exit = r.Exit
		}
	}
	if out.Task == nil {
		return out, errors.New("decode task record: it names no task")
	}
	return out, nil
}

// recordsIn lists the records of a directory.
func recordsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), recordSuffix) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}

// syncer brings records to the disk behind the backs of those who wait for exits: the agent may hear of an exit
// before the disk has it, since the disk matters only when agent, supervisor and machine all die before the agent has
// written it down itself. Records that were removed meanwhile cost nothing.
type syncer struct {
	mu      sync.Mutex
	cond    *sync.Cond
	pending map[string]bool
	closed  bool
	done    chan struct{}
}

func newSyncer() *syncer {
	s := &syncer{pending: map[string]bool{}, done: make(chan struct{})}
	s.cond = sync.NewCond(&s.mu)
	return s
}

func (s *syncer) add(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[path] = true
	s.cond.Signal()
}

// run works until close, and through what is left then.
func (s *syncer) run() {
	defer close(s.done)
	for {
		s.mu.Lock()
		for len(s.pending) == 0 && !s.closed {
			s.cond.Wait()
		}
		batch := s.pending
		s.pending = map[string]bool{}
		closed := s.closed
		s.mu.Unlock()
		dirs := map[string]bool{}
		for path := range batch {
			if syncPath(path) {
				dirs[filepath.Dir(path)] = true
			}
		}
		for dir := range dirs {
			syncPath(dir)
		}
		if closed && len(batch) == 0 {
			return
		}
	}
}

func syncPath(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Fsync(int(f.Fd())) == nil
}

func (s *syncer) close() {
	s.mu.Lock()
	s.closed = true
	s.cond.Signal()
	s.mu.Unlock()
	<-s.done
}
