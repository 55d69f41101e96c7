package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/structs"
)

// cluster is a State made by hand.
type cluster struct {
	index  uint64
	jobs   map[string]*structs.Job
	nodes  map[string]*structs.Node
	allocs map[string]*structs.Allocation
}

func (c *cluster) Index() uint64                       { return c.index }
func (c *cluster) Job(_, id string) *structs.Job       { return c.jobs[id] }
func (c *cluster) Node(id string) *structs.Node        { return c.nodes[id] }
func (c *cluster) Alloc(id string) *structs.Allocation { return c.allocs[id] }
func (c *cluster) AllocsByNode(id string) (out []*structs.Allocation) {
	for _, a := range c.allocs {
		if a.NodeID == id {
			out = append(out, a)
		}
	}
	return out
}

func (c *cluster) NodeUsage(id string) *structs.NodeUsage {
	usage := &structs.NodeUsage{}
	for _, a := range c.AllocsByNode(id) {
		if a.HoldsResources() {
			usage.Add(a)
		}
	}
	return usage
}

func newCluster(nodes ...string) *cluster {
	c := &cluster{index: 100, jobs: map[string]*structs.Job{"web": {JobModifyIndex: 10}},
		nodes: map[string]*structs.Node{}, allocs: map[string]*structs.Allocation{}}
	for _, id := range nodes {
		n := &structs.Node{ID: id, Status: structs.NodeStatusReady, SchedulingEligibility: structs.NodeEligible,
			NodeResources: &structs.NodeResources{Cpu: structs.NodeCpuResources{CpuShares: 1000},
				Memory: structs.NodeMemoryResources{MemoryMB: 1000}, Disk: structs.NodeDiskResources{DiskMB: 1000}},
			ReservedResources: &structs.NodeReservedResources{
				Networks: structs.NodeReservedNetworkResources{ReservedHostPorts: "22"}}}
		c.nodes[id] = n
	}
	return c
}

// alloc makes an allocation of 100 MHz times size with ports.
func alloc(id, node string, size int, ports ...int) *structs.Allocation {
	a := &structs.Allocation{ID: id, NodeID: node, JobID: "web", Namespace: "default",
		DesiredStatus: structs.AllocDesiredStatusRun, ClientStatus: structs.AllocClientStatusPending,
		AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {
			Cpu:    structs.AllocatedCpuResources{CpuShares: int64(size) * 100},
			Memory: structs.AllocatedMemoryResources{MemoryMB: 10}}}}}
	for _, p := range ports {
		a.AllocatedResources.Shared.Ports = append(a.AllocatedResources.Shared.Ports, structs.PortMapping{Value: p})
	}
	return a
}

func planOf(allocs ...*structs.Allocation) *structs.Plan {
	p := &structs.Plan{Namespace: "default", JobID: "web", JobModifyIndex: 10, SnapshotIndex: 100,
		Places: map[string][]*structs.Allocation{}, Stops: map[string][]*structs.AllocStop{}}
	for _, a := range allocs {
		p.Places[a.NodeID] = append(p.Places[a.NodeID], a)
	}
	return p
}

func stop(p *structs.Plan, a *structs.Allocation) *structs.Plan {
	p.Stops[a.NodeID] = append(p.Stops[a.NodeID], &structs.AllocStop{ID: a.ID, DesiredStatus: structs.AllocDesiredStatusStop})
	return p
}

func replacing(a *structs.Allocation, old string) *structs.Allocation {
	a.PreviousAllocation = old
	return a
}

