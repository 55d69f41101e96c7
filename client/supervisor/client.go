package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client/allocdir"
)

// Errors of a client's calls.
var (
	ErrNotFound = errors.New("supervisor knows no such task")
	ErrRunning  = errors.New("task still runs")
	ErrStart    = errors.New("cannot start")
	ErrSilent   = errors.New("no answer")
	ErrExists   = errors.New("task was started already")
)

// Config of a Client.
type Config struct {
	// Dir holds the supervisors' sockets and records: <data_dir>/client/supervisor.
	Dir string
	// Command starts a supervisor; its options are added. Empty means this very binary with the word "supervisor".
	Command []string
	// IdleTimeout is how long a supervisor without tasks outlives the agent. 0 means DefaultIdleTimeout.
	IdleTimeout time.Duration
	// NoCgroups follows processes by session, parents and environment, as is done where there is no hierarchy.
	NoCgroups bool
	// Mountinfo names what tells which hierarchies of cgroups there are. "" means /proc/self/mountinfo.
	Mountinfo string
	// FindLimit bounds how long a supervisor that lives and does not answer is waited for. 0 means 5 s.
	FindLimit time.Duration
	LogLevel  string // of the supervisor's own log in Dir; "" means info
	Logger    hclog.Logger
}

// Client speaks to all supervisors of a node. It connects, and starts one, when first needed.
type Client struct {
	cfg    Config
	logger hclog.Logger

	connecting sync.Mutex // one at a time looks for sockets or starts a supervisor

	mu     sync.Mutex
	conns  map[string]*conn
	owner  map[string]string // task id -> name of its supervisor, as last seen
	lost   bool              // a connection broke since supervisors were last looked for
	closed bool
	leased map[string]leasedTask // by task id

	leaseNews chan struct{}

	children []int // supervisors that we started; they normally outlive us
}

// NewClient makes a client; it does nothing yet.
func NewClient(cfg Config) *Client {
	if cfg.IdleTimeout == 0 {
		cfg.IdleTimeout = DefaultIdleTimeout
	}
	if cfg.FindLimit == 0 {
		cfg.FindLimit = 5 * time.Second
	}
	if len(cfg.Command) == 0 {
		// The link leads to this binary even after an upgrade has replaced its file.
		cfg.Command = []string{"/proc/self/exe", "supervisor"}
	}
	if cfg.LogLevel == "" {
		cfg.LogLevel = "info"
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	return &Client{cfg: cfg, logger: cfg.Logger.Named("supervisor"), conns: map[string]*conn{}, owner: map[string]string{},
		leased: map[string]leasedTask{}, leaseNews: make(chan struct{}, 1)}
}

// Close ends the connections. Tasks and supervisors go on.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	conns := c.conns
	c.conns = map[string]*conn{}
	c.mu.Unlock()
	for _, conn := range conns {
		conn.close()
	}
	return nil
}

// Ensure connects to all supervisors there are and starts one when none answers. Call it early: the first task then
// does not wait for it.
func (c *Client) Ensure(ctx context.Context) error {
	_, err := c.live(ctx)
	return err
}

// live gives the connections, newest supervisor last; at least one.
func (c *Client) live(ctx context.Context) ([]*conn, error) {
	if conns, lost, err := c.current(); err != nil || (len(conns) > 0 && !lost) {
		return conns, err
	}
	c.connecting.Lock()
	defer c.connecting.Unlock()
	if err := ctx.Err(); err != nil { // many may have waited; none starts a supervisor which it would not wait for
		return nil, err
	}
	before, lost, err := c.current()
	if err != nil || (len(before) > 0 && !lost) {
		return before, err
	}
	if err := os.MkdirAll(c.cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of supervisors: %w", err)
	}
	allocdir.Spread(c.cfg.Dir)
	silent, err := c.dialAll(ctx, nil)
	if err != nil {
		return nil, err
	}
	// When one was lost and no other has come, its tasks wait for a new one to take them over.
	after, _, err := c.current()
	if err != nil || len(after) > len(before) {
		c.found()
		return after, err
	}
	if _, err := c.another(ctx); err != nil {
		return nil, err
	}
	// One whose agent died while starting it may have been quicker to take the tasks over.
	if _, err := c.dialAll(ctx, silent); err != nil {
		return nil, err
	}
	c.found()
	after, _, err = c.current()
	return after, err
}

