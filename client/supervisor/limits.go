package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// Limits bound what a task uses. A field that is zero sets no bound.
type Limits struct {
	// CPUShares is the task's part of the processors when they are contended, as in cpu.shares of cgroup v1.
	CPUShares uint64
	// Memory is how many bytes it may have; beyond that the kernel kills in it. Swap does not come on top.
	Memory uint64
	// MemoryReserve is how many bytes are taken from others first when memory is short.
	MemoryReserve uint64
	// Cores are the numbers of the processors that it runs on.
	Cores []uint16
	// Required lets the start fail when one of these cannot be set; else that is only logged.
	Required bool
}

// The bounds of cpu.shares and what belongs to them in cpu.weight.
const (
	minShares, maxShares = 2, 262144
	minWeight, maxWeight = 1, 10000
)

// weightOf makes cpu.weight of cpu.shares.
func weightOf(shares uint64) uint64 {
	shares = min(max(shares, minShares), maxShares)
	return minWeight + (shares-minShares)*(maxWeight-minWeight)/(maxShares-minShares)
}

// setting is one file of a cgroup to be written.
type setting struct {
	controller, file, value string
	optional                bool // not every kernel has it
}

// late says that it is set once the process is made: whoever makes it waits until it executes its program, which one with
// few shares does late where processors are short.
func (s setting) late() bool { return s.controller == "cpu" }

// settings say the limits to a cgroup. Order counts: memory together with swap is never less than memory alone.
func (l Limits) settings(unified bool) []setting {
	var out []setting
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	add := func(want bool, controller, file, value string, optional bool) {
		if want {
			out = append(out, setting{controller, file, value, optional})
		}
	}
	if unified {
		add(l.CPUShares > 0, "cpu", "cpu.weight", number(weightOf(l.CPUShares)), false)
		add(l.Memory > 0, "memory", "memory.max", number(l.Memory), false)
		add(l.Memory > 0, "memory", "memory.swap.max", "0", true)
		add(l.MemoryReserve > 0, "memory", "memory.low", number(l.MemoryReserve), false)
		add(len(l.Cores) > 0, "cpuset", "cpuset.cpus", coreList(l.Cores), false)
		return out
	}
	add(l.CPUShares > 0, "cpu", "cpu.shares", number(min(max(l.CPUShares, minShares), maxShares)), false)
	add(l.Memory > 0, "memory", "memory.limit_in_bytes", number(l.Memory), false)
	add(l.Memory > 0, "memory", "memory.memsw.limit_in_bytes", number(l.Memory), true)
	add(l.MemoryReserve > 0, "memory", "memory.soft_limit_in_bytes", number(l.MemoryReserve), false)
	add(len(l.Cores) > 0, "cpuset", "cpuset.cpus", coreList(l.Cores), false)
	return out
}

func coreList(cores []uint16) string {
	out := make([]string, len(cores))
	for i, c := range cores {
		out[i] = strconv.Itoa(int(c))
	}
	return strings.Join(out, ",")
}

// limit sets the limits in the task's own cgroups, those that are late or the others. What belongs to a controller that none
// of them has is an error too.
func (p placement) limit(l Limits, late bool) error {
	var faults []error
	done := map[string]bool{}
	apply := func(pl place, unified bool) {
		if !pl.own {
			for _, c := range pl.controllers {
				done[c] = true // the job has chosen another cgroup for it, with limits of its own
			}
			return
		}
		for _, s := range l.settings(unified) {
			if !pl.has(s.controller) {
				continue
			}
			done[s.controller] = true
			if s.late() != late {
				continue
			}
			if err := writeCgroup(filepath.Join(pl.dir, s.file), s.value); err != nil && !(s.optional && errors.Is(err, os.ErrNotExist)) {
				faults = append(faults, fmt.Errorf("set %s to %s: %w", s.file, s.value, err))
			}
		}
	}
	for _, pl := range p.v1 {
		apply(pl, false)
	}
	if p.unified.dir != "" {
		apply(p.unified, true)
	}
	for _, s := range l.settings(true) {
		if !done[s.controller] && !s.optional && !late && p.unified.own == (p.unified.dir != "") {
			done[s.controller] = true
			faults = append(faults, fmt.Errorf("set %s to %s: there is no cgroup with controller %q", s.file, s.value, s.controller))
		}
	}
	return errors.Join(faults...)
}

// writeCgroup writes to a file of a cgroup, which is there or is not.
func writeCgroup(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// LimitsOf makes the limits of the resources that a task was given. What it may use beyond its reservation
// (memory_max; -1 is no bound) is the limit then, and the reservation what it keeps when memory is short.
func LimitsOf(r *structs.AllocatedTaskResources) *Limits {
	if r == nil {
		return nil
	}
	mib := func(n int64) uint64 { return uint64(max(n, 0)) << 20 }
	l := &Limits{CPUShares: uint64(max(r.Cpu.CpuShares, 0)), Cores: r.Cpu.ReservedCores, Memory: mib(r.Memory.MemoryMB)}
	if most := r.Memory.MemoryMaxMB; most < 0 || most > r.Memory.MemoryMB {
		l.Memory, l.MemoryReserve = mib(most), mib(r.Memory.MemoryMB)
	}
	return l
}