func TestVerify(t *testing.T) {
	old := alloc("old", "n1", 6, 8080)
	for _, tc := range []struct {
		name     string
		change   func(c *cluster)
		flight   []*structs.Plan
		plan     *structs.Plan
		rejected []string
		stale    bool
		kept     int // allocations placed
		stops    int
	}{
		{name: "fits", plan: planOf(alloc("a", "n1", 5), alloc("b", "n2", 10)), kept: 2},
		{name: "one node too small: the other is kept", plan: planOf(alloc("a", "n1", 11), alloc("b", "n2", 10)),
			rejected: []string{"n1"}, kept: 1},
		{name: "all at once: nothing is kept", kept: 0, rejected: []string{"n1"},
			plan: func() *structs.Plan {
				p := stop(planOf(alloc("a", "n1", 11), alloc("b", "n2", 10)), alloc("x", "n2", 1))
				p.AllAtOnce = true
				return p
			}()},
		{name: "node gone", plan: planOf(alloc("a", "n9", 1)), rejected: []string{"n9"}},
		{name: "node draining", change: func(c *cluster) { c.nodes["n1"].DrainStrategy = &structs.DrainStrategy{} },
			plan: planOf(alloc("a", "n1", 1)), rejected: []string{"n1"}},
		{name: "node ineligible", change: func(c *cluster) { c.nodes["n1"].SchedulingEligibility = structs.NodeIneligible },
			plan: planOf(alloc("a", "n1", 1)), rejected: []string{"n1"}},
		{name: "update in place on an ineligible node", plan: planOf(alloc("old", "n1", 7)), kept: 1,
			change: func(c *cluster) {
				c.allocs["old"] = old
				c.nodes["n1"].SchedulingEligibility = structs.NodeIneligible
			}},
		{name: "update in place on a node that is down", plan: planOf(alloc("old", "n1", 7)), rejected: []string{"n1"},
			change: func(c *cluster) { c.allocs["old"] = old; c.nodes["n1"].Status = structs.NodeStatusDown }},
		{name: "port reserved for the host", plan: planOf(alloc("a", "n1", 1, 22)), rejected: []string{"n1"}},
		{name: "port taken", change: func(c *cluster) { c.allocs["old"] = old }, plan: planOf(alloc("a", "n1", 1, 8080)),
			rejected: []string{"n1"}},
		{name: "port twice in one plan", plan: planOf(alloc("a", "n1", 1, 80), alloc("b", "n1", 1, 80)), rejected: []string{"n1"}},
		{name: "port of one that was lost", plan: planOf(alloc("a", "n1", 1, 8080)), kept: 1, change: func(c *cluster) {
			lost := *old
			lost.ClientStatus = structs.AllocClientStatusLost
			c.allocs["old"] = &lost
		}},
		{name: "what stops still holds its resources", change: func(c *cluster) { c.allocs["old"] = old },
			plan: stop(planOf(alloc("a", "n1", 5)), old), rejected: []string{"n1"}, stops: 1},
		{name: "except toward its replacement", change: func(c *cluster) { c.allocs["old"] = old },
			plan: stop(planOf(replacing(alloc("a", "n1", 9, 8080), "old")), old), kept: 1, stops: 1},
		{name: "the larger of both counts", change: func(c *cluster) { c.allocs["old"] = old },
			plan:     stop(planOf(replacing(alloc("a", "n1", 1, 8080), "old"), alloc("b", "n1", 5)), old),
			rejected: []string{"n1"}},
		{name: "two do not replace one", change: func(c *cluster) { c.allocs["old"] = old },
			plan:     stop(planOf(replacing(alloc("a", "n1", 1), "old"), replacing(alloc("b", "n1", 1), "old")), old),
			rejected: []string{"n1"}},
		{name: "previous allocation that does not stop is no room", change: func(c *cluster) { c.allocs["old"] = old },
			plan: planOf(replacing(alloc("a", "n1", 5), "old")), rejected: []string{"n1"}},
		{name: "no stop without its replacement", change: func(c *cluster) { c.allocs["old"] = old },
			plan: stop(planOf(replacing(alloc("a", "n2", 11), "old")), old), rejected: []string{"n2"}},
		{name: "preempted ones make room", change: func(c *cluster) { c.allocs["old"] = old }, kept: 1, plan: func() *structs.Plan {
			a := alloc("a", "n1", 9)
			a.PreemptedAllocations = []string{"old"}
			p := planOf(a)
			p.Preemptions = map[string][]*structs.AllocStop{"n1": {{ID: "old", DesiredStatus: structs.AllocDesiredStatusEvict}}}
			return p
		}()},
		{name: "plans in flight count", flight: []*structs.Plan{planOf(alloc("f", "n1", 6, 80))},
			plan: planOf(alloc("a", "n1", 5), alloc("b", "n2", 1)), rejected: []string{"n1"}, kept: 1},
		{name: "a plan in flight that has landed counts once", flight: []*structs.Plan{planOf(old)},
			change: func(c *cluster) { c.allocs["old"] = old }, plan: planOf(alloc("a", "n1", 4)), kept: 1},
		{name: "job gone", change: func(c *cluster) { delete(c.jobs, "web") }, plan: planOf(alloc("a", "n1", 1)), stale: true},
		{name: "job stopped", change: func(c *cluster) { c.jobs["web"].Stop = true }, plan: planOf(alloc("a", "n1", 1)), stale: true},
		{name: "job changed since", change: func(c *cluster) { c.jobs["web"].JobModifyIndex = 101 },
			plan: planOf(alloc("a", "n1", 1)), stale: true},
		{name: "stops need no job", change: func(c *cluster) { delete(c.jobs, "web") }, plan: stop(planOf(), old), stops: 1},
		{name: "too many allocations", change: func(c *cluster) { c.nodes["n1"].NodeMaxAllocs = 1 },
			plan: planOf(alloc("a", "n1", 1), alloc("b", "n1", 1)), rejected: []string{"n1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster("n1", "n2")
			if tc.change != nil {
				tc.change(c)
			}
			v := Verify(c, &Overlay{plans: tc.flight}, tc.plan)
			var rejected []string
			for id := range v.Rejected {
				rejected = append(rejected, id)
			}
			slices.Sort(rejected)
			kept, stops := 0, 0
			for _, list := range v.Plan.Places {
				kept += len(list)
			}
			for _, list := range v.Plan.Stops {
				stops += len(list)
			}
			if !slices.Equal(rejected, tc.rejected) || kept != tc.kept || stops != tc.stops || (v.Stale != "") != tc.stale {
				t.Fatalf("rejected %v kept %d stops %d stale %q", v.Rejected, kept, stops, v.Stale)
			}
		})
	}
}

