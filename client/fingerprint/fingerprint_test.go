package fingerprint

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/internal/fakedriver"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHostNamesWhatJobsUse(t *testing.T) {
	node := &structs.Node{}
	cfg := Config{AllocDir: filepath.Join(t.TempDir(), "not", "there"), AdvertiseAddr: "127.0.0.1:4646", MinDynamicPort: 21000,
		Reserved: Reserved{CPU: 10, MemoryMB: 20, DiskMB: 30, Ports: "22,8000-8002"}}
	begin := time.Now()
	if err := Host(context.Background(), cfg, node); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
	for _, name := range []string{
		"cpu.arch", "cpu.numcores", "cpu.frequency", "cpu.totalcompute", "cpu.usablecompute", "cpu.reservablecores",
		"memory.totalbytes", "kernel.name", "kernel.version", "kernel.arch", "os.name", "os.version", "os.signals",
		"unique.hostname", "unique.storage.volume", "unique.storage.bytestotal", "unique.storage.bytesfree",
		"unique.network.ip-address", "nomad.version", "nomadlite.version", "nomad.advertise.address",
	} {
		if node.Attributes[name] == "" {
			t.Errorf("attribute %s is missing", name)
		}
	}
	if node.Attributes["nomad.version"] != structs.CompatVersion {
		t.Errorf("version %q", node.Attributes["nomad.version"])
	}
	r := node.NodeResources
	if r.Cpu.CpuShares <= 0 || r.Memory.MemoryMB <= 0 || r.Disk.DiskMB <= 0 || len(r.Cpu.ReservableCpuCores) == 0 || r.MinDynamicPort != 21000 {
		t.Errorf("resources %+v", r)
	}
	total, _ := strconv.Atoi(node.Attributes["cpu.totalcompute"])
	if node.Attributes["cpu.usablecompute"] != strconv.Itoa(total-10) {
		t.Errorf("usable compute %s of %d", node.Attributes["cpu.usablecompute"], total)
	}
	res := node.ReservedResources
	if res.Cpu.CpuShares != 10 || res.Memory.MemoryMB != 20 || res.Disk.DiskMB != 30 || res.Networks.ReservedHostPorts != "22,8000-8002" {
		t.Errorf("reserved %+v", res)
	}
}

func TestConfigurationWins(t *testing.T) {
	node := &structs.Node{}
	cfg := Config{AllocDir: t.TempDir(), CPUTotalCompute: 7777, MemoryTotalMB: 333, DiskFreeMB: 55, NetworkInterface: "lo", NetworkSpeed: 42,
		ReservableCores: "0", HostNetworks: []HostNetwork{{Name: "public", CIDR: "203.0.113.0/24", ReservedPorts: "22"}}}
	if err := Host(context.Background(), cfg, node); err != nil {
		t.Fatal(err)
	}
	r := node.NodeResources
	if r.Cpu.CpuShares != 7777 || r.Memory.MemoryMB != 333 || r.Disk.DiskMB != 55 || len(r.Cpu.ReservableCpuCores) != 1 {
		t.Errorf("resources %+v", r)
	}
	if n := r.Networks[0]; n.Device != "lo" || n.IP != "127.0.0.1" || n.CIDR != "127.0.0.1/32" || *n.MBits != 42 {
		t.Errorf("network %+v", n)
	}
	if hn := node.HostNetworks["public"]; hn == nil || hn.CIDR != "203.0.113.0/24" {
		t.Errorf("host networks %+v", node.HostNetworks)
	}
}

func TestBadConfigurationIsNamed(t *testing.T) {
	for want, cfg := range map[string]Config{
		"network_interface": {NetworkInterface: "nope0"},
		"reserved ports":    {Reserved: Reserved{Ports: "a-b"}},
		"reservable_cores":  {ReservableCores: "3-1"},
		"cidr":              {HostNetworks: []HostNetwork{{Name: "x", CIDR: "nonsense"}}},
		"interface":         {HostNetworks: []HostNetwork{{Name: "x", Interface: "nope0"}}},
	} {
		cfg.AllocDir = t.TempDir()
		if err := Host(context.Background(), cfg, &structs.Node{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %s, got %v", want, err)
		}
	}
}

func TestDefaultRoute(t *testing.T) {
	path := filepath.Join(t.TempDir(), "route")
	table := "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n" +
		"eth1\t00000000\t0101A8C0\t0003\t0\t0\t200\t00000000\n" +
		"eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\n" +
		"eth2\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"
	if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := defaultRoute(path); got != "eth0" {
		t.Fatalf("default route over %q", got)
	}
}

func TestAddressPreference(t *testing.T) {
	list := func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.1")}
	}
	a := list()
	sortAddresses(a, false)
	b := list()
	sortAddresses(b, true)
	if !a[0].Is4() || b[0].Is4() {
		t.Fatalf("%v, %v", a, b)
	}
}

func TestDrivers(t *testing.T) {
	registry, err := driver.NewRegistry(fakedriver.New())
	if err != nil {
		t.Fatal(err)
	}
	node := &structs.Node{Attributes: map[string]string{"kernel.name": "linux"}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if !SetDrivers(node, Drivers(context.Background(), registry, now)) {
		t.Fatal("a new driver is no change")
	}
	if SetDrivers(node, Drivers(context.Background(), registry, now.Add(time.Hour))) {
		t.Fatal("the same answer is a change")
	}
	if d := node.Drivers["fake"]; !d.Healthy || !d.UpdateTime.Equal(now) || node.Attributes["driver.fake"] != "1" {
		t.Fatalf("driver %+v, attributes %v", d, node.Attributes)
	}
	if !SetDrivers(node, nil) || node.Attributes["driver.fake"] != "" || node.Attributes["kernel.name"] != "linux" {
		t.Fatalf("attributes %v", node.Attributes)
	}
}
