package mock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/logs"
	"github.com/nomadlite/nomadlite/internal/codec"
	"github.com/nomadlite/nomadlite/structs"
)

// Name is what jobs call the driver.
const Name = "mock_driver"

// Driver implements driver.Driver.
type Driver struct {
	logger hclog.Logger

	mu    sync.Mutex
	tasks map[string]*task
}

var (
	_ driver.Driver = (*Driver)(nil)
	_ driver.Finder = (*Driver)(nil)
)

// New makes a driver. A nil logger is quiet.
func New(logger hclog.Logger) *Driver {
	if logger == nil {
		logger = hclog.NewNullLogger()
	}
	return &Driver{logger: logger, tasks: map[string]*task{}}
}

// saved is a task's handle.
type saved struct {
	Script    Script
	StartedAt time.Time
	Stdout    output
	Stderr    output
}

// output is where a kind of output goes.
type output struct {
	FIFO     string // "" is nowhere
	MaxFiles int
	MaxBytes int64
}

// task is one running or ended task.
type task struct {
	saved
	id     string
	ended  chan struct{}
	timers []*time.Timer

	mu     sync.Mutex
	killer *time.Timer
	killAt time.Time
	asked  bool
	exit   *driver.ExitResult
	open   []*logs.Rotator
}

// Name gives mock_driver.
func (d *Driver) Name() string { return Name }

// Capabilities says that signals can be sent.
func (d *Driver) Capabilities() driver.Capabilities { return driver.Capabilities{SendSignals: true} }

// Fingerprint always finds the driver healthy.
func (d *Driver) Fingerprint(context.Context) driver.Health {
	return driver.Health{Detected: true, Healthy: true, Description: "Healthy", Attributes: map[string]string{"driver.mock_driver": "1"}}
}

// Validate checks a config block; all faults at once.
func (d *Driver) Validate(config map[string]any) error {
	_, err := parse(config)
	return err
}

// Start begins to play the task's script.
func (d *Driver) Start(ctx context.Context, cfg *driver.TaskConfig) (*driver.Handle, error) {
	script, err := parse(cfg.Config)
	if err != nil {
		return nil, fmt.Errorf("start task: %w: %w", driver.ErrUnrecoverable, err)
	}
	if script.StartBlockFor > 0 {
		timer := time.NewTimer(script.StartBlockFor)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("start task: %w", ctx.Err())
		}
	}
	if script.StartError != "" {
		if script.StartErrorRecoverable {
			return nil, errors.New(script.StartError)
		}
		return nil, fmt.Errorf("%s: %w", script.StartError, driver.ErrUnrecoverable)
	}
	t := &task{id: cfg.ID, ended: make(chan struct{}), saved: saved{Script: script, StartedAt: time.Now().UTC()}}
	if !cfg.LogsDisabled {
		t.Stdout = output{cfg.StdoutPath, cfg.MaxLogFiles, cfg.LogFileBytes}
		t.Stderr = output{cfg.StderrPath, cfg.MaxLogFiles, cfg.LogFileBytes}
	}
	if d.add(t) != nil {
		return d.Find(ctx, cfg.ID)
	}
	if err := t.play(time.Time{}); err != nil {
		d.remove(cfg.ID)
		return nil, fmt.Errorf("start task: %w", err)
	}
	return t.handle()
}

// Find gives the handle of a task by its id alone.
func (d *Driver) Find(_ context.Context, taskID string) (*driver.Handle, error) {
	t, err := d.task(taskID)
	if err != nil {
		return nil, fmt.Errorf("find task: %w", err)
	}
	return t.handle()
}

func (t *task) handle() (*driver.Handle, error) {
	state, err := codec.Marshal(t.saved)
	if err != nil {
		return nil, fmt.Errorf("encode handle: %w", err)
	}
	return &driver.Handle{Driver: Name, TaskID: t.id, Version: 1, State: state}, nil
}

func (d *Driver) add(t *task) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tasks[t.id] != nil {
		return fmt.Errorf("start task: %s is there already", t.id)
	}
	d.tasks[t.id] = t
	return nil
}

func (d *Driver) remove(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tasks, id)
}

func (d *Driver) task(id string) (*task, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tasks[id]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%w: %s", driver.ErrTaskNotFound, id)
}

// Recover goes on with the script of a task of an earlier agent. If its time is up by now, it ended when it was.
func (d *Driver) Recover(_ context.Context, h *driver.Handle) error {
	if h == nil || h.Driver != Name {
		return fmt.Errorf("recover task: the handle is not of mock_driver: %w", driver.ErrTaskNotFound)
	}
	t := &task{id: h.TaskID, ended: make(chan struct{})}
	if err := codec.Unmarshal(h.State, &t.saved); err != nil {
		return fmt.Errorf("recover task: decode handle: %w: %w", driver.ErrTaskNotFound, err)
	}
	if _, err := d.task(h.TaskID); err == nil {
		return nil // it never left us
	}
	if err := d.add(t); err != nil {
		return err
	}
	if err := t.play(time.Now()); err != nil {
		d.remove(t.id)
		return fmt.Errorf("recover task: %w: %w", driver.ErrTaskNotFound, err)
	}
	return nil
}

