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

// TestEvictionAgainstAllNodes compares a placement that fits nowhere with every set of allocations on every node.
func TestEvictionAgainstAllNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, p := contest(rapid.IntRange(1, 3).Draw(t, "nodes"), &allTypes)
		for i := range rapid.IntRange(0, 8).Draw(t, "jobs") {
			priority := rapid.SampledFrom([]int{10, 30, 45, 60}).Draw(t, "priority")
			c.Config.PreemptionConfig = structs.PreemptionConfig{}
			run(t, p, fmt.Sprint("j", i), "service", priority, 1, rapid.IntRange(1, 8).Draw(t, "cpu")*500, nil)
		}
		c.Config.PreemptionConfig = allTypes
		cpu := int64(rapid.IntRange(1, 8).Draw(t, "high cpu") * 500)
		free, possible, cheapest := false, false, 1000
		for n := range c.Nodes() {
			var there []*structs.Allocation
			held := int64(0)
			for _, a := range c.AllocsByNode(n.ID) {
				there, held = append(there, a), held+a.AllocatedResources.Comparable().CPU
			}
			free = free || held+cpu <= 4000
			for set := range 1 << len(there) {
				gone, worst := int64(0), 0
				for i, a := range there {
					if set&(1<<i) != 0 {
						gone, worst = gone+a.AllocatedResources.Comparable().CPU, max(worst, *a.Job.Priority)
					}
				}
				if held-gone+cpu <= 4000 && worst <= 40 {
					possible, cheapest = true, min(cheapest, worst)
				}
			}
		}
		run(t, p, "high", "service", 50, 1, int(cpu), nil)
		placed, worst := len(c.AllocsByJob("", "high")) == 1, 0
		for _, a := range c.Allocs() {
			if a.DesiredStatus == structs.AllocDesiredStatusEvict {
				worst = max(worst, *a.Job.Priority)
			}
		}
		if placed != possible || placed && (worst != cheapest || free && worst != 0) {
			t.Fatalf("placed %t of %t, evicted up to %d, %d would do", placed, possible, worst, cheapest)
		}
	})
}
