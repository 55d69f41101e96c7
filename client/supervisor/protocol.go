package supervisor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/internal/codec"
)

// ProtocolVersion is told in hello by both sides. The protocol only grows: fields and operations are added, never
// changed or taken away, and what one side does not know it skips.
const ProtocolVersion = 3

// leaseVersion is the first that knows leases, limitsVersion the first that knows limits and cgroups of one's own choice.
const (
	leaseVersion  = 2
	limitsVersion = 3
)

// maxMessage bounds one message; an environment is the largest thing in it.
const maxMessage = 16 << 20

// Operations.
const (
	opHello    = "hello"
	opStart    = "start"
	opStop     = "stop" // answered when the task has ended
	opSignal   = "signal"
	opWait     = "wait" // answered when the task has ended
	opStatus   = "status"
	opList     = "list"
	opStats    = "stats"
	opDestroy  = "destroy"
	opAck      = "ack"
	opShutdown = "shutdown"
	opRenew    = "renew" // moves leases
)

// Codes of a refusal.
const (
	codeNotFound = "not_found" // no such task
	codeRunning  = "running"   // the task still runs
	codeExists   = "exists"    // there is a task of this id already
	codeStart    = "start"     // the process could not be started
	codeInvalid  = "invalid"
	codeBusy     = "busy"    // not idle
	codeClosing  = "closing" // ask another supervisor
	codeCgroup   = "cgroup"  // the task has ended, and its cgroup cannot be removed
)

// StartSpec says what to start.
type StartSpec struct {
	TaskID       string
	Path         string   // absolute path of the program
	Args         []string // with argv[0]
	Env          []string
	Dir          string // working directory
	User         *User  // nil: as the supervisor
	OOMScoreAdj  int
	StdoutPath   string // FIFOs; "" is /dev/null
	StderrPath   string
	MaxFiles     int
	MaxFileBytes int64
	CgroupParent string
	// Lease, when not nil, is when the task's processes are killed unless Renew moves it. They also die with the
	// supervisor then.
	Lease *boottime.Deadline
	// Limits, when not nil, bound what the task uses, as far as its cgroups can.
	Limits *Limits `cbor:",omitempty"`
	// NoCgroups leaves the task in the supervisor's own cgroups.
	NoCgroups bool `cbor:",omitempty"`
	// JoinV1 names cgroups that exist, by controller, and JoinUnified one of the unified hierarchy: the task is put there
	// and not into one of its own. Paths are absolute or relative to the hierarchy.
	JoinV1      map[string]string `cbor:",omitempty"`
	JoinUnified string            `cbor:",omitempty"`
}

// version is the lowest of a supervisor that does all that is asked for.
func (s *StartSpec) version() int {
	switch {
	case s.Limits != nil || s.NoCgroups || len(s.JoinV1) > 0 || s.JoinUnified != "":
		return limitsVersion
	case s.Lease != nil:
		return leaseVersion
	}
	return 0
}

// User is who a task runs as.
type User struct {
	UID, GID uint32
	Groups   []uint32
}

// TaskInfo describes a task.
type TaskInfo struct {
	ID        string
	PID       int
	StartTick uint64 // start time of the process in clock ticks since boot: with PID and BootID its identity
	BootID    string
	StartedAt time.Time
	Running   bool
	Adopted   bool   // started by a supervisor that is gone
	Cgroup    string // absolute path of the one by which its processes are found, "" without one
	Exit      *Exit
	Leased    bool
	Marks     []string // "K=V" of its environment, by which its processes are found without a cgroup
	Cgroups   []string `cbor:",omitempty"` // all that were made for it, with Cgroup
}

// Exit is how a task ended.
type Exit struct {
	Code   int
	Signal int
	Known  bool
	OOM    bool
	Error  string // why it is not known
	At     time.Time
}

// ProcStats is the use of one process so far.
type ProcStats struct {
	PID         int
	UserTicks   uint64 // of 1/100 s
	SystemTicks uint64
	RSS         uint64 // bytes
	Swap        uint64
}

// Hello introduces a supervisor.
type Hello struct {
	Version int
	Name    string
	PID     int
	Cgroups bool
}

type request struct {
	ID      uint64
	Op      string
	TaskID  string
	Version int
	Start   *StartSpec
	Signal  int
	Timeout time.Duration
	Force   bool
	Leases  map[string]boottime.Deadline // by task id
	Started bool                         // of a status: it is answered once the task has started, or did not

	deadline time.Time // of a stop that may have to be asked for again: sets Timeout
}

type response struct {
	ID    uint64
	Code  string
	Error string
	Hello *Hello
	Task  *TaskInfo
	Tasks []TaskInfo
	Stats []ProcStats
	Usage *Usage `cbor:",omitempty"`
}

// refusal is an answer with a code.
type refusal struct {
	code, text string
}

func (r *refusal) Error() string { return r.text }

func refuse(code, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// writeMessage writes one length-prefixed message in a single write.
func writeMessage(w io.Writer, v any) error {
	body, err := codec.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	if len(body) > maxMessage {
		return fmt.Errorf("encode message: %d bytes are too many", len(body))
	}
	buf := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(buf, uint32(len(body)))
	_, err = w.Write(append(buf, body...))
	return err
}

// readMessage reads one message.
func readMessage(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxMessage {
		return errors.New("read message: too long")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return codec.Unmarshal(body, v)
}
