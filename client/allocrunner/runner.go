package allocrunner

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/service/check"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// Store keeps the records. Saves encode before they return; done is called once that is durable, in the order of the
// calls, and must not block.
type Store interface {
	SaveRun(allocID string, l *Local, done func(error))
	SaveTask(allocID, task string, l *taskrunner.Local, done func(error))
}

// Drivers finds drivers by name.
type Drivers interface {
	Get(name string) (driver.Driver, bool)
}

// Config is what a runner needs.
type Config struct {
	Alloc   *structs.Allocation // with its Job
	Drivers Drivers
	// Hooks and TaskHooks list the hooks in their order.
	Hooks     []hook.Hook
	TaskHooks func(task *structs.Task) []hook.Hook
	Build     func(context.Context, taskrunner.BuildRequest) (*driver.TaskConfig, error)
	Store     Store
	// Observed is called when there is something new to report, and it is durable. It must not block.
	Observed func(allocID string)
	// Previous, when not nil, finds an allocation on this node that has to be over before alloc begins, with what is
	// closed then; nil when there is none, or none any more.
	Previous func(alloc *structs.Allocation) (id string, over <-chan struct{})
	// Checks tells how the checks of an allocation stand; Look is to be called when that has changed. nil when there are none.
	Checks func(allocID string) map[string]check.Standing
	// Hold, when not nil, keeps tasks from being started until it is closed.
	Hold           <-chan struct{}
	MaxKillTimeout time.Duration
	// Start, when not nil, runs a task in the place of a goroutine of its own: whoever takes the steps by himself. ended
	// is to be called when the task is dead and takes no step any more.
	Start  func(task *taskrunner.Runner, ended func())
	Clock  boottime.Clock
	Random func() float64
	Logger hclog.Logger
}

// Runner drives one allocation. Its methods are safe for concurrent use.
type Runner struct {
	cfg   Config
	chain hook.Chain
	tasks []*task // in the job's order; fixed
	// previous is whose end is waited for, nil for nobody; only the loop touches it.
	previous *previous
	wake     chan struct{}
	over     chan struct{} // closed when the end is durable

	mu        sync.Mutex
	alloc     *structs.Allocation
	local     Local
	updated   bool // a new specification has not been handed to hooks and tasks yet
	leaving   bool
	departing bool               // the node goes for good
	applied   taskrunner.Order   // terms already handed to ending tasks
	interrupt context.CancelFunc // ends prerun hooks under way

	saved atomic.Pointer[Local] // the newest durable record
	procs sync.WaitGroup        // the tasks' goroutines
	ended chan struct{}         // closed when Run has returned

	settled chan struct{} // see Settled
	settle  func()        // closes it
}

// task is a task of the allocation; started and done are only touched by the loop.
type task struct {
	name    string
	role    role
	leader  bool
	runner  *taskrunner.Runner
	started bool
	done    <-chan struct{} // closed when its goroutine has returned; nil when it never had one
}

func (t *task) returned() bool {
	if t.done == nil {
		return true
	}
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// New makes a runner, from its records when there are any. It does nothing yet.
func New(cfg Config, record *Local, tasks map[string]*taskrunner.Local) (*Runner, error) {
	group := cfg.Alloc.Group()
	if group == nil {
		return nil, fmt.Errorf("make alloc runner: job %q has no group %q", cfg.Alloc.JobID, cfg.Alloc.TaskGroup)
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	r := &Runner{
		cfg: cfg, alloc: cfg.Alloc, wake: make(chan struct{}, 1), over: make(chan struct{}), ended: make(chan struct{}),
		settled: make(chan struct{}),
	}
	r.settle = sync.OnceFunc(func() { close(r.settled) })
	r.chain = hook.Chain{Hooks: cfg.Hooks, Journal: (*journal)(r), Logger: cfg.Logger}
	if record != nil {
		r.local = *record
	}
	saved := r.local
	r.saved.Store(&saved)
	if r.local.Made.IsZero() {
		r.local.Made = boottime.After(cfg.Clock, 0)
	}
	if r.local.Done {
		close(r.over)
	}
	for _, t := range group.Tasks {
		r.tasks = append(r.tasks, r.newTask(t, tasks[t.Name]))
	}
	return r, nil
}

func (r *Runner) newTask(t *structs.Task, record *taskrunner.Local) *task {
	drv, ok := r.cfg.Drivers.Get(t.Driver)
	if !ok {
		drv = nil
	}
	id := r.cfg.Alloc.ID
	out := &task{name: t.Name, role: roleOf(t), leader: t.Leader}
	out.runner = taskrunner.New(taskrunner.Config{
		Alloc: r.cfg.Alloc, Task: t, Driver: drv, Hooks: r.cfg.TaskHooks(t), Build: r.cfg.Build,
		Store: taskStore{r.cfg.Store, id}, Changed: r.nudge, Saved: func() { r.cfg.Observed(id) },
		MaxKillTimeout: r.cfg.MaxKillTimeout, Hold: r.cfg.Hold, Clock: r.cfg.Clock, Random: r.cfg.Random, Logger: r.cfg.Logger,
	}, record)
	return out
}

type taskStore struct {
	store   Store
	allocID string
}

func (s taskStore) SaveTask(task string, l *taskrunner.Local, done func(error)) {
	s.store.SaveTask(s.allocID, task, l, done)
}

// ID is the allocation's id.
func (r *Runner) ID() string { return r.cfg.Alloc.ID }

// Alloc is the allocation as the servers last sent it; it must not be changed.
func (r *Runner) Alloc() *structs.Allocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alloc
}

// Over is closed when everything, postrun hooks included, has ended and that is durable.
func (r *Runner) Over() <-chan struct{} { return r.over }

// Terminal says whether Over is closed.
func (r *Runner) Terminal() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// Observation is what may be reported now: the newest durable state. The tasks' states in it must not be changed.
func (r *Runner) Observation() *structs.AllocObservation {
	saved := r.saved.Load()
	states := make(map[string]*structs.TaskState, len(r.tasks))
	for _, t := range r.tasks {
		states[t.name] = t.runner.SavedState()
	}
	o := &structs.AllocObservation{
		AllocID: r.cfg.Alloc.ID, TaskStates: states, DeploymentStatus: saved.Health, Time: r.cfg.Clock.Now().UnixNano(),
	}
	o.ObservedStatus, o.ClientDescription = observe(saved.Done, states)
	if saved.Done && saved.Cause == RanTooLong {
		o.ObservedStatus, o.ClientDescription = structs.AllocClientStatusComplete, descTooLong
	}
	o.Fenced, o.Departed = saved.fenced(), saved.Done && saved.Cause == AgentLeaving
	return o
}

// change applies f to the record and writes it; the channel is closed once it is durable.
func (r *Runner) change(f func(l *Local)) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changeLocked(f)
}

