package supervisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is what a task has used, by the word of its cgroups: that counts those of its processes, too, which have ended.
type Usage struct {
	CPU    *CPUUsage    // nil when no cgroup of the task tells
	Memory *MemoryUsage // nil likewise
}

// CPUUsage is processor time since the task started.
type CPUUsage struct {
	Total, User, System time.Duration
	Throttled           time.Duration
	ThrottledPeriods    uint64
}

// MemoryUsage is in bytes.
type MemoryUsage struct {
	Usage, MaxUsage uint64
	RSS             uint64 // what belongs to the processes and to no file
	Cache           uint64
	Swap            uint64
	Kernel          uint64
	KernelMax       uint64 // v1 alone
}

// usageOf reads what the cgroups of a task tell, whichever of them has a controller.
func usageOf(dirs []string) *Usage {
	var u Usage
	for _, dir := range dirs {
		if u.Memory == nil {
			u.Memory = memoryOf(dir)
		}
		u.addCPU(dir)
	}
	if u == (Usage{}) {
		return nil
	}
	return &u
}

func memoryOf(dir string) *MemoryUsage {
	var m MemoryUsage
	var ok bool
	number := func(file string) uint64 { n, _ := readNumber(filepath.Join(dir, file)); return n }
	if m.Usage, ok = readNumber(filepath.Join(dir, "memory.usage_in_bytes")); ok {
		stat := readTable(filepath.Join(dir, "memory.stat"))
		m.RSS, m.Cache, m.Swap = stat["total_rss"], stat["total_cache"], stat["total_swap"]
		m.MaxUsage = number("memory.max_usage_in_bytes")
		m.Kernel, m.KernelMax = number("memory.kmem.usage_in_bytes"), number("memory.kmem.max_usage_in_bytes")
		return &m
	}
	if m.Usage, ok = readNumber(filepath.Join(dir, "memory.current")); ok {
		stat := readTable(filepath.Join(dir, "memory.stat"))
		m.RSS, m.Cache, m.Kernel = stat["anon"], stat["file"], stat["kernel"]
		m.Swap, m.MaxUsage = number("memory.swap.current"), number("memory.peak")
		return &m
	}
	return nil
}

// userTick is the unit of cpuacct.stat, the same on every Linux that Go runs on.
const userTick = time.Second / 100

func (u *Usage) addCPU(dir string) {
	cpu := func() *CPUUsage {
		if u.CPU == nil {
			u.CPU = &CPUUsage{}
		}
		return u.CPU
	}
	stat := readTable(filepath.Join(dir, "cpu.stat"))
	if micro, ok := stat["usage_usec"]; ok {
		c := cpu()
		c.Total, c.User = time.Duration(micro)*time.Microsecond, time.Duration(stat["user_usec"])*time.Microsecond
		c.System = time.Duration(stat["system_usec"]) * time.Microsecond
		if micro, ok := stat["throttled_usec"]; ok {
			c.Throttled, c.ThrottledPeriods = time.Duration(micro)*time.Microsecond, stat["nr_throttled"]
		}
	} else if nano, ok := stat["throttled_time"]; ok && u.CPU != nil { // v1, and no word about the time itself
		u.CPU.Throttled, u.CPU.ThrottledPeriods = time.Duration(nano), stat["nr_throttled"]
	}
	if nano, ok := readNumber(filepath.Join(dir, "cpuacct.usage")); ok {
		c := cpu()
		ticks := readTable(filepath.Join(dir, "cpuacct.stat"))
		c.Total, c.User, c.System = time.Duration(nano), time.Duration(ticks["user"])*userTick, time.Duration(ticks["system"])*userTick
	}
}

// oomKilled says whether the kernel killed in one of these cgroups for want of memory.
func oomKilled(dirs []string) bool {
	for _, dir := range dirs {
		for _, file := range []string{"memory.events", "memory.oom_control"} {
			if readTable(filepath.Join(dir, file))["oom_kill"] > 0 {
				return true
			}
		}
	}
	return false
}

func readNumber(path string) (uint64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// readTable reads a file of lines with a name and a number each; it has nothing when it cannot be read.
func readTable(path string) map[string]uint64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	out := map[string]uint64{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			out[name] = n
		}
	}
	return out
}