// TestVerifyNeverOvercommits submits plans at random, some in flight, some landed, and checks after each landing that
// no node holds more than it has and no port is held twice.
func TestVerifyNeverOvercommits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster("n1", "n2")
		var flight []*structs.Plan
		made, waits := 0, map[string][]string{}
		rt.Repeat(map[string]func(*rapid.T){
			"plan": func(rt *rapid.T) {
				var allocs []*structs.Allocation
				for range rapid.IntRange(1, 4).Draw(rt, "allocs") {
					made++
					node := rapid.SampledFrom([]string{"n1", "n2"}).Draw(rt, "node")
					var ports []int
					if rapid.Bool().Draw(rt, "has a port") {
						ports = []int{rapid.IntRange(79, 84).Draw(rt, "port")}
					}
					allocs = append(allocs, alloc(fmt.Sprint("a", made), node, rapid.IntRange(1, 6).Draw(rt, "size"), ports...))
				}
				v := Verify(c, &Overlay{plans: flight}, planOf(allocs...))
				flight = append(flight, v.Plan)
			},
			"evict": func(rt *rapid.T) {
				var victims []string
				for _, id := range slices.Sorted(maps.Keys(c.allocs)) {
					if a := c.allocs[id]; a.NodeID == "n1" && !a.ServerTerminal() && a.HoldsResources() && rapid.Bool().Draw(rt, "victim") {
						victims = append(victims, id)
					}
				}
				if len(victims) == 0 {
					return
				}
				var allocs []*structs.Allocation
				for range rapid.IntRange(1, 3).Draw(rt, "heirs") {
					made++
					allocs = append(allocs, alloc(fmt.Sprint("a", made), "n1", rapid.IntRange(1, 6).Draw(rt, "size"),
						rapid.IntRange(79, 84).Draw(rt, "port")))
				}
				v := Verify(c, &Overlay{plans: flight}, evicting(victims, allocs...))
				flight = append(flight, v.Plan)
			},
			"land": func(rt *rapid.T) {
				if len(flight) == 0 {
					return
				}
				for _, list := range flight[0].Places {
					for _, a := range list {
						c.allocs[a.ID] = a
						// It waits for what those wait for too: one that is evicted before it began ends before those.
						for _, v := range a.PreemptedAllocations {
							waits[a.ID] = append(append(waits[a.ID], v), waits[v]...)
						}
					}
				}
				for _, stop := range flight[0].Preemptions["n1"] {
					a := *c.allocs[stop.ID]
					a.DesiredStatus = structs.AllocDesiredStatusEvict
					c.allocs[stop.ID] = &a
				}
				flight = flight[1:]
			},
			"end": func(rt *rapid.T) {
				for _, id := range slices.Sorted(maps.Keys(c.allocs)) {
					a := c.allocs[id]
					if rapid.Bool().Draw(rt, "ends") {
						done := *a
						done.ClientStatus = structs.AllocClientStatusComplete
						c.allocs[id] = &done
					}
				}
			},
			"": func(rt *rapid.T) {
				cpu, ports := map[string]int64{}, map[string]string{}
				for _, a := range c.allocs {
					if !a.HoldsResources() || slices.ContainsFunc(waits[a.ID], func(v string) bool {
						return c.allocs[v].HoldsResources()
					}) {
						continue
					}
					r := a.AllocatedResources.Comparable()
					cpu[a.NodeID] += r.CPU
					for _, p := range r.Ports {
						key := fmt.Sprint(a.NodeID, ":", p)
						if other := ports[key]; other != "" {
							rt.Fatalf("port %s held by %s and %s", key, other, a.ID)
						}
						ports[key] = a.ID
					}
				}
				for node, sum := range cpu {
					if sum > 1000 {
						rt.Fatalf("%s holds %d MHz", node, sum)
					}
				}
			},
		})
	})
}

