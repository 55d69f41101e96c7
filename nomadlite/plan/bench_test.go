package plan

import (
	"fmt"
	"testing"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// benchStore is the servers' own state with nodes, each with some allocations of 10 MHz, 10 MB and a port, and a job.
func benchStore(b *testing.B, nodes, allocsOnEach int) *state.Store {
	b.Helper()
	s := state.New(state.Config{})
	index := uint64(1)
	write := func(fn func(*state.Txn) error) {
		index++
		if _, err := s.Write(index, 0, func(tx *state.Txn) (any, error) { return nil, fn(tx) }); err != nil {
			b.Fatal(err)
		}
	}
	write(func(tx *state.Txn) error {
		for i := range nodes {
			err := tx.RegisterNode(&structs.Node{ID: benchNode(i), Name: benchNode(i), SecretID: benchNode(i), Status: structs.NodeStatusReady,
				SchedulingEligibility: structs.NodeEligible, NodeResources: &structs.NodeResources{
					Cpu: structs.NodeCpuResources{CpuShares: 14_000}, Memory: structs.NodeMemoryResources{MemoryMB: 32_000},
					Disk: structs.NodeDiskResources{DiskMB: 100 * 1024}}}, 1)
			if err != nil {
				return err
			}
		}
		return nil
	})
	job := &structs.Job{ID: structs.Ptr("web"), Name: structs.Ptr("web"), Type: structs.Ptr("service"),
		TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"), Count: structs.Ptr(1), Tasks: []*structs.Task{{Name: "t", Driver: "mock"}}}}}
	job.Canonicalize()
	write(func(tx *state.Txn) error {
		_, err := tx.RegisterJob(state.JobRegistration{Job: job, Now: 1})
		return err
	})
	if allocsOnEach > 0 {
		plan := benchPlan(s, "present", nodes, nodes*allocsOnEach, true)
		write(func(tx *state.Txn) error { return tx.ApplyPlan(plan, 1) })
	}
	return s
}

func benchNode(i int) string { return fmt.Sprintf("%08x-node-%d", uint32(i)*2654435761, i) }

// benchPlan puts allocations on nodes in turn.
func benchPlan(s *state.Store, prefix string, nodes, count int, ports bool) *structs.Plan {
	p := &structs.Plan{EvalID: prefix, Namespace: "default", JobID: "web", SnapshotIndex: s.Index(),
		JobModifyIndex: s.Job(nil, "default", "web").JobModifyIndex, Places: map[string][]*structs.Allocation{}}
	for i := range count {
		a := &structs.Allocation{ID: fmt.Sprintf("%08x-%s-%d", uint32(i)*2654435761, prefix, i), Name: "web.g[0]", TaskGroup: "g",
			NodeID: benchNode(i % nodes), EvalID: prefix, AllocatedResources: &structs.AllocatedResources{
				Tasks: map[string]*structs.AllocatedTaskResources{"t": {Cpu: structs.AllocatedCpuResources{CpuShares: 10},
					Memory: structs.AllocatedMemoryResources{MemoryMB: 10}}},
				Shared: structs.AllocatedSharedResources{DiskMB: 10}}}
		if ports {
			a.AllocatedResources.Shared.Ports = []structs.PortMapping{{Label: "http", Value: 20_000 + i/nodes}}
		}
		p.Places[a.NodeID] = append(p.Places[a.NodeID], a)
	}
	return p
}

// BenchmarkVerify decides about a plan of 1,000 placements on 1,000 nodes, as the applier does.
func BenchmarkVerify(b *testing.B) {
	for _, present := range []int{0, 100} {
		b.Run(fmt.Sprintf("placements=1000/presentOnEach=%d", present), func(b *testing.B) {
			s := benchStore(b, 1000, present)
			plan := benchPlan(s, "new", 1000, 1000, false)
			view := s.Snapshot().Scheduler()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if v := Verify(view, &Overlay{}, plan); !v.Full() {
					b.Fatalf("%s %v", v.Stale, v.Rejected)
				}
			}
		})
	}
}

// BenchmarkVerifyPorts is the same for allocations that each hold a port.
func BenchmarkVerifyPorts(b *testing.B) {
	s := benchStore(b, 1000, 10)
	plan := benchPlan(s, "new", 1000, 1000, true)
	for _, list := range plan.Places {
		list[0].AllocatedResources.Shared.Ports[0].Value = 25_000
	}
	view := s.Snapshot().Scheduler()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if v := Verify(view, &Overlay{}, plan); !v.Full() {
			b.Fatalf("%s %v", v.Stale, v.Rejected)
		}
	}
}