// another starts a supervisor of this binary's version beside those there are.
func (c *Client) another(ctx context.Context) (*conn, error) {
	name, err := c.launch(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, c.cfg.Dir, name)
	if err != nil {
		return nil, err
	}
	return conn, c.keep(name, conn)
}

func (c *Client) found() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = false
}

// current gives the connections that live, and whether one was lost since supervisors were last looked for.
func (c *Client) current() (conns []*conn, lost bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, errors.New("supervisor client is closed")
	}
	for name, conn := range c.conns {
		if conn.alive() {
			conns = append(conns, conn)
		} else {
			delete(c.conns, name)
			c.lost = true
		}
	}
	// One that has ended must not stay a zombie.
	c.children = slices.DeleteFunc(c.children, func(pid int) bool {
		got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		return got == pid || errors.Is(err, syscall.ECHILD)
	})
	slices.SortFunc(conns, func(a, b *conn) int { return a.hello.Version - b.hello.Version })
	return conns, c.lost, nil
}

func (c *Client) keep(name string, conn *conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.net.Close()
		return errors.New("supervisor client is closed")
	}
	c.conns[name] = conn
	conn.mu.Lock()
	defer conn.mu.Unlock()
	conn.onEnd = c.tellLeases // its leased tasks have lost their supervisor
	return nil
}

// launch starts a supervisor that lives on without us, and gives its name once it listens.
func (c *Client) launch(ctx context.Context) (string, error) {
	logFile, err := os.OpenFile(filepath.Join(c.cfg.Dir, "supervisor.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", fmt.Errorf("start supervisor: %w", err)
	}
	defer logFile.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("start supervisor: %w", err)
	}
	defer r.Close()
	o := Options{Dir: c.cfg.Dir, Idle: c.cfg.IdleTimeout, NoCgroups: c.cfg.NoCgroups, Mountinfo: c.cfg.Mountinfo, ReadyFD: 3,
		LogLevel: c.cfg.LogLevel}
	cmd := exec.Command(c.cfg.Command[0], append(slices.Clone(c.cfg.Command[1:]), o.args()...)...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.ExtraFiles = []*os.File{w}
	cmd.Args[0] = "nomadlite"
	cmd.Dir = "/"
	// A session of its own: what the agent's terminal or service manager sends to the agent's group passes it by.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return "", fmt.Errorf("start supervisor: %w", err)
	}
	c.logger.Debug("started supervisor", "pid", cmd.Process.Pid)
	c.mu.Lock()
	c.children = append(c.children, cmd.Process.Pid)
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { r.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := io.ReadAll(io.LimitReader(r, 256))
	name := strings.TrimSpace(string(line))
	if err != nil || name == "" {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("start supervisor: it ended at once; see %s", logFile.Name())
	}
	return name, nil
}

// Supervisors describes those that answer.
func (c *Client) Supervisors(ctx context.Context) ([]Hello, error) {
	conns, err := c.live(ctx)
	if err != nil {
		return nil, err
	}
	var out []Hello
	for _, conn := range conns {
		out = append(out, conn.hello)
	}
	return out, nil
}

// Start starts a task. An error that wraps ErrStart came from the system's attempt to run the program.
func (c *Client) Start(ctx context.Context, spec *StartSpec) (*TaskInfo, error) {
	var deaths deaths
	for again := false; ; again = true {
		conns, err := c.live(ctx)
		if err != nil {
			return nil, err
		}
		if again {
			// The one that went may have started it, and who took over from it then has it.
			if info, err := c.Status(ctx, spec.TaskID); !errors.Is(err, ErrNotFound) {
				return info, err
			}
		}
		conns = slices.DeleteFunc(conns, (*conn).frozen)
		began := time.Now()
		var conn *conn
		if n := len(conns); n > 0 {
			conn = conns[n-1]
		}
		if conn == nil || conn.hello.Version < spec.version() {
			if conn, err = c.another(ctx); err != nil {
				return nil, err
			}
		}
		resp, err := conn.call(ctx, request{Op: opStart, Start: spec})
		if errors.Is(err, errLost) && !deaths.tooMany(began) {
			continue
		}
		if err != nil && ctx.Err() != nil {
			return nil, errors.Join(err, c.undo(ctx, spec.TaskID))
		}
		if err != nil {
			return nil, callError(err)
		}
		c.mu.Lock()
		c.owner[spec.TaskID] = conn.hello.Name
		c.mu.Unlock()
		if spec.Lease != nil {
			c.noteLease(conn, *resp.Task, *spec.Lease)
		}
		return resp.Task, nil
	}
}

// deaths counts how often supervisors died in quick succession under one call: some request may be what kills them.
type deaths int

const maxDeaths = 5

func (d *deaths) tooMany(began time.Time) bool {
	if time.Since(began) > time.Second {
		*d = 0
	}
	*d++
	return *d >= maxDeaths
}

// undoTimeout bounds how long a start that was given up waits for the end of what it may have started.
const undoTimeout = 5 * time.Second

// undo ends a task whose start nobody waits for any more.
func (c *Client) undo(ctx context.Context, taskID string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := c.Destroy(ctx, taskID, true); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("end task whose start was given up: %w", err)
	}
	return nil
}