// evicting makes a plan whose allocations wait for the end of evicted ones.
func evicting(victims []string, allocs ...*structs.Allocation) *structs.Plan {
	p := planOf(allocs...)
	p.Preemptions = map[string][]*structs.AllocStop{}
	for _, a := range allocs {
		a.PreemptedAllocations = victims
	}
	for _, v := range victims {
		p.Preemptions["n1"] = append(p.Preemptions["n1"], &structs.AllocStop{ID: v, DesiredStatus: structs.AllocDesiredStatusEvict})
	}
	return p
}

func TestVerifyEvictions(t *testing.T) {
	for name, c := range map[string]struct {
		plan *structs.Plan
		want string
	}{
		"one for one":               {evicting([]string{"v"}, alloc("a", "n1", 7, 80)), ""},
		"two share":                 {evicting([]string{"v"}, alloc("a", "n1", 3), alloc("b", "n1", 4)), ""},
		"two share too much":        {evicting([]string{"v"}, alloc("a", "n1", 3), alloc("b", "n1", 5)), "cpu exhausted"},
		"two share more":            {evicting([]string{"v", "w"}, alloc("a", "n1", 4), alloc("b", "n1", 6)), ""},
		"a port of the evicted":     {evicting([]string{"v"}, alloc("a", "n1", 1, 80), alloc("b", "n1", 1)), ""},
		"a port of another":         {evicting([]string{"v"}, alloc("a", "n1", 1, 81)), "port 81 is taken"},
		"one port for both":         {evicting([]string{"v"}, alloc("a", "n1", 1, 80), alloc("b", "n1", 1, 80)), "port 80 is taken"},
		"beside it, without a wait": {planOf(alloc("a", "n1", 3)), "cpu exhausted"},
		"not all wait for the same": {func() *structs.Plan {
			p := evicting([]string{"v", "w"}, alloc("a", "n1", 1), alloc("b", "n1", 1))
			p.Places["n1"][1].PreemptedAllocations = []string{"v"}
			return p
		}(), "allocations a and b both replace v"},
	} {
		cl := newCluster("n1")
		cl.allocs["v"], cl.allocs["w"] = alloc("v", "n1", 7, 80), alloc("w", "n1", 3, 81)
		v := Verify(cl, nil, c.plan)
		if v.Rejected["n1"] != c.want {
			t.Errorf("%s: %q, want %q", name, v.Rejected["n1"], c.want)
		}
	}
	// What replaces an evicted allocation has no part in what it leaves.
	cl := newCluster("n1")
	cl.allocs["v"], cl.allocs["a"] = alloc("v", "n1", 7), alloc("a", "n1", 7)
	cl.allocs["v"].DesiredStatus, cl.allocs["a"].PreemptedAllocations = structs.AllocDesiredStatusEvict, []string{"v"}
	if v := Verify(cl, nil, planOf(replacing(alloc("r", "n1", 7), "v"))); v.Rejected["n1"] != "cpu exhausted" {
		t.Errorf("what replaces an evicted one takes over: %q", v.Rejected["n1"])
	}
	if v := Verify(cl, nil, planOf(replacing(alloc("r", "n1", 3), "v"))); v.Rejected["n1"] != "" {
		t.Errorf("what replaces an evicted one beside it: %q", v.Rejected["n1"])
	}
}

