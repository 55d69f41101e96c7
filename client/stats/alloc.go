package stats

import (
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// Sum adds up what the tasks of an allocation use.
func Sum(tasks map[string]*structs.TaskResourceUsage, now int64) *structs.AllocResourceUsage {
	total := &structs.ResourceUsage{
		MemoryStats: &structs.MemoryStats{}, CpuStats: &structs.CpuStats{}, DeviceStats: []*structs.DeviceGroupStats{},
	}
	for _, t := range tasks {
		if t == nil || t.ResourceUsage == nil {
			continue
		}
		if m := t.ResourceUsage.MemoryStats; m != nil {
			addMemory(total.MemoryStats, m)
		}
		if c := t.ResourceUsage.CpuStats; c != nil {
			addCPU(total.CpuStats, c)
		}
		total.DeviceStats = append(total.DeviceStats, t.ResourceUsage.DeviceStats...)
	}
	return &structs.AllocResourceUsage{ResourceUsage: total, Tasks: tasks, Timestamp: now}
}

func addMemory(sum, m *structs.MemoryStats) {
	sum.RSS += m.RSS
	sum.Cache += m.Cache
	sum.Swap += m.Swap
	sum.Usage += m.Usage
	sum.MaxUsage += m.MaxUsage
	sum.KernelUsage += m.KernelUsage
	sum.KernelMaxUsage += m.KernelMaxUsage
	sum.Measured = union(sum.Measured, m.Measured)
}

func addCPU(sum, c *structs.CpuStats) {
	sum.SystemMode += c.SystemMode
	sum.UserMode += c.UserMode
	sum.TotalTicks += c.TotalTicks
	sum.ThrottledPeriods += c.ThrottledPeriods
	sum.ThrottledTime += c.ThrottledTime
	sum.Percent += c.Percent
	sum.Measured = union(sum.Measured, c.Measured)
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(slices.Clip(a), s)
		}
	}
	return a
}
