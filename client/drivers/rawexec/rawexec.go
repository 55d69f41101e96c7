package rawexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/supervisor"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/internal/codec"
)

// Name is what jobs call the driver.
const Name = "raw_exec"

const handleVersion = 1

// Config of the driver: the agent's plugin "raw_exec" block.
type Config struct {
	Supervisor *supervisor.Client
	// Disabled takes the driver away from the node.
	Disabled bool
	// DeniedUIDs and DeniedGIDs are ranges of host ids no task may run as ("0,10-15").
	DeniedUIDs, DeniedGIDs IDRanges
	// DeniedEnv are shell patterns of the variables that no task gets.
	DeniedEnv []string
	// NoCgroups finds a task's processes by session, parents and environment alone; no limits are set then.
	NoCgroups bool
	// CoreMHz gives what one core of the node counts as; it makes TotalTicks of CPU time. nil or 0 leaves them out. It
	// is asked when figures are, since a driver is made before its node is described.
	CoreMHz func() float64
	Logger  hclog.Logger
}

// Driver implements driver.Driver.
type Driver struct {
	cfg Config

	mu    sync.Mutex
	usage map[string]sample              // last figures per task, for rates
	known map[string]supervisor.TaskInfo // tasks that were started or recovered
}

var (
	_ driver.Driver = (*Driver)(nil)
	_ driver.Leaser = (*Driver)(nil)
	_ driver.Finder = (*Driver)(nil)
)

// New makes a driver; it does nothing yet.
func New(cfg Config) *Driver {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	return &Driver{cfg: cfg, usage: map[string]sample{}, known: map[string]supervisor.TaskInfo{}}
}

// handle is the driver's own part of a driver.Handle.
type handle struct {
	PID       int
	StartTick uint64
	BootID    string
	Cgroup    string // "" in handles of older versions
}

// Name gives raw_exec.
func (d *Driver) Name() string { return Name }

// Capabilities says that signals can be sent and commands run beside a task.
func (d *Driver) Capabilities() driver.Capabilities {
	return driver.Capabilities{SendSignals: true, Exec: true}
}

// Fingerprint finds the driver healthy unless it is disabled.
func (d *Driver) Fingerprint(context.Context) driver.Health {
	if d.cfg.Disabled {
		return driver.Health{Description: "disabled"}
	}
	return driver.Health{Detected: true, Healthy: true, Description: "Healthy", Attributes: map[string]string{"driver.raw_exec": "1"}}
}

// Validate checks a config block; all faults at once.
func (d *Driver) Validate(config map[string]any) error {
	_, err := parseConfig(config)
	return err
}

// Start runs the task's command.
func (d *Driver) Start(ctx context.Context, cfg *driver.TaskConfig) (*driver.Handle, error) {
	if d.cfg.Disabled {
		return nil, fmt.Errorf("start task: driver raw_exec is disabled: %w", driver.ErrUnrecoverable)
	}
	c, err := parseConfig(cfg.Config)
	if err != nil {
		return nil, fmt.Errorf("start task: %w: %w", driver.ErrUnrecoverable, err)
	}
	user, err := d.user(cfg.User)
	if err != nil {
		return nil, fmt.Errorf("start task: %w", err)
	}
	program, err := lookCommand(c.command, cfg.TaskDir, cfg.Env["PATH"], os.Getenv("PATH"))
	if err != nil {
		return nil, fmt.Errorf("start task: %w", err)
	}
	spec := &supervisor.StartSpec{
		TaskID: cfg.ID, Path: program, Args: append([]string{c.command}, c.args...), Dir: cfg.TaskDir,
		Env:  envList(cfg.Env, slices.Concat(d.cfg.DeniedEnv, c.deniedEnv)),
		User: user, OOMScoreAdj: c.oomScoreAdj, MaxFiles: cfg.MaxLogFiles, MaxFileBytes: cfg.LogFileBytes, CgroupParent: cfg.CgroupParent,
		Lease: cfg.Lease, NoCgroups: d.cfg.NoCgroups, JoinV1: c.joinV1, JoinUnified: c.joinUnified,
	}
	if !d.cfg.NoCgroups {
		spec.Limits = supervisor.LimitsOf(cfg.Resources)
	}
	if c.workDir != "" {
		spec.Dir = c.workDir
	}
	if !cfg.LogsDisabled {
		spec.StdoutPath, spec.StderrPath = cfg.StdoutPath, cfg.StderrPath
	}
	for {
		info, err := d.cfg.Supervisor.Start(ctx, spec)
		if errors.Is(err, supervisor.ErrExists) { // what an agent asked for that has died since, heard only now
			if info, err = d.cfg.Supervisor.Find(ctx, cfg.ID); errors.Is(err, supervisor.ErrNotFound) {
				continue // that start did not work
			}
		}
		if err != nil {
			return nil, fmt.Errorf("start task: %w", err)
		}
		return d.take(info)
	}
}

