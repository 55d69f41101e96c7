package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

// allTypes lets each type of job evict others.
var allTypes = structs.PreemptionConfig{SystemSchedulerEnabled: true, SysBatchSchedulerEnabled: true,
	BatchSchedulerEnabled: true, ServiceSchedulerEnabled: true}

func contest(nodes int, cfg *structs.PreemptionConfig) (*schedtest.Cluster, *schedtest.Planner) {
	c := schedtest.New()
	if cfg != nil {
		c.Config = &structs.SchedulerConfiguration{PreemptionConfig: *cfg}
	}
	c.Fill("n", nodes, nil)
	return c, &schedtest.Planner{Cluster: c}
}

// run registers a job and evaluates it.
func run(t interface{ Fatal(...any) }, p *schedtest.Planner, id, kind string, priority, count, cpu int, edit func(*structs.Job)) *structs.Evaluation {
	j := schedtest.Job(id, kind, count)
	j.Priority, j.TaskGroups[0].Tasks[0].Resources.CPU = structs.Ptr(priority), structs.Ptr(cpu)
	if edit != nil {
		edit(j)
	}
	p.Cluster.PutJob(j)
	e, err := p.Evaluate(id, kind, structs.EvalTriggerJobRegister, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func evicted(c *schedtest.Cluster) []string {
	var out []string
	for _, a := range c.Allocs() {
		if a.DesiredStatus == structs.AllocDesiredStatusEvict {
			out = append(out, a.JobID)
		}
	}
	return out
}

func TestEachTypeEvictsWhenItMay(t *testing.T) {
	for _, kind := range []string{"service", "batch", "system", "sysbatch"} {
		for _, may := range []string{"yes", "no", "by default"} {
			cfg := &allTypes
			switch may {
			case "no":
				cfg = &structs.PreemptionConfig{}
			case "by default":
				cfg = nil
			}
			c, p := contest(1, cfg)
			run(t, p, "low", "service", 20, 1, 3000, nil)
			e := run(t, p, "high", kind, 70, 1, 2000, nil)
			want := may == "yes" || may == "by default" && kind == "system"
			allocs := c.AllocsByJob("", "high")
			if (len(allocs) == 1) != want || (len(evicted(c)) == 1) != want || (len(e.FailedTGAllocs) == 0) != want {
				t.Errorf("%s, %s: %d placed, evicted %v, failed %v", kind, may, len(allocs), evicted(c), e.FailedTGAllocs)
			}
			if !want {
				continue
			}
			low := c.AllocsByJob("", "low")[0]
			if allocs[0].PreemptedAllocations[0] != low.ID || !allocs[0].AwaitsAlloc(low.ID) || low.PreemptedByAllocation != allocs[0].ID ||
				low.DesiredDescription != "Preempted by alloc ID "+allocs[0].ID {
				t.Errorf("%s: %+v, waits for %+v; %q", kind, allocs[0].PreemptedAllocations, allocs[0].Awaits, low.DesiredDescription)
			}
		}
	}
}

func TestEvictionIsTheLastResortAndCostsLeast(t *testing.T) {
	c, p := contest(3, &allTypes)
	run(t, p, "low", "service", 20, 1, 3500, nil)
	run(t, p, "lower", "service", 10, 1, 3500, nil)
	run(t, p, "high", "service", 70, 1, 3000, nil) // the third node is free
	if got := evicted(c); len(got) != 0 {
		t.Fatalf("evicted %v though a node was free", got)
	}
	e := run(t, p, "higher", "service", 75, 1, 3000, nil) // not worth more than high by far
	if got := evicted(c); !slices.Equal(got, []string{"lower"}) {
		t.Fatalf("evicted %v (%+v)", got, e.FailedTGAllocs)
	}
	if e := run(t, p, "same", "service", 29, 1, 3000, nil); len(e.FailedTGAllocs) == 0 || len(evicted(c)) != 1 {
		t.Errorf("a priority less than 10 higher evicts: %v", evicted(c))
	}
}

// A job whose priority is raised does not evict its own.
func TestNobodyEvictsItsOwn(t *testing.T) {
	c, p := contest(1, &allTypes)
	rolling := func(j *structs.Job) { j.TaskGroups[0].Update = &structs.UpdateStrategy{MaxParallel: structs.Ptr(1)} }
	run(t, p, "web", "service", 20, 2, 2000, rolling)
	e := run(t, p, "web", "service", 80, 3, 2000, rolling)
	if got := evicted(c); len(got) != 0 || e.BlockedEval == "" {
		t.Errorf("evicted %v, %+v", got, e)
	}
}

// Many small ones share the room that one eviction makes, and all wait for its end.
func TestEvictionIsShared(t *testing.T) {
	c, p := contest(2, &allTypes)
	run(t, p, "low", "service", 20, 2, 4000, nil)
	run(t, p, "high", "service", 70, 6, 1000, nil)
	high := c.AllocsByJob("", "high")
	if len(evicted(c)) != 2 || len(high) != 6 {
		t.Fatalf("%d placed, evicted %v", len(high), evicted(c))
	}
	for _, a := range high {
		if len(a.PreemptedAllocations) != 1 || c.Allocs()[slices.IndexFunc(c.Allocs(), func(v *structs.Allocation) bool {
			return v.ID == a.PreemptedAllocations[0]
		})].NodeID != a.NodeID {
			t.Errorf("%s on %s waits for %v", a.ID, a.NodeID, a.PreemptedAllocations)
		}
	}
}

// Two wait for the end of the same evicted ones. To evict them makes no room before those have ended, and no applier
// would commit it: whoever comes next waits for that, and then evicts no more than it needs.
func TestNobodyIsEvictedWhoSharesWhatHasNotEnded(t *testing.T) {
	c, p := contest(1, &allTypes)
	run(t, p, "low", "service", 20, 3, 1200, nil)
	run(t, p, "mid", "service", 50, 2, 1200, nil)
	e := run(t, p, "high", "service", 80, 2, 1200, nil)
	if got := evicted(c); !slices.Equal(got, []string{"low", "low"}) || e.BlockedEval == "" {
		t.Fatalf("evicted %v, %+v", got, e)
	}
	for _, a := range c.AllocsByJob("", "low") {
		if a.DesiredStatus == structs.AllocDesiredStatusEvict {
			c.EditAlloc(a.ID, func(a *structs.Allocation) { a.ObservedStatus = structs.AllocClientStatusComplete })
		}
	}
	if _, err := p.Evaluate("high", "service", structs.EvalTriggerQueuedAllocs, nil); err != nil {
		t.Fatal(err)
	}
	got := evicted(c)
	slices.Sort(got)
	if placed := len(c.AllocsByJob("", "high")); placed != 2 || !slices.Equal(got, []string{"low", "low", "low", "mid"}) {
		t.Errorf("%d placed once they had ended, evicted %v", placed, got)
	}
}

func TestEvictionForAPort(t *testing.T) {
	port := func(j *structs.Job) {
		j.TaskGroups[0].Networks = []*structs.NetworkResource{{Mode: "host", ReservedPorts: []structs.Port{{Label: "http", Value: 80}}}}
	}
	c, p := contest(1, &allTypes)
	run(t, p, "bystander", "service", 10, 1, 100, nil)
	run(t, p, "low", "service", 20, 1, 100, port)
	run(t, p, "high", "service", 70, 1, 100, port)
	if got := evicted(c); !slices.Equal(got, []string{"low"}) {
		t.Errorf("evicted %v", got)
	}
}

// A system job that grows takes over from its predecessor and evicts on top.
func TestEvictionForAnUpdate(t *testing.T) {
	c, p := contest(1, &allTypes)
	run(t, p, "high", "system", 70, 1, 1000, nil)
	run(t, p, "low", "service", 20, 1, 2500, nil)
	run(t, p, "high", "system", 70, 1, 3000, nil)
	allocs := c.AllocsByJob("", "high")
	if len(allocs) != 2 || !slices.Equal(evicted(c), []string{"low"}) || allocs[1].PreviousAllocation != allocs[0].ID {
		t.Fatalf("%d placed, evicted %v", len(allocs), evicted(c))
	}
}

// What was evicted comes back elsewhere, or waits; it does not take over the room that its end makes.
func TestTheEvictedComeBack(t *testing.T) {
	c, p := contest(1, &allTypes)
	run(t, p, "low", "service", 20, 1, 3000, nil)
	run(t, p, "high", "service", 70, 1, 3000, nil)
	e, err := p.Evaluate("low", "service", structs.EvalTriggerPreemption, nil)
	if err != nil || e.BlockedEval == "" || len(c.AllocsByJob("", "low")) != 1 {
		t.Fatalf("%v %+v", err, e)
	}
	c.Fill("m", 1, nil)
	if _, err := p.Process(c.Eval(e.BlockedEval)); err != nil {
		t.Fatal(err)
	}
	if got := c.AllocsByJob("", "low"); len(got) != 2 || !strings.HasPrefix(got[1].NodeID, "m") {
		t.Errorf("%d allocations", len(got))
	}
}

func TestPlanTellsEvictions(t *testing.T) {
	c, p := contest(1, &allTypes)
	run(t, p, "low", "service", 20, 1, 3000, nil)
	c.PutJob(func() *structs.Job { j := schedtest.Job("high", "service", 8); j.Priority = structs.Ptr(70); return j }())
	p.DryRun = true
	e, err := p.Evaluate("high", "service", structs.EvalTriggerJobRegister, func(e *structs.Evaluation) { e.AnnotatePlan = true })
	if err != nil {
		t.Fatal(err)
	}
	a := e.PlanAnnotations
	if len(a.PreemptedAllocs) != 1 || a.PreemptedAllocs[0].JobID != "low" || a.DesiredTGUpdates["web"].Preemptions != 1 {
		t.Errorf("%+v %+v", a.PreemptedAllocs, a.DesiredTGUpdates["web"])
	}
}

// asks draws what an allocation of a job takes: cpu, memory and a port.
func asks(t *rapid.T) func(*structs.Job) {
	cpu, memory := rapid.IntRange(1, 8).Draw(t, "cpu")*500, rapid.IntRange(1, 8).Draw(t, "memory")*1024
	port := rapid.SampledFrom([]int{0, 0, 80, 81}).Draw(t, "port")
	return func(j *structs.Job) {
		r := j.TaskGroups[0].Tasks[0].Resources
		r.CPU, r.MemoryMB = &cpu, &memory
		if port > 0 {
			j.TaskGroups[0].Networks = []*structs.NetworkResource{{Mode: "host", ReservedPorts: []structs.Port{{Label: "p", Value: port}}}}
		}
	}
}

// fitsWithout says whether an allocation fits on a node of 4000 MHz and 8192 MiB beside those that are not in the set.
func fitsWithout(there []*structs.Allocation, set int, wants *structs.TaskGroup) (fits bool, worst int) {
	cpu, memory, ports := int64(*wants.Tasks[0].Resources.CPU), int64(*wants.Tasks[0].Resources.MemoryMB), map[int]bool{}
	for _, n := range wants.Networks {
		ports[n.ReservedPorts[0].Value] = true
	}
	for i, a := range there {
		if set&(1<<i) != 0 {
			worst = max(worst, *a.Job.Priority)
			continue
		}
		for _, task := range a.AllocatedResources.Tasks {
			cpu, memory = cpu+task.Cpu.CpuShares, memory+task.Memory.MemoryMB
		}
		for _, p := range a.AllocatedResources.Shared.Ports {
			if ports[p.Value] {
				return false, worst
			}
		}
	}
	return cpu <= 4000 && memory <= 8192, worst
}

// TestEvictionAgainstAllNodes compares a placement with every set of allocations on every node.
func TestEvictionAgainstAllNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, p := contest(rapid.IntRange(1, 3).Draw(t, "nodes"), &structs.PreemptionConfig{})
		for i := range rapid.IntRange(0, 8).Draw(t, "jobs") {
			run(t, p, fmt.Sprint("j", i), "service", rapid.SampledFrom([]int{10, 30, 45, 60}).Draw(t, "priority"), 1, 0, asks(t))
		}
		c.Config.PreemptionConfig = allTypes
		high := schedtest.Job("high", "service", 1)
		asks(t)(high)
		possible, cheapest := false, 1000
		for n := range c.Nodes() {
			there := c.AllocsByNode(n.ID)
			for set := range 1 << len(there) {
				if fits, worst := fitsWithout(there, set, high.TaskGroups[0]); fits && worst <= 40 {
					possible, cheapest = true, min(cheapest, worst)
				}
			}
		}
		c.PutJob(high) // priority 50
		if _, err := p.Evaluate("high", "service", structs.EvalTriggerJobRegister, nil); err != nil {
			t.Fatal(err)
		}
		placed, worst := len(c.AllocsByJob("", "high")) == 1, 0
		for _, a := range c.Allocs() {
			if a.DesiredStatus == structs.AllocDesiredStatusEvict {
				worst = max(worst, *a.Job.Priority)
			}
		}
		if placed != possible || placed && worst != cheapest {
			t.Fatalf("placed %t of %t, evicted up to %d, %d would do", placed, possible, worst, cheapest)
		}
	})
}

// BenchmarkEvict1000Nodes300Allocs lets 300 allocations take the room of others on 1,000 nodes that are full.
func BenchmarkEvict1000Nodes300Allocs(b *testing.B) {
	c, p := contest(1000, &allTypes)
	run(b, p, "low", "batch", 20, 8000, 500, nil)
	j := schedtest.Job("high", "service", 300)
	j.Priority, j.TaskGroups[0].Tasks[0].Resources.CPU = structs.Ptr(70), structs.Ptr(1000)
	c.PutJob(j)
	p.DryRun = true
	b.ReportAllocs()
	for b.Loop() {
		e, err := p.Evaluate("high", "service", structs.EvalTriggerJobRegister, nil)
		if err != nil || len(e.FailedTGAllocs) > 0 {
			b.Fatal(err, e)
		}
	}
}
