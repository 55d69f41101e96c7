package schedtest

import (
	"fmt"

	"github.com/nomadlite/nomadlite/structs"
)

// Node makes a ready node with 4000 MHz, 8192 MB of memory and 100 GB of disk.
func Node(id string) *structs.Node {
	return &structs.Node{
		ID: id, Name: id, Datacenter: "dc1", NodePool: structs.NodePoolDefault, Status: structs.NodeStatusReady,
		SchedulingEligibility: structs.NodeEligible,
		Attributes: map[string]string{
			"kernel.name": "linux", "cpu.arch": "amd64", "driver.mock_driver": "1", "nomad.version": "2.0.6",
			"unique.hostname": id,
		},
		Meta:    map[string]string{},
		Drivers: map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
		NodeResources: &structs.NodeResources{
			Cpu: structs.NodeCpuResources{
				CpuShares: 4000, TotalCpuCores: 4, ReservableCpuCores: []uint16{0, 1, 2, 3},
			},
			Memory:   structs.NodeMemoryResources{MemoryMB: 8192},
			Disk:     structs.NodeDiskResources{DiskMB: 100 * 1024},
			Networks: []*structs.NetworkResource{{Mode: "host", Device: "eth0", IP: "192.168.0.100"}},
		},
	}
}

// Job makes a job with one group "web" of one mock task, 500 MHz and 256 MB.
func Job(id, kind string, count int) *structs.Job {
	return &structs.Job{
		ID: structs.Ptr(id), Name: structs.Ptr(id), Type: structs.Ptr(kind), Datacenters: []string{"dc1"},
		Priority: structs.Ptr(50),
		TaskGroups: []*structs.TaskGroup{{
			Name: structs.Ptr("web"), Count: structs.Ptr(count),
			EphemeralDisk: &structs.EphemeralDisk{SizeMB: structs.Ptr(150)},
			Tasks: []*structs.Task{{
				Name: "main", Driver: "mock_driver", Config: map[string]any{"run_for": "10s"},
				Resources: &structs.Resources{CPU: structs.Ptr(500), MemoryMB: structs.Ptr(256)},
			}},
		}},
	}
}

// Fill puts count nodes named prefix-0000 and so on into the cluster.
func (c *Cluster) Fill(prefix string, count int, edit func(i int, n *structs.Node)) {
	for i := range count {
		n := Node(fmt.Sprintf("%s-%04d", prefix, i))
		if edit != nil {
			edit(i, n)
		}
		c.PutNode(n)
	}
}
