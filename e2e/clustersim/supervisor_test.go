package clustersim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// process is one simulated process. It outlives the agent.
type process struct {
	id, allocID, task string
	node              string
	started           time.Time
	lease             *boottime.Deadline
	ports             []int
	ended             chan struct{}
	result            *driver.ExitResult
	endsBy            time.Time // by itself, by its kill signal, or by SIGKILL; zero: not yet
	code              int
	signalled         bool
	killBy            time.Time // SIGKILL
}

func (p *process) alive() bool { return p.result == nil }

// supervisor runs the processes of a node: the driver of its agent, and what kills them when their lease is over.
type supervisor struct {
	s *sim
	n *node

	mu    sync.Mutex
	ran   map[string]bool // attempts, since the machine was last off
	procs map[string]*process
	live  []*process // those that run, in the order of their ids
}

var (
	_ driver.Driver = (*supervisor)(nil)
	_ driver.Leaser = (*supervisor)(nil)
	_ driver.Finder = (*supervisor)(nil)
)

// Get gives the one driver for all names.
func (v *supervisor) Get(string) (driver.Driver, bool) { return v, true }

func (v *supervisor) Name() string { return "mock_driver" }
func (v *supervisor) Capabilities() driver.Capabilities {
	return driver.Capabilities{SendSignals: true}
}
func (v *supervisor) Fingerprint(context.Context) driver.Health {
	return driver.Health{Detected: true, Healthy: true}
}
func (v *supervisor) Validate(map[string]any) error { return nil }

func (v *supervisor) Start(_ context.Context, cfg *driver.TaskConfig) (*driver.Handle, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.s
	switch {
	case v.procs[cfg.ID] != nil:
		return nil, fmt.Errorf("task %s is there already", cfg.ID)
	case cfg.Lease != nil && cfg.Lease.Remaining(v.n.clock()) <= 0:
		return nil, fmt.Errorf("the lease of task %s is over", cfg.ID)
	case s.faulty && s.chance(0.01):
		return nil, fmt.Errorf("task %s cannot be started this time", cfg.ID)
	}
	p := &process{id: cfg.ID, allocID: cfg.AllocID, task: cfg.Task, node: v.n.id, started: time.Now(), lease: cfg.Lease,
		ended: make(chan struct{})}
	for _, port := range cfg.Ports {
		p.ports = append(p.ports, port.Value)
	}
	if text, ok := cfg.Config["run_for"].(string); ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, err
		}
		p.endsBy = time.Now().Add(d)
	}
	if s.faulty && s.chance(0.02) {
		p.endsBy, p.code = time.Now().Add(s.between(time.Second, 2*time.Minute)), 1
	}
	if v.ran[cfg.ID] {
		s.watch.broken(invAttempt, fmt.Sprintf("%s on %s", cfg.ID, v.n.id))
	}
	v.ran[cfg.ID] = true
	v.procs[cfg.ID] = p
	at, _ := slices.BinarySearchFunc(v.live, p.id, func(q *process, id string) int { return strings.Compare(q.id, id) })
	v.live = slices.Insert(v.live, at, p)
	s.tracef("%s: process %s runs", v.n.id, p.id)
	s.watch.started(p)
	if a := v.n.agent; s.later(0.01) && a != nil {
		s.tracef("%s: the agent is killed between the start of %s and its record", v.n.id, p.id)
		a.dying, a.started = true, true
	}
	return &driver.Handle{Driver: v.Name(), TaskID: cfg.ID, Version: 1}, nil
}

func (v *supervisor) find(id string) *process {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.procs[id]
}

func (v *supervisor) Recover(_ context.Context, h *driver.Handle) error {
	if v.find(h.TaskID) == nil {
		return driver.ErrTaskNotFound
	}
	return nil
}

// Find gives a process by its id: the agent was killed before it had written the handle down.
func (v *supervisor) Find(_ context.Context, id string) (*driver.Handle, error) {
	if v.find(id) == nil {
		return nil, driver.ErrTaskNotFound
	}
	return &driver.Handle{Driver: v.Name(), TaskID: id, Version: 1}, nil
}

