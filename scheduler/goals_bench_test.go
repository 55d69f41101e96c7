package scheduler_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

const racks = 50

// evenCluster is a state, the servers' own, with nodes of 14,000 MHz, 32,000 MB and 100 GiB of disk in two datacenters
// and 50 racks, and some allocations of 10 MHz and 10 MB on each of them.
func evenCluster(b *testing.B, nodes, allocsOnEach int) *state.Store {
	b.Helper()
	s := state.New(state.Config{})
	write := writer(b, s)
	write(func(tx *state.Txn) error {
		for i := range nodes {
			if err := tx.RegisterNode(evenNode(i), 1); err != nil {
				return err
			}
		}
		return nil
	})
	if allocsOnEach == 0 {
		return s
	}
	job := spreadJob("present", nodes*allocsOnEach, 10, 10, false)
	write(registers(job))
	row := s.Job(nil, "default", "present")
	const nodesAtOnce = 100
	for from := 0; from < nodes; from += nodesAtOnce {
		plan := &structs.Plan{EvalID: "fill", Namespace: "default", JobID: "present", JobModifyIndex: row.JobModifyIndex,
			Places: map[string][]*structs.Allocation{}}
		for i := from; i < min(from+nodesAtOnce, nodes); i++ {
			node := evenNode(i)
			for k := range allocsOnEach {
				n := i*allocsOnEach + k
				plan.Places[node.ID] = append(plan.Places[node.ID], &structs.Allocation{
					ID: fmt.Sprintf("%08x-0000-0000-0000-%012x", uint32(n)*2654435761, n), Name: "present.web[" + strconv.Itoa(n) + "]",
					TaskGroup: "web", NodeID: node.ID, NodeName: node.Name, EvalID: "fill", Metrics: &structs.AllocationMetric{},
					AllocatedResources: &structs.AllocatedResources{
						Tasks: map[string]*structs.AllocatedTaskResources{"main": {Cpu: structs.AllocatedCpuResources{CpuShares: 10},
							Memory: structs.AllocatedMemoryResources{MemoryMB: 10}}},
						Shared: structs.AllocatedSharedResources{DiskMB: 10}},
				})
			}
		}
		write(func(tx *state.Txn) error { return tx.ApplyPlan(plan, 1) })
	}
	return s
}

// writer gives a function that commits one entry after the other.
func writer(b *testing.B, s *state.Store) func(func(*state.Txn) error) {
	index := s.Index() + 1
	return func(fn func(*state.Txn) error) {
		b.Helper()
		index++
		if _, err := s.Write(index, 0, func(tx *state.Txn) (any, error) { return nil, fn(tx) }); err != nil {
			b.Fatal(err)
		}
	}
}

func registers(job *structs.Job) func(*state.Txn) error {
	return func(tx *state.Txn) error {
		_, err := tx.RegisterJob(state.JobRegistration{Job: job, Now: 1})
		return err
	}
}

func evenNode(i int) *structs.Node {
	id := fmt.Sprintf("%08x-0000-0000-0000-%012x", uint32(i)*2654435761, i)
	return &structs.Node{
		ID: id, Name: "node-" + strconv.Itoa(i), SecretID: "secret-" + id, Datacenter: "dc-" + strconv.Itoa(1+i%2),
		NodePool: structs.NodePoolDefault, Status: structs.NodeStatusReady, SchedulingEligibility: structs.NodeEligible,
		Attributes: map[string]string{
			"kernel.name": "linux", "cpu.arch": "amd64", "driver.mock_driver": "1", "unique.hostname": "node-" + strconv.Itoa(i),
		},
		Meta:    map[string]string{"rack": "r" + strconv.Itoa(i%racks)},
		Drivers: map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
		NodeResources: &structs.NodeResources{
			Cpu:      structs.NodeCpuResources{CpuShares: 14_000, TotalCpuCores: 4, ReservableCpuCores: []uint16{0, 1, 2, 3}},
			Memory:   structs.NodeMemoryResources{MemoryMB: 32_000},
			Disk:     structs.NodeDiskResources{DiskMB: 100 * 1024},
			Networks: []*structs.NetworkResource{{Mode: "host", Device: "eth0", IP: "192.168.0.100"}},
		},
	}
}

