package client

import (
	"net/netip"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// networkOf is the network in which a group's tasks are: the node's own one, since groups that ask for one of their
// own are refused. It is nil for a group without a network, and on a node without an address.
func networkOf(alloc *structs.Allocation, node *structs.Node) *structs.AllocNetworkStatus {
	group := alloc.Group()
	if group == nil || node == nil || node.NodeResources == nil {
		return nil
	}
	for _, n := range group.Networks {
		if n.Mode == structs.NetworkModeNone || n.Mode == structs.NetworkModeBridge || strings.HasPrefix(n.Mode, "cni/") {
			return nil
		}
	}
	var out *structs.AllocNetworkStatus
	for _, n := range node.NodeResources.Networks {
		addr, err := netip.ParseAddr(n.IP)
		if err != nil {
			continue
		}
		if out == nil {
			out = &structs.AllocNetworkStatus{InterfaceName: n.Device, Address: n.IP}
		}
		if addr.Is6() && out.AddressIPv6 == "" && n.Device == out.InterfaceName {
			out.AddressIPv6 = n.IP
		}
	}
	return out
}
