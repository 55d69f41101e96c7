package sim

import (
	"sync"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// held is one allocation as its node sees it.
type held struct {
	batch      bool
	deployment bool // of a deployment, which waits to hear that it is healthy
	tasks      []task
	status     string // observed now
	acked      string // observed, as the servers acknowledged
	foreign    bool   // had ended before this node came; nothing to say about it
	stopping   bool
	started    time.Time
	finished   time.Time
	timer      *time.Timer // of the next transition
}

type task struct {
	name  string
	hook  string // of its lifecycle, empty: main
	stays bool   // runs as long as the allocation
}

// shelf is the allocations of one node: what they are and what the servers have yet to hear. Transitions come from
// the servers' assignments and from timers.
type shelf struct {
	tally  *tally
	delay  time.Duration
	runFor time.Duration
	wake   func() // something is to be reported

	mu     sync.Mutex
	allocs map[string]*held
	dirty  map[string]struct{}
	closed bool
}

func newShelf(cfg *Config, tally *tally, wake func()) *shelf {
	return &shelf{tally: tally, delay: cfg.Delay, runFor: cfg.RunFor, wake: wake,
		allocs: map[string]*held{}, dirty: map[string]struct{}{}}
}

// assign takes over what the servers said.
func (s *shelf) assign(upsert []*structs.Allocation, remove []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for _, id := range remove {
		s.drop(id)
	}
	added := 0
	for _, alloc := range upsert {
		h := s.allocs[alloc.ID]
		if h == nil {
			h = take(alloc)
			s.allocs[alloc.ID] = h
			added++
		}
		switch {
		case h.foreign || terminal(h.status):
		case alloc.ServerTerminal():
			h.stopping = true
			s.stop(h)
			s.move(alloc.ID, h, structs.AllocClientStatusComplete)
		case h.status == structs.AllocClientStatusPending && h.timer == nil:
			s.after(alloc.ID, h, s.delay, structs.AllocClientStatusRunning)
		}
	}
	if added > 0 {
		s.tally.change(func(st *Stats) { st.Known += added })
	}
}

// take makes what the node keeps of an allocation.
func take(alloc *structs.Allocation) *held {
	h := &held{status: structs.AllocClientStatusPending, deployment: alloc.DeploymentID != "",
		foreign: alloc.ClientTerminal()}
	if alloc.Job == nil {
		return h
	}
	h.batch = structs.Val(alloc.Job.Type) == structs.JobTypeBatch || structs.Val(alloc.Job.Type) == structs.JobTypeSysBatch
	if group := alloc.Job.LookupTaskGroup(alloc.TaskGroup); group != nil {
		for _, t := range group.Tasks {
			kept := task{name: t.Name, stays: true}
			if t.Lifecycle != nil {
				kept.hook, kept.stays = t.Lifecycle.Hook, t.Lifecycle.Sidecar
			}
			h.tasks = append(h.tasks, kept)
		}
	}
	return h
}

// after moves an allocation on once d has passed, at once when there is nothing to wait for.
func (s *shelf) after(id string, h *held, d time.Duration, status string) {
	if d <= 0 {
		s.move(id, h, status)
		return
	}
	h.timer = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed || s.allocs[id] != h || terminal(h.status) || h.stopping {
			return
		}
		s.move(id, h, status)
	})
}

// move makes a transition. The lock is held.
func (s *shelf) move(id string, h *held, status string) {
	h.status = status
	switch {
	case status == structs.AllocClientStatusRunning:
		h.started = time.Now()
		if h.batch && s.runFor > 0 {
			s.after(id, h, s.runFor, structs.AllocClientStatusComplete)
		}
	case terminal(status):
		h.finished = time.Now()
	}
	s.dirty[id] = struct{}{}
	s.wake()
}

func (s *shelf) stop(h *held) {
	if h.timer != nil {
		h.timer.Stop()
	}
}

// drop forgets an allocation. The lock is held.
func (s *shelf) drop(id string) {
	h := s.allocs[id]
	if h == nil {
		return
	}
	s.stop(h)
	delete(s.allocs, id)
	delete(s.dirty, id)
	s.tally.change(func(st *Stats) {
		st.Known--
		count(st, h.acked, -1)
	})
}

// pending gives what the servers have yet to hear, or with all everything that the node can say, up to limit.
func (s *shelf) pending(limit int) []*structs.AllocObservation {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*structs.AllocObservation
	for id := range s.dirty {
		if len(out) == limit {
			break
		}
		delete(s.dirty, id)
		out = append(out, s.allocs[id].observation(id))
	}
	return out
}

// again makes the servers hear of everything once more, as after a new session.
func (s *shelf) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, h := range s.allocs {
		if !h.foreign {
			s.dirty[id] = struct{}{}
		}
	}
}

// unsent takes back what could not be reported.
func (s *shelf) unsent(list []*structs.AllocObservation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range list {
		if s.allocs[o.AllocID] != nil {
			s.dirty[o.AllocID] = struct{}{}
		}
	}
}

// sent notes what the servers have acknowledged.
func (s *shelf) sent(list []*structs.AllocObservation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.change(func(st *Stats) {
		for _, o := range list {
			if h := s.allocs[o.AllocID]; h != nil {
				count(st, h.acked, -1)
				h.acked = o.ObservedStatus
				count(st, h.acked, 1)
			}
		}
	})
}

// close stops all timers; nothing moves any more.
func (s *shelf) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, h := range s.allocs {
		s.stop(h)
	}
}

func count(st *Stats, status string, by int) {
	switch status {
	case structs.AllocClientStatusRunning:
		st.Running += by
	case structs.AllocClientStatusComplete:
		st.Complete += by
	}
}

func terminal(status string) bool { return status == structs.AllocClientStatusComplete }

// observation is what the node says of the allocation now.
func (h *held) observation(id string) *structs.AllocObservation {
	o := &structs.AllocObservation{AllocID: id, ObservedStatus: h.status, Time: time.Now().UnixNano(),
		TaskStates: make(map[string]*structs.TaskState, len(h.tasks))}
	switch h.status {
	case structs.AllocClientStatusRunning:
		o.ClientDescription = "Tasks are running"
	case structs.AllocClientStatusComplete:
		o.ClientDescription = "All tasks have completed"
	}
	for _, t := range h.tasks {
		o.TaskStates[t.name] = h.taskState(t)
	}
	if h.deployment && h.status == structs.AllocClientStatusRunning {
		o.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: structs.Ptr(true), Timestamp: h.started}
	}
	return o
}

func (h *held) taskState(t task) *structs.TaskState {
	st := &structs.TaskState{State: structs.TaskStatePending}
	event := func(kind, text string, at time.Time) {
		st.Events = append(st.Events, &structs.TaskEvent{Type: kind, DisplayMessage: text, Time: at.UnixNano()})
	}
	ended := func(at time.Time) {
		event(structs.TaskTerminated, "Exit Code: 0", at)
		st.State, st.FinishedAt = structs.TaskStateDead, at
	}
	if h.started.IsZero() {
		if terminal(h.status) {
			st.State, st.FinishedAt = structs.TaskStateDead, h.finished
			event(structs.TaskKilled, "Task successfully killed", h.finished)
		}
		return st
	}
	if t.hook == structs.TaskLifecyclePoststop && !terminal(h.status) {
		return st
	}
	st.State, st.StartedAt = structs.TaskStateRunning, h.started
	event(structs.TaskStarted, "Task started by client", h.started)
	switch {
	case terminal(h.status):
		ended(h.finished)
	case !t.stays:
		ended(h.started)
	}
	return st
}
