package rawexec

import (
	"context"
	"strconv"
	"time"

	"github.com/nomadlite/nomadlite/client/supervisor"
	"github.com/nomadlite/nomadlite/structs"
)

// ticksPerSecond is the unit of CPU time in /proc, the same on every Linux that Go runs on.
const ticksPerSecond = 100

// sample is what a task's processes had used at one moment.
type sample struct {
	at    time.Time
	procs map[int]supervisor.ProcStats
	whole *supervisor.Usage // what the task's cgroups tell; nil when there are none
}

// Stats tells the task's use of memory now, and of CPU since the call before (or its start). Percent counts a full
// core as 100.
func (d *Driver) Stats(ctx context.Context, taskID string) (*structs.TaskResourceUsage, error) {
	procs, whole, err := d.cfg.Supervisor.Stats(ctx, taskID)
	if err != nil {
		return nil, contractError(err)
	}
	now := sample{at: time.Now(), whole: whole, procs: make(map[int]supervisor.ProcStats, len(procs))}
	for _, p := range procs {
		now.procs[p.PID] = p
	}
	d.mu.Lock()
	before, seen := d.usage[taskID]
	d.usage[taskID] = now
	d.mu.Unlock()
	if !seen {
		info, err := d.cfg.Supervisor.Status(ctx, taskID)
		if err != nil {
			return nil, contractError(err)
		}
		before.at = info.StartedAt
	}
	mhz := 0.0
	if d.cfg.CoreMHz != nil {
		mhz = d.cfg.CoreMHz()
	}
	return usageBetween(before, now, mhz), nil
}

// usageBetween is pure: two samples in, figures out.
func usageBetween(before, now sample, coreMHz float64) *structs.TaskResourceUsage {
	total := newUsage(coreMHz)
	out := &structs.TaskResourceUsage{ResourceUsage: total, Timestamp: now.at.UnixNano(), Pids: map[string]*structs.ResourceUsage{}}
	seconds := now.at.Sub(before.at).Seconds()
	for pid, p := range now.procs {
		u := newUsage(coreMHz)
		u.MemoryStats.RSS, u.MemoryStats.Swap, u.MemoryStats.Usage = p.RSS, p.Swap, p.RSS
		if seconds > 0 {
			last := before.procs[pid]
			u.CpuStats.UserMode = rate(p.UserTicks, last.UserTicks, seconds)
			u.CpuStats.SystemMode = rate(p.SystemTicks, last.SystemTicks, seconds)
			u.CpuStats.Percent = u.CpuStats.UserMode + u.CpuStats.SystemMode
			u.CpuStats.TotalTicks = u.CpuStats.Percent / 100 * coreMHz
		}
		out.Pids[strconv.Itoa(pid)] = u
		total.MemoryStats.RSS += p.RSS
		total.MemoryStats.Swap += p.Swap
		total.MemoryStats.Usage += p.RSS
		total.CpuStats.UserMode += u.CpuStats.UserMode
		total.CpuStats.SystemMode += u.CpuStats.SystemMode
		total.CpuStats.Percent += u.CpuStats.Percent
		total.CpuStats.TotalTicks += u.CpuStats.TotalTicks
	}
	if w := now.whole; w != nil {
		addWhole(total, before.whole, w, seconds, coreMHz)
	}
	return out
}

// addWhole puts the figures of the task's cgroups in the place of the sums over its processes: they count processes that
// have ended, and what is shared once.
func addWhole(total *structs.ResourceUsage, before, now *supervisor.Usage, seconds, coreMHz float64) {
	if m := now.Memory; m != nil {
		rss := m.RSS
		if rss == 0 { // the kernel gathers this figure with some delay, the processes tell theirs at once
			rss = total.MemoryStats.RSS
		}
		total.MemoryStats = &structs.MemoryStats{
			RSS: rss, Cache: m.Cache, Swap: m.Swap, Usage: m.Usage, MaxUsage: m.MaxUsage, KernelUsage: m.Kernel, KernelMaxUsage: m.KernelMax,
			Measured: []string{"RSS", "Cache", "Swap", "Usage", "Max Usage", "Kernel Usage", "Kernel Max Usage"},
		}
	}
	if c := now.CPU; c != nil && seconds > 0 {
		last := supervisor.CPUUsage{}
		if before != nil && before.CPU != nil {
			last = *before.CPU
		}
		percent := func(now, last time.Duration) float64 { return max((now-last).Seconds(), 0) / seconds * 100 }
		s := total.CpuStats
		s.UserMode, s.SystemMode, s.Percent = percent(c.User, last.User), percent(c.System, last.System), percent(c.Total, last.Total)
		s.TotalTicks = s.Percent / 100 * coreMHz
		s.ThrottledPeriods, s.ThrottledTime = c.ThrottledPeriods, uint64(c.Throttled)
		s.Measured = append(s.Measured, "Throttled Periods", "Throttled Time")
	}
}

func newUsage(coreMHz float64) *structs.ResourceUsage {
	cpu := []string{"System Mode", "User Mode", "Percent"}
	if coreMHz > 0 {
		cpu = append(cpu, "Total Ticks")
	}
	return &structs.ResourceUsage{
		MemoryStats: &structs.MemoryStats{Measured: []string{"RSS", "Swap", "Usage"}},
		CpuStats:    &structs.CpuStats{Measured: cpu},
	}
}

// rate is the share of one core, in percent; a number that was given to a new process counts from nothing.
func rate(now, before uint64, seconds float64) float64 {
	if now < before {
		before = 0
	}
	return float64(now-before) / ticksPerSecond / seconds * 100
}
