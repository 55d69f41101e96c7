package fingerprint

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"
	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/structs"
)

// Config is what the agent's configuration says about the node. Zero values mean: find out.
type Config struct {
	AllocDir         string // its file system is the node's disk
	NetworkInterface string
	NetworkSpeed     int // Mbit/s
	PreferIPv6       bool
	HostNetworks     []HostNetwork
	CPUTotalCompute  int // MHz
	MemoryTotalMB    int
	DiskTotalMB      int
	DiskFreeMB       int
	ReservableCores  string // "0-3,7"
	MinDynamicPort   int
	MaxDynamicPort   int
	Reserved         Reserved
	// AdvertiseAddr is host:port of the agent's HTTP address as others reach it.
	AdvertiseAddr string
	// ServiceDiscovery says that the agent registers services of provider nomad.
	ServiceDiscovery bool
}

// Reserved is what allocations may not use.
type Reserved struct {
	CPU      int // MHz
	MemoryMB int
	DiskMB   int
	Ports    string // "22,80,8500-8600"
	Cores    string // "0-1"
}

// HostNetwork is a named network of the node, by CIDR or interface.
type HostNetwork struct {
	Name          string
	CIDR          string
	Interface     string
	ReservedPorts string
}

// Host fills in node's attributes and resources. What cannot be found out is left out; an error means that the
// configuration asks for something which this machine does not have.
func Host(ctx context.Context, cfg Config, node *structs.Node) error {
	if node.Attributes == nil {
		node.Attributes = map[string]string{}
	}
	if node.Links == nil {
		node.Links = map[string]string{}
	}
	node.NodeResources = &structs.NodeResources{MinDynamicPort: cfg.MinDynamicPort, MaxDynamicPort: cfg.MaxDynamicPort}
	node.ReservedResources = &structs.NodeReservedResources{}
	operatingSystem(node)
	if err := processors(ctx, cfg, node); err != nil {
		return err
	}
	if err := memory(ctx, cfg, node); err != nil {
		return err
	}
	if err := storage(cfg, node); err != nil {
		return err
	}
	if err := networks(cfg, node); err != nil {
		return err
	}
	attrs := node.Attributes
	attrs["nomad.version"] = structs.CompatVersion
	attrs["nomadlite.version"] = structs.Version
	if cfg.AdvertiseAddr != "" {
		attrs["nomad.advertise.address"] = cfg.AdvertiseAddr
	}
	attrs["nomad.service_discovery"] = strconv.FormatBool(cfg.ServiceDiscovery)
	return nil
}

// operatingSystem tells kernel, distribution and control groups.
func operatingSystem(node *structs.Node) {
	attrs := node.Attributes
	attrs["kernel.name"] = runtime.GOOS
	var uts unix.Utsname
	if err := unix.Uname(&uts); err == nil {
		attrs["kernel.version"] = unix.ByteSliceToString(uts.Release[:])
		attrs["kernel.arch"] = unix.ByteSliceToString(uts.Machine[:])
	}
	if name, err := os.Hostname(); err == nil {
		attrs["unique.hostname"] = name
	}
	release := osRelease()
	attrs["os.name"], attrs["os.version"] = orUnknown(release["ID"]), orUnknown(release["VERSION_ID"])
	attrs["os.signals"] = strings.Join(signals(), ",")
	switch {
	case exists("/sys/fs/cgroup/cgroup.controllers"):
		attrs["os.cgroups.version"] = "2"
	case exists("/sys/fs/cgroup"):
		attrs["os.cgroups.version"] = "1"
	}
}

func signals() []string {
	var names []string
	for n := unix.Signal(1); n <= 31; n++ {
		if name := unix.SignalName(n); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func osRelease() map[string]string {
	out := map[string]string{}
	for _, path := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				out[k] = strings.Trim(v, `"'`)
			}
		}
		break
	}
	return out
}

