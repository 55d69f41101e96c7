package rank_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/scheduler/rank"
	"github.com/nomadlite/nomadlite/scheduler/schedtest"
	"github.com/nomadlite/nomadlite/structs"
)

// world is a random cluster and a random job, with all that was placed, so that a dumb reference can ask each node anew.
type world struct {
	nodes     []*structs.Node
	job       *structs.Job
	tg        *structs.TaskGroup
	allocs    []*structs.Allocation // everything on the nodes, of this job and of others
	algorithm string
}

func drawWorld(t *rapid.T) *world {
	w := &world{algorithm: rapid.SampledFrom([]string{"binpack", "spread"}).Draw(t, "algorithm")}
	for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
		n := schedtest.Node(fmt.Sprintf("n%d", i))
		n.NodeClass = rapid.SampledFrom([]string{"", "big"}).Draw(t, "class")
		n.Meta["rack"] = rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(t, "rack")
		n.NodeResources.Cpu.CpuShares = int64(rapid.IntRange(1, 8).Draw(t, "cpu") * 500)
		n.NodeResources.MinDynamicPort = 20000
		n.NodeResources.MaxDynamicPort = 20000 + rapid.IntRange(0, 5).Draw(t, "dynamic")
		n.NodeMaxAllocs = rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "max")
		n.ReservedResources = &structs.NodeReservedResources{}
		if rapid.Bool().Draw(t, "reserved") {
			n.ReservedResources.Networks.ReservedHostPorts = "20001,8080"
		}
		n.Canonicalize()
		n.ComputeClass()
		w.nodes = append(w.nodes, n)
	}
	w.job = schedtest.Job("a", "service", rapid.IntRange(1, 10).Draw(t, "count"))
	w.tg = w.job.TaskGroups[0]
	r := w.tg.Tasks[0].Resources
	r.CPU = structs.Ptr(rapid.IntRange(1, 12).Draw(t, "ask") * 100)
	if rapid.IntRange(0, 4).Draw(t, "cores?") == 0 {
		r.Cores, r.CPU = structs.Ptr(rapid.IntRange(1, 2).Draw(t, "cores")), nil
	}
	net := &structs.NetworkResource{Mode: "host"}
	for i := range rapid.IntRange(0, 2).Draw(t, "ports") {
		net.DynamicPorts = append(net.DynamicPorts, structs.Port{Label: fmt.Sprintf("d%d", i), To: -1})
	}
	if rapid.IntRange(0, 3).Draw(t, "static?") == 0 {
		port := rapid.SampledFrom([]int{8080, 9090, 20002}).Draw(t, "static")
		net.ReservedPorts = append(net.ReservedPorts, structs.Port{Label: "s", Value: port})
	}
	w.tg.Networks = []*structs.NetworkResource{net}
	if rapid.Bool().Draw(t, "spread?") {
		s := &structs.Spread{Attribute: "${meta.rack}", Weight: structs.Ptr(int8(50))}
		if rapid.Bool().Draw(t, "targets?") {
			s.SpreadTarget = []*structs.SpreadTarget{{Value: "r1", Percent: 60}, {Value: "r2", Percent: 30}}
		}
		w.tg.Spreads = []*structs.Spread{s}
	}
	if rapid.Bool().Draw(t, "affinity?") {
		w.tg.Affinities = []*structs.Affinity{{
			LTarget: "${node.class}", RTarget: "big", Operand: "=",
			Weight: structs.Ptr(int8(rapid.IntRange(-100, 100).Filter(func(i int) bool { return i != 0 }).Draw(t, "weight"))),
		}, {LTarget: "${meta.rack}", RTarget: "r3", Operand: "=", Weight: structs.Ptr(int8(30))}}
	}
	switch rapid.IntRange(0, 4).Draw(t, "distinct") {
	case 0:
		w.tg.Constraints = append(w.tg.Constraints, &structs.Constraint{Operand: "distinct_hosts", RTarget: "true"})
	case 1:
		w.tg.Constraints = append(w.tg.Constraints,
			&structs.Constraint{LTarget: "${meta.rack}", Operand: "distinct_property", RTarget: "2"})
	case 2:
		w.tg.Constraints = append(w.tg.Constraints,
			&structs.Constraint{LTarget: "${meta.rack}", Operand: "!=", RTarget: "r2"})
	}
	w.job.Canonicalize()
	return w
}

func (w *world) on(node string) (out []*structs.Allocation) {
	for _, a := range w.allocs {
		if a.NodeID == node {
			out = append(out, a)
		}
	}
	return out
}

