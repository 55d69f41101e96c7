package sim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/e2e/nodesim/sim"
	"github.com/nomadlite/nomadlite/e2e/proc"
	"github.com/nomadlite/nomadlite/structs"
)

const nodes = 20

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), proc.Limit)
	t.Cleanup(cancel)
	return ctx
}

// start runs simulated nodes on a server of their own.
func start(t *testing.T, change func(*sim.Config)) (*proc.Agent, *sim.Sim) {
	t.Helper()
	server := proc.New(t, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })
	server.Start()
	return server, fleet(t, server, change)
}

func fleet(t *testing.T, server *proc.Agent, change func(*sim.Config)) *sim.Sim {
	t.Helper()
	cfg := sim.Config{Nodes: nodes, Servers: []string{fmt.Sprintf("127.0.0.1:%d", server.RPC)}}
	if change != nil {
		change(&cfg)
	}
	s, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	await(t, s, "all nodes ready", func(st sim.Stats) bool { return st.Ready == nodes })
	return s
}

func await(t *testing.T, s *sim.Sim, what string, done func(sim.Stats) bool) sim.Stats {
	t.Helper()
	st, err := s.Await(limited(t), done)
	if err != nil {
		t.Fatalf("%s: %v; last seen: %+v", what, err, st)
	}
	return st
}

func job(id, kind string, count int) *structs.Job {
	task := &structs.Task{Name: "t", Driver: "mock_driver", Config: map[string]any{"run_for": "1h"},
		Resources: &structs.Resources{CPU: structs.Ptr(100), MemoryMB: structs.Ptr(100)}}
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Count: &count, Tasks: []*structs.Task{task}}
	return &structs.Job{ID: &id, Name: &id, Type: &kind, Datacenters: []string{"*"}, TaskGroups: []*structs.TaskGroup{group}}
}

func register(t *testing.T, server *proc.Agent, j *structs.Job) {
	t.Helper()
	if _, _, err := server.Client.Jobs().Register(limited(t), j, nil, nil); err != nil {
		t.Fatal(err)
	}
}

// summary waits until the servers' own view of a job satisfies done.
func summary(t *testing.T, server *proc.Agent, id string, done func(structs.TaskGroupSummary) bool) {
	t.Helper()
	ctx := limited(t)
	q := &api.QueryOptions{WaitTime: 10 * time.Second}
	var last structs.TaskGroupSummary
	for {
		s, meta, err := server.Client.Jobs().Summary(ctx, id, q)
		if err != nil {
			t.Fatalf("%v; last seen: %+v", err, last)
		}
		if last = s.Summary["g"]; done(last) {
			return
		}
		q.WaitIndex = meta.LastIndex
	}
}

// TestReadyIsWhatTheServersSay: when all nodes count as ready, they are so for everybody, and not before.
func TestReadyIsWhatTheServersSay(t *testing.T) {
	server := proc.New(t, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })
	server.Start()
	began := time.Now()
	s := fleet(t, server, nil)
	st := s.Stats()
	list, _, err := server.Client.Nodes().List(limited(t), nil)
	if err != nil || len(list) != nodes {
		t.Fatalf("%d nodes, %v", len(list), err)
	}
	for _, n := range list {
		if n.Status != structs.NodeStatusReady {
			t.Errorf("node %s is %s", n.Name, n.Status)
		}
	}
	if took := time.Since(began).Milliseconds(); st.RegDoneMS < 1 || st.RegDoneMS > took || st.Registered != nodes ||
		st.Heartbeats < nodes || st.Known+st.Running+st.Complete+st.RPCErrs != 0 {
		t.Errorf("after %d ms: %+v", took, st)
	}
	server.Kill()
	gone := await(t, s, "no node ready, and messages fail", func(st sim.Stats) bool { return st.Ready == 0 })
	server.Start()
	back := await(t, s, "all nodes back", func(st sim.Stats) bool { return st.Ready == nodes })
	if gone.Registered != nodes || back.Registered != nodes || gone.RegDoneMS != st.RegDoneMS || back.RegDoneMS != st.RegDoneMS ||
		back.Heartbeats < st.Heartbeats+nodes {
		t.Errorf("a server that was away changed what was counted before: %+v, then %+v, then %+v", st, gone, back)
	}
}

