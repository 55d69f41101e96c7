package client

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/client/allocrunner"
	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/lease"
	"github.com/nomadlite/nomadlite/client/state"
	"github.com/nomadlite/nomadlite/client/taskrunner"
	"github.com/nomadlite/nomadlite/structs"
)

// held is an allocation which the servers assigned to this node, from its assignment until they take it away. The
// client's lock guards it.
type held struct {
	alloc  *structs.Allocation
	runner *allocrunner.Runner // nil when nothing of it is on this node
	// never is set when the allocation has to be reported as ended though it never began here.
	never    bool
	reported *structs.AllocObservation // what the servers have, in the present session
	vanished bool                      // the servers no longer assign it: it is forgotten once it is over
}

// observation is what may be reported, nil when this node has nothing to say.
func (h *held) observation(now int64) *structs.AllocObservation {
	switch {
	case h.runner != nil:
		return h.runner.Observation()
	case h.never:
		return &structs.AllocObservation{
			AllocID: h.alloc.ID, ObservedStatus: structs.AllocClientStatusComplete,
			ClientDescription: "All tasks have completed", Time: now,
		}
	}
	return nil
}

// spec is a job specification with the number of allocations that run it.
type spec struct {
	job   *structs.Job
	users int
}

// useSpec counts a user in and gives the specification, known or new; nil when it is neither. The caller holds the
// lock.
func (c *Client) useSpec(alloc *structs.Allocation) *structs.Job {
	key := state.SpecKeyOf(alloc)
	s := c.specs[key]
	if s == nil {
		if alloc.Job == nil {
			return nil
		}
		s = &spec{job: alloc.Job}
		c.specs[key] = s
		c.db.Put(state.Jobs, key, alloc.Job, nil)
	}
	s.users++
	return s.job
}

// dropSpec counts a user out; the caller holds the lock.
func (c *Client) dropSpec(alloc *structs.Allocation) {
	key := state.SpecKeyOf(alloc)
	s := c.specs[key]
	if s == nil {
		return
	}
	if s.users--; s.users <= 0 {
		delete(c.specs, key)
		c.db.Delete(state.Jobs, key)
	}
}

// restore makes runners for what an earlier agent held. They do not run yet.
func (c *Client) restore() error {
	r, err := c.load()
	if err != nil {
		return err
	}
	for key, job := range r.jobs {
		c.specs[key] = &spec{job: job}
	}
	byCreation(r.allocs)
	for _, alloc := range r.allocs {
		h := &held{alloc: alloc}
		c.held[alloc.ID] = h
		alloc.Job = c.useSpec(alloc)
		run := r.runs[alloc.ID]
		switch {
		case run == nil && (alloc.ServerTerminal() || alloc.ClientTerminal()):
			h.never = alloc.ServerTerminal() && !alloc.ObservedTerminal()
		case run != nil && run.Destroyed:
		case alloc.Job == nil:
			// A damaged row. The servers have the specification, and hand the allocation out anew.
			c.log.Error("allocation begins anew: its job specification is missing", "alloc", alloc.ID)
			c.drop(h)
		default:
			tasks := map[string]*taskrunner.Local{}
			if group := alloc.Group(); group != nil {
				for _, t := range group.Tasks {
					if l := r.tasks[state.TaskKey(alloc.ID, t.Name)]; l != nil {
						tasks[t.Name] = l
					}
				}
			}
			if h.runner, err = c.newRunner(alloc, run, tasks, c.synced.ch); err != nil {
				c.log.Error("allocation begins anew, since it cannot be restored", "alloc", alloc.ID, "error", err)
				c.drop(h)
				continue
			}
			if kill, fenced := h.runner.Fenced(); fenced {
				c.leases.End(lease.Over{AllocID: alloc.ID, Kill: kill})
			}
		}
	}
	c.dropStrays(r)
	for key, s := range c.specs {
		if s.users == 0 {
			delete(c.specs, key)
			c.db.Delete(state.Jobs, key)
		}
	}
	if n := len(c.held); n > 0 {
		c.log.Info("allocations of an earlier agent were found", "count", n)
	}
	return nil
}

func byCreation(allocs []*structs.Allocation) {
	slices.SortStableFunc(allocs, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
	})
}

