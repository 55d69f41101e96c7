// Package fakedriver is a driver for tests of the runners: its tasks are values in memory which outlive a runner, as
// processes do, and tests end them, let them ignore signals, or make calls fail. Only tests import it.
package fakedriver

import (
	"context"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/structs"
)

// Driver is the fake. The zero value is not ready, see New.
type Driver struct {
	mu    sync.Mutex
	tasks map[string]*Task
	log   []string
	// StartErr, when not nil, answers Start.
	StartErr func(cfg *driver.TaskConfig) error
	// StartHangs makes Start answer only when its context ends, though the task runs by then.
	StartHangs bool
	// Away, when not nil, answers everything about tasks that were started: the driver has lost its way to them.
	Away error
	// StopsIn is how long a task needs to end after its kill signal; negative: it ignores the signal.
	StopsIn time.Duration
}

// Task is one start.
type Task struct {
	Config *driver.TaskConfig
	ended  chan struct{}
	result *driver.ExitResult
	once   sync.Once
}

// New makes a driver whose tasks obey their kill signal at once.
func New() *Driver { return &Driver{tasks: map[string]*Task{}} }

var (
	_ driver.Driver = (*Driver)(nil)
	_ driver.Finder = (*Driver)(nil)
)

func (d *Driver) note(format string, args ...any) {
	d.log = append(d.log, fmt.Sprintf(format, args...))
}

// Log lists the calls that change tasks, in order.
func (d *Driver) Log() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.log...)
}

// Running lists the ids of tasks that have not ended.
func (d *Driver) Running() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ids []string
	for id, t := range d.tasks {
		select {
		case <-t.ended:
		default:
			ids = append(ids, id)
		}
	}
	return ids
}

// Leave makes the driver lose its way to its tasks until it is called with nil.
func (d *Driver) Leave(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Away = err
}

// End ends a task as if its process had.
func (d *Driver) End(id string, code int) {
	d.mu.Lock()
	t := d.tasks[id]
	d.mu.Unlock()
	if t == nil {
		panic("no task " + id)
	}
	t.end(&driver.ExitResult{ExitCode: code, Known: true, At: time.Now()})
}

// Lose makes the driver forget a task without trace.
func (d *Driver) Lose(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tasks, id)
}

func (t *Task) end(r *driver.ExitResult) {
	t.once.Do(func() {
		t.result = r
		close(t.ended)
	})
}

// Name is "fake".
func (d *Driver) Name() string { return "fake" }

// Capabilities are signals.
func (d *Driver) Capabilities() driver.Capabilities { return driver.Capabilities{SendSignals: true} }

// Fingerprint is always healthy.
func (d *Driver) Fingerprint(context.Context) driver.Health {
	return driver.Health{Detected: true, Healthy: true, Attributes: map[string]string{"driver.fake": "1"}}
}

// Validate accepts everything.
func (d *Driver) Validate(map[string]any) error { return nil }

// Start notes the task.
func (d *Driver) Start(ctx context.Context, cfg *driver.TaskConfig) (*driver.Handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.StartErr != nil {
		if err := d.StartErr(cfg); err != nil {
			return nil, err
		}
	}
	if _, dup := d.tasks[cfg.ID]; dup {
		return nil, fmt.Errorf("task %s was started twice", cfg.ID)
	}
	for id, other := range d.tasks {
		select {
		case <-other.ended:
		default:
			if path.Dir(id) == path.Dir(cfg.ID) { // another attempt of the same task
				panic(fmt.Sprintf("%s was started while %s runs", cfg.ID, id))
			}
		}
	}
	d.note("start %s", cfg.ID)
	d.tasks[cfg.ID] = &Task{Config: cfg, ended: make(chan struct{})}
	if d.StartHangs {
		d.mu.Unlock()
		<-ctx.Done()
		d.mu.Lock()
		return nil, ctx.Err()
	}
	return &driver.Handle{Driver: "fake", TaskID: cfg.ID, Version: 1}, nil
}

func (d *Driver) task(id string) (*Task, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Away != nil {
		return nil, d.Away
	}
	if t := d.tasks[id]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%w: %s", driver.ErrTaskNotFound, id)
}

// Recover finds a task by its handle.
func (d *Driver) Recover(_ context.Context, h *driver.Handle) error {
	_, err := d.task(h.TaskID)
	return err
}

// Find finds a task by its id.
func (d *Driver) Find(_ context.Context, id string) (*driver.Handle, error) {
	if _, err := d.task(id); err != nil {
		return nil, err
	}
	return &driver.Handle{Driver: "fake", TaskID: id, Version: 1}, nil
}

// Wait waits for the end.
func (d *Driver) Wait(ctx context.Context, id string) (*driver.ExitResult, error) {
	t, err := d.task(id)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.ended:
		return t.result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Stop ends the task after StopsIn or timeout, whichever is first.
func (d *Driver) Stop(ctx context.Context, id, signal string, timeout time.Duration) error {
	t, err := d.task(id)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.note("stop %s %s %s", id, signal, timeout)
	obeys := d.StopsIn
	d.mu.Unlock()
	wait, killed := timeout, true
	if obeys >= 0 && obeys < timeout {
		wait, killed = obeys, false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-t.ended:
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		if killed {
			t.end(&driver.ExitResult{ExitCode: 137, Signal: 9, Known: true, At: time.Now()})
		} else {
			t.end(&driver.ExitResult{ExitCode: 130, Signal: 2, Known: true, At: time.Now()})
		}
	}
	return nil
}

// Signal notes the signal.
func (d *Driver) Signal(_ context.Context, id, signal string) error {
	if _, err := d.task(id); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note("signal %s %s", id, signal)
	return nil
}

// Destroy forgets the task.
func (d *Driver) Destroy(_ context.Context, id string, force bool) error {
	t, err := d.task(id)
	if err != nil {
		return err
	}
	if force {
		t.end(&driver.ExitResult{ExitCode: 137, Signal: 9, Known: true, At: time.Now()})
	}
	d.Lose(id)
	return nil
}

// Inspect tells whether the task runs.
func (d *Driver) Inspect(_ context.Context, id string) (*driver.TaskStatus, error) {
	t, err := d.task(id)
	if err != nil {
		return nil, err
	}
	st := &driver.TaskStatus{ID: id, Running: true}
	select {
	case <-t.ended:
		st.Running, st.Exit = false, t.result
	default:
	}
	return st, nil
}

// Stats are fixed figures.
func (d *Driver) Stats(_ context.Context, id string) (*structs.TaskResourceUsage, error) {
	if _, err := d.task(id); err != nil {
		return nil, err
	}
	return &structs.TaskResourceUsage{Timestamp: time.Now().UnixNano(), ResourceUsage: &structs.ResourceUsage{
		MemoryStats: &structs.MemoryStats{RSS: 1 << 20, Measured: []string{"RSS"}},
		CpuStats:    &structs.CpuStats{Percent: 1.5, TotalTicks: 30, Measured: []string{"Percent", "Total Ticks"}},
	}}, nil
}
