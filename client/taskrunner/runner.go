package taskrunner

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// Store keeps the record. Save encodes l before it returns; done is called once that is durable, in the order of the
// calls, and must not block.
type Store interface {
	SaveTask(task string, l *Local, done func(error))
}

// BuildRequest is what the driver's configuration of one start is made of.
type BuildRequest struct {
	TaskID  string
	Alloc   *structs.Allocation
	Task    *structs.Task
	HookEnv map[string]string
}

// Config is what a runner needs. Driver is nil when the node has none of the task's name.
type Config struct {
	Alloc  *structs.Allocation
	Task   *structs.Task
	Driver driver.Driver
	Hooks  []hook.Hook
	Build  func(context.Context, BuildRequest) (*driver.TaskConfig, error)
	Store  Store
	// Changed is called after each change of the task's state and once it is Settled, Saved when the newest state is durable. Neither
	// may block or call the runner's methods that change it.
	Changed func()
	Saved   func()
	// MaxKillTimeout caps the task's kill_timeout, 0 means structs.DefaultMaxKillTimeout.
	MaxKillTimeout time.Duration
	// Hold, when not nil, keeps the task from being started until it is closed.
	Hold   <-chan struct{}
	Clock  boottime.Clock
	Random func() float64 // in [0,1)
	Logger hclog.Logger
}

// Runner drives one task. Its methods are safe for concurrent use.
type Runner struct {
	cfg   Config
	chain hook.Chain
	wake  chan struct{}

	mu        sync.Mutex
	alloc     *structs.Allocation
	task      *structs.Task
	local     Local
	released  bool
	killSent  bool
	killErr   error
	attempted <-chan struct{}    // closed when the attempt's record is durable
	interrupt context.CancelFunc // ends the start under way
	dead      chan struct{}      // closed while the task is dead
	settled   chan struct{}      // see Settled
	settle    func()             // closes it

	view  atomic.Pointer[View]
	saved atomic.Pointer[structs.TaskState]
	procs sync.WaitGroup // waits and stops of the process
}

// View is what others see of a runner at one moment.
type View struct {
	Phase    Phase
	State    *structs.TaskState // must not be changed
	Attempt  uint64
	Stopping bool
	Parking  bool // is going down for a restart of the allocation
	Parked   bool // and is down, until it is released
	Up       bool // its process runs, as far as is known, and nobody has asked it to end
}

// New makes a runner, from its record when there is one. It does nothing yet.
func New(cfg Config, record *Local) *Runner {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.MaxKillTimeout <= 0 {
		cfg.MaxKillTimeout = structs.DefaultMaxKillTimeout
	}
	r := &Runner{cfg: cfg, alloc: cfg.Alloc, task: cfg.Task, wake: make(chan struct{}, 1), dead: make(chan struct{}),
		settled: make(chan struct{})}
	r.chain = hook.Chain{Hooks: cfg.Hooks, Journal: (*journal)(r), Logger: cfg.Logger}
	if record != nil {
		r.local = *record
	}
	r.settle = sync.OnceFunc(func() {
		close(r.settled)
		cfg.Changed() // nothing else may come for long that tells who waits for it
	})
	if r.local.Phase == Dead {
		close(r.dead)
	}
	if r.local.State == nil {
		e := EventReceived()
		e.Time = cfg.Clock.Now().UnixNano()
		r.local.State = withEvents(&structs.TaskState{State: structs.TaskStatePending}, e)
	}
	r.saved.Store(r.local.State)
	r.show()
	return r
}

// Name is the task's name.
func (r *Runner) Name() string { return r.cfg.Task.Name }

// View is what can be seen of the task now.
func (r *Runner) View() View { return *r.view.Load() }

// Dead is closed once the task is over; after a Reset there is another one.
func (r *Runner) Dead() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead
}

// SavedState is the newest state that is durable; it may be reported. It must not be changed.
func (r *Runner) SavedState() *structs.TaskState { return r.saved.Load() }

func (r *Runner) show() {
	r.view.Store(&View{
		Phase: r.local.Phase, State: r.local.State, Attempt: r.local.Attempt, Stopping: r.local.Stop != nil,
		Parking: r.local.parking(), Parked: r.local.Parked,
		Up: (r.local.Phase == Poststart || r.local.Phase == Running) && r.local.Exit == nil,
	})
}