func (v *supervisor) Wait(ctx context.Context, id string) (*driver.ExitResult, error) {
	p := v.find(id)
	if p == nil {
		return nil, driver.ErrTaskNotFound
	}
	select {
	case <-p.ended:
		return p.result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Stop signals the process and returns at once: its end arrives through Wait.
func (v *supervisor) Stop(_ context.Context, id, _ string, timeout time.Duration) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.procs[id]
	if p == nil || !p.alive() {
		return driver.ErrTaskNotFound
	}
	now := time.Now()
	if by := now.Add(timeout); p.killBy.IsZero() || by.Before(p.killBy) {
		p.killBy = by
	}
	if !p.signalled {
		p.signalled = true
		v.s.tracef("%s: process %s is told to end within %s", v.n.id, id, timeout)
		if v.s.chance(0.7) { // the others ignore it
			if by := now.Add(v.s.between(0, 8*time.Second)); p.endsBy.IsZero() || by.Before(p.endsBy) {
				p.endsBy, p.code = by, 0
			}
		}
	}
	return nil
}

func (v *supervisor) Signal(context.Context, string, string) error { return nil }

func (v *supervisor) Destroy(_ context.Context, id string, force bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.procs[id]
	switch {
	case p == nil:
		return driver.ErrTaskNotFound
	case p.alive() && !force:
		return fmt.Errorf("task %s runs", id)
	case p.alive():
		v.endLocked(p, 137)
	}
	delete(v.procs, id)
	return nil
}

func (v *supervisor) Inspect(_ context.Context, id string) (*driver.TaskStatus, error) {
	p := v.find(id)
	if p == nil {
		return nil, driver.ErrTaskNotFound
	}
	return &driver.TaskStatus{ID: id, Running: p.alive(), StartedAt: p.started, Exit: p.result}, nil
}

func (v *supervisor) Stats(context.Context, string) (*structs.TaskResourceUsage, error) {
	return nil, nil
}

// Renew moves leases; one that is over stays so.
func (v *supervisor) Renew(_ context.Context, until map[string]boottime.Deadline) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, d := range until {
		if p := v.procs[id]; p != nil && p.alive() && p.lease != nil && p.lease.Remaining(v.n.clock()) > 0 {
			p.lease = &d
		}
	}
	return nil
}

func (v *supervisor) endLocked(p *process, code int) {
	v.live = slices.DeleteFunc(v.live, func(q *process) bool { return q == p })
	p.result = &driver.ExitResult{ExitCode: code, Known: true, At: time.Now()}
	v.s.tracef("%s: process %s has ended with %d", v.n.id, p.id, code)
	close(p.ended)
}

// end is when a process ends next by what is known now, and with which code.
func (v *supervisor) end(p *process) (at time.Time, code int) {
	at, code = p.endsBy, p.code
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at, code = t, 137
		}
	}
	if !p.killBy.IsZero() {
		earlier(p.killBy)
	}
	if p.lease != nil {
		earlier(time.Now().Add(p.lease.Remaining(v.n.clock())))
	}
	return at, code
}

func (v *supervisor) sorted() []*process {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.live)
}

// next is when a process ends.
func (v *supervisor) next() time.Time {
	var next time.Time
	for _, p := range v.live {
		if at, _ := v.end(p); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// advance ends the processes whose time has come, one after the other.
func (v *supervisor) advance() {
	for _, p := range v.sorted() {
		at, code := v.end(p)
		if at.IsZero() || at.After(time.Now()) {
			continue
		}
		v.mu.Lock()
		if p.alive() {
			v.endLocked(p, code)
		}
		v.mu.Unlock()
		synctest.Wait()
	}
}

// crash ends everything: the machine is off.
func (v *supervisor) crash() {
	for _, p := range v.sorted() {
		v.mu.Lock()
		v.endLocked(p, 137)
		v.mu.Unlock()
		synctest.Wait()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.procs, v.ran = map[string]*process{}, map[string]bool{}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