// drop removes the rows of an allocation as if it had never been here; the caller holds the lock or is alone.
func (c *Client) drop(h *held) {
	id := h.alloc.ID
	delete(c.held, id)
	delete(c.dirty, id)
	c.dropSpec(h.alloc)
	c.db.Delete(state.Allocs, id)
	c.db.Delete(state.Runs, id)
}

// dropStrays removes rows of allocations that are not held: their own row was damaged.
func (c *Client) dropStrays(r *records) {
	for id := range r.runs {
		if c.held[id] == nil {
			c.db.Delete(state.Runs, id)
		}
	}
	for key := range r.tasks {
		if id, _, _ := strings.Cut(key, "/"); c.held[id] == nil {
			c.db.Delete(state.Tasks, key)
		}
	}
}

// newRunner makes a runner; the caller holds the lock or is alone.
func (c *Client) newRunner(alloc *structs.Allocation, record *allocrunner.Local, tasks map[string]*taskrunner.Local,
	hold <-chan struct{}) (*allocrunner.Runner, error) {
	if gate := c.holdLease(alloc, hold != nil); gate != nil && hold == nil {
		hold = gate
	}
	return allocrunner.New(allocrunner.Config{
		Alloc: alloc, Drivers: c.drivers, Hooks: c.allocHooks(alloc),
		TaskHooks: func(*structs.Task) []hook.Hook { return c.taskHooks(alloc) },
		Build:     c.build, Store: store{c.db}, Observed: c.observed, Previous: c.previous, Hold: hold,
		Checks:         c.checks.Standings,
		MaxKillTimeout: c.cfg.MaxKillTimeout, Clock: c.clock, Random: rand.Float64, Logger: c.log,
	}, record, tasks)
}

// previous finds an allocation on this node that has to be over before alloc begins: one that it follows, however many
// replacements lie between, or one that it preempts.
func (c *Client) previous(alloc *structs.Allocation) (id string, over <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range alloc.Awaits {
		if over := c.runs(a.ID); over != nil {
			return a.ID, over
		}
	}
	for _, id := range alloc.PreemptedAllocations {
		if over := c.runs(id); over != nil {
			return id, over
		}
	}
	for next := alloc; next.PreviousAllocation != ""; {
		id := next.PreviousAllocation
		if over := c.runs(id); over != nil {
			return id, over
		}
		h := c.held[id]
		if h == nil || h.alloc.CreateIndex >= next.CreateIndex {
			break
		}
		next = h.alloc
	}
	return "", nil
}

// runs gives what is closed once an allocation on this node is over, nil when it is; the caller holds the lock.
func (c *Client) runs(id string) <-chan struct{} {
	if h := c.held[id]; h != nil && h.runner != nil && !h.runner.Terminal() {
		return h.runner.Over()
	}
	return nil
}

// startRunners runs everything that was restored and is not over.
func (c *Client) startRunners() {
	for _, r := range c.runners() {
		c.goRunner(r)
	}
}

func (c *Client) goRunner(r *allocrunner.Runner) {
	if !r.Terminal() {
		c.running.Go(func() { r.Run(c.life) })
	}
}

// runners lists all runners, in no order.
func (c *Client) runners() []*allocrunner.Runner {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*allocrunner.Runner
	for _, h := range c.held {
		if h.runner != nil {
			out = append(out, h.runner)
		}
	}
	return out
}

// runner finds an allocation that has something on this node.
func (c *Client) runner(id string) (*allocrunner.Runner, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.held[id]; h != nil && h.runner != nil {
		return h.runner, nil
	}
	return nil, structs.Errorf(structs.CodeNotFound, "Unknown allocation %q", id)
}

// take carries out what the servers assigned and took away.
func (c *Client) take(upsert []*structs.Allocation, remove []string) {
	byCreation(upsert)
	fresh := 0
	for _, alloc := range upsert {
		if c.upsert(alloc) {
			fresh++
		}
	}
	for _, id := range remove {
		c.vanish(id)
	}
	if fresh > 0 {
		nudge(c.wakeGC)
	}
}

// upsert takes over one allocation and says whether it is new.
func (c *Client) upsert(alloc *structs.Allocation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[alloc.ID]
	if h == nil {
		c.add(alloc)
		return true
	}
	old := h.alloc
	if state.SpecKeyOf(old) != state.SpecKeyOf(alloc) {
		if job := c.useSpec(alloc); job != nil {
			alloc.Job = job
			c.dropSpec(old)
		} else {
			// Only its wishes changed: it goes on by the specification that it has.
			alloc.JobModifyIndex, alloc.JobVersion = old.JobModifyIndex, old.JobVersion
			alloc.Job = old.Job
		}
	} else {
		alloc.Job = old.Job
	}
	h.alloc, h.vanished = alloc, false
	c.db.Put(state.Allocs, alloc.ID, alloc, nil)
	if h.runner != nil {
		if !h.runner.Terminal() {
			c.holdLease(alloc, false)
		}
		h.runner.Update(alloc)
	}
	return false
}

