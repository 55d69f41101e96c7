package check

import (
	"container/heap"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// firstWithin bounds how long a check waits for its first question once its task runs.
const firstWithin = time.Second

// Restarter restarts a task of an allocation, or with an empty task all that run, by the terms of their restart policy.
type Restarter interface {
	Restart(allocID, task, reason string) error
}

// Store keeps the statuses of an allocation's checks; an empty list deletes them. It must not block.
type Store interface {
	SaveChecks(allocID string, list []structs.AllocCheckStatus)
}

// Config is what a Board works with.
type Config struct {
	Prober    Prober
	Restarter Restarter
	Store     Store
	// Changed is called after a status of the allocation has changed. It must not block.
	Changed func(allocID string)
	Random  func() float64 // in [0,1)
}

// Board has the checks of all allocations of the node. Its methods are safe for concurrent use.
type Board struct {
	cfg  Config
	wake chan struct{}

	mu     sync.Mutex
	allocs map[string]*alloc
	queue  queue
	life   context.Context // of questions; nil until Run and after it
	asking sync.WaitGroup
}

// alloc are the checks of one allocation.
type alloc struct {
	id       string
	owners   map[string]*owner // by the task whose services they are, "" for the group's
	up       map[string]runs   // the tasks that run
	restored map[string]structs.AllocCheckStatus
}

type owner struct {
	offered bool
	items   map[string]*item
}

// runs says of a task that it runs.
type runs struct {
	main  bool
	since time.Time
}

// item is one check.
type item struct {
	alloc  *alloc
	spec   Spec
	tally  Tally
	result structs.AllocCheckStatus
	kept   bool      // it goes on with what an earlier agent knew
	active bool      // it is to be asked
	okay   time.Time // since when it passes for deployments; zero while it does not
	due    time.Time
	index  int                // in the queue, -1 when it is not there
	cancel context.CancelFunc // of the question under way
	asked  uint64             // counts questions and what makes their answers void
}

// New makes a board that asks nothing until Run.
func New(cfg Config) *Board {
	return &Board{cfg: cfg, wake: make(chan struct{}, 1), allocs: map[string]*alloc{}}
}

// Restore takes over how an earlier agent left the checks of an allocation.
func (b *Board) Restore(allocID string, list []structs.AllocCheckStatus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.alloc(allocID)
	for _, s := range list {
		a.restored[s.ID] = s
	}
}

func (b *Board) alloc(id string) *alloc {
	a := b.allocs[id]
	if a == nil {
		a = &alloc{id: id, owners: map[string]*owner{}, up: map[string]runs{}, restored: map[string]structs.AllocCheckStatus{}}
		b.allocs[id] = a
	}
	return a
}

// Offer says which checks a task's services have, or with an empty task those of the group: in place of what it said
// before. They are asked while the tasks that they are about run, until Withdraw.
func (b *Board) Offer(allocID, task string, specs []Spec) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.allocs[allocID] == nil && len(specs) == 0 {
		return
	}
	a := b.alloc(allocID)
	o := a.owners[task]
	if o == nil {
		o = &owner{items: map[string]*item{}}
		a.owners[task] = o
	}
	o.offered = true
	known := map[string]bool{}
	changed := false
	for _, spec := range specs {
		known[spec.ID] = true
		if it := o.items[spec.ID]; it != nil {
			it.spec = spec // its address or an interpolated name may have changed
			it.name()
			continue
		}
		o.items[spec.ID] = a.item(spec)
		changed = true
	}
	for id, it := range o.items {
		if !known[id] {
			b.halt(it)
			delete(o.items, id)
			changed = true
		}
	}
	if changed {
		b.save(a)
	}
	b.refresh(a, false)
}

// item makes a new check, which goes on as an earlier agent left it.
func (a *alloc) item(spec Spec) *item {
	it := &item{alloc: a, spec: spec, index: -1, tally: begin(&spec.Check)}
	it.result.Status = it.tally.Status
	if s, ok := a.restored[spec.ID]; ok {
		delete(a.restored, spec.ID)
		it.result, it.kept = s, true
		it.tally.Status = s.Status
	}
	it.name()
	return it
}

