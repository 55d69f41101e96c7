package clustersim

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/nomadlite/nomadlite/client/allocrunner"
	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/lease"
	"github.com/nomadlite/nomadlite/client/servers"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/internal/boottime"
	"github.com/nomadlite/nomadlite/structs"
)

// agent is one life of a node's agent: what package client does in goroutines, around the real runners and leases.
type agent struct {
	s      *sim
	n      *node
	life   int
	ctx    context.Context
	cancel context.CancelFunc
	dying  bool // is killed when it next waits for its disk
	// started says that a process has just been started of which no disk knows yet.
	started bool

	held     map[string]*held
	leases   *lease.Tracker
	assigned servers.Assigned
	synced   chan struct{}
	isSynced bool

	dirty   bool // something may go on
	wakeAt  time.Time
	leaseAt time.Time

	known, registered  bool
	session, fresh     uint64
	beating, beatAgain bool
	polling            bool
	reporting          bool
	reportAfter        time.Time
	toReport           map[string]bool
	failCalls          map[uint64]func()
	up, down           time.Time // when the last message of the session arrives
	calls              uint64
	beatNumber         uint64
}

// held is an allocation on the node.
type held struct {
	alloc    *structs.Allocation
	runner   *allocrunner.Runner
	tasks    []*running
	never    bool
	vanished bool
	reported *structs.AllocObservation
}

// running is a task that takes steps.
type running struct {
	runner   *taskrunner.Runner
	restored bool
	ended    func()
}