// fits adds everything up anew: every allocation but the one that is replaced, and what is asked.
func (w *world) fits(n *structs.Node, replaced *structs.Allocation) bool {
	total := n.ComparableResources()
	var cpu, mem, disk, count int64
	ports, cores := map[int]bool{}, map[uint16]bool{}
	for _, p := range total.Ports {
		ports[int(p)] = true
	}
	for _, a := range w.on(n.ID) {
		if replaced != nil && a.ID == replaced.ID {
			continue
		}
		c := a.AllocatedResources.Comparable()
		cpu, mem, disk, count = cpu+c.CPU, mem+c.MemoryMB, disk+c.DiskMB, count+1
		for _, p := range c.Ports {
			ports[int(p)] = true
		}
		for _, core := range c.Cores {
			cores[core] = true
		}
	}
	r := w.tg.Tasks[0].Resources
	ask := int64(structs.Val(r.CPU))
	if structs.Val(r.Cores) > 0 {
		ask = int64(*r.Cores) * (n.NodeResources.Cpu.CpuShares / 4)
		if 4-len(cores) < *r.Cores {
			return false
		}
	}
	if n.NodeMaxAllocs > 0 && count >= int64(n.NodeMaxAllocs) {
		return false
	}
	if cpu+ask > total.CPU || mem+256 > total.MemoryMB || disk+150 > total.DiskMB {
		return false
	}
	for _, p := range w.tg.Networks[0].ReservedPorts {
		if ports[p.Value] {
			return false
		}
		ports[p.Value] = true
	}
	free := 0
	for p := n.NodeResources.MinDynamicPort; p <= n.NodeResources.MaxDynamicPort; p++ {
		if !ports[p] {
			free++
		}
	}
	return free >= len(w.tg.Networks[0].DynamicPorts)
}

// feasible asks the constraints of a node without any memory.
func (w *world) feasible(n *structs.Node, replaced *structs.Allocation) bool {
	racks := map[string]int{}
	for _, a := range w.allocs {
		if a.JobID != "a" || (replaced != nil && a.ID == replaced.ID) {
			continue
		}
		for _, m := range w.nodes {
			if m.ID == a.NodeID {
				racks[m.Meta["rack"]]++
			}
		}
	}
	for _, c := range w.tg.Constraints {
		switch c.Operand {
		case "distinct_hosts":
			for _, a := range w.on(n.ID) {
				if a.JobID == "a" && (replaced == nil || a.ID != replaced.ID) {
					return false
				}
			}
		case "distinct_property":
			if racks[n.Meta["rack"]] >= 2 {
				return false
			}
		case "!=":
			if n.Meta["rack"] == "r2" {
				return false
			}
		}
	}
	return true
}

// score restates the scores from their definitions.
func (w *world) score(n *structs.Node, replaced *structs.Allocation, penalty string) float64 {
	var cpu, mem, peers int64
	for _, a := range w.on(n.ID) {
		if replaced != nil && a.ID == replaced.ID {
			continue
		}
		c := a.AllocatedResources.Comparable()
		cpu, mem = cpu+c.CPU, mem+c.MemoryMB
		if a.JobID == "a" && a.DesiredStatus != "stop" {
			peers++
		}
	}
	r := w.tg.Tasks[0].Resources
	if structs.Val(r.Cores) > 0 {
		cpu += int64(*r.Cores) * (n.NodeResources.Cpu.CpuShares / 4)
	} else {
		cpu += int64(*r.CPU)
	}
	total := n.ComparableResources()
	pow := math.Pow(10, 1-float64(cpu)/float64(total.CPU)) + math.Pow(10, 1-float64(mem+256)/float64(total.MemoryMB))
	pack := 20 - pow
	if w.algorithm == "spread" {
		pack = pow - 2
	}
	scores := []float64{math.Max(0, math.Min(18, pack)) / 18}
	if peers > 0 {
		scores = append(scores, math.Max(-1, -float64(peers+1)/float64(*w.tg.Count)))
	}
	if n.ID == penalty {
		scores = append(scores, -1)
	}
	sum, weights := 0.0, 0.0
	for _, a := range w.tg.Affinities {
		weights += math.Abs(float64(*a.Weight))
		value := n.NodeClass
		if a.LTarget == "${meta.rack}" {
			value = n.Meta["rack"]
		}
		if value == a.RTarget {
			sum += float64(*a.Weight)
		}
	}
	if sum != 0 {
		scores = append(scores, sum/weights)
	}
	if len(w.tg.Spreads) > 0 {
		if s := w.spread(n); s != 0 {
			scores = append(scores, s)
		}
	}
	all := 0.0
	for _, s := range scores {
		all += s
	}
	return all / float64(len(scores))
}