func (it *item) name() {
	s := &it.spec
	r := &it.result
	r.ID, r.Check, r.Group, r.Service, r.Task, r.Mode = s.ID, s.Check.Name, s.Group, s.Service, s.Task, s.Check.Mode()
}

// Withdraw ends the questions of a task's services or of the group's, at once. Their results stay to be seen.
func (b *Board) Withdraw(allocID, task string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.allocs[allocID]
	if a == nil || a.owners[task] == nil {
		return
	}
	a.owners[task].offered = false
	b.refresh(a, false)
}

// TaskUp says that a task runs. fresh means that it has just been started, so that what was known of it is void.
func (b *Board) TaskUp(allocID, task string, main, fresh bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.alloc(allocID)
	a.up[task] = runs{main: main, since: time.Now()}
	if fresh {
		maps.DeleteFunc(a.restored, func(_ string, s structs.AllocCheckStatus) bool { return s.Task == task })
	}
	b.refresh(a, fresh)
}

// TaskDown says that a task is to end or has ended.
func (b *Board) TaskDown(allocID, task string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.allocs[allocID]; a != nil {
		delete(a.up, task)
		b.refresh(a, false)
	}
}

// Drop forgets an allocation.
func (b *Board) Drop(allocID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.allocs[allocID]
	if a == nil {
		return
	}
	for _, it := range a.items() {
		b.halt(it)
	}
	delete(b.allocs, allocID)
	b.cfg.Store.SaveChecks(allocID, nil)
}

func (a *alloc) items() []*item {
	var out []*item
	for _, o := range a.owners {
		out = slices.AppendSeq(out, maps.Values(o.items))
	}
	return out
}

// began is since when what the check asks runs; false while it does not.
func (a *alloc) began(s *Spec) (time.Time, bool) {
	if s.On != "" {
		r, ok := a.up[s.On]
		return r.since, ok
	}
	var last time.Time
	for _, r := range a.up {
		if r.main && r.since.After(last) {
			last = r.since
		}
	}
	return last, !last.IsZero()
}

// refresh begins and ends the questions of an allocation as its tasks are now. The caller holds the lock.
func (b *Board) refresh(a *alloc, fresh bool) {
	for _, o := range a.owners {
		for _, it := range o.items {
			_, up := a.began(&it.spec)
			switch active := o.offered && up; {
			case active && !it.active:
				b.begin(it, fresh)
			case !active && it.active:
				b.halt(it)
			}
		}
	}
	b.nudge()
}

// begin has a check asked from now on. Questions of many checks are spread: those of an agent that has just started over
// their whole interval.
func (b *Board) begin(it *item, fresh bool) {
	within := min(firstWithin, it.spec.Check.Interval/10)
	if it.kept && !fresh {
		within = it.spec.Check.Interval
	} else {
		it.tally = begin(&it.spec.Check)
		it.result.Status, it.result.Output, it.result.StatusCode, it.result.Timestamp = it.tally.Status, "", 0, 0
	}
	it.kept, it.active = false, true
	it.judge()
	it.due = time.Now().Add(time.Duration(b.cfg.Random() * float64(within)))
	heap.Push(&b.queue, it)
}

// halt ends the questions of a check; an answer that is still to come counts for nothing.
func (b *Board) halt(it *item) {
	it.active, it.okay = false, time.Time{}
	it.asked++
	if it.index >= 0 {
		heap.Remove(&b.queue, it.index)
	}
	if it.cancel != nil {
		it.cancel()
		it.cancel = nil
	}
}

// judge notes since when the check passes for deployments.
func (it *item) judge() {
	switch ok := passes(it.tally.Status, &it.spec.Check); {
	case !ok:
		it.okay = time.Time{}
	case it.okay.IsZero():
		it.okay = time.Now()
	}
}