// TestRoomyIsRightWhenItSaysYes compares the quick answer with the one that looks at all that is on the node.
func TestRoomyIsRightWhenItSaysYes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster("n1")
		c.nodes["n1"].NodeMaxAllocs = rapid.IntRange(0, 6).Draw(rt, "max allocs")
		made := 0
		some := func(what string) (out []*structs.Allocation) {
			for range rapid.IntRange(0, 3).Draw(rt, what) {
				made++
				a := alloc(fmt.Sprint("a", made), "n1", rapid.IntRange(0, 4).Draw(rt, "size"))
				if rapid.IntRange(0, 2).Draw(rt, "has a port") == 0 {
					a = alloc(a.ID, "n1", 1, rapid.SampledFrom([]int{80, 81, 82, 83, 22}).Draw(rt, "port"))
				}
				if rapid.IntRange(0, 3).Draw(rt, "has a core") == 0 {
					a.AllocatedResources.Tasks["t"].Cpu.ReservedCores = []uint16{rapid.Uint16Range(0, 3).Draw(rt, "core")}
				}
				if rapid.IntRange(0, 4).Draw(rt, "follows") == 0 {
					a.PreviousAllocation = fmt.Sprint("a", rapid.IntRange(1, made).Draw(rt, "whom"))
				}
				out = append(out, a)
			}
			return out
		}
		for _, a := range some("there") {
			c.allocs[a.ID] = a
		}
		if fits(c.nodes["n1"], maps.Clone(c.allocs), map[string]bool{}) != "" {
			return // it was full before
		}
		flight := &Overlay{plans: []*structs.Plan{planOf(some("in flight")...)}}
		plan := planOf(some("new")...)
		there, stopping := maps.Clone(c.allocs), map[string]bool{}
		flight.apply("n1", there, stopping)
		change(plan, "n1", there, stopping)
		reason := fits(c.nodes["n1"], there, stopping)
		if roomy(c.nodes["n1"], c.NodeUsage("n1"), flight, plan) && reason != "" {
			rt.Fatalf("roomy, but %s", reason)
		}
	})
}
