package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/nomadlite/nomadlite/structs"
)

// What every simulated node has.
const (
	nodeMHz      = 14_000
	nodeCores    = 4
	nodeMemoryMB = 32_000
	nodeDiskMB   = 100 * 1024
	nodeRacks    = 50
)

var nodeDrivers = []string{"mock_driver", "raw_exec", "exec", "docker"}

// describe says what the i-th node is. Nodes of one seed are the same in every process; an empty seed makes new ones.
func describe(cfg *Config, i int, now time.Time) *structs.Node {
	id, secret := uuid.New(), uuid.New()
	if cfg.Seed != "" {
		id = uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "nodesim %s id %d", cfg.Seed, i))
		secret = uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "nodesim %s secret %d", cfg.Seed, i))
	}
	name := fmt.Sprintf("sim-%05d", i)
	ip := fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	n := &structs.Node{
		ID: id.String(), SecretID: secret.String(), Name: name, HTTPAddr: ip + ":4646",
		Datacenter: cfg.Datacenters[i%len(cfg.Datacenters)], NodePool: cfg.NodePool,
		Meta:    map[string]string{"rack": fmt.Sprintf("r%d", i%nodeRacks)},
		Drivers: map[string]*structs.DriverInfo{},
		Attributes: map[string]string{
			"kernel.name": "linux", "kernel.version": "6.12.0", "kernel.arch": "x86_64",
			"cpu.arch": "amd64", "cpu.numcores": strconv.Itoa(nodeCores),
			"cpu.frequency": strconv.Itoa(nodeMHz / nodeCores), "cpu.totalcompute": strconv.Itoa(nodeMHz),
			"cpu.usablecompute": strconv.Itoa(nodeMHz), "memory.totalbytes": strconv.Itoa(nodeMemoryMB << 20),
			"os.name": "debian", "os.version": "13", "os.cgroups.version": "2", "os.signals": "SIGINT,SIGKILL,SIGTERM",
			"unique.hostname": name, "unique.network.ip-address": ip, "nomad.service_discovery": "true",
			"nomad.version": structs.CompatVersion, "nomadlite.version": structs.Version,
		},
		NodeResources: &structs.NodeResources{
			Cpu:            structs.NodeCpuResources{CpuShares: nodeMHz, TotalCpuCores: nodeCores},
			Memory:         structs.NodeMemoryResources{MemoryMB: nodeMemoryMB},
			Disk:           structs.NodeDiskResources{DiskMB: nodeDiskMB},
			Networks:       []*structs.NetworkResource{{Mode: "host", Device: "eth0", IP: ip, CIDR: ip + "/32"}},
			MinDynamicPort: structs.DefaultMinDynamicPort, MaxDynamicPort: structs.DefaultMaxDynamicPort,
		},
		ReservedResources: &structs.NodeReservedResources{},
	}
	for core := range uint16(nodeCores) {
		n.NodeResources.Cpu.ReservableCpuCores = append(n.NodeResources.Cpu.ReservableCpuCores, core)
	}
	for _, driver := range nodeDrivers {
		attr := "driver." + driver
		n.Attributes[attr] = "1"
		n.Drivers[driver] = &structs.DriverInfo{Detected: true, Healthy: true, HealthDescription: "Healthy",
			Attributes: map[string]string{attr: "1"}, UpdateTime: now}
	}
	return n
}
