package stats

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/nomadlite/nomadlite/structs"
)

// shortest time between two readings of the processors; a question within it gets the rates of the last one.
const shortest = 100 * time.Millisecond

// Host measures the machine.
type Host struct {
	allocDir string
	compute  float64 // MHz of all cores together

	mu    sync.Mutex
	last  map[string]cpu.TimesStat
	at    time.Time
	rates []*structs.HostCPUStats
}

// NewHost measures a machine whose allocations lie in allocDir and whose cores give compute MHz together.
func NewHost(allocDir string, compute float64) *Host {
	return &Host{allocDir: allocDir, compute: compute}
}

// Collect measures now. Processor rates are those since the question before; of the first one, since boot.
func (h *Host) Collect(ctx context.Context) (*structs.HostStats, error) {
	vm, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure memory: %w", err)
	}
	cpus, err := h.processors(ctx)
	if err != nil {
		return nil, err
	}
	uptime, err := host.UptimeWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("read uptime: %w", err)
	}
	out := &structs.HostStats{
		Memory:      &structs.HostMemoryStats{Total: vm.Total, Available: vm.Available, Used: vm.Used, Free: vm.Free},
		CPU:         cpus,
		DiskStats:   disks(ctx),
		DeviceStats: []*structs.DeviceGroupStats{},
		Uptime:      uptime,
	}
	busy := 0.0
	for _, c := range cpus {
		busy += 100 - c.Idle
	}
	if len(cpus) > 0 {
		out.CPUTicksConsumed = busy / 100 / float64(len(cpus)) * h.compute
	}
	if u, err := disk.UsageWithContext(ctx, h.allocDir); err == nil {
		out.AllocDirStats = diskStats("", u)
	}
	return out, nil
}

func (h *Host) processors(ctx context.Context) ([]*structs.HostCPUStats, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if h.rates != nil && now.Sub(h.at) < shortest {
		return h.rates, nil
	}
	times, err := cpu.TimesWithContext(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("measure processors: %w", err)
	}
	last := h.last
	h.last, h.at, h.rates = make(map[string]cpu.TimesStat, len(times)), now, nil
	for _, t := range times {
		h.last[t.CPU] = t
		h.rates = append(h.rates, rates(last[t.CPU], t))
	}
	return h.rates, nil
}

// rates are the shares of the time between two readings, in percent.
func rates(a, b cpu.TimesStat) *structs.HostCPUStats {
	total := sum(b) - sum(a)
	out := &structs.HostCPUStats{CPU: b.CPU}
	if total <= 0 {
		out.Idle = 100
		return out
	}
	share := func(x float64) float64 { return min(max(100*x/total, 0), 100) }
	out.User = share(b.User + b.Nice - a.User - a.Nice)
	out.System = share(b.System + b.Irq + b.Softirq - a.System - a.Irq - a.Softirq)
	out.Idle = share(b.Idle + b.Iowait - a.Idle - a.Iowait)
	return out
}

func sum(t cpu.TimesStat) float64 {
	return t.User + t.Nice + t.System + t.Idle + t.Iowait + t.Irq + t.Softirq + t.Steal
}

// disks measures the file systems that lie on devices, each once.
func disks(ctx context.Context) []*structs.HostDiskStats {
	out := []*structs.HostDiskStats{}
	parts, err := disk.PartitionsWithContext(ctx, false)
	if err != nil {
		return out // containers without the kernel's table: the allocations' own disk is measured all the same
	}
	seen := map[string]bool{}
	for _, p := range parts {
		if seen[p.Device] || !strings.HasPrefix(p.Device, "/dev/") {
			continue
		}
		u, err := disk.UsageWithContext(ctx, p.Mountpoint)
		if err != nil {
			continue
		}
		seen[p.Device] = true
		out = append(out, diskStats(p.Device, u))
	}
	return out
}

func diskStats(device string, u *disk.UsageStat) *structs.HostDiskStats {
	return &structs.HostDiskStats{
		Device: device, Mountpoint: u.Path, Size: u.Total, Used: u.Used, Available: u.Free,
		UsedPercent: u.UsedPercent, InodesUsedPercent: u.InodesUsedPercent,
	}
}
