package client

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// fakeServers is the servers' side of the node protocol in memory, behind the interface which the loops use.
type fakeServers struct {
	t testing.TB

	mu       sync.Mutex
	changed  chan struct{} // closed and renewed at each change
	index    uint64
	epoch    string
	assigned map[string]*structs.Allocation
	jobs     map[string]*structs.Job // by id
	removed  map[string]uint64
	seen     map[string]*structs.AllocObservation
	statuses map[string][]string // observed statuses in order, without repeats
	nodes    []*structs.Node     // registrations
	beats    []bool              // freshness
	beaten   func(fresh bool)    // is told of each, when it is not nil
	forget   bool                // answer heartbeats with Known false, once
	fail     error               // answers reports
	lie      bool                // give a wrong digest, once
	complete int                 // complete sets given
	left     []structs.NodeLeaveRequest
	away     []time.Duration
	// beatsThen is how many heartbeats there were when the node said it would be away. A mute server does not answer that.
	beatsThen int
	mute      bool
	services  map[string]*structs.ServiceRegistration
	offers    []structs.NodeServicesRequest     // by which services change
	offering  func(structs.NodeServicesRequest) // is told first, when it is not nil

	connected func()
}

var _ conn = (*fakeServers)(nil)

func newFakeServers(t testing.TB) *fakeServers {
	return &fakeServers{
		t: t, changed: make(chan struct{}), index: 10, epoch: "e1",
		assigned: map[string]*structs.Allocation{}, jobs: map[string]*structs.Job{}, removed: map[string]uint64{},
		seen: map[string]*structs.AllocObservation{}, statuses: map[string][]string{},
	}
}

func (s *fakeServers) bump() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *fakeServers) Run(ctx context.Context) error {
	s.connected()
	<-ctx.Done()
	return nil
}

func (s *fakeServers) Close() error { return nil }

func (s *fakeServers) Depart(_ context.Context, req structs.NodeLeaveRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append(s.left, req)
	s.bump()
	return nil
}

func (s *fakeServers) Away(ctx context.Context, d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mute {
		<-ctx.Done()
		return ctx.Err()
	}
	s.away = append(s.away, d)
	s.beatsThen = len(s.beats)
	return nil
}

func (s *fakeServers) Register(_ context.Context, node *structs.Node) (*structs.NodeHeartbeatResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = append(s.nodes, node)
	s.bump()
	return &structs.NodeHeartbeatResponse{TTL: time.Minute, Known: true}, nil
}

func (s *fakeServers) Heartbeat(_ context.Context, _ string, fresh bool) (*structs.NodeHeartbeatResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats = append(s.beats, fresh)
	if s.beaten != nil {
		s.beaten(fresh)
	}
	s.bump()
	known := !s.forget
	s.forget = false
	return &structs.NodeHeartbeatResponse{TTL: time.Minute, Known: known}, nil
}

func (s *fakeServers) Assignments(ctx context.Context, req structs.AssignmentsRequest) (*structs.AssignmentsResponse, error) {
	for {
		s.mu.Lock()
		res, wait := s.answer(req)
		s.mu.Unlock()
		if res != nil {
			return res, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *fakeServers) answer(req structs.AssignmentsRequest) (*structs.AssignmentsResponse, <-chan struct{}) {
	digest := structs.AssignmentDigest(maps.Keys(s.assigned))
	res := &structs.AssignmentsResponse{Epoch: s.epoch, AppliesTo: req.Index, ResultsIn: s.index, Digest: digest}
	if req.Epoch != s.epoch {
		res.Complete = true
		s.complete++
	} else if req.Index == s.index {
		return nil, s.changed
	}
	for _, a := range s.assigned {
		if res.Complete || a.AllocModifyIndex > req.Index {
			c := a.Copy()
			c.Job = nil
			res.Upsert = append(res.Upsert, c)
			res.Jobs = append(res.Jobs, s.jobs[a.JobID])
		}
	}
	for id, at := range s.removed {
		if !res.Complete && at > req.Index {
			res.Remove = append(res.Remove, id)
		}
	}
	if s.lie {
		res.Digest++
		s.lie = false
	}
	return res, nil
}

func (s *fakeServers) UpdateAllocs(_ context.Context, observations []*structs.AllocObservation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail; err != nil {
		s.fail = nil
		return err
	}
	for _, o := range observations {
		before := s.seen[o.AllocID]
		if before != nil && !structs.ObservedTransitionLegal(before.ObservedStatus, o.ObservedStatus) && before.ObservedStatus != o.ObservedStatus {
			s.t.Errorf("alloc %s went from %s to %s", o.AllocID, before.ObservedStatus, o.ObservedStatus)
		}
		s.seen[o.AllocID] = o
		if list := s.statuses[o.AllocID]; len(list) == 0 || list[len(list)-1] != o.ObservedStatus {
			s.statuses[o.AllocID] = append(list, o.ObservedStatus)
		}
		if a := s.assigned[o.AllocID]; a != nil {
			c := *a
			c.ObservedStatus = o.ObservedStatus
			c.ClientStatus = o.ObservedStatus
			s.assigned[o.AllocID] = &c
		}
	}
	s.bump()
	return nil
}

// assign gives the node an allocation of the job's first group.
func (s *fakeServers) assign(id string, job *structs.Job, change func(*structs.Allocation)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assignLocked(id, job, change)
	s.bump()
}

func (s *fakeServers) assignLocked(id string, job *structs.Job, change func(*structs.Allocation)) {
	s.index++
	if job.JobModifyIndex == 0 {
		job.JobModifyIndex = s.index
	}
	s.jobs[*job.ID] = job
	a := &structs.Allocation{
		ID: id, Namespace: "default", JobID: *job.ID, JobModifyIndex: job.JobModifyIndex, TaskGroup: *job.TaskGroups[0].Name,
		Name: structs.AllocName(*job.ID, *job.TaskGroups[0].Name, 0), DesiredStatus: "run", CreateIndex: s.index,
		AllocModifyIndex: s.index, AllocatedResources: &structs.AllocatedResources{},
	}
	if change != nil {
		change(a)
	}
	s.assigned[id] = a
}

func (s *fakeServers) change(id string, f func(*structs.Allocation)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changeLocked(id, f)
	s.bump()
}

func (s *fakeServers) changeLocked(id string, f func(*structs.Allocation)) {
	s.index++
	a := *s.assigned[id]
	f(&a)
	a.AllocModifyIndex = s.index
	s.assigned[id] = &a
}

func (s *fakeServers) stop(id string) {
	s.change(id, func(a *structs.Allocation) { a.DesiredStatus = "stop" })
}

func (s *fakeServers) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index++
	delete(s.assigned, id)
	s.removed[id] = s.index
	s.bump()
}

// until waits for a state of the servers.
func (s *fakeServers) until(what string, f func() bool) {
	s.t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		ok, wait := f(), s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-wait:
		case <-deadline.C:
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Fatalf("waited in vain for: %s; statuses %v", what, s.statuses)
		}
	}
}

// untilStatus waits until an allocation was reported with a status, and gives that report.
func (s *fakeServers) untilStatus(id, status string) *structs.AllocObservation {
	s.t.Helper()
	var out *structs.AllocObservation
	s.until(id+" is "+status, func() bool {
		out = s.seen[id]
		return out != nil && out.ObservedStatus == status
	})
	return out
}

var errUnwilling = errors.New("no leader")