// Find takes over a task of which only the id is known.
func (d *Driver) Find(ctx context.Context, taskID string) (*driver.Handle, error) {
	info, err := d.cfg.Supervisor.Find(ctx, taskID)
	if err != nil {
		return nil, fmt.Errorf("find task: %w", contractError(err))
	}
	return d.take(info)
}

// take remembers a task and makes its handle.
func (d *Driver) take(info *supervisor.TaskInfo) (*driver.Handle, error) {
	d.remember(*info)
	state, err := codec.Marshal(handle{info.PID, info.StartTick, info.BootID, info.Cgroup})
	if err != nil {
		return nil, fmt.Errorf("encode handle: %w", err)
	}
	return &driver.Handle{Driver: Name, TaskID: info.ID, Version: handleVersion, State: state}, nil
}

func (d *Driver) user(name string) (*supervisor.User, error) {
	u, err := lookUser(name)
	if err != nil || name == "" {
		return u, err
	}
	uid, gids := uint32(os.Geteuid()), []uint32{uint32(os.Getegid())}
	if u != nil {
		uid, gids = u.UID, append([]uint32{u.GID}, u.Groups...)
	}
	if d.cfg.DeniedUIDs.Contain(uid) {
		return nil, fmt.Errorf("running as user %q (uid %d) is denied on this node: %w", name, uid, driver.ErrUnrecoverable)
	}
	for _, gid := range gids {
		if d.cfg.DeniedGIDs.Contain(gid) {
			return nil, fmt.Errorf("running as user %q is denied on this node since it is in group %d: %w", name, gid, driver.ErrUnrecoverable)
		}
	}
	return u, nil
}

// Recover finds a task of an earlier agent at the supervisor.
func (d *Driver) Recover(ctx context.Context, h *driver.Handle) error {
	if h == nil || h.Driver != Name {
		return fmt.Errorf("recover task: the handle is not of raw_exec: %w", driver.ErrTaskNotFound)
	}
	var own handle
	if err := codec.Unmarshal(h.State, &own); err != nil {
		return fmt.Errorf("recover task: decode handle: %w: %w", driver.ErrTaskNotFound, err)
	}
	info, err := d.cfg.Supervisor.Status(ctx, h.TaskID)
	if err != nil {
		if errors.Is(err, supervisor.ErrNotFound) {
			// Nobody accounts for it, and another is going to be started in its place.
			d.remember(supervisor.TaskInfo{ID: h.TaskID, PID: own.PID, StartTick: own.StartTick, BootID: own.BootID, Cgroup: own.Cgroup})
			err = d.endStray(h.TaskID, err)
		}
		return fmt.Errorf("recover task: %w", contractError(err))
	}
	d.remember(*info)
	if info.PID != 0 && (info.PID != own.PID || info.StartTick != own.StartTick) {
		return fmt.Errorf("recover task: the supervisor has another process by this id: %w", driver.ErrTaskNotFound)
	}
	return nil
}

func (d *Driver) remember(t supervisor.TaskInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known[t.ID] = t
}

// endStray ends what may run of a task that no supervisor knows, and adds to why what was found. While that cannot be
// ended the answer is not that there is no task.
func (d *Driver) endStray(taskID string, why error) error {
	d.mu.Lock()
	t, known := d.known[taskID]
	d.mu.Unlock()
	if !known {
		return why
	}
	pids, err := d.cfg.Supervisor.EndStray(t)
	if err != nil {
		return fmt.Errorf("end task that no supervisor knows: %w", err)
	}
	d.mu.Lock()
	delete(d.known, taskID)
	d.mu.Unlock()
	if len(pids) > 0 {
		return fmt.Errorf("%w; its record was lost, and processes %v were killed", why, pids)
	}
	return why
}