func (r *Runner) changeLocked(f func(l *Local)) <-chan struct{} {
	before := r.local
	f(&r.local)
	after, durable := r.local, make(chan struct{})
	report := after.Done != before.Done || after.Health != before.Health
	r.cfg.Store.SaveRun(r.cfg.Alloc.ID, &after, func(error) {
		r.saved.Store(&after)
		close(durable)
		if report {
			r.cfg.Observed(r.cfg.Alloc.ID)
		}
	})
	return durable
}

// Look has the allocation's health judged anew.
func (r *Runner) Look() { r.nudge() }

// HookData is what a hook of the allocation keeps; it must not be changed.
func (r *Runner) HookData(name string) map[string]string { return (*journal)(r).Record(name).Data }

func (r *Runner) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// journal keeps the hooks' records within the allocation's own.
type journal Runner

func (j *journal) Record(name string) hook.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.local.Hooks[name]
}

func (j *journal) SetRecord(name string, rec hook.Record) {
	(*Runner)(j).change(func(l *Local) {
		hooks := make(map[string]hook.Record, len(l.Hooks)+1)
		maps.Copy(hooks, l.Hooks)
		hooks[name] = rec
		l.Hooks = hooks
	})
}

// isCanary says whether the allocation is one that waits for its promotion.
func isCanary(alloc *structs.Allocation) bool {
	return alloc.DeploymentStatus != nil && alloc.DeploymentStatus.Canary
}

// Update hands in what the servers changed: a wish to stop and its terms, or a new specification of the same
// allocation, or that it is no canary any more. It returns at once.
func (r *Runner) Update(alloc *structs.Allocation) {
	r.mu.Lock()
	r.updated = r.updated || alloc.JobModifyIndex != r.alloc.JobModifyIndex || isCanary(alloc) != isCanary(r.alloc)
	r.alloc = alloc
	if alloc.ServerTerminal() && r.interrupt != nil {
		r.interrupt()
	}
	r.mu.Unlock()
	r.nudge()
}

// Leave ends everything at once, without delays, because a dev agent ends: postrun hooks run, poststop tasks do not.
func (r *Runner) Leave() {
	r.mu.Lock()
	r.leaving = true
	if r.interrupt != nil {
		r.interrupt()
	}
	r.mu.Unlock()
	r.nudge()
}

// Depart ends everything in the ordinary order because the node goes for good. It is a stop that was asked for and fails
// no task; what is reported says so, so that work which was ended does not pass for work that is done.
func (r *Runner) Depart() {
	r.mu.Lock()
	r.departing = true
	if r.interrupt != nil {
		r.interrupt()
	}
	r.mu.Unlock()
	r.nudge()
}

// terms are those of the stop that the servers want; an allocation that is to run has none. The caller holds the
// lock.
func (r *Runner) terms() taskrunner.Order { return r.fenceTerms(r.wantedTerms()) }

func (r *Runner) wantedTerms() taskrunner.Order {
	if r.leaving {
		return taskrunner.Order{NoShutdownDelay: true, KillTimeout: new(time.Duration)}
	}
	if a := r.local.RestartAll; a != nil && r.local.Cause == NotEnding {
		return taskrunner.Order{NoShutdownDelay: a.NoShutdownDelay, KillTimeout: a.KillTimeout, Unhealthy: a.Unhealthy}
	}
	if !r.alloc.ServerTerminal() {
		return taskrunner.Order{}
	}
	t := r.alloc.DesiredTransition
	return taskrunner.Order{NoShutdownDelay: structs.Val(t.NoShutdownDelay), KillTimeout: t.KillTimeout}
}

// Destroy runs the hooks that remove what is left on the node. The allocation must be over.
func (r *Runner) Destroy(ctx context.Context) error {
	if err := r.chain.Alloc(ctx, hook.Destroy, hook.AllocRequest{Alloc: r.Alloc()}); err != nil {
		return err
	}
	r.change(func(l *Local) { l.Destroyed = true })
	return nil
}
