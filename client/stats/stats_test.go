package stats

import (
	"context"
	"testing"

	"github.com/shirou/gopsutil/v4/cpu"
	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHostIsMeasured(t *testing.T) {
	h := NewHost(t.TempDir(), 4000)
	s, err := h.Collect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if s.Memory.Total == 0 || len(s.CPU) == 0 || s.Uptime == 0 || s.AllocDirStats == nil || s.AllocDirStats.Size == 0 {
		t.Fatalf("measured %+v", s)
	}
	if s.CPUTicksConsumed < 0 || s.CPUTicksConsumed > 4000 {
		t.Fatalf("ticks %f", s.CPUTicksConsumed)
	}
	again, err := h.Collect(context.Background())
	if err != nil || again.CPU[0] != s.CPU[0] {
		t.Fatalf("rates were taken anew at once, error %v", err)
	}
}

func TestRates(t *testing.T) {
	a := cpu.TimesStat{CPU: "cpu0", User: 10, System: 5, Idle: 85}
	b := cpu.TimesStat{CPU: "cpu0", User: 15, Nice: 5, System: 10, Idle: 160, Iowait: 10}
	if r := rates(a, b); r.User != 10 || r.System != 5 || r.Idle != 85 {
		t.Fatalf("%+v", r)
	}
	if r := rates(b, b); r.Idle != 100 {
		t.Fatalf("%+v", r)
	}
}

func TestSum(t *testing.T) {
	usage := func(rss uint64, percent float64) *structs.TaskResourceUsage {
		return &structs.TaskResourceUsage{ResourceUsage: &structs.ResourceUsage{
			MemoryStats: &structs.MemoryStats{RSS: rss, Measured: []string{"RSS"}},
			CpuStats:    &structs.CpuStats{Percent: percent, Measured: []string{"Percent"}},
		}}
	}
	s := Sum(map[string]*structs.TaskResourceUsage{"a": usage(1, 2), "b": usage(10, 20), "c": {}}, 7)
	if r := s.ResourceUsage; r.MemoryStats.RSS != 11 || r.CpuStats.Percent != 22 || len(r.CpuStats.Measured) != 1 || s.Timestamp != 7 {
		t.Fatalf("%+v", r)
	}
}