// change applies f to the record, writes it and tells those who watch. The channel is closed once it is durable.
func (r *Runner) change(f func(l *Local), events ...*structs.TaskEvent) <-chan struct{} {
	r.mu.Lock()
	durable := r.changeLocked(f, events...)
	r.mu.Unlock()
	r.nudge()
	r.cfg.Changed()
	return durable
}

func (r *Runner) changeLocked(f func(l *Local), events ...*structs.TaskEvent) <-chan struct{} {
	now := r.cfg.Clock.Now().UnixNano()
	for _, e := range events {
		if e.Time == 0 {
			e.Time = now
		}
	}
	if len(events) > 0 {
		r.local.State = withEvents(r.local.State, events...)
		for _, e := range events {
			r.cfg.Logger.Debug("task event", "task", r.cfg.Task.Name, "type", e.Type, "message", e.DisplayMessage)
		}
	}
	before := r.local.Phase
	if f != nil {
		f(&r.local)
	}
	if r.local.Phase == Dead && before != Dead {
		close(r.dead)
	}
	r.show()
	state, durable := r.local.State, make(chan struct{})
	r.cfg.Store.SaveTask(r.cfg.Task.Name, &r.local, func(error) {
		// A full disk does not keep the node from telling what it sees; the store has logged it.
		r.saved.Store(state)
		close(durable)
		r.cfg.Saved()
	})
	return durable
}

func (r *Runner) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run takes steps until the task is over or ctx is done. When ctx ends, a running process is left as it is.
func (r *Runner) Run(ctx context.Context) {
	r.restore(ctx)
	defer r.settle()
	defer r.procs.Wait()
	for ctx.Err() == nil {
		if !r.undecided() {
			r.settle()
		}
		s, left := r.next()
		switch s {
		case over:
			return
		case idle:
			r.idle(ctx, left)
		default:
			r.take(ctx, s)
		}
	}
}

// Settled is closed once it is known what became of what an earlier agent had begun: its process was taken over, or what
// its end means is decided, or there was none.
func (r *Runner) Settled() <-chan struct{} { return r.settled }

// undecided says that the process has ended and that it is not decided yet what now.
func (r *Runner) undecided() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.local.Exit != nil
}

// next asks the pure core.
func (r *Runner) next() (step, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.local
	in := inputs{
		Released: r.released, Stop: l.Stop != nil, Restart: l.Restart != nil, Ended: l.Exit != nil,
		Park: l.parking(), Parked: l.Parked,
		KillSent: r.killSent, Hold: r.held(), Left: l.Until.Remaining(r.cfg.Clock),
	}
	if o := l.order(); o != nil {
		in.NoDelay = o.NoShutdownDelay
	}
	if l.Until.IsZero() {
		in.Left = 0
	}
	return next(l.Phase, in), in.Left
}

func (r *Runner) held() bool {
	if r.cfg.Hold == nil {
		return false
	}
	select {
	case <-r.cfg.Hold:
		return false
	default:
		return true
	}
}

// idle waits until something arrives. A stop under way is shortened here when its terms became stricter.
func (r *Runner) idle(ctx context.Context, left time.Duration) {
	r.shortenKill(ctx)
	var due <-chan time.Time
	if left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		due = timer.C
	}
	hold := r.cfg.Hold
	if hold != nil && !r.held() {
		hold = nil
	}
	select {
	case <-ctx.Done():
	case <-r.wake:
	case <-due:
	case <-hold:
	}
}

// request is what hooks get.
func (r *Runner) request() hook.TaskRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	req := hook.TaskRequest{
		Alloc: r.alloc, Task: r.task, Attempt: max(r.local.Attempt, 1),
		Handle: r.local.Handle, Exit: r.local.Exit.Result(), Control: control{r},
	}
	if o := r.local.order(); o != nil {
		req.NoShutdownDelay = o.NoShutdownDelay
	}
	return req
}

// hooks runs one point; what hooks tell goes into the task's events.
func (r *Runner) hooks(ctx context.Context, point hook.Point) error {
	return r.chain.Task(ctx, point, r.request(), func(resp *hook.TaskResponse) { r.change(nil, resp.Events...) })
}

// journal keeps the hooks' records within the task's own.
type journal Runner

func (j *journal) Record(name string) hook.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.local.Hooks[name]
}

func (j *journal) SetRecord(name string, rec hook.Record) {
	r := (*Runner)(j)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changeLocked(func(l *Local) {
		hooks := make(map[string]hook.Record, len(l.Hooks)+1)
		maps.Copy(hooks, l.Hooks)
		hooks[name] = rec
		l.Hooks = hooks
	})
}
