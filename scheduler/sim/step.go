package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// Step is what an event came to.
type Step struct {
	Name        string
	Added       int // nodes that are new
	Nodes       int // that were lost, came back or were drained
	Placed      int // new allocations
	Updated     int // allocations that were updated in place
	Stopped     int // allocations that were stopped for another reason than an eviction
	Lost        int // allocations that were given up with their node
	Evicted     []Eviction
	Evaluations int
	Waited      time.Duration // how long the scheduler asked to wait until the cluster had settled
	Unplaced    []Unplaced    // everything that has no place when the cluster has settled
	Notes       []string
}

// Eviction is an allocation that had to go for another one.
type Eviction struct {
	Namespace string
	Job       string
	Alloc     string // its name
	Priority  int    // of its job
	Node      string
	By        string // the id of the allocation that takes the room
}

// Unplaced is what of a group found no place, and why.
type Unplaced struct {
	Namespace, Job, Group string
	Missing               int
	Reasons               []structs.Reason
}

// unplaced tells what the last evaluation of each job that runs could not place, by job and group.
func (s *Sim) unplaced() []Unplaced {
	out := []Unplaced{}
	for _, j := range s.cluster.sortedJobs() {
		e := s.outcomes[nameOf(j)]
		if e == nil || j.Stop {
			continue
		}
		for _, group := range slices.Sorted(maps.Keys(e.FailedTGAllocs)) {
			m := e.FailedTGAllocs[group]
			out = append(out, Unplaced{Namespace: structs.Val(j.Namespace), Job: structs.Val(j.ID), Group: group,
				Missing: max(e.QueuedAllocations[group], m.CoalescedFailures+1), Reasons: m.Explain()})
		}
	}
	return out
}

// Amount is how much of something is used, of how much there is.
type Amount struct{ Used, Total int64 }

// Percent is the part that is used, 0 of nothing.
func (a Amount) Percent() float64 {
	if a.Total == 0 {
		return 0
	}
	return 100 * float64(a.Used) / float64(a.Total)
}

func (a *Amount) add(used, total int64) {
	a.Used += used
	a.Total += total
}

// Usage is how full the nodes of one class are. What is reserved for the host is not counted, nor are nodes that are lost.
type Usage struct {
	Class    string
	Nodes    int // all, those included that are lost
	Ready    int // that may get allocations
	Allocs   int
	CPU      Amount // MHz
	MemoryMB Amount
	DiskMB   Amount
	Cores    Amount // reserved by tasks
}

// NoClass stands for the class of nodes that have none.
const NoClass = "(none)"

func classOf(n *structs.Node) string {
	if n.NodeClass == "" {
		return NoClass
	}
	return n.NodeClass
}

// Usage tells how full the cluster is: all of it first, with an empty class, then each class by its name.
func (s *Sim) Usage() []Usage {
	byClass := map[string]*Usage{}
	total := Usage{}
	for _, n := range s.cluster.ordered() {
		class := classOf(n)
		if byClass[class] == nil {
			byClass[class] = &Usage{Class: class}
		}
		for _, u := range [2]*Usage{&total, byClass[class]} {
			u.count(n, s.cluster.usage[n.ID])
		}
	}
	out := slices.SortedFunc(maps.Values(byClass), func(a, b *Usage) int { return strings.Compare(a.Class, b.Class) })
	all := []Usage{total}
	for _, u := range out {
		all = append(all, *u)
	}
	return all
}

func (u *Usage) count(n *structs.Node, used *structs.NodeUsage) {
	u.Nodes++
	if n.Ready() {
		u.Ready++
	}
	if !up(n) {
		return
	}
	if used == nil {
		used = &structs.NodeUsage{}
	}
	there := n.ComparableResources()
	u.Allocs += used.Allocs
	u.CPU.add(used.CPU, there.CPU)
	u.MemoryMB.add(used.MemoryMB, there.MemoryMB)
	u.DiskMB.add(used.DiskMB, there.DiskMB)
	u.Cores.add(int64(len(used.Cores)), int64(len(n.NodeResources.Cpu.ReservableCpuCores)))
}
