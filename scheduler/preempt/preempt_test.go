package preempt_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/scheduler/preempt"
	"github.com/nomadlite/nomadlite/structs"
)

// desk is a node for which everything is added up anew at each question.
type desk struct {
	cpu, memory, disk int64 // what is there for the candidates and whatever is new
	ports             []uint16
	wants             structs.Comparable
	held              map[string]*preempt.Candidate
}

func (d *desk) Free(c *preempt.Candidate) { delete(d.held, c.ID) }
func (d *desk) Hold(c *preempt.Candidate) { d.held[c.ID] = c }

func (d *desk) Lack() preempt.Lack {
	cpu, memory, disk := d.wants.CPU-d.cpu, d.wants.MemoryMB-d.memory, d.wants.DiskMB-d.disk
	var ports []uint16
	blocked := func(held []uint16) {
		for _, p := range d.wants.Ports {
			if slices.Contains(held, p) && !slices.Contains(ports, p) {
				ports = append(ports, p)
			}
		}
	}
	blocked(d.ports)
	for _, c := range d.held {
		cpu, memory, disk = cpu+c.Holds.CPU, memory+c.Holds.MemoryMB, disk+c.Holds.DiskMB
		blocked(c.Holds.Ports)
	}
	slices.Sort(ports)
	return preempt.Lack{
		Fits: cpu <= 0 && memory <= 0 && disk <= 0 && len(ports) == 0,
		CPU:  max(0, cpu), MemoryMB: max(0, memory), DiskMB: max(0, disk), Ports: ports,
	}
}

// fits asks whether the allocation fits when the candidates of a set (bits) have ended.
func (d *desk) fits(candidates []preempt.Candidate, set uint) bool {
	fresh := *d
	fresh.held = map[string]*preempt.Candidate{}
	for i := range candidates {
		if set&(1<<i) == 0 {
			fresh.held[candidates[i].ID] = &candidates[i]
		}
	}
	return fresh.Lack().Fits
}

func draw(t *rapid.T) ([]preempt.Candidate, *desk) {
	amount := func(name string, most int) int64 { return int64(rapid.IntRange(0, most).Draw(t, name)) }
	ports := func(name string) []uint16 {
		return slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(rapid.Uint16Range(1, 4), 0, 2).Draw(t, name))))
	}
	d := &desk{cpu: amount("free cpu", 6), memory: amount("free memory", 6), disk: amount("free disk", 6), held: map[string]*preempt.Candidate{},
		wants: structs.Comparable{CPU: amount("cpu", 20), MemoryMB: amount("memory", 20), DiskMB: amount("disk", 10), Ports: ports("ports")}}
	if rapid.IntRange(0, 9).Draw(t, "others hold ports") == 0 {
		d.ports = []uint16{1}
	}
	candidates := make([]preempt.Candidate, rapid.IntRange(0, 8).Draw(t, "candidates"))
	for i := range candidates {
		group := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "group")
		candidates[i] = preempt.Candidate{ID: fmt.Sprint("c", i), Group: structs.NamespacedID{ID: group},
			Priority: rapid.SampledFrom([]int{10, 20, 30}).Draw(t, "priority"), MaxParallel: rapid.IntRange(0, 2).Draw(t, "max"),
			Holds: structs.Comparable{CPU: amount("holds cpu", 8), MemoryMB: amount("holds memory", 8), DiskMB: amount("holds disk", 4),
				Ports: ports("holds ports")}}
		d.held[candidates[i].ID] = &candidates[i]
		d.cpu, d.memory, d.disk = d.cpu+candidates[i].Holds.CPU, d.memory+candidates[i].Holds.MemoryMB, d.disk+candidates[i].Holds.DiskMB
	}
	return candidates, d
}

// TestSelectAgainstAllSets compares with every set of candidates.
func TestSelectAgainstAllSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		candidates, d := draw(t)
		victims, ok := preempt.Select(candidates, d, nil)
		var chosen uint
		for _, v := range victims {
			if chosen&(1<<v) != 0 {
				t.Fatalf("candidate %d was chosen twice", v)
			}
			chosen |= 1 << v
		}
		worst := func(set uint) (p int) {
			for i := range candidates {
				if set&(1<<i) != 0 {
					p = max(p, candidates[i].Priority)
				}
			}
			return p
		}
		any, lowest, fewest := false, 1000, 1000
		for set := range uint(1) << len(candidates) {
			if !d.fits(candidates, set) {
				continue
			}
			any = true
			lowest = min(lowest, worst(set))
			fewest = min(fewest, bits.OnesCount(set))
			if set != chosen && set&^chosen == 0 {
				t.Fatalf("%b would do, %b ends", set, chosen)
			}
		}
		switch {
		case ok != any:
			t.Fatalf("chosen: %t, possible: %t", ok, any)
		case !ok:
			if len(victims) > 0 || len(d.held) != len(candidates) {
				t.Fatalf("victims %v though it does not fit", victims)
			}
			return
		case !d.fits(candidates, chosen) || !d.Lack().Fits:
			t.Fatalf("it does not fit when %b ends", chosen)
		case worst(chosen) != lowest:
			t.Fatalf("priority %d ends, %d would do", worst(chosen), lowest)
		case fewest == 0 && len(victims) > 0:
			t.Fatal("nothing need end")
		}
		again, _ := preempt.Select(candidates, &desk{cpu: d.cpu, memory: d.memory, disk: d.disk, ports: d.ports, wants: d.wants,
			held: all(candidates)}, nil)
		if !slices.Equal(again, victims) {
			t.Fatalf("%v, then %v", victims, again)
		}
	})
}

