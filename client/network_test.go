package client

import (
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

func TestNetworkOfAnAllocation(t *testing.T) {
	node := &structs.Node{NodeResources: &structs.NodeResources{Networks: []*structs.NetworkResource{
		{Device: "eth0", IP: "10.0.0.5"}, {Device: "eth0", IP: "2001:db8::5"}, {Device: "eth1", IP: "2001:db8::6"}}}}
	alloc := func(modes ...string) *structs.Allocation {
		group := &structs.TaskGroup{Name: structs.Ptr("g")}
		for _, mode := range modes {
			group.Networks = append(group.Networks, &structs.NetworkResource{Mode: mode})
		}
		return &structs.Allocation{TaskGroup: "g", Job: &structs.Job{TaskGroups: []*structs.TaskGroup{group}}}
	}
	want := structs.AllocNetworkStatus{InterfaceName: "eth0", Address: "10.0.0.5", AddressIPv6: "2001:db8::5"}
	for _, a := range []*structs.Allocation{alloc(), alloc(""), alloc("host")} {
		if got := networkOf(a, node); got == nil || *got != want {
			t.Errorf("got %+v", got)
		}
	}
	for _, mode := range []string{"none", "bridge", "cni/x"} {
		if got := networkOf(alloc(mode), node); got != nil {
			t.Errorf("mode %q: got %+v", mode, got)
		}
	}
	if networkOf(alloc(), &structs.Node{}) != nil || networkOf(&structs.Allocation{}, node) != nil {
		t.Error("a network out of nothing")
	}
}
