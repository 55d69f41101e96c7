package structs

import (
	"reflect"
	"testing"
)

func testNode() *Node {
	n := &Node{
		ID: "1", Name: "a", Datacenter: "dc1", NodeClass: "big", HTTPAddr: "192.0.2.1:4646",
		Attributes: map[string]string{"kernel.name": "linux", "unique.hostname": "a"},
		Meta:       map[string]string{"rack": "1", "unique.tag": "a"},
		Drivers:    map[string]*DriverInfo{"raw_exec": {Detected: true, Healthy: true}},
		NodeResources: &NodeResources{
			Cpu: NodeCpuResources{CpuShares: 4000}, Memory: NodeMemoryResources{MemoryMB: 2000}, Disk: NodeDiskResources{DiskMB: 9000},
		},
		ReservedResources: &NodeReservedResources{
			Cpu: NodeReservedCpuResources{CpuShares: 500}, Memory: NodeReservedMemoryResources{MemoryMB: 100},
			Disk: NodeReservedDiskResources{DiskMB: 1000}, Networks: NodeReservedNetworkResources{ReservedHostPorts: "22,80-81"},
		},
	}
	n.Canonicalize()
	n.ComputeClass()
	return n
}

func TestClassLeavesOutWhatIsUnique(t *testing.T) {
	base := testNode().ComputedClass
	for name, change := range map[string]func(*Node){
		"id": func(n *Node) { n.ID, n.Name = "2", "b" },
		"unique": func(n *Node) {
			n.Attributes["unique.hostname"], n.Meta["unique.tag"] = "b", "b"
		},
		"status":    func(n *Node) { n.Status, n.ModifyIndex = NodeStatusReady, 9 },
		"resources": func(n *Node) { n.NodeResources.Cpu.CpuShares = 1 },
	} {
		n := testNode()
		change(n)
		if n.ComputeClass(); n.ComputedClass != base {
			t.Errorf("%s is part of the class", name)
		}
	}
	for name, change := range map[string]func(*Node){
		"datacenter": func(n *Node) { n.Datacenter = "dc2" },
		"class":      func(n *Node) { n.NodeClass = "" },
		"pool":       func(n *Node) { n.NodePool = "x" },
		"attribute":  func(n *Node) { n.Attributes["kernel.name"] = "plan9" },
		"meta":       func(n *Node) { n.Meta["rack"] = "2" },
		"moved":      func(n *Node) { n.Meta["kernel.name"], n.Attributes["kernel.name"] = "linux", "" },
		"health":     func(n *Node) { n.Drivers["raw_exec"].Healthy = false },
		"volume":     func(n *Node) { n.HostVolumes = map[string]*HostVolumeInfo{"v": {}} },
		"network":    func(n *Node) { n.HostNetworks = map[string]*HostNetworkInfo{"n": {}} },
		"device": func(n *Node) {
			n.NodeResources.Devices = []*NodeDeviceResource{{Name: "x", Attributes: map[string]*Attribute{"a": {Int: Ptr(int64(1))}}}}
		},
	} {
		n := testNode()
		change(n)
		if n.ComputeClass(); n.ComputedClass == base {
			t.Errorf("%s is no part of the class", name)
		}
	}
	for target, want := range map[string]bool{
		"${node.unique.id}": true, "${attr.unique.hostname}": true, "${meta.unique.tag}": true,
		"${node.class}": false, "${attr.kernel.name}": false, "linux": false, "": false,
	} {
		if EscapesClass(target) != want {
			t.Errorf("%q escapes: %v", target, !want)
		}
	}
}

func TestNodeDefaultsAndResources(t *testing.T) {
	n := testNode()
	if n.NodePool != NodePoolDefault || n.Status != NodeStatusInit || n.SchedulingEligibility != NodeEligible ||
		n.NodeResources.MinDynamicPort != DefaultMinDynamicPort || n.NodeResources.MaxDynamicPort != DefaultMaxDynamicPort {
		t.Errorf("got %+v", n)
	}
	want := Comparable{CPU: 3500, MemoryMB: 1900, DiskMB: 8000, Ports: []uint16{22, 80, 81}}
	if got := n.ComparableResources(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if n.Ready() {
		t.Error("a node that initializes is ready")
	}
	n.Status = NodeStatusReady
	if !n.Ready() {
		t.Error("a ready node is not")
	}
	n.DrainStrategy = &DrainStrategy{}
	if n.Ready() {
		t.Error("a draining node is ready")
	}
	again := n.Copy()
	again.Canonicalize()
	n.Drain = true
	if !reflect.DeepEqual(again, n) {
		t.Error("the defaults change what is set")
	}
	if s := n.Stub(); s.Address != "192.0.2.1" || !s.Drain {
		t.Errorf("got %+v", s)
	}
	empty := &Node{}
	empty.Canonicalize()
	empty.ComparableResources()
}