func all(candidates []preempt.Candidate) map[string]*preempt.Candidate {
	m := map[string]*preempt.Candidate{}
	for i := range candidates {
		m[candidates[i].ID] = &candidates[i]
	}
	return m
}

func TestSelectByExample(t *testing.T) {
	holds := func(id string, priority, max int, cpu int64, ports ...uint16) preempt.Candidate {
		return preempt.Candidate{ID: id, Group: structs.NamespacedID{ID: id[:1]}, Priority: priority, MaxParallel: max,
			Holds: structs.Comparable{CPU: cpu, Ports: ports}}
	}
	for name, c := range map[string]struct {
		candidates []preempt.Candidate
		wants      structs.Comparable
		taken      map[structs.NamespacedID]int
		want       string
	}{
		"whoever holds just that much": {[]preempt.Candidate{holds("a", 10, 0, 900), holds("b", 10, 0, 500), holds("c", 10, 0, 200)},
			structs.Comparable{CPU: 500}, nil, "[b]"},
		"the lowest priority, though another fits better": {[]preempt.Candidate{holds("a", 20, 0, 500), holds("b", 10, 0, 900)},
			structs.Comparable{CPU: 500}, nil, "[b]"},
		"a higher priority when the lower ones do not do": {[]preempt.Candidate{holds("a", 20, 0, 500), holds("b", 10, 0, 100)},
			structs.Comparable{CPU: 500}, nil, "[a]"},
		"whoever holds the port": {[]preempt.Candidate{holds("a", 10, 0, 500), holds("b", 10, 0, 900, 80)},
			structs.Comparable{CPU: 500, Ports: []uint16{80}}, nil, "[b]"},
		"not two of a group that moves one at a time": {[]preempt.Candidate{holds("a1", 10, 1, 500), holds("a2", 10, 1, 500), holds("b", 10, 1, 500)},
			structs.Comparable{CPU: 1000}, nil, "[a1 b]"},
		"none of a group that lost one elsewhere": {[]preempt.Candidate{holds("a", 10, 1, 500), holds("b", 10, 1, 900)},
			structs.Comparable{CPU: 500}, map[structs.NamespacedID]int{{ID: "a"}: 1}, "[b]"},
		"two of them when nobody else is there": {[]preempt.Candidate{holds("a1", 10, 1, 500), holds("a2", 10, 1, 500)},
			structs.Comparable{CPU: 1000}, nil, "[a1 a2]"},
		"nobody, when it does not help": {[]preempt.Candidate{holds("a", 10, 0, 500)}, structs.Comparable{CPU: 600}, nil, "[]"},
	} {
		d := &desk{wants: c.wants, held: all(c.candidates)}
		for i := range c.candidates {
			d.cpu += c.candidates[i].Holds.CPU
		}
		got := []string{}
		victims, _ := preempt.Select(c.candidates, d, c.taken)
		for _, v := range victims {
			got = append(got, c.candidates[v].ID)
		}
		slices.Sort(got)
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

func TestCandidates(t *testing.T) {
	job := func(priority int) *structs.Job {
		return &structs.Job{Priority: &priority, TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"),
			Migrate: &structs.MigrateStrategy{MaxParallel: structs.Ptr(3)}}}}
	}
	alloc := func(priority int, edit func(*structs.Allocation)) *structs.Allocation {
		a := &structs.Allocation{ID: "a", JobID: "j", TaskGroup: "g", Job: job(priority), DesiredStatus: structs.AllocDesiredStatusRun,
			ClientStatus: structs.AllocClientStatusRunning}
		if edit != nil {
			edit(a)
		}
		return a
	}
	if c, ok := preempt.NewCandidate(alloc(40, nil), 50); !ok || c.MaxParallel != 3 || c.Priority != 40 {
		t.Errorf("%+v %t", c, ok)
	}
	for name, a := range map[string]*structs.Allocation{
		"about as important": alloc(41, nil),
		"told to stop":       alloc(1, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredStatusStop }),
		"evicted":            alloc(1, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredStatusEvict }),
		"ended":              alloc(1, func(a *structs.Allocation) { a.ClientStatus = structs.AllocClientStatusFailed }),
	} {
		if _, ok := preempt.NewCandidate(a, 50); ok {
			t.Errorf("%s: may be evicted", name)
		}
	}
}