func (w *world) spread(n *structs.Node) float64 {
	used, racks := map[string]float64{}, map[string]bool{}
	for _, m := range w.nodes {
		racks[m.Meta["rack"]] = true
		for _, a := range w.on(m.ID) {
			if a.JobID == "a" && a.DesiredStatus != "stop" {
				used[m.Meta["rack"]]++
			}
		}
	}
	share := map[string]float64{}
	count := float64(*w.tg.Count)
	for rack := range racks {
		if len(w.tg.Spreads[0].SpreadTarget) == 0 {
			share[rack] = count / float64(len(racks))
		} else {
			share[rack] = map[string]float64{"r1": 0.6, "r2": 0.3, "r3": 0.1}[rack] * count
		}
	}
	deficit := func(rack string) float64 { return (share[rack] - used[rack] - 1) / share[rack] }
	lo, hi := math.Inf(1), math.Inf(-1)
	for rack := range racks {
		lo, hi = math.Min(lo, deficit(rack)), math.Max(hi, deficit(rack))
	}
	if hi-lo < 1e-12 {
		return 0
	}
	return 2*(deficit(n.Meta["rack"])-lo)/(hi-lo) - 1
}

// TestPlaceIsBest compares each placement with a reference that asks every node anew.
func TestPlaceIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.crowd(t)
		placer := w.placer()
		for i := range rapid.IntRange(1, 12).Draw(t, "placements") {
			w.placeOne(t, placer, i)
		}
	})
}

// crowd puts allocations of another job and of this one on the nodes, as far as they fit.
func (w *world) crowd(t *rapid.T) {
	for i := range rapid.IntRange(0, 6).Draw(t, "there") {
		n := rapid.SampledFrom(w.nodes).Draw(t, "on")
		a := &structs.Allocation{
			ID: fmt.Sprintf("there-%d", i), NodeID: n.ID, JobID: rapid.SampledFrom([]string{"a", "other"}).Draw(t, "job"),
			TaskGroup: "web", DesiredStatus: rapid.SampledFrom([]string{"run", "stop"}).Draw(t, "desired"),
			ClientStatus: "running", ObservedStatus: "running",
			AllocatedResources: &structs.AllocatedResources{
				Tasks: map[string]*structs.AllocatedTaskResources{"main": {
					Cpu: structs.AllocatedCpuResources{CpuShares: 200}, Memory: structs.AllocatedMemoryResources{MemoryMB: 300},
				}},
				Shared: structs.AllocatedSharedResources{DiskMB: 10},
			},
		}
		if rapid.Bool().Draw(t, "with port") {
			a.AllocatedResources.Shared.Ports = []structs.PortMapping{{Value: 20000 + i}}
		}
		w.allocs = append(w.allocs, a)
	}
}

func (w *world) placer() *rank.Placer {
	var peers []rank.Peer
	for _, a := range w.allocs {
		if a.JobID == "a" {
			peers = append(peers, rank.Peer{
				ID: a.ID, NodeID: a.NodeID, Group: "web", Stopping: a.DesiredStatus == "stop",
			})
		}
	}
	scope := &feasible.Scope{Pool: "default", Nodes: w.nodes, InPool: len(w.nodes)}
	r := rank.New(rank.Config{Seed: "eval", Algorithm: w.algorithm}, w.job, scope, peers, func(site *feasible.Site) *structs.NodeUsage {
		u := &structs.NodeUsage{}
		for _, a := range w.on(site.Node.ID) {
			u.Add(a)
		}
		return u
	})
	return r.Group(w.tg, feasible.NewGroup(w.job, w.tg))
}

