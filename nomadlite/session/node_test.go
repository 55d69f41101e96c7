package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// job registers a job and gives its specification row.
func (c *cluster) job(id, kind string) *structs.Job {
	c.t.Helper()
	job := &structs.Job{ID: structs.Ptr(id), Name: structs.Ptr(id), Type: structs.Ptr(kind), Priority: structs.Ptr(50),
		Namespace: structs.Ptr("default"), TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g")}}}
	job.Canonicalize()
	c.apply(fsm.KindJobRegister, &fsm.JobRegister{Job: job, Now: 1})
	return c.store.Job(nil, "default", id)
}

func (c *cluster) apply(kind fsm.Kind, req any) {
	c.t.Helper()
	res, _, err := c.log.Apply(c.t.Context(), kind, req)
	if err != nil {
		c.t.Fatal(err)
	}
	if plan, ok := res.(fsm.PlanApplyResult); ok {
		for _, err := range plan.Errors {
			if err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

func (c *cluster) place(job *structs.Job, nodeID string, ids ...string) {
	c.t.Helper()
	plan := &structs.Plan{Namespace: "default", JobID: *job.ID, JobModifyIndex: job.JobModifyIndex,
		Places: map[string][]*structs.Allocation{}}
	for i, id := range ids {
		plan.Places[nodeID] = append(plan.Places[nodeID], &structs.Allocation{ID: id, Namespace: "default",
			JobID: *job.ID, NodeID: nodeID, TaskGroup: "g", Name: fmt.Sprintf("%s.g[%d]", *job.ID, i),
			DesiredStatus: "run", JobModifyIndex: job.JobModifyIndex, ObservedStatus: "pending"})
	}
	c.apply(fsm.KindPlanApply, &fsm.PlanApply{Plans: []*structs.Plan{plan}, Now: 2})
}

func (c *cluster) halt(nodeID, id string) {
	c.t.Helper()
	c.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: 3, Plans: []*structs.Plan{{Stops: map[string][]*structs.AllocStop{
		nodeID: {{ID: id, DesiredStatus: "stop"}}}}}})
}

// held is a node's own idea of its assignments, kept by the simplest rules.
type held struct {
	epoch string
	index uint64
	ids   map[string]bool
}

func (h *held) request(n *node) *structs.AssignmentsRequest {
	return &structs.AssignmentsRequest{NodeID: n.id, SecretID: n.secret, Epoch: h.epoch, Index: h.index,
		Digest: h.digest(), Wait: time.Minute}
}

func (h *held) digest() uint64 {
	return structs.AssignmentDigest(func(yield func(string) bool) {
		for id := range h.ids {
			if !yield(id) {
				return
			}
		}
	})
}

func (h *held) apply(t testing.TB, res *structs.AssignmentsResponse) {
	t.Helper()
	if res.Complete || h.ids == nil {
		h.ids = map[string]bool{}
	} else if res.AppliesTo != h.index || res.Epoch != h.epoch {
		t.Fatalf("delta from %d in %q, the node is at %d in %q", res.AppliesTo, res.Epoch, h.index, h.epoch)
	}
	for _, a := range res.Upsert {
		h.ids[a.ID] = true
	}
	for _, id := range res.Remove {
		delete(h.ids, id)
	}
	h.epoch, h.index = res.Epoch, res.ResultsIn
	if h.digest() != res.Digest {
		t.Fatalf("digest does not match after %+v", res)
	}
}

// poll asks in the background.
func (n *node) poll(h *held) <-chan *structs.AssignmentsResponse {
	out := make(chan *structs.AssignmentsResponse, 1)
	req := h.request(n)
	go func() {
		defer close(out)
		var res structs.AssignmentsResponse
		if code, err := n.try(n.t.Context(), "assignments", req, &res); err == nil && code == 200 {
			out <- &res
		}
	}()
	return out
}

func upserts(res *structs.AssignmentsResponse) []string {
	var ids []string
	for _, a := range res.Upsert {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestAssignmentsAreToldAsTheyChange(t *testing.T) {
	c := newCluster(t, 1)
	m := c.ports[0]
	n := connect(t, m, "n1", nil)
	connect(t, m, "n2", nil)
	job := c.job("web", "service")
	h := &held{}
	next := func(what string, change func()) *structs.AssignmentsResponse {
		t.Helper()
		answer := n.poll(h)
		eventually(t, "poll is parked", func() bool { return m.polls.Waiting() == 1 })
		change()
		res := <-answer
		if res == nil {
			t.Fatalf("%s: no answer", what)
		}
		h.apply(t, res)
		return res
	}
	first := <-n.poll(h)
	if !first.Complete || len(first.Upsert) != 0 {
		t.Fatalf("first answer: %+v", first)
	}
	h.apply(t, first)

	res := next("place", func() {
		c.place(job, "n2", "other")
		c.place(job, "n1", "a", "b")
	})
	if res.Complete || !slices.Equal(upserts(res), []string{"a", "b"}) || len(res.Jobs) != 1 {
		t.Fatalf("placed: %+v", res)
	}
	if res.Upsert[0].JobModifyIndex != res.Jobs[0].JobModifyIndex {
		t.Error("the specification is another one")
	}
	res = next("stop", func() {
		// What the node itself reports is no news for it.
		if code := n.call("allocs", &structs.NodeAllocsUpdateRequest{NodeID: "n1", SecretID: n.secret,
			Observations: []*structs.AllocObservation{{AllocID: "a", ObservedStatus: "running"}}}, nil); code != 204 {
			t.Errorf("report: %d", code)
		}
		c.halt("n1", "a")
	})
	if res.Complete || !slices.Equal(upserts(res), []string{"a"}) || len(res.Jobs) != 0 ||
		res.Upsert[0].DesiredStatus != "stop" || res.Upsert[0].ObservedStatus != "running" {
		t.Fatalf("stopped: %+v", res)
	}
	if code := n.call("allocs", &structs.NodeAllocsUpdateRequest{NodeID: "n1", SecretID: n.secret,
		Observations: []*structs.AllocObservation{{AllocID: "a", ObservedStatus: "complete"}}}, nil); code != 204 {
		t.Fatalf("report: %d", code)
	}
	res = next("reap", func() { c.apply(fsm.KindReap, &fsm.Reap{Allocs: []string{"a"}, Now: 5}) })
	if res.Complete || !slices.Equal(res.Remove, []string{"a"}) || len(res.Upsert) != 0 {
		t.Fatalf("removed: %+v", res)
	}
	// Between two polls things come and go.
	c.place(job, "n1", "c", "d")
	res = <-n.poll(h)
	if res == nil || res.Complete || !slices.Equal(upserts(res), []string{"c", "d"}) {
		t.Fatalf("between polls: %+v", res)
	}
	h.apply(t, res)

	for what, spoil := range map[string]func(h *held){
		"lost an allocation":    func(h *held) { delete(h.ids, "c") },
		"holds an unknown one":  func(h *held) { h.ids["zzz"] = true },
		"another history":       func(h *held) { h.epoch = "x" },
		"an index of tomorrow":  func(h *held) { h.index = 1 << 40 },
		"asks for the complete": func(h *held) { h.epoch = "" },
	} {
		bad := &held{epoch: h.epoch, index: h.index, ids: map[string]bool{}}
		for id := range h.ids {
			bad.ids[id] = true
		}
		spoil(bad)
		res := <-n.poll(bad)
		if res == nil || !res.Complete || !slices.Equal(upserts(res), []string{"b", "c", "d"}) || len(res.Jobs) != 1 {
			t.Fatalf("%s: %+v", what, res)
		}
		bad.apply(t, res)
	}
}

func TestCompleteSetOnlyFromTheLeader(t *testing.T) {
	c := newCluster(t, 1)
	n := connect(t, c.ports[0], "n1", nil)
	c.ports[0].polls.verify = func(context.Context) error { return errors.New("lost the lead") } // before any poll
	code, err := n.try(t.Context(), "assignments", (&held{}).request(n), nil)
	if err != nil || code != 500 {
		t.Fatalf("%d, %v", code, err)
	}
}

func TestPollsEnd(t *testing.T) {
	c := newCluster(t, 1)
	m := c.ports[0]
	n := connect(t, m, "n1", nil)
	h := &held{}
	h.apply(t, <-n.poll(h))

	// By their wait: an empty delta.
	req := h.request(n)
	req.Wait = time.Millisecond
	var res structs.AssignmentsResponse
	if code := n.call("assignments", req, &res); code != 200 || res.Complete || len(res.Upsert) != 0 {
		t.Fatalf("%d %+v", code, res)
	}
	h.apply(t, &res)
	// By the node's next one.
	first := n.poll(h)
	eventually(t, "poll is parked", func() bool { return m.polls.Waiting() == 1 })
	second := n.poll(h)
	if res := <-first; res != nil {
		t.Fatalf("the earlier poll was answered: %+v", res)
	}
	eventually(t, "poll is parked", func() bool { return m.polls.Waiting() == 1 })
	// By the session.
	n.leave()
	if res := <-second; res != nil {
		t.Fatalf("answered after the session's end: %+v", res)
	}
	eventually(t, "poll is forgotten", func() bool { return m.polls.Waiting() == 0 })
}

func TestParkedPollsKeepNoGoroutine(t *testing.T) {
	c := newCluster(t, 1)
	m := c.ports[0]
	const n = 20
	var nodes []*node
	var helds []*held
	for i := range n {
		nd := connect(t, m, fmt.Sprintf("n%d", i), nil)
		h := &held{}
		h.apply(t, <-nd.poll(h))
		nodes, helds = append(nodes, nd), append(helds, h)
	}
	before := runtime.NumGoroutine()
	var answers []<-chan *structs.AssignmentsResponse
	for i, nd := range nodes {
		answers = append(answers, nd.poll(helds[i]))
	}
	eventually(t, "all are parked", func() bool { return m.polls.Waiting() == n })
	// One goroutine a node is the test's own, which waits for the answer.
	eventually(t, "goroutines are gone", func() bool { return runtime.NumGoroutine() <= before+n })
	// One entry wakes them all.
	job := c.job("web", "service")
	plan := &structs.Plan{Namespace: "default", JobID: "web", JobModifyIndex: job.JobModifyIndex,
		Places: map[string][]*structs.Allocation{}}
	for _, nd := range nodes {
		plan.Places[nd.id] = []*structs.Allocation{{ID: "a" + nd.id, Namespace: "default", JobID: "web", NodeID: nd.id,
			TaskGroup: "g", Name: "web.g[0]", DesiredStatus: "run", JobModifyIndex: job.JobModifyIndex}}
	}
	c.apply(fsm.KindPlanApply, &fsm.PlanApply{Plans: []*structs.Plan{plan}, Now: 2})
	for i := range answers {
		if res := <-answers[i]; res == nil || len(res.Upsert) != 1 {
			t.Fatalf("%+v", res)
		}
	}
}

func TestEveryServerAnswersItsOwnNodes(t *testing.T) {
	c := newCluster(t, 2)
	n := connect(t, c.ports[1], "n1", nil)
	h := &held{}
	h.apply(t, <-n.poll(h))
	answer := n.poll(h)
	eventually(t, "poll is parked", func() bool { return c.ports[1].polls.Waiting() == 1 })
	c.place(c.job("web", "service"), "n1", "a")
	if res := <-answer; res == nil || !slices.Equal(upserts(res), []string{"a"}) {
		t.Fatalf("%+v", res)
	}
}

// A server that lags must never tell a node a set that is older than what the node has: the node would stop the rest.
func TestALaggingServerCatchesUpFirst(t *testing.T) {
	c := newCluster(t, 1)
	n := connect(t, c.ports[0], "n1", nil)
	job := c.job("web", "service")
	c.place(job, "n1", "a")
	h := &held{}
	h.apply(t, <-n.poll(h))
	lag := c.log.newFollower()
	m := c.add(lag.store, nil)
	moved, err := dialNode(t, m, "n1", n.secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	lag.follow()
	c.place(job, "n1", "b")
	h.apply(t, <-n.poll(h)) // from the leader: the node has a and b, the follower's state only a

	for what, ask := range map[string]*held{"the set": {}, "news": h} {
		asked := moved.poll(ask)
		select {
		case res := <-asked:
			t.Fatalf("%s: the lagging server answered %+v", what, res)
		case <-time.After(20 * time.Millisecond):
		}
		if what == "news" {
			c.place(job, "n1", "c")
		}
		lag.follow()
		res := <-asked
		if res == nil {
			t.Fatalf("%s: no answer", what)
		}
		ask.apply(t, res)
		if !ask.ids["a"] || !ask.ids["b"] {
			t.Fatalf("%s: the node has %v", what, ask.ids)
		}
		// For the next round the follower lags again.
		c.place(job, "n1", what)
		h.apply(t, <-n.poll(h))
	}
	// Nor does it answer at all when it cannot ask the leader.
	m.fw.wait = 10 * time.Millisecond
	c.setLeader("")
	if code, err := moved.try(t.Context(), "assignments", (&held{}).request(moved), nil); err != nil || code != 500 {
		t.Fatalf("%d, %v", code, err)
	}
}

func TestRegistration(t *testing.T) {
	c := newCluster(t, 1)
	m := c.ports[0]
	n := connect(t, m, "n1", nil)
	row := c.store.Node(nil, "n1")
	if row == nil || row.Status != "initializing" || row.SecretID != n.secret || row.ComputedClass == "" {
		t.Fatalf("%+v", row)
	}
	// Told again, it costs nothing; changed, it is stored.
	again := &structs.Node{ID: "n1", SecretID: n.secret, Name: "n1"}
	var res structs.NodeHeartbeatResponse
	if code := n.call("register", &structs.NodeRegisterRequest{Node: again}, &res); code != 200 || !res.Known ||
		res.TTL != 10*time.Second || !slices.Equal(res.Servers, m.Peers()) {
		t.Fatalf("%d %+v", code, res)
	}
	if got := c.log.count(fsm.KindNodeRegister); got != 1 {
		t.Errorf("%d entries for the same registration", got)
	}
	again.Attributes = map[string]string{"kernel.name": "linux"}
	n.call("register", &structs.NodeRegisterRequest{Node: again}, nil)
	if got := c.store.Node(nil, "n1").Attributes["kernel.name"]; got != "linux" {
		t.Errorf("attribute is %q", got)
	}
	for fresh := range map[bool]bool{true: true, false: true} {
		n.call("heartbeat", &structs.NodeHeartbeatRequest{NodeID: "n1", SecretID: n.secret, Status: "ready",
			FreshReport: fresh}, &res)
		if m.beats.fresh["n1"] != fresh || !res.Known {
			t.Errorf("fresh is %v: %+v", m.beats.fresh["n1"], res)
		}
	}
	c.apply(fsm.KindNodeDeregister, &fsm.NodeDeregister{NodeIDs: []string{"n1"}, Now: 9})
	res = structs.NodeHeartbeatResponse{}
	if code := n.call("heartbeat", &structs.NodeHeartbeatRequest{NodeID: "n1", SecretID: n.secret}, &res); code != 200 || res.Known {
		t.Errorf("a purged node: %d %+v", code, res)
	}
	for _, bad := range []*structs.NodeRegisterRequest{{}, {Node: &structs.Node{ID: "n1"}}, {Node: &structs.Node{ID: "n1", Name: "x"}}} {
		if code := n.call("register", bad, nil); code != 400 {
			t.Errorf("%+v: %d", bad.Node, code)
		}
	}
}

func TestTheFirstOfTwoRegistrationsPinsTheSecret(t *testing.T) {
	c := newCluster(t, 1)
	var wg sync.WaitGroup
	codes := make([]int, 8)
	nodes := make([]*node, len(codes))
	for i := range codes { // all before the first registers: later the handshake would refuse them
		var err error
		if nodes[i], err = dialNode(t, c.ports[0], "n1", fmt.Sprint("secret", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range nodes {
		secret := fmt.Sprint("secret", i)
		wg.Add(1)
		go func() {
			defer wg.Done()
			codes[i], _ = n.try(t.Context(), "register", &structs.NodeRegisterRequest{
				Node: &structs.Node{ID: "n1", SecretID: secret, Name: "n1"}}, nil)
		}()
	}
	wg.Wait()
	won := 0
	for i, code := range codes {
		if code == 200 {
			won++
			if got := c.store.Node(nil, "n1").SecretID; got != fmt.Sprint("secret", i) {
				t.Errorf("secret is %q", got)
			}
		}
	}
	if won != 1 {
		t.Errorf("codes %v", codes)
	}
}

func TestReportsAreFolded(t *testing.T) {
	c := newCluster(t, 1)
	m := c.ports[0]
	job := c.job("web", "service")
	const n = 10
	var nodes []*node
	for i := range n {
		nd := connect(t, m, fmt.Sprintf("n%d", i), nil)
		c.place(job, nd.id, "a"+nd.id)
		nodes = append(nodes, nd)
	}
	c.log.gate, c.log.began = make(chan struct{}), make(chan struct{}, 1)
	var wg sync.WaitGroup
	report := func(nd *node) {
		defer wg.Done()
		code := nd.call("allocs", &structs.NodeAllocsUpdateRequest{NodeID: nd.id, SecretID: nd.secret,
			Observations: []*structs.AllocObservation{{AllocID: "a" + nd.id, ObservedStatus: "running"}}}, nil)
		if code != 204 {
			t.Errorf("report: %d", code)
		}
	}
	wg.Add(n)
	go report(nodes[0])
	<-c.log.began // the first goes out at once
	for _, nd := range nodes[1:] {
		go report(nd)
	}
	eventually(t, "the others wait", func() bool {
		m.nodes.observer.mu.Lock()
		defer m.nodes.observer.mu.Unlock()
		return len(m.nodes.observer.waiting) == n-1
	})
	c.log.gate <- struct{}{}
	<-c.log.began
	c.log.gate <- struct{}{}
	wg.Wait()
	if got := c.log.count(fsm.KindAllocObserve); got != 2 {
		t.Errorf("%d entries", got)
	}
	for _, nd := range nodes {
		if got := c.store.Alloc(nil, "a"+nd.id).ClientStatus; got != "running" {
			t.Errorf("%s is %q", nd.id, got)
		}
	}
}

func TestReportsOfOthersAreDropped(t *testing.T) {
	c := newCluster(t, 1)
	m := c.ports[0]
	n1, n2 := connect(t, m, "n1", nil), connect(t, m, "n2", nil)
	c.place(c.job("web", "service"), "n1", "a")
	_ = n1
	code := n2.call("allocs", &structs.NodeAllocsUpdateRequest{NodeID: "n2", SecretID: n2.secret,
		Observations: []*structs.AllocObservation{nil, {AllocID: "a", ObservedStatus: "failed"},
			{AllocID: "gone", ObservedStatus: "failed"}}}, nil)
	if code != 204 || c.store.Alloc(nil, "a").ClientStatus != "pending" || c.log.count(fsm.KindAllocObserve) != 0 {
		t.Fatalf("%d %q", code, c.store.Alloc(nil, "a").ClientStatus)
	}
}

func TestReportFailsWhenItCannotBeStored(t *testing.T) {
	c := newCluster(t, 1)
	n := connect(t, c.ports[0], "n1", nil)
	c.place(c.job("web", "service"), "n1", "a")
	c.log.mu.Lock()
	c.log.fail = structs.ErrNoLeader
	c.log.mu.Unlock()
	if code := n.call("allocs", &structs.NodeAllocsUpdateRequest{NodeID: "n1", SecretID: n.secret,
		Observations: []*structs.AllocObservation{{AllocID: "a", ObservedStatus: "running"}}}, nil); code != 500 {
		t.Fatalf("%d", code)
	}
}

type fakeState struct {
	alloc *structs.Allocation
	job   *structs.Job
}

func (f fakeState) AllocOf(string) *structs.Allocation { return f.alloc }
func (f fakeState) JobOf(_, _ string) *structs.Job     { return f.job }

func TestEvaluationsFromReports(t *testing.T) {
	for _, c := range []struct {
		name, kind, desired, was, is string
		condition                    string
		stopped, purged, departed    bool
		want                         string
	}{
		{name: "runs", kind: "service", desired: "run", was: "pending", is: "running"},
		{name: "service fails", kind: "service", desired: "run", was: "running", is: "failed", want: "alloc-failure"},
		{name: "batch fails", kind: "batch", desired: "run", was: "running", is: "failed", want: "alloc-failure"},
		{name: "told again", kind: "batch", desired: "run", was: "failed", is: "failed"},
		{name: "stopped one fails", kind: "service", desired: "stop", was: "running", is: "failed"},
		{name: "evicted one ends", kind: "service", desired: "evict", was: "running", is: "complete"},
		{name: "service ends", kind: "service", desired: "run", was: "running", is: "complete", want: "alloc-failure"},
		{name: "batch ends", kind: "batch", desired: "run", was: "running", is: "complete"},
		{name: "batch is ended, its node leaves", kind: "batch", desired: "run", was: "running", is: "complete", departed: true,
			want: "node-update"},
		{name: "job is stopped", kind: "service", desired: "run", was: "running", is: "failed", stopped: true},
		{name: "job is gone", kind: "service", desired: "run", was: "running", is: "failed", purged: true},
		{name: "heard again", kind: "service", desired: "run", was: "running", is: "running", condition: "unknown",
			want: "reconnect"},
		{name: "lost one runs", kind: "service", desired: "stop", was: "running", is: "running", condition: "lost"},
	} {
		f := fakeState{alloc: &structs.Allocation{ID: "a", Namespace: "default", JobID: "j", DesiredStatus: c.desired,
			ObservedStatus: c.was, Condition: structs.Condition{Status: c.condition}}}
		if !c.purged {
			f.job = &structs.Job{ID: structs.Ptr("j"), Type: structs.Ptr(c.kind), Priority: structs.Ptr(70), Stop: c.stopped,
				JobModifyIndex: 7}
		}
		o := &structs.AllocObservation{AllocID: "a", ObservedStatus: c.is, Departed: c.departed}
		evals := evalsFor(f, []*structs.AllocObservation{o, o}, 5, uuid.New)
		got := ""
		if len(evals) == 1 {
			got = evals[0].TriggeredBy
			if e := evals[0]; e.JobID != "j" || e.Priority != 70 || e.Type != c.kind || e.Status != "pending" ||
				e.JobModifyIndex != 7 || e.CreateTime != 5 || e.ID == "" {
				t.Errorf("%s: %+v", c.name, e)
			}
		}
		if got != c.want || len(evals) > 1 {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