func (b *Board) save(a *alloc) {
	items := a.items()
	list := make([]structs.AllocCheckStatus, len(items))
	for i, it := range items {
		list[i] = it.result
	}
	b.cfg.Store.SaveChecks(a.id, list)
}

// Statuses are the newest results of an allocation's checks.
func (b *Board) Statuses(allocID string) structs.AllocCheckStatuses {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := structs.AllocCheckStatuses{}
	if a := b.allocs[allocID]; a != nil {
		maps.Copy(out, a.restored)
		for _, it := range a.items() {
			out[it.spec.ID] = it.result
		}
	}
	return out
}

// Standing is how a check stands for a deployment.
type Standing struct {
	Passing time.Time // since when without interruption; zero while it does not
	Status  string
	Output  string
}

// Standings are those of an allocation's checks that are being asked, by their ids.
func (b *Board) Standings(allocID string) map[string]Standing {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]Standing{}
	if a := b.allocs[allocID]; a != nil {
		for _, it := range a.items() {
			if it.active {
				out[it.spec.ID] = Standing{Passing: it.okay, Status: it.tally.Status, Output: it.result.Output}
			}
		}
	}
	return out
}

func (b *Board) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Run asks the checks that are due until ctx is done. It is called once.
func (b *Board) Run(ctx context.Context) {
	b.mu.Lock()
	b.life = ctx
	b.mu.Unlock()
	defer b.asking.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if wait := b.askDue(); wait >= 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-b.wake:
		case <-ctx.Done():
			return
		}
	}
}

// askDue begins all questions that are due, and says how long there is none; -1 for ever.
func (b *Board) askDue() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for len(b.queue) > 0 {
		next := b.queue[0]
		if wait := next.due.Sub(now); wait > 0 {
			return wait
		}
		heap.Pop(&b.queue)
		b.ask(next, now)
	}
	return -1
}

func (b *Board) ask(it *item, now time.Time) {
	ctx, cancel := context.WithTimeout(b.life, it.spec.Check.Timeout)
	it.asked++
	it.cancel, it.due = cancel, now.Add(it.spec.Check.Interval)
	spec, asked, id := it.spec, it.asked, it.alloc.id
	b.asking.Go(func() {
		defer cancel()
		out := b.cfg.Prober.Probe(ctx, id, &spec)
		if b.answered(it, asked, out) {
			reason := fmt.Sprintf("healthcheck: check %q unhealthy", spec.Check.Name)
			_ = b.cfg.Restarter.Restart(id, spec.On, reason) // one that does not run any more needs none
		}
	})
}

// answered takes an answer over and says whether it is one for which check_restart restarts.
func (b *Board) answered(it *item, asked uint64, out Outcome) (restart bool) {
	b.mu.Lock()
	if it.asked != asked || b.life.Err() != nil { // the agent's end is no failure of what it asked
		b.mu.Unlock()
		return false
	}
	it.cancel = nil
	now := time.Now()
	if it.due.Before(now) {
		it.due = now
	}
	heap.Push(&b.queue, it)
	b.nudge()
	if out.Void {
		b.mu.Unlock()
		return false
	}
	before := it.tally.Status
	it.tally.add(out.Verdict, &it.spec.Check)
	if r := it.spec.Check.CheckRestart; r != nil {
		since, _ := it.alloc.began(&it.spec)
		restart = it.tally.restarts(out.Verdict, &it.spec.Check, now.Before(since.Add(structs.Val(r.Grace))))
	}
	it.result.Status, it.result.Output, it.result.StatusCode, it.result.Timestamp = it.tally.Status, out.Output, out.Code, now.Unix()
	it.judge()
	changed, id := before != it.tally.Status, it.alloc.id
	if changed {
		b.save(it.alloc)
	}
	b.mu.Unlock()
	if changed {
		b.cfg.Changed(id)
	}
	return restart
}
