package driver

import (
	"context"
	"errors"
	"time"

	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// Errors of the contract; a driver wraps them.
var (
	// ErrTaskNotFound: the driver knows no such task (any more).
	ErrTaskNotFound = errors.New("task not found")
	// ErrUnrecoverable: starting the task can never work, restart policy or not.
	ErrUnrecoverable = errors.New("unrecoverable")
)

// Capabilities is what a driver can do.
type Capabilities struct {
	SendSignals bool
	Exec        bool
	// FSIsolation says what a task sees of the host's file system; "" is FSNone.
	FSIsolation string
}

// What a task sees of the file system. With FSChroot and FSImage its directories are at /alloc, /local and /secrets.
const (
	FSNone   = "none"   // all of it
	FSChroot = "chroot" // a root made of parts of it
	FSImage  = "image"  // an image's
)

// Health is one answer of a driver's fingerprint.
type Health struct {
	Detected    bool
	Healthy     bool
	Description string
	Attributes  map[string]string // "driver.raw_exec": "1"
}

// TaskConfig is everything a driver needs to start a task.
type TaskConfig struct {
	ID        string // allocID/task/attempt: unique on the node
	AllocID   string
	JobID     string
	Namespace string
	Group     string
	Task      string
	User      string
	Env       map[string]string
	Config    map[string]any // the task's config block, interpolated
	Resources *structs.AllocatedTaskResources
	Ports     []structs.PortMapping
	AllocDir  string // shared alloc dir on the host
	TaskDir   string // the task's root on the host; its working directory
	// StdoutPath and StderrPath are the FIFOs (logs.FIFOPath) which the driver makes and opens read-write for the
	// task; the rotated files lie beside them. Empty paths, or LogsDisabled, mean /dev/null.
	StdoutPath   string
	StderrPath   string
	LogsDisabled bool
	CgroupParent string // relative to each hierarchy; "" means DefaultCgroupParent
	KillSignal   string // "" means SIGINT
	MaxLogFiles  int    // 0 means 10
	LogFileBytes int64  // 0 means 10 MiB
	// Event, when not nil, tells the task's events what the driver is at, such as a long download.
	Event func(message string)
	// Lease, when not nil, is when the task is to be killed unless Renew moves it; see Leaser.
	Lease *boottime.Deadline
}

// DefaultCgroupParent is the cgroup below which tasks get theirs.
const DefaultCgroupParent = "nomad.slice"

// Handle is what is kept on disk to find a running task again.
type Handle struct {
	Driver  string
	TaskID  string
	Version int
	State   []byte // the driver's own, opaque to others
}

// ExitResult is how a task ended. Known is false when the exit code could not be learnt; it is then never reported
// as success.
type ExitResult struct {
	ExitCode  int
	Signal    int
	OOMKilled bool
	Known     bool
	Err       error
	At        time.Time
}

// Successful says whether the task is known to have ended with code 0.
func (r *ExitResult) Successful() bool {
	return r != nil && r.Known && r.ExitCode == 0 && r.Signal == 0 && r.Err == nil
}

// TaskStatus is a driver's view of one task.
type TaskStatus struct {
	ID        string
	Running   bool
	PIDs      []int
	StartedAt time.Time
	Exit      *ExitResult
}

// Describer is what a driver says of itself and of a task's config block. It starts nothing.
type Describer interface {
	Name() string
	Capabilities() Capabilities
	Fingerprint(ctx context.Context) Health
	// Validate checks a task's config block before anything is started; all faults at once.
	Validate(config map[string]any) error
}

// Runner runs tasks. Start returns once the task runs; a driver must not leave anything behind when Start fails. Stop
// asks with signal, waits up to timeout, then kills the whole process tree; shortening a stop that is under way is a
// second Stop with a smaller timeout. Destroy forgets a task that has ended, or kills it first when force.
type Runner interface {
	Start(ctx context.Context, cfg *TaskConfig) (*Handle, error)
	// Recover takes a task over that was started by an earlier agent. ErrTaskNotFound when it is gone without trace, or
	// can never be taken over; after any other error it is asked again.
	Recover(ctx context.Context, h *Handle) error
	// Wait blocks until the task has ended or ctx is done. After an error other than ErrTaskNotFound it is asked again.
	Wait(ctx context.Context, taskID string) (*ExitResult, error)
	Stop(ctx context.Context, taskID, signal string, timeout time.Duration) error
	Signal(ctx context.Context, taskID, signal string) error
	Destroy(ctx context.Context, taskID string, force bool) error
	Inspect(ctx context.Context, taskID string) (*TaskStatus, error)
	Stats(ctx context.Context, taskID string) (*structs.TaskResourceUsage, error)
}

// Leaser is implemented by drivers whose tasks outlive the agent. A task that was started with a lease is killed, with
// its whole tree, when that has run out, whatever becomes of the agent.
type Leaser interface {
	// Renew moves leases, by task id. Tasks that have ended, or that have none, are passed over.
	Renew(ctx context.Context, until map[string]boottime.Deadline) error
}

// Finder is implemented by drivers whose tasks outlive the agent. An agent that dies between the start of a process and
// writing its handle down leaves one that only its id tells of. The Start of such a driver, asked for an id that it has
// started already, gives the handle of that task: an id is one process, however often and by whomever it is asked for.
type Finder interface {
	// Find takes over the task of this id, running or ended, and gives the handle which its Start would have given; one
	// that is being started is waited for. ErrTaskNotFound says that there is no process of this id and never was one
	// that ran; after any other error it is asked again.
	Find(ctx context.Context, taskID string) (*Handle, error)
}

// Driver is the whole contract, which the suite of client/drivertest holds each driver to. All methods are safe for
// concurrent use.
type Driver interface {
	Describer
	Runner
}