func (w *world) placeOne(t *rapid.T, placer *rank.Placer, i int) {
	req := rank.Request{}
	penalty := ""
	if rapid.IntRange(0, 3).Draw(t, "penalty?") == 0 {
		penalty = rapid.SampledFrom(w.nodes).Draw(t, "penalty").ID
		req.Penalty = []string{penalty}
	}
	best, found := math.Inf(-1), false
	for _, n := range w.nodes {
		if w.feasible(n, nil) && w.fits(n, nil) {
			best, found = math.Max(best, w.score(n, nil, penalty)), true
		}
	}
	placement, metrics := placer.Place(req)
	if (placement != nil) != found {
		t.Fatalf("placed %v, reference %v; metrics %+v", placement != nil, found, metrics)
	}
	if metrics.NodesEvaluated != len(w.nodes) {
		t.Fatalf("evaluated %d of %d nodes", metrics.NodesEvaluated, len(w.nodes))
	}
	if placement == nil {
		if metrics.NodesFiltered+metrics.NodesExhausted != len(w.nodes) {
			t.Fatalf("%d nodes were refused, metrics tell of %d filtered and %d exhausted",
				len(w.nodes), metrics.NodesFiltered, metrics.NodesExhausted)
		}
		return
	}
	if got := w.score(placement.Node, nil, penalty); math.Abs(got-best) > 1e-9 {
		t.Fatalf("chose %s with %v, the best has %v", placement.Node.ID, got, best)
	}
	if got := metrics.ScoreMetaData[0]; got.NodeID != placement.Node.ID || math.Abs(got.NormScore-best) > 1e-9 {
		t.Fatalf("metrics tell of %+v, chosen is %s with %v", got, placement.Node.ID, best)
	}
	w.checkGrant(t, placement)
	w.allocs = append(w.allocs, &structs.Allocation{
		ID: fmt.Sprintf("new-%d", i), NodeID: placement.Node.ID, JobID: "a", TaskGroup: "web", DesiredStatus: "run",
		AllocatedResources: placement.Resources,
	})
}

// checkGrant looks whether what was handed out is whole and nobody else's.
func (w *world) checkGrant(t *rapid.T, p *rank.Placement) {
	got := p.Resources.Comparable()
	net := w.tg.Networks[0]
	if len(got.Ports) != len(net.DynamicPorts)+len(net.ReservedPorts) {
		t.Fatalf("asked for %d ports, got %v", len(net.DynamicPorts)+len(net.ReservedPorts), got.Ports)
	}
	if len(got.Cores) != structs.Val(w.tg.Tasks[0].Resources.Cores) {
		t.Fatalf("got cores %v", got.Cores)
	}
	for _, m := range p.Resources.Shared.Ports {
		if m.Label[0] == 'd' && (m.Value < p.Node.NodeResources.MinDynamicPort || m.Value > p.Node.NodeResources.MaxDynamicPort || m.To != m.Value) {
			t.Fatalf("dynamic port %+v", m)
		}
	}
	for _, a := range w.on(p.Node.ID) {
		held := a.AllocatedResources.Comparable()
		for _, port := range got.Ports {
			for _, other := range held.Ports {
				if port == other {
					t.Fatalf("port %d was given twice", port)
				}
			}
		}
		for _, core := range got.Cores {
			for _, other := range held.Cores {
				if core == other {
					t.Fatalf("core %d was given twice", core)
				}
			}
		}
	}
}

// TestReplaceInPlaceOfOld updates all allocations of a crowded node: each takes over what the one before it held, and
// the node never holds more than it has.
func TestReplaceInPlaceOfOld(t *testing.T) {
	n := schedtest.Node("n1")
	n.Canonicalize()
	n.ComputeClass()
	w := &world{nodes: []*structs.Node{n}, job: schedtest.Job("a", "service", 8)}
	w.tg = w.job.TaskGroups[0]
	w.tg.Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "http"}}}}
	w.job.Canonicalize()
	placer := w.placer()
	for i := range 8 {
		w.addPlaced(t, placer, rank.Request{}, fmt.Sprintf("old-%d", i))
	}
	if p, _ := placer.Place(rank.Request{}); p != nil {
		t.Fatal("a ninth fitted")
	}
	olds := w.allocs
	placer = w.placer()
	for i, old := range olds {
		p, metrics := placer.Place(rank.Request{Replaces: old})
		if p == nil {
			t.Fatalf("update %d did not fit: %+v", i, metrics)
		}
	}
	if p, _ := placer.Place(rank.Request{}); p != nil {
		t.Fatal("one more fitted beside the pairs")
	}
}

func (w *world) addPlaced(t *testing.T, placer *rank.Placer, req rank.Request, id string) {
	t.Helper()
	p, metrics := placer.Place(req)
	if p == nil {
		t.Fatalf("%s did not fit: %+v", id, metrics)
	}
	w.allocs = append(w.allocs, &structs.Allocation{
		ID: id, NodeID: p.Node.ID, JobID: "a", TaskGroup: "web", DesiredStatus: "run", ClientStatus: "running",
		AllocatedResources: p.Resources,
	})
}