func TestNodesAreWhatTheyShouldBe(t *testing.T) {
	server, _ := start(t, func(c *sim.Config) { c.Datacenters = []string{"dc-1", "dc-2"} })
	list, _, err := server.Client.Nodes().List(limited(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	inDC := map[string]int{}
	for _, n := range list {
		inDC[n.Datacenter]++
		if !n.Drivers["raw_exec"].Healthy || !n.Drivers["docker"].Healthy {
			t.Errorf("drivers of %s: %+v", n.Name, n.Drivers)
		}
	}
	if inDC["dc-1"] != nodes/2 || inDC["dc-2"] != nodes/2 {
		t.Errorf("nodes by datacenter: %v", inDC)
	}
	n, _, err := server.Client.Nodes().Info(limited(t), list[0].ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	res := n.NodeResources
	if res.Cpu.CpuShares != 14000 || res.Memory.MemoryMB != 32000 || res.Disk.DiskMB != 100*1024 || n.Meta["rack"] == "" {
		t.Errorf("node has %+v, meta %v", res, n.Meta)
	}
}

func TestServiceRunsUntilItIsStopped(t *testing.T) {
	server, s := start(t, nil)
	register(t, server, job("svc", "service", 50))
	summary(t, server, "svc", func(g structs.TaskGroupSummary) bool { return g.Running == 50 })
	st := await(t, s, "50 running", func(st sim.Stats) bool { return st.Running == 50 })
	if st.Known != 50 || st.Registered != nodes || st.RegDoneMS == 0 || st.Complete != 0 || st.RPCErrs != 0 {
		t.Errorf("figures: %+v", st)
	}
	if _, _, err := server.Client.Jobs().Deregister(limited(t), "svc", nil, nil); err != nil {
		t.Fatal(err)
	}
	summary(t, server, "svc", func(g structs.TaskGroupSummary) bool { return g.Complete == 50 && g.Running == 0 })
	await(t, s, "50 complete", func(st sim.Stats) bool { return st.Complete == 50 && st.Running == 0 })
}

func TestBatchEndsByItself(t *testing.T) {
	server, s := start(t, func(c *sim.Config) { c.Delay, c.RunFor = 5*time.Millisecond, 20*time.Millisecond })
	register(t, server, job("batch", "batch", 30))
	summary(t, server, "batch", func(g structs.TaskGroupSummary) bool { return g.Complete == 30 })
	await(t, s, "30 complete", func(st sim.Stats) bool { return st.Complete == 30 && st.Running == 0 })
	allocs, _, err := server.Client.Jobs().Allocations(limited(t), "batch", true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(allocs) != 30 {
		t.Errorf("%d allocations, want 30: ended ones must not be replaced", len(allocs))
	}
	for _, a := range allocs {
		ts := a.TaskStates["t"]
		if ts == nil || ts.State != structs.TaskStateDead || ts.Failed || ts.FinishedAt.Sub(ts.StartedAt) < 20*time.Millisecond {
			t.Fatalf("task of allocation %s: %+v", a.ID, ts)
		}
	}
}

// TestServerIsKilled kills the server (-9) under its nodes: they come back and go on with what they run.
func TestServerIsKilled(t *testing.T) {
	server, s := start(t, nil)
	register(t, server, job("before", "service", 40))
	await(t, s, "40 running", func(st sim.Stats) bool { return st.Running == 40 })
	server.Kill()
	await(t, s, "no node ready", func(st sim.Stats) bool { return st.Ready == 0 })
	server.Start()
	await(t, s, "all nodes back", func(st sim.Stats) bool { return st.Ready == nodes })
	register(t, server, job("after", "service", 10))
	summary(t, server, "after", func(g structs.TaskGroupSummary) bool { return g.Running == 10 })
	summary(t, server, "before", func(g structs.TaskGroupSummary) bool { return g.Running == 40 && g.Lost+g.Complete+g.Failed == 0 })
	if st := await(t, s, "50 running", func(st sim.Stats) bool { return st.Running == 50 }); st.Known != 50 {
		t.Errorf("figures: %+v", st)
	}
}

// TestSeededNodesComeBack ends a fleet and starts it again: with a seed these are the same nodes, and they take up
// what they were assigned.
func TestSeededNodesComeBack(t *testing.T) {
	seeded := func(c *sim.Config) { c.Seed = "one" }
	server, s := start(t, seeded)
	register(t, server, job("svc", "service", 25))
	summary(t, server, "svc", func(g structs.TaskGroupSummary) bool { return g.Running == 25 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := fleet(t, server, seeded)
	await(t, again, "25 running", func(st sim.Stats) bool { return st.Running == 25 })
	list, _, err := server.Client.Nodes().List(limited(t), nil)
	if err != nil || len(list) != nodes {
		t.Errorf("%d nodes, want %d (%v)", len(list), nodes, err)
	}
	summary(t, server, "svc", func(g structs.TaskGroupSummary) bool { return g.Running == 25 && g.Lost == 0 })
}

func TestWrongConfig(t *testing.T) {
	for _, cfg := range []sim.Config{{Nodes: 0, Servers: []string{"x:1"}}, {Nodes: 1}} {
		if _, err := sim.New(cfg); err == nil {
			t.Errorf("no error for %+v", cfg)
		}
	}
}

func TestCloseWithoutServers(t *testing.T) {
	s, err := sim.New(sim.Config{Nodes: 3, Servers: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(context.Background()); err == nil {
		t.Error("a closed simulation ran")
	}
	<-ran
}