// spreadJob runs in both datacenters on the first half of the racks, with or without a spread over them.
func spreadJob(id string, count, mhz, mb int, spread bool) *structs.Job {
	first := make([]string, racks/2)
	for i := range first {
		first[i] = "r" + strconv.Itoa(i)
	}
	job := &structs.Job{
		ID: &id, Name: &id, Type: structs.Ptr("service"), Datacenters: []string{"dc-1", "dc-2"},
		Constraints: []*structs.Constraint{{LTarget: "${meta.rack}", Operand: "set_contains_any", RTarget: strings.Join(first, ",")}},
		TaskGroups: []*structs.TaskGroup{{
			Name: structs.Ptr("web"), Count: &count, EphemeralDisk: &structs.EphemeralDisk{SizeMB: structs.Ptr(10)},
			Tasks: []*structs.Task{{Name: "main", Driver: "mock_driver", Config: map[string]any{"run_for": "10s"},
				Resources: &structs.Resources{CPU: &mhz, MemoryMB: &mb}}},
		}},
	}
	if spread {
		job.Spreads = []*structs.Spread{{Attribute: "${meta.rack}", Weight: structs.Ptr(int8(100))}}
	}
	job.Canonicalize()
	return job
}

// discards takes plans and keeps none of them.
type discards struct{ plan *structs.Plan }

func (d *discards) SubmitPlan(_ context.Context, p *structs.Plan) (*structs.PlanResult, scheduler.State, error) {
	d.plan = p
	return &structs.PlanResult{Stops: p.Stops, Places: p.Places, Preemptions: p.Preemptions, Deployment: p.Deployment}, nil, nil
}

func (d *discards) UpdateEval(context.Context, *structs.Evaluation) error  { return nil }
func (d *discards) CreateEval(context.Context, *structs.Evaluation) error  { return nil }
func (d *discards) ReblockEval(context.Context, *structs.Evaluation) error { return nil }

// benchmarkEvaluation is one whole evaluation of a new job over the servers' own state, as a worker does it. The plan is
// made and not committed.
func benchmarkEvaluation(b *testing.B, s *state.Store, job *structs.Job) {
	writer(b, s)(registers(job))
	count, planner := structs.Val(job.TaskGroups[0].Count), &discards{}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		n := 0
		sched, err := scheduler.New("service", scheduler.Config{
			State: s.Snapshot().Scheduler(), Planner: planner, Now: time.Unix(1, 0), Clock: time.Now,
			NewID: func() string { n++; return "id-" + strconv.Itoa(n) },
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := sched.Process(context.Background(), &structs.Evaluation{
			ID: "eval-" + strconv.Itoa(i), Namespace: "default", JobID: *job.ID, Type: "service", Status: structs.EvalStatusPending,
		}); err != nil {
			b.Fatal(err)
		}
		placed := 0
		for _, places := range planner.plan.Places {
			placed += len(places)
		}
		if placed != count {
			b.Fatalf("placed %d of %d", placed, count)
		}
	}
}

// BenchmarkEvaluation has the rows of the table in docs/benchmarks.md.
func BenchmarkEvaluation(b *testing.B) {
	for _, row := range []struct {
		nodes, present, count, mhz, mb int
		spread                         bool
	}{
		{1000, 0, 300, 6000, 6000, false},
		{5000, 0, 1200, 6000, 6000, false},
		{10_000, 0, 1200, 6000, 6000, false},
		{1000, 0, 300, 6000, 6000, true},
		{5000, 0, 300, 6000, 6000, true},
		{1000, 0, 950, 6000, 6000, true},
		{5000, 0, 20_000, 100, 100, false},
		{5000, 0, 20_000, 100, 100, true},
		{10_000, 100, 100, 100, 100, false},
	} {
		name := fmt.Sprintf("nodes=%d/present=%d/count=%d/spread=%v", row.nodes, row.nodes*row.present, row.count, row.spread)
		var s *state.Store
		b.Run(name, func(b *testing.B) {
			if s == nil { // once for all rounds
				s = evenCluster(b, row.nodes, row.present)
			}
			benchmarkEvaluation(b, s, spreadJob("bench", row.count, row.mhz, row.mb, row.spread))
		})
	}
}