// add begins to run a new allocation; the caller holds the lock.
func (c *Client) add(alloc *structs.Allocation) {
	h := &held{alloc: alloc}
	c.held[alloc.ID] = h
	alloc.Job = c.useSpec(alloc)
	c.db.Put(state.Allocs, alloc.ID, alloc, nil)
	switch {
	case alloc.ObservedTerminal() || alloc.ClientTerminal():
		return // it ended long ago, and what it left is gone
	case alloc.ServerTerminal():
		h.never = true
		c.dirty[alloc.ID] = struct{}{}
		nudge(c.wakeReport)
		return
	case alloc.Job == nil:
		c.log.Error("allocation came without its job specification", "alloc", alloc.ID)
		return
	}
	runner, err := c.newRunner(alloc, nil, nil, nil)
	if err != nil {
		c.log.Error("allocation cannot run", "alloc", alloc.ID, "error", err)
		return
	}
	h.runner = runner
	if c.departing {
		runner.Depart()
	}
	c.dirty[alloc.ID] = struct{}{}
	nudge(c.wakeReport)
	c.goRunner(runner)
}

// vanish handles an allocation which the servers no longer assign: one that still runs gets its ordinary stop first.
func (c *Client) vanish(id string) {
	c.mu.Lock()
	h := c.held[id]
	if h == nil {
		c.mu.Unlock()
		return
	}
	h.vanished = true
	if h.runner == nil || h.runner.Terminal() {
		c.mu.Unlock()
		c.forget(c.life, id)
		return
	}
	stop := *h.alloc
	stop.DesiredStatus, stop.DesiredDescription = structs.AllocDesiredStatusStop, "allocation is no longer assigned to this node"
	h.alloc = &stop
	c.db.Put(state.Allocs, id, &stop, nil)
	runner := h.runner
	c.mu.Unlock()
	c.log.Warn("allocation is no longer assigned, stopping it", "alloc", id)
	runner.Update(&stop)
	c.running.Go(func() {
		select {
		case <-runner.Over():
			c.mu.Lock()
			still := c.held[id] != nil && c.held[id].vanished
			c.mu.Unlock()
			if still {
				c.forget(c.life, id)
			}
		case <-c.life.Done():
		}
	})
}

// forgetVanished tries again what could not be removed when the servers took it away.
func (c *Client) forgetVanished(ctx context.Context) {
	c.mu.Lock()
	var ids []string
	for id, h := range c.held {
		if h.vanished && (h.runner == nil || h.runner.Terminal()) {
			ids = append(ids, id)
		}
	}
	c.mu.Unlock()
	for _, id := range ids {
		c.forget(ctx, id)
	}
}

// forget removes everything of an ended allocation, its rows included. What cannot be removed stays known.
func (c *Client) forget(ctx context.Context, id string) {
	c.destroy(ctx, id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.held[id]; h != nil && h.runner == nil {
		c.drop(h)
	}
}

// destroy removes what an ended allocation left on the node, and keeps only the fact that it ended.
func (c *Client) destroy(ctx context.Context, id string) {
	c.mu.Lock()
	h := c.held[id]
	if h == nil || h.runner == nil || !h.runner.Terminal() {
		c.mu.Unlock()
		return
	}
	runner := h.runner
	c.mu.Unlock()
	if err := runner.Destroy(ctx); err != nil {
		c.log.Warn("allocation is not cleaned up", "alloc", id, "error", err)
		return
	}
	c.leases.Drop(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	h.runner = nil
	if group := h.alloc.Group(); group != nil {
		for _, t := range group.Tasks {
			c.db.Delete(state.Tasks, state.TaskKey(id, t.Name))
		}
	}
}

// endedAt is when the last task ended.
func endedAt(o *structs.AllocObservation) time.Time {
	var last time.Time
	for _, s := range o.TaskStates {
		if s.FinishedAt.After(last) {
			last = s.FinishedAt
		}
	}
	return last
}
