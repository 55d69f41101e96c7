package structs

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestComparableAddsUp(t *testing.T) {
	r := &AllocatedResources{
		Tasks: map[string]*AllocatedTaskResources{
			"a": {Cpu: AllocatedCpuResources{CpuShares: 100, ReservedCores: []uint16{3, 1}}, Memory: AllocatedMemoryResources{MemoryMB: 64, MemoryMaxMB: 128},
				Networks: []*NetworkResource{{ReservedPorts: []Port{{Label: "x", Value: 80}}, DynamicPorts: []Port{{Label: "y", Value: 20001}}}}},
			"b": {Cpu: AllocatedCpuResources{CpuShares: 50}, Memory: AllocatedMemoryResources{MemoryMB: 32}},
		},
		Shared: AllocatedSharedResources{
			DiskMB:   300,
			Networks: []*NetworkResource{{DynamicPorts: []Port{{Label: "http", Value: 20000, To: -1}, {Label: "none"}}}},
			Ports:    []PortMapping{{Label: "http", Value: 20000}},
		},
	}
	want := Comparable{CPU: 150, MemoryMB: 96, DiskMB: 300, Ports: []uint16{80, 20000, 20001}, Cores: []uint16{1, 3}}
	if got := r.Comparable(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := (*AllocatedResources)(nil).Comparable(); !reflect.DeepEqual(got, Comparable{}) {
		t.Errorf("nothing uses %+v", got)
	}
}

func TestPortOfAReplacementStaysHeld(t *testing.T) {
	old := &Allocation{AllocatedResources: &AllocatedResources{Shared: AllocatedSharedResources{Ports: []PortMapping{{Value: 8080}}}}}
	u := &NodeUsage{}
	u.Add(old)
	u.Add(old.Copy()) // the replacement on the same node
	u.Remove(old)
	if !u.HasPort(8080) || u.Allocs != 1 {
		t.Errorf("got %+v", u)
	}
	u.Remove(old)
	if u.HasPort(8080) || u.HasPort(0) || u.HasPort(70000) || (*NodeUsage)(nil).HasPort(8080) {
		t.Errorf("got %+v", u)
	}
}

// TestUsageIsTheSumOfWhatIsThere adds and removes at random and compares with a fresh count.
func TestUsageIsTheSumOfWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.Custom(func(t *rapid.T) Comparable {
			return Comparable{
				CPU: rapid.Int64Range(0, 1000).Draw(t, "cpu"), MemoryMB: rapid.Int64Range(0, 1000).Draw(t, "memory"),
				DiskMB: rapid.Int64Range(0, 1000).Draw(t, "disk"),
				Ports:  sortedSet(rapid.SliceOfN(rapid.Uint16Range(1, 9), 0, 4).Draw(t, "ports")),
				Cores:  sortedSet(rapid.SliceOfN(rapid.Uint16Range(0, 3), 0, 2).Draw(t, "cores")),
			}
		})
		usage, there := &NodeUsage{}, []Comparable{}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			if len(there) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(there)-1).Draw(t, "which")
				usage.RemoveResources(there[i])
				there = slices.Delete(there, i, i+1)
			} else {
				c := one.Draw(t, "resources")
				usage.AddResources(c)
				there = append(there, c)
			}
		}
		want := &NodeUsage{}
		for _, c := range there {
			want.CPU += c.CPU
			want.MemoryMB += c.MemoryMB
			want.DiskMB += c.DiskMB
			want.Allocs++
			want.Ports = append(want.Ports, c.Ports...)
			want.Cores = append(want.Cores, c.Cores...)
		}
		slices.Sort(want.Ports)
		slices.Sort(want.Cores)
		if usage.CPU != want.CPU || usage.MemoryMB != want.MemoryMB || usage.DiskMB != want.DiskMB || usage.Allocs != want.Allocs ||
			!slices.Equal(usage.Ports, want.Ports) || !slices.Equal(usage.Cores, want.Cores) {
			t.Fatalf("want %+v, got %+v", want, usage)
		}
		for p := range 10 {
			if usage.HasPort(p) != slices.Contains(want.Ports, uint16(p)) {
				t.Fatalf("port %d: %v", p, usage.HasPort(p))
			}
		}
	})
}

func TestParsePortRanges(t *testing.T) {
	for text, want := range map[string][]uint16{
		"": nil, "22": {22}, " 80 , 22,80": {22, 80}, "8500-8502,65535": {8500, 8501, 8502, 65535}, "1-65535,3": nil,
	} {
		got, err := ParsePortRanges(text)
		if err != nil || want != nil && !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"x", "0", "65536", "-1", "5-3", "1-", "1-2-3", "80;90"} {
		if got, err := ParsePortRanges(text); ErrorCode(err) != CodeInvalid {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