func newAgent(n *node) *agent {
	a := &agent{s: n.s, n: n, life: n.life, held: map[string]*held{}, synced: make(chan struct{}), dirty: true,
		toReport: map[string]bool{}, failCalls: map[uint64]func(){}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

func (a *agent) begin() {
	d := a.n.disk
	a.leases = lease.New(a.n.clock(), d.lease)
	jobs := map[string]*structs.Job{}
	for _, key := range sortedKeys(d.jobs) {
		jobs[key] = again(d.jobs[key])
	}
	var allocs []*structs.Allocation
	for _, id := range sortedKeys(d.allocs) {
		allocs = append(allocs, again(d.allocs[id]))
	}
	byCreation(allocs)
	for _, alloc := range allocs {
		h := &held{alloc: alloc}
		a.held[alloc.ID] = h
		alloc.Job = jobs[specKey(alloc)]
		run := d.runs[alloc.ID]
		switch {
		case run == nil && (alloc.ServerTerminal() || alloc.ClientTerminal()):
			h.never = alloc.ServerTerminal() && !alloc.ObservedTerminal()
		case run != nil && run.Destroyed:
		case alloc.Job == nil:
			a.s.breaks("disk", "%s: the specification of allocation %s is gone", a.n.id, alloc.ID)
		default:
			tasks := map[string]*taskrunner.Local{}
			for _, t := range alloc.Group().Tasks {
				if l := d.tasks[alloc.ID+"/"+t.Name]; l != nil {
					tasks[t.Name] = again(l)
				}
			}
			if run != nil {
				run = again(run)
			}
			a.newRunner(h, run, tasks, a.synced)
			if kill, fenced := h.runner.Fenced(); fenced {
				a.leases.End(lease.Over{AllocID: alloc.ID, Kill: kill})
			}
		}
	}
	over, _ := a.leases.Expired()
	a.fence(over)
	a.reclaim()
	for _, id := range sortedKeys(a.held) {
		if h := a.held[id]; h.runner != nil && !h.runner.Terminal() {
			h.runner.Resume(a.ctx)
		}
	}
	a.assigned.Restore("", 0, slices.Collect(maps.Keys(a.held)))
	life := a.life
	a.s.after(10*time.Second, func() {
		if a.n.agent == a && a.life == life {
			a.sync()
		}
	})
	a.connected()
}

func byCreation(allocs []*structs.Allocation) {
	slices.SortStableFunc(allocs, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
	})
}

func specKey(alloc *structs.Allocation) string {
	return alloc.Namespace + "/" + alloc.JobID + "/" + time.Duration(alloc.JobModifyIndex).String()
}

func (a *agent) sync() {
	if !a.isSynced {
		a.isSynced = true
		close(a.synced)
		a.dirty = true
	}
}

func (a *agent) newRunner(h *held, run *allocrunner.Local, tasks map[string]*taskrunner.Local, hold <-chan struct{}) {
	if gate := a.holdLease(h.alloc, hold != nil); gate != nil && hold == nil {
		hold = gate
	}
	r, err := allocrunner.New(allocrunner.Config{
		Alloc: h.alloc, Drivers: a.n.sup, TaskHooks: func(*structs.Task) []hook.Hook { return nil },
		Build: a.build, Store: agentStore{a}, Observed: a.observed, Previous: a.previous, Hold: hold,
		MaxKillTimeout: maxKillTimeout, Clock: a.n.clock(), Random: a.s.rng.Float64,
		Start: func(task *taskrunner.Runner, ended func()) {
			h.tasks = append(h.tasks, &running{runner: task, ended: ended})
		},
	}, run, tasks)
	if err != nil {
		a.s.breaks("runner", "%s: allocation %s cannot run: %v", a.n.id, h.alloc.ID, err)
	}
	h.runner = r
}

func (a *agent) build(_ context.Context, req taskrunner.BuildRequest) (*driver.TaskConfig, error) {
	cfg := &driver.TaskConfig{ID: req.TaskID, AllocID: req.Alloc.ID, JobID: req.Alloc.JobID, Namespace: req.Alloc.Namespace,
		Group: req.Alloc.TaskGroup, Task: req.Task.Name, Config: req.Task.Config}
	if until, leased := a.leases.Until(req.Alloc.ID); leased {
		cfg.Lease = &until
	}
	if r := req.Alloc.AllocatedResources; r != nil {
		cfg.Ports = r.Shared.Ports
	}
	return cfg, nil
}

// previous is package client's.
func (a *agent) previous(alloc *structs.Allocation) (string, <-chan struct{}) {
	runs := func(id string) <-chan struct{} {
		if h := a.held[id]; h != nil && h.runner != nil && !h.runner.Terminal() {
			return h.runner.Over()
		}
		return nil
	}
	for _, w := range alloc.Awaits {
		if over := runs(w.ID); over != nil {
			return w.ID, over
		}
	}
	for _, id := range alloc.PreemptedAllocations {
		if over := runs(id); over != nil {
			return id, over
		}
	}
	for next := alloc; next.PreviousAllocation != ""; {
		id := next.PreviousAllocation
		if over := runs(id); over != nil {
			return id, over
		}
		h := a.held[id]
		if h == nil || h.alloc.CreateIndex >= next.CreateIndex {
			break
		}
		next = h.alloc
	}
	return "", nil
}

func (a *agent) holdLease(alloc *structs.Allocation, restored bool) <-chan struct{} {
	node := structs.Node{Lease: a.n.lease, MaxKillTimeout: maxKillTimeout}
	if restored {
		last := a.leases.Last()
		if last.Lease > 0 && (node.Lease == 0 || last.Lease < node.Lease) {
			node.Lease = last.Lease
		}
		if last.MaxKill > 0 {
			node.MaxKillTimeout = min(node.MaxKillTimeout, last.MaxKill)
		}
	}
	after, kill := alloc.Group().LeaseOn(&node)
	if after <= 0 {
		return nil
	}
	gate := a.leases.Hold(alloc.ID, after, kill, restored)
	a.wakeBeat()
	return gate
}

func (a *agent) observed(id string) {
	a.toReport[id] = true
	a.dirty = true
}

func (a *agent) fence(over []lease.Over) {
	slices.SortFunc(over, func(x, y lease.Over) int { return cmp.Compare(x.AllocID, y.AllocID) })
	for _, o := range over {
		if h := a.held[o.AllocID]; h != nil && h.runner != nil {
			a.s.tracef("%s: the lease of %s is over", a.n.id, o.AllocID)
			h.runner.Fence(o.Kill)
			a.dirty = true
		}
	}
}

// turn lets leases end, runners take steps until none can, and reports go out.
func (a *agent) turn() {
	a.dirty = false
	over, next := a.leases.Expired()
	a.fence(over)
	a.leaseAt = time.Time{}
	if next >= 0 {
		since, _ := a.n.clock().Boot()
		a.leaseAt = time.Now().Add(next - since)
	}
	rounds := 0
	for again := true; again; rounds++ {
		if rounds > 2000 {
			a.s.breaks("rest", "the runners of %s do not come to rest", a.n.id)
		}
		a.wakeAt = time.Time{}
		again = a.n.disk.flush()
		for _, id := range sortedKeys(a.held) {
			h := a.held[id]
			if h.runner == nil {
				continue
			}
			again = a.step(h) || again
			if a.n.agent != a {
				return // it was killed on the way
			}
		}
	}
	a.forgetVanished()
	a.report()
}

// step lets an allocation and its tasks take the steps that they can.
func (a *agent) step(h *held) (some bool) {
	note := func(taken bool, left time.Duration) {
		some = some || taken
		if !taken && left > 0 {
			if at := time.Now().Add(left); a.wakeAt.IsZero() || at.Before(a.wakeAt) {
				a.wakeAt = at
			}
		}
	}
	if !h.runner.Terminal() {
		a.s.call(a.n, func() { note(h.runner.Step(a.ctx)) })
	}
	for _, t := range slices.Clone(h.tasks) {
		if a.n.agent != a {
			return some
		}
		if !t.restored {
			t.restored = true
			a.s.call(a.n, func() { t.runner.Restore(a.ctx) })
			some = true
			continue
		}
		a.s.call(a.n, func() { note(t.runner.Step(a.ctx)) })
		if a.n.agent == a && t.runner.View().Phase == taskrunner.Dead {
			h.tasks = slices.DeleteFunc(h.tasks, func(o *running) bool { return o == t })
			t.ended()
			some = true
		}
	}
	return some
}

// take carries out what the servers assigned and took away.
func (a *agent) take(upsert []*structs.Allocation, remove []string) {
	byCreation(upsert)
	for _, alloc := range upsert {
		a.upsert(alloc)
	}
	slices.Sort(remove)
	for _, id := range remove {
		a.vanish(id)
	}
	a.dirty = true
}

func (a *agent) upsert(alloc *structs.Allocation) {
	d := a.n.disk
	h := a.held[alloc.ID]
	if h == nil {
		a.add(alloc)
		return
	}
	old := h.alloc
	switch {
	case specKey(old) == specKey(alloc):
		alloc.Job = old.Job
	case alloc.Job != nil:
		a.saveJob(alloc)
	default:
		alloc.JobModifyIndex, alloc.JobVersion, alloc.Job = old.JobModifyIndex, old.JobVersion, old.Job
	}
	h.alloc, h.vanished = alloc, false
	d.write(func() { d.allocs[alloc.ID] = alloc })
	if alloc.ServerTerminal() && !old.ServerTerminal() {
		a.s.tracef("%s: allocation %s is to stop", a.n.id, alloc.ID)
	}
	if h.runner != nil {
		if !h.runner.Terminal() {
			a.holdLease(alloc, false)
		}
		h.runner.Update(alloc)
	}
}

func (a *agent) saveJob(alloc *structs.Allocation) {
	d, key, job := a.n.disk, specKey(alloc), alloc.Job
	d.write(func() { d.jobs[key] = job })
}

func (a *agent) add(alloc *structs.Allocation) {
	h := &held{alloc: alloc}
	a.held[alloc.ID] = h
	if alloc.Job != nil {
		a.saveJob(alloc)
	}
	d := a.n.disk
	d.write(func() { d.allocs[alloc.ID] = alloc })
	switch {
	case alloc.ObservedTerminal() || alloc.ClientTerminal():
		return
	case alloc.ServerTerminal():
		h.never = true
		a.toReport[alloc.ID] = true
		return
	case alloc.Job == nil:
		a.s.breaks("assignments", "%s: allocation %s came without its specification", a.n.id, alloc.ID)
	}
	a.s.tracef("%s: allocation %s (%s) begins", a.n.id, alloc.ID, alloc.Name)
	a.newRunner(h, nil, nil, nil)
	a.toReport[alloc.ID] = true
}

func (a *agent) vanish(id string) {
	h := a.held[id]
	if h == nil {
		return
	}
	h.vanished = true
	if h.runner == nil || h.runner.Terminal() {
		return
	}
	a.s.tracef("%s: allocation %s is not assigned any more", a.n.id, id)
	stop := *h.alloc
	stop.DesiredStatus = structs.AllocDesiredStatusStop
	h.alloc = &stop
	d := a.n.disk
	d.write(func() { d.allocs[id] = &stop })
	h.runner.Update(&stop)
}

func (a *agent) forgetVanished() {
	for _, id := range sortedKeys(a.held) {
		h := a.held[id]
		if !h.vanished || h.runner != nil && !h.runner.Terminal() {
			continue
		}
		a.leases.Drop(id)
		delete(a.held, id)
		d := a.n.disk
		d.write(func() {
			delete(d.allocs, id)
			delete(d.runs, id)
			for _, key := range sortedKeys(d.tasks) {
				if len(key) > len(id) && key[:len(id)] == id {
					delete(d.tasks, key)
				}
			}
		})
	}
}

// observation is what may be reported of an allocation.
func (a *agent) observation(h *held) *structs.AllocObservation {
	switch {
	case h.runner != nil:
		return h.runner.Observation()
	case h.never:
		return &structs.AllocObservation{AllocID: h.alloc.ID, ObservedStatus: structs.AllocClientStatusComplete,
			Time: time.Now().UnixNano()}
	}
	return nil
}

func sameObservation(x, y *structs.AllocObservation) bool {
	return y != nil && x.ObservedStatus == y.ObservedStatus && x.DeploymentStatus == y.DeploymentStatus &&
		maps.Equal(x.TaskStates, y.TaskStates)
}

// renew tells the supervisor until when what runs may live.
func (a *agent) renew() {
	until := map[string]boottime.Deadline{}
	for id, d := range a.leases.Renewals() {
		if h := a.held[id]; h != nil && h.runner != nil {
			for _, p := range h.runner.Processes() {
				until[p.TaskID] = d
			}
		}
	}
	_ = a.n.sup.Renew(a.ctx, until)
}