// contractError makes the supervisor's errors the contract's.
func contractError(err error) error {
	if errors.Is(err, supervisor.ErrNotFound) {
		return fmt.Errorf("%w: %w", driver.ErrTaskNotFound, err)
	}
	return err
}

// Wait blocks until the task has ended or ctx is done.
func (d *Driver) Wait(ctx context.Context, taskID string) (*driver.ExitResult, error) {
	info, err := d.cfg.Supervisor.Wait(ctx, taskID)
	if err != nil {
		return nil, contractError(err)
	}
	return exitResult(info.Exit), nil
}

func exitResult(e *supervisor.Exit) *driver.ExitResult {
	if e == nil {
		return nil
	}
	r := &driver.ExitResult{ExitCode: e.Code, Signal: e.Signal, OOMKilled: e.OOM, Known: e.Known, At: e.At}
	if !e.Known {
		r.Err = fmt.Errorf("exit code is unknown: %s", e.Error)
	}
	return r
}

// Stop asks the task's main process to end and kills its whole tree after timeout. It returns when the task has ended
// or ctx is done; the kill comes in time whatever becomes of the agent.
func (d *Driver) Stop(ctx context.Context, taskID, signal string, timeout time.Duration) error {
	sig, err := driver.ParseSignal(signal)
	if err != nil {
		return fmt.Errorf("stop task: %w", err)
	}
	if _, err := d.cfg.Supervisor.Stop(ctx, taskID, sig, timeout); err != nil {
		return contractError(err)
	}
	return nil
}

// Signal sends a signal to the task's main process.
func (d *Driver) Signal(ctx context.Context, taskID, signal string) error {
	sig, err := driver.ParseSignal(signal)
	if err != nil {
		return fmt.Errorf("signal task: %w", err)
	}
	return contractError(d.cfg.Supervisor.Signal(ctx, taskID, sig))
}

// Renew moves the leases of tasks.
func (d *Driver) Renew(ctx context.Context, until map[string]boottime.Deadline) error {
	return d.cfg.Supervisor.Renew(ctx, until)
}

// Destroy makes the supervisor forget the task; with force a running one is killed first.
func (d *Driver) Destroy(ctx context.Context, taskID string, force bool) error {
	d.mu.Lock()
	delete(d.usage, taskID)
	d.mu.Unlock()
	err := d.cfg.Supervisor.Destroy(ctx, taskID, force)
	switch {
	case err == nil:
		d.mu.Lock()
		delete(d.known, taskID)
		d.mu.Unlock()
	case errors.Is(err, supervisor.ErrNotFound):
		err = d.endStray(taskID, err)
	}
	return contractError(err)
}

// Inspect describes the task and its processes.
func (d *Driver) Inspect(ctx context.Context, taskID string) (*driver.TaskStatus, error) {
	info, err := d.cfg.Supervisor.Status(ctx, taskID)
	if err != nil {
		return nil, contractError(err)
	}
	s := &driver.TaskStatus{ID: taskID, Running: info.Running, StartedAt: info.StartedAt, Exit: exitResult(info.Exit)}
	if !info.Running {
		return s, nil
	}
	stats, _, err := d.cfg.Supervisor.Stats(ctx, taskID)
	if err != nil {
		return nil, contractError(err)
	}
	s.PIDs = append(s.PIDs, info.PID)
	for _, p := range stats {
		if p.PID != info.PID {
			s.PIDs = append(s.PIDs, p.PID)
		}
	}
	slices.Sort(s.PIDs[1:])
	return s, nil
}

// envList lists what no pattern denies.
func envList(env map[string]string, denied []string) []string {
	out := make([]string, 0, len(env))
	for k, v := range env {
		matches := func(pattern string) bool {
			ok, err := path.Match(pattern, k)
			return pattern == k || (ok && err == nil)
		}
		if !slices.ContainsFunc(denied, matches) {
			out = append(out, k+"="+v)
		}
	}
	slices.Sort(out)
	return out
}