// processors counts cores and their speed. The node's compute is cores times MHz, unless configured.
func processors(ctx context.Context, cfg Config, node *structs.Node) error {
	attrs := node.Attributes
	attrs["cpu.arch"] = runtime.GOARCH
	cores, mhz := runtime.NumCPU(), 0.0
	if infos, err := cpu.InfoWithContext(ctx); err == nil {
		for _, info := range infos {
			mhz = max(mhz, info.Mhz)
			if info.ModelName != "" {
				attrs["cpu.modelname"] = info.ModelName
			}
		}
	}
	if mhz <= 0 {
		mhz = 1000 // machines that do not tell; enough to place work by, and can be configured
	}
	frequency := int(math.Round(mhz))
	total := cores * frequency
	if cfg.CPUTotalCompute > 0 {
		total = cfg.CPUTotalCompute
	}
	reservable, err := coreSet(cfg.ReservableCores)
	if err != nil {
		return fmt.Errorf("read reservable_cores: %w", err)
	}
	if len(reservable) == 0 {
		for i := range cores {
			reservable = append(reservable, uint16(i))
		}
	}
	reserved, err := coreSet(cfg.Reserved.Cores)
	if err != nil {
		return fmt.Errorf("read reserved cores: %w", err)
	}
	reservable = slices.DeleteFunc(reservable, func(c uint16) bool { return slices.Contains(reserved, c) || int(c) >= cores })
	taken := max(cfg.Reserved.CPU, len(reserved)*frequency)

	node.NodeResources.Cpu = structs.NodeCpuResources{
		CpuShares: int64(total), TotalCpuCores: uint16(cores), ReservableCpuCores: reservable,
	}
	node.ReservedResources.Cpu.CpuShares = uint64(taken)
	attrs["cpu.numcores"] = strconv.Itoa(cores)
	attrs["cpu.reservablecores"] = strconv.Itoa(len(reservable))
	attrs["cpu.frequency"] = strconv.Itoa(frequency)
	attrs["cpu.totalcompute"] = strconv.Itoa(total)
	attrs["cpu.usablecompute"] = strconv.Itoa(max(total-taken, 0))
	return nil
}

// coreSet reads "0-3,7".
func coreSet(text string) ([]uint16, error) {
	var out []uint16
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		lo, hi, isRange := strings.Cut(part, "-")
		if !isRange {
			hi = lo
		}
		first, err1 := strconv.ParseUint(strings.TrimSpace(lo), 10, 16)
		last, err2 := strconv.ParseUint(strings.TrimSpace(hi), 10, 16)
		if err1 != nil || err2 != nil || last < first {
			return nil, structs.Errorf(structs.CodeInvalid, "%q is no set of cores", part)
		}
		for c := first; c <= last; c++ {
			out = append(out, uint16(c))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func memory(ctx context.Context, cfg Config, node *structs.Node) error {
	total := uint64(cfg.MemoryTotalMB) << 20
	if total == 0 {
		vm, err := mem.VirtualMemoryWithContext(ctx)
		if err != nil {
			return fmt.Errorf("read memory size: %w", err)
		}
		total = vm.Total
	}
	node.Attributes["memory.totalbytes"] = strconv.FormatUint(total, 10)
	node.NodeResources.Memory.MemoryMB = int64(total >> 20)
	node.ReservedResources.Memory.MemoryMB = uint64(cfg.Reserved.MemoryMB)
	return nil
}

// storage looks at the file system of the allocation directories.
func storage(cfg Config, node *structs.Node) error {
	var st unix.Statfs_t
	if err := unix.Statfs(existingDir(cfg.AllocDir), &st); err != nil {
		return fmt.Errorf("read disk size of %s: %w", cfg.AllocDir, err)
	}
	total, free := st.Blocks*uint64(st.Bsize), st.Bavail*uint64(st.Bsize)
	if cfg.DiskTotalMB > 0 {
		total = uint64(cfg.DiskTotalMB) << 20
		free = min(free, total)
	}
	if cfg.DiskFreeMB > 0 {
		free = uint64(cfg.DiskFreeMB) << 20
	}
	node.Attributes["unique.storage.volume"] = volumeOf(existingDir(cfg.AllocDir))
	node.Attributes["unique.storage.bytestotal"] = strconv.FormatUint(total, 10)
	node.Attributes["unique.storage.bytesfree"] = strconv.FormatUint(free, 10)
	node.NodeResources.Disk.DiskMB = int64(free >> 20)
	node.ReservedResources.Disk.DiskMB = uint64(cfg.Reserved.DiskMB)
	return nil
}

// existingDir is dir or its nearest parent that exists.
func existingDir(dir string) string {
	for dir != "/" && dir != "." && dir != "" && !exists(dir) {
		dir = filepath.Dir(dir)
	}
	if dir == "" {
		return "."
	}
	return dir
}

// volumeOf finds the device that is mounted at or above path.
func volumeOf(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	best, device := "", ""
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 2 || len(f[1]) < len(best) {
			continue
		}
		if f[1] == "/" || path == f[1] || strings.HasPrefix(path, f[1]+"/") {
			best, device = f[1], f[0]
		}
	}
	return device
}