// onTask calls the supervisor that has the task, wherever it is by now.
func (c *Client) onTask(ctx context.Context, req request) (*response, error) {
	var deaths deaths
	for {
		conns, err := c.live(ctx)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		c.mu.Lock()
		owner := c.owner[req.TaskID]
		c.mu.Unlock()
		slices.SortStableFunc(conns, func(a, b *conn) int { return boolInt(b.hello.Name == owner) - boolInt(a.hello.Name == owner) })
		lost := false
		var silent error
		if !req.deadline.IsZero() {
			req.Timeout = max(0, time.Until(req.deadline))
		}
		for _, conn := range conns {
			resp, err := conn.call(ctx, req)
			var ref *refusal
			switch {
			case errors.Is(err, errLost):
				if deaths.tooMany(began) {
					return nil, err
				}
				lost = true
			case errors.As(err, &ref) && ref.code == codeNotFound:
			case errors.Is(err, ErrSilent):
				silent = err // another may have the task
			case err != nil:
				return nil, callError(err)
			default:
				return resp, nil
			}
			if lost {
				break
			}
		}
		if lost {
			continue
		}
		if silent != nil {
			return nil, fmt.Errorf("ask for task %s: %w", req.TaskID, silent)
		}
		if found, err := c.search(ctx); err != nil {
			return nil, err
		} else if !found {
			return nil, fmt.Errorf("%w: %s", ErrNotFound, req.TaskID)
		}
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// callError makes a refusal one of our errors.
func callError(err error) error {
	var ref *refusal
	if !errors.As(err, &ref) {
		return err
	}
	switch ref.code {
	case codeNotFound:
		return fmt.Errorf("%w: %s", ErrNotFound, ref.text)
	case codeRunning:
		return fmt.Errorf("%w: %s", ErrRunning, ref.text)
	case codeStart:
		return fmt.Errorf("%w: %s", ErrStart, strings.TrimPrefix(ref.text, "start "))
	case codeExists:
		return fmt.Errorf("%w: %s", ErrExists, ref.text)
	}
	return err
}

// Wait waits until the task has ended, also across the death of its supervisor.
func (c *Client) Wait(ctx context.Context, taskID string) (*TaskInfo, error) {
	resp, err := c.onTask(ctx, request{Op: opWait, TaskID: taskID})
	if err != nil {
		return nil, err
	}
	return resp.Task, nil
}

// Status describes a task.
func (c *Client) Status(ctx context.Context, taskID string) (*TaskInfo, error) {
	resp, err := c.onTask(ctx, request{Op: opStatus, TaskID: taskID})
	if err != nil {
		return nil, err
	}
	return resp.Task, nil
}

// Find describes a task by its id alone, once it has started: another agent may have asked for that. ErrNotFound when it
// did not start, or nobody asked.
func (c *Client) Find(ctx context.Context, taskID string) (*TaskInfo, error) {
	resp, err := c.onTask(ctx, request{Op: opStatus, TaskID: taskID, Started: true})
	if err != nil {
		return nil, err
	}
	if t := resp.Task; t.Running && t.PID == 0 { // a supervisor that does not know what it was asked, or ends what it adopted
		return nil, fmt.Errorf("find task %s: it is neither started nor ended yet", taskID)
	}
	return resp.Task, nil
}

// Stop sends sig and, after timeout, kills all of the task's processes; it returns when the task has ended or ctx is
// done, which changes nothing about the stop itself. A second Stop shortens the wait of a first.
func (c *Client) Stop(ctx context.Context, taskID string, sig syscall.Signal, timeout time.Duration) (*TaskInfo, error) {
	resp, err := c.onTask(ctx, request{Op: opStop, TaskID: taskID, Signal: int(sig), deadline: time.Now().Add(timeout)})
	if err != nil {
		return nil, err
	}
	return resp.Task, nil
}

// Signal sends a signal to the task's main process.
func (c *Client) Signal(ctx context.Context, taskID string, sig syscall.Signal) error {
	_, err := c.onTask(ctx, request{Op: opSignal, TaskID: taskID, Signal: int(sig)})
	return err
}

// Stats tells what the task's processes have used so far, and what the whole task has, where its cgroups tell that.
func (c *Client) Stats(ctx context.Context, taskID string) ([]ProcStats, *Usage, error) {
	resp, err := c.onTask(ctx, request{Op: opStats, TaskID: taskID})
	if err != nil {
		return nil, nil, err
	}
	return resp.Stats, resp.Usage, nil
}

// Destroy makes the supervisor forget a task that has ended; with force it kills the task first. ErrRunning without.
func (c *Client) Destroy(ctx context.Context, taskID string, force bool) error {
	_, err := c.onTask(ctx, request{Op: opDestroy, TaskID: taskID, Force: force})
	if err == nil || errors.Is(err, ErrNotFound) {
		c.mu.Lock()
		delete(c.owner, taskID)
		delete(c.leased, taskID)
		c.mu.Unlock()
	}
	return err
}

// Ack tells that the task's exit was written down, so that the supervisor need not keep it.
func (c *Client) Ack(ctx context.Context, taskID string) error {
	_, err := c.onTask(ctx, request{Op: opAck, TaskID: taskID})
	return err
}

// List describes all tasks of all supervisors that answer; it is an error when one does not.
func (c *Client) List(ctx context.Context) ([]TaskInfo, error) {
	conns, err := c.live(ctx)
	if err != nil {
		return nil, err
	}
	var out []TaskInfo
	var faults []error
	for _, conn := range conns {
		resp, err := conn.call(ctx, request{Op: opList})
		if err != nil {
			faults = append(faults, callError(err))
			continue
		}
		out = append(out, resp.Tasks...)
	}
	return out, errors.Join(faults...)
}

// Shutdown asks every supervisor that has no running tasks to end; the others stay and are an error.
func (c *Client) Shutdown(ctx context.Context) error {
	c.mu.Lock()
	var conns []*conn
	for _, conn := range c.conns {
		conns = append(conns, conn)
	}
	c.mu.Unlock()
	var errs []error
	for _, conn := range conns {
		if _, err := conn.call(ctx, request{Op: opShutdown}); err != nil && !errors.Is(err, errLost) {
			errs = append(errs, fmt.Errorf("shut supervisor down: %w", err))
			continue
		}
		select {
		case <-conn.done:
		case <-ctx.Done():
			errs = append(errs, ctx.Err())
		}
	}
	return errors.Join(errs...)
}
