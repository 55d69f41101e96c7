package scheduler_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/scheduler/rank"
	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

// busyCluster has nodes of ten classes in three racks, each with some allocations of other jobs.
func busyCluster(nodes int) *schedtest.Cluster {
	c := schedtest.New()
	c.Fill("node", nodes, func(i int, n *structs.Node) {
		n.ID = fmt.Sprintf("%08x-0000-0000-0000-%012x", i*2654435761%(1<<32), i)
		n.NodeClass = "class-" + strconv.Itoa(i%10)
		n.Meta["rack"] = "r" + strconv.Itoa(i%3)
		n.NodeResources.Cpu.CpuShares = int64(4000 + 500*(i%7))
	})
	i := 0
	for n := range c.Nodes() {
		for range i % 4 {
			c.PutAlloc(&structs.Allocation{
				ID: c.NewID("other-"), Name: "other.web[0]", JobID: "other", NodeID: n.ID, TaskGroup: "web", DesiredStatus: "run",
				AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"main": {
					Cpu: structs.AllocatedCpuResources{CpuShares: 300}, Memory: structs.AllocatedMemoryResources{MemoryMB: 200},
				}}},
			})
		}
		i++
	}
	return c
}

func benchmarkPlace(b *testing.B, nodes, count int, edit func(*structs.Job)) {
	c := busyCluster(nodes)
	job := schedtest.Job("bench", "service", count)
	if edit != nil {
		edit(job)
	}
	c.PutJob(job)
	p := &schedtest.Planner{Cluster: c, DryRun: true}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		n := 0
		s, err := scheduler.New("service", scheduler.Config{
			State: c, Planner: p, Now: c.Now, NewID: func() string { n++; return "id-" + strconv.Itoa(n) },
		})
		if err != nil {
			b.Fatal(err)
		}
		p.Plans = nil
		eval := &structs.Evaluation{
			ID: "eval-" + strconv.Itoa(i), Namespace: "default", JobID: "bench", Type: "service", Status: structs.EvalStatusPending,
		}
		if err := s.Process(context.Background(), eval); err != nil {
			b.Fatal(err)
		}
		placed := 0
		for _, places := range p.Plans[0].Places {
			placed += len(places)
		}
		if placed != count {
			b.Fatalf("placed %d of %d", placed, count)
		}
	}
}

func BenchmarkPlace1000Nodes300Allocs(b *testing.B) { benchmarkPlace(b, 1000, 300, nil) }

func BenchmarkPlace5000Nodes1200Allocs(b *testing.B) { benchmarkPlace(b, 5000, 1200, nil) }

func BenchmarkPlace1000Nodes300AllocsPortsSpread(b *testing.B) {
	benchmarkPlace(b, 1000, 300, func(j *structs.Job) {
		tg := j.TaskGroups[0]
		tg.Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "http"}, {Label: "admin"}}}}
		tg.Spreads = []*structs.Spread{{Attribute: "${meta.rack}"}}
		tg.Affinities = []*structs.Affinity{{LTarget: "${node.class}", RTarget: "class-3", Operand: "="}}
	})
}

func BenchmarkPlace1000Nodes300AllocsDistinctHosts(b *testing.B) {
	benchmarkPlace(b, 1000, 300, func(j *structs.Job) {
		j.Constraints = []*structs.Constraint{{Operand: "distinct_hosts", RTarget: "true"}}
	})
}

// BenchmarkFits is the check whether one more allocation fits on a node with 100, each with a port.
func BenchmarkFits(b *testing.B) {
	n := schedtest.Node("n")
	n.Canonicalize()
	usage := &structs.NodeUsage{}
	for i := range 100 {
		usage.AddResources(structs.Comparable{CPU: 10, MemoryMB: 10, Ports: []uint16{uint16(20000 + 7*i)}})
	}
	newcomers := []rank.Newcomer{{Resources: structs.Comparable{CPU: 100, MemoryMB: 100}}}
	b.ReportAllocs()
	for range b.N {
		if ok, _ := rank.Fits(n, usage, newcomers); !ok {
			b.Fatal("does not fit")
		}
	}
}

func TestFitsDoesNotAllocate(t *testing.T) {
	n := schedtest.Node("n")
	n.Canonicalize()
	usage := &structs.NodeUsage{CPU: 1000, MemoryMB: 512, Allocs: 3, Ports: []uint16{80, 443, 20000}}
	newcomers := []rank.Newcomer{{Resources: structs.Comparable{CPU: 100, MemoryMB: 100}}}
	if mallocs := testing.AllocsPerRun(100, func() { rank.Fits(n, usage, newcomers) }); mallocs != 0 {
		t.Fatalf("a fit check makes %v mallocs", mallocs)
	}
}
