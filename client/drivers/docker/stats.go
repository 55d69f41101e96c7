package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/nomadlite/nomadlite/structs"
)

// sample is what a container had used at one moment.
type sample struct {
	at  time.Time
	cpu container.CPUStats
}

// Stats tells the container's use of memory now, and of CPU since the call before (or its start). Percent counts a full
// core as 100.
func (d *Driver) Stats(ctx context.Context, taskID string) (*structs.TaskResourceUsage, error) {
	t, err := d.task(ctx, taskID)
	if err != nil {
		return nil, fmt.Errorf("measure task: %w", err)
	}
	answer, err := d.engine.ContainerStats(ctx, t.container, client.ContainerStatsOptions{})
	if err != nil {
		return nil, fmt.Errorf("measure task: %w", contractError(err))
	}
	defer answer.Body.Close()
	var got container.StatsResponse
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		return nil, fmt.Errorf("measure task: %w", err)
	}
	now := sample{at: got.Read, cpu: got.CPUStats}
	if now.at.IsZero() {
		now.at = time.Now()
	}
	d.mu.Lock()
	before, seen := d.usage[taskID]
	d.usage[taskID] = now
	d.mu.Unlock()
	if !seen {
		s, err := d.Inspect(ctx, taskID)
		if err != nil {
			return nil, err
		}
		before.at = s.StartedAt
	}
	mhz := 0.0
	if d.cfg.CoreMHz != nil {
		mhz = d.cfg.CoreMHz()
	}
	return usageBetween(before, now, &got.MemoryStats, mhz), nil
}

// usageBetween is pure: two samples in, figures out.
func usageBetween(before, now sample, m *container.MemoryStats, coreMHz float64) *structs.TaskResourceUsage {
	memory := &structs.MemoryStats{Usage: m.Usage, MaxUsage: m.MaxUsage, RSS: m.Stats["rss"], Cache: m.Stats["cache"],
		Swap: m.Stats["swap"], Measured: []string{"RSS", "Cache", "Swap", "Usage", "Max Usage"}}
	if _, v1 := m.Stats["rss"]; !v1 { // cgroups v2 name them so
		memory.RSS, memory.Cache, memory.KernelUsage = m.Stats["anon"], m.Stats["file"], m.Stats["kernel"]
		memory.Measured = []string{"RSS", "Cache", "Usage", "Kernel Usage"}
	}
	cpu := &structs.CpuStats{Measured: []string{"System Mode", "User Mode", "Percent", "Throttled Periods", "Throttled Time"}}
	cpu.ThrottledPeriods, cpu.ThrottledTime = now.cpu.ThrottlingData.ThrottledPeriods, now.cpu.ThrottlingData.ThrottledTime
	if elapsed := now.at.Sub(before.at); elapsed > 0 {
		percent := func(now, before uint64) float64 {
			if now < before {
				return 0
			}
			return float64(now-before) / float64(elapsed) * 100
		}
		u, last := now.cpu.CPUUsage, before.cpu.CPUUsage
		cpu.UserMode = percent(u.UsageInUsermode, last.UsageInUsermode)
		cpu.SystemMode = percent(u.UsageInKernelmode, last.UsageInKernelmode)
		cpu.Percent = percent(u.TotalUsage, last.TotalUsage)
	}
	if coreMHz > 0 {
		cpu.TotalTicks = cpu.Percent / 100 * coreMHz
		cpu.Measured = append(cpu.Measured, "Total Ticks")
	}
	return &structs.TaskResourceUsage{ResourceUsage: &structs.ResourceUsage{MemoryStats: memory, CpuStats: cpu}, Timestamp: now.at.UnixNano()}
}