// play sets the timers of the script. What was due before since has been done.
func (t *task) play(since time.Time) error {
	for _, o := range []struct {
		to     output
		text   string
		repeat int
		every  time.Duration
	}{
		{t.Stdout, t.Script.StdoutString, t.Script.StdoutRepeat, t.Script.StdoutRepeatDuration},
		{t.Stderr, t.Script.StderrString, t.Script.StderrRepeat, t.Script.StderrRepeatDuration},
	} {
		if o.to.FIFO == "" {
			continue
		}
		r, err := logs.NewRotator(o.to.FIFO, o.to.MaxFiles, o.to.MaxBytes)
		if err != nil {
			return err
		}
		t.mu.Lock()
		t.open = append(t.open, r)
		t.mu.Unlock()
		t.write(r, o.text, o.repeat, o.every, 0, since)
	}
	end := t.StartedAt.Add(t.Script.RunFor)
	exit := driver.ExitResult{Known: true, ExitCode: t.Script.ExitCode, Signal: t.Script.ExitSignal, At: end}
	if t.Script.ExitErrMsg != "" {
		exit.Err = errors.New(t.Script.ExitErrMsg)
	}
	if wait := time.Until(end); wait > 0 {
		t.mu.Lock()
		t.timers = append(t.timers, time.AfterFunc(wait, func() { t.end(exit) }))
		t.mu.Unlock()
	} else {
		t.end(exit)
	}
	return nil
}

// write writes the n-th repetition of a text and sets the timer of the next.
func (t *task) write(r *logs.Rotator, text string, repeat int, every time.Duration, n int, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ; n <= repeat && t.exit == nil && text != ""; n++ {
		due := t.StartedAt.Add(time.Duration(n) * every)
		if due.Before(since) {
			continue
		}
		if wait := time.Until(due); wait > 0 {
			t.timers = append(t.timers, time.AfterFunc(wait, func() { t.write(r, text, repeat, every, n, since) }))
			return
		}
		if _, err := r.Write([]byte(text)); err != nil {
			return // a full disk is not the script's business
		}
	}
}

// end ends the task once; later calls change nothing.
func (t *task) end(exit driver.ExitResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.exit != nil {
		return
	}
	t.exit = &exit
	for _, timer := range t.timers {
		timer.Stop()
	}
	if t.killer != nil {
		t.killer.Stop()
	}
	for _, r := range t.open {
		r.Close()
	}
	t.timers, t.open = nil, nil
	close(t.ended)
}

// Wait blocks until the task has ended or ctx is done.
func (d *Driver) Wait(ctx context.Context, taskID string) (*driver.ExitResult, error) {
	t, err := d.task(taskID)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-t.ended:
		r := *t.exit
		return &r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Stop ends the task after its kill_after, or by SIGKILL after timeout. It returns when the task has ended.
func (d *Driver) Stop(ctx context.Context, taskID, signal string, timeout time.Duration) error {
	sig, err := driver.ParseSignal(signal)
	if err != nil {
		return fmt.Errorf("stop task: %w", err)
	}
	t, err := d.task(taskID)
	if err != nil {
		return err
	}
	t.stop(sig, timeout)
	select {
	case <-t.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *task) stop(sig syscall.Signal, timeout time.Duration) {
	if timeout <= 0 {
		t.end(killed(syscall.SIGKILL))
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.exit != nil {
		return
	}
	if !t.asked {
		t.asked = true
		t.timers = append(t.timers, time.AfterFunc(t.Script.KillAfter, func() { t.end(killed(sig)) }))
	}
	at := time.Now().Add(timeout)
	switch {
	case t.killer == nil:
		t.killAt, t.killer = at, time.AfterFunc(timeout, func() { t.end(killed(syscall.SIGKILL)) })
	case at.Before(t.killAt):
		t.killAt = at
		t.killer.Reset(timeout)
	}
}

func killed(sig syscall.Signal) driver.ExitResult {
	return driver.ExitResult{Known: true, ExitCode: 128 + int(sig), Signal: int(sig), At: time.Now()}
}

// Signal does nothing, or fails as the script says.
func (d *Driver) Signal(_ context.Context, taskID, signal string) error {
	if _, err := driver.ParseSignal(signal); err != nil {
		return fmt.Errorf("signal task: %w", err)
	}
	t, err := d.task(taskID)
	if err != nil {
		return err
	}
	if t.Script.SignalError != "" {
		return errors.New(t.Script.SignalError)
	}
	return nil
}

// Destroy forgets the task; with force a running one is ended first.
func (d *Driver) Destroy(_ context.Context, taskID string, force bool) error {
	t, err := d.task(taskID)
	if err != nil {
		return err
	}
	t.mu.Lock()
	running := t.exit == nil
	t.mu.Unlock()
	if running && !force {
		return fmt.Errorf("destroy task: %s still runs", taskID)
	}
	t.end(killed(syscall.SIGKILL))
	d.remove(taskID)
	return nil
}

// Inspect describes the task.
func (d *Driver) Inspect(_ context.Context, taskID string) (*driver.TaskStatus, error) {
	t, err := d.task(taskID)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &driver.TaskStatus{ID: taskID, Running: t.exit == nil, StartedAt: t.StartedAt}
	if t.exit != nil {
		exit := *t.exit
		s.Exit = &exit
	}
	return s, nil
}

// Stats tells that the task uses nothing.
func (d *Driver) Stats(_ context.Context, taskID string) (*structs.TaskResourceUsage, error) {
	if _, err := d.task(taskID); err != nil {
		return nil, err
	}
	return &structs.TaskResourceUsage{
		ResourceUsage: &structs.ResourceUsage{MemoryStats: &structs.MemoryStats{}, CpuStats: &structs.CpuStats{}},
		Timestamp:     time.Now().UnixNano(),
		Pids:          map[string]*structs.ResourceUsage{},
	}, nil
}
