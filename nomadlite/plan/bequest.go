package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// bequests are who follows whom on a node: a new allocation its predecessor that stops, or those evicted for it.
type bequests struct {
	there    map[string]*structs.Allocation
	heirs    map[string][]string // by who stops, sorted
	inherits map[string][]string // by who follows, sorted
}

// add notes whom an allocation follows.
func (b *bequests) add(id string, stopping map[string]bool) {
	a := b.there[id]
	if !a.HoldsResources() {
		return
	}
	follow := func(old string) {
		o := b.there[old]
		if o == nil || !o.HoldsResources() || !(stopping[old] || o.ServerTerminal()) || slices.Contains(b.inherits[id], old) {
			return
		}
		b.heirs[old] = append(b.heirs[old], id)
		b.inherits[id] = append(b.inherits[id], old)
	}
	// What an evicted allocation holds is for whom it was evicted, not for what replaces it.
	if o := b.there[a.PreviousAllocation]; o != nil && o.DesiredStatus != structs.AllocDesiredStatusEvict {
		follow(a.PreviousAllocation)
	}
	for _, old := range a.PreemptedAllocations {
		follow(old)
	}
	slices.Sort(b.inherits[id])
}

// contested says of whom two allocations want what is left, without waiting for the same ones; empty when nobody does.
func (b *bequests) contested() string {
	for _, old := range slices.Sorted(maps.Keys(b.heirs)) {
		heirs := b.heirs[old]
		evicted := b.there[old].DesiredStatus == structs.AllocDesiredStatusEvict || b.preempted(old, heirs[0])
		for _, other := range heirs[1:] {
			if !evicted || !slices.Equal(b.inherits[heirs[0]], b.inherits[other]) {
				return fmt.Sprintf("allocations %s and %s both replace %s", heirs[0], other, old)
			}
		}
	}
	return ""
}

func (b *bequests) preempted(old, heir string) bool {
	return slices.Contains(b.there[heir].PreemptedAllocations, old)
}

// holdings adds up the allocations on the node: each with those that it follows, and those together that share them.
func (b *bequests) holdings() []holding {
	sharing := map[string][]string{} // by what they inherit
	var out []holding
	for _, id := range slices.Sorted(maps.Keys(b.there)) {
		if !b.there[id].HoldsResources() || len(b.heirs[id]) > 0 {
			continue // what is inherited counts with its heirs
		}
		first := b.first(id)
		if len(b.inherits[first]) == 0 || len(b.heirs[b.inherits[first][0]]) < 2 {
			out = append(out, b.chain(id, map[string]bool{}))
			continue
		}
		key := strings.Join(b.inherits[first], ",")
		sharing[key] = append(sharing[key], id)
	}
	for _, key := range slices.Sorted(maps.Keys(sharing)) {
		out = append(out, b.shared(sharing[key]))
	}
	return out
}

// first goes back from an allocation over those that only it follows, to whoever began that line.
func (b *bequests) first(id string) string {
	for seen := map[string]bool{}; !seen[id]; {
		seen[id] = true
		before := b.inherits[id]
		if len(before) != 1 || len(b.heirs[before[0]]) != 1 {
			return id
		}
		id = before[0]
	}
	return id
}

// holding is what an allocation and those that it follows hold together.
type holding struct {
	structs.Comparable
	count        int64 // allocations that run side by side at most
	ports, cores map[uint16]bool
	devices      map[string]bool
	collision    string // of those that share what they follow; empty when there is none
}

func (b *bequests) own(id string) holding {
	a := b.there[id]
	h := holding{Comparable: a.AllocatedResources.Comparable(), count: 1,
		ports: map[uint16]bool{}, cores: map[uint16]bool{}, devices: map[string]bool{}}
	for _, p := range h.Ports {
		h.ports[p] = true
	}
	for _, c := range h.Cores {
		h.cores[c] = true
	}
	if a.AllocatedResources == nil {
		return h
	}
	for _, t := range a.AllocatedResources.Tasks {
		for _, d := range t.Devices {
			for _, instance := range d.DeviceIDs {
				h.devices[d.Vendor+"/"+d.Type+"/"+d.Name+"/"+instance] = true
			}
		}
	}
	return h
}

// chain adds up an allocation and those which it follows: of each resource the larger of its own and theirs.
func (b *bequests) chain(id string, seen map[string]bool) holding {
	seen[id] = true
	h := b.own(id)
	var before holding
	for _, old := range b.inherits[id] {
		if !seen[old] {
			before.add(b.chain(old, seen))
		}
	}
	h.atLeast(before)
	return h
}

// shared adds up allocations that all wait for the same ones: the larger of what they hold, each with the line that it
// alone ends, and of what those hold.
func (b *bequests) shared(ids []string) holding {
	var heirs, before holding
	seen := map[string]bool{}
	first := ""
	for _, id := range ids {
		first = b.first(id)
		line := b.own(id)
		for id != first {
			id = b.inherits[id][0]
			line.atLeast(b.own(id))
		}
		heirs.add(line)
	}
	for _, old := range b.inherits[first] {
		before.add(b.chain(old, seen))
	}
	heirs.atLeast(before)
	return heirs
}

// add takes in what is held at the same time.
func (h *holding) add(o holding) {
	h.CPU, h.MemoryMB, h.DiskMB, h.count = h.CPU+o.CPU, h.MemoryMB+o.MemoryMB, h.DiskMB+o.DiskMB, h.count+o.count
	join(&h.ports, o.ports, &h.collision, "port %v is taken")
	join(&h.cores, o.cores, &h.collision, "core %v is taken")
	join(&h.devices, o.devices, &h.collision, "device %v is taken")
	if h.collision == "" {
		h.collision = o.collision
	}
}

// atLeast takes in what is held at another time.
func (h *holding) atLeast(o holding) {
	h.CPU, h.MemoryMB, h.DiskMB = max(h.CPU, o.CPU), max(h.MemoryMB, o.MemoryMB), max(h.DiskMB, o.DiskMB)
	var ignored string
	join(&h.ports, o.ports, &ignored, "%v")
	join(&h.cores, o.cores, &ignored, "%v")
	join(&h.devices, o.devices, &ignored, "%v")
	if h.collision == "" {
		h.collision = o.collision
	}
}

func join[K comparable](set *map[K]bool, more map[K]bool, collision *string, text string) {
	if *set == nil {
		*set = map[K]bool{}
	}
	for k := range more {
		if (*set)[k] && *collision == "" {
			*collision = fmt.Sprintf(text, k)
		}
		(*set)[k] = true
	}
}
