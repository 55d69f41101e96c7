package fingerprint

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// defaultSpeed is assumed where the kernel cannot tell, in Mbit/s.
const defaultSpeed = 1000

// networks finds the node's address and link, and the named host networks.
func networks(cfg Config, node *structs.Node) error {
	if _, err := structs.ParsePortRanges(cfg.Reserved.Ports); err != nil {
		return fmt.Errorf("read reserved ports: %w", err)
	}
	node.ReservedResources.Networks.ReservedHostPorts = cfg.Reserved.Ports
	link, err := findInterface(cfg.NetworkInterface)
	if err != nil {
		return err
	}
	if link != nil {
		speed := linkSpeed(link.Name)
		if cfg.NetworkSpeed > 0 {
			speed = cfg.NetworkSpeed
		}
		addrs := addresses(link)
		sortAddresses(addrs, cfg.PreferIPv6)
		for _, a := range addrs {
			node.NodeResources.Networks = append(node.NodeResources.Networks, &structs.NetworkResource{
				Mode: "host", Device: link.Name, IP: a.String(), CIDR: netip.PrefixFrom(a, a.BitLen()).String(), MBits: &speed,
			})
		}
		if len(addrs) > 0 {
			node.Attributes["unique.network.ip-address"] = addrs[0].String()
		}
	}
	return hostNetworks(cfg, node)
}

// findInterface gives the configured interface, else the one of the default route, else the first that is up and has
// an address; nil when there is none.
func findInterface(name string) (*net.Interface, error) {
	if name != "" {
		link, err := net.InterfaceByName(name)
		if err != nil {
			return nil, fmt.Errorf("find network_interface %q: %w", name, err)
		}
		return link, nil
	}
	if name := defaultRoute("/proc/net/route"); name != "" {
		if link, err := net.InterfaceByName(name); err == nil && len(addresses(link)) > 0 {
			return link, nil
		}
	}
	links, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	slices.SortStableFunc(links, func(a, b net.Interface) int { return int(a.Flags&net.FlagLoopback) - int(b.Flags&net.FlagLoopback) })
	for i := range links {
		if links[i].Flags&net.FlagUp != 0 && len(addresses(&links[i])) > 0 {
			return &links[i], nil
		}
	}
	return nil, nil
}

// defaultRoute reads the kernel's table; the route with the lowest metric wins.
func defaultRoute(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	best, metric := "", -1
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 8 || !allZero(f[1]) || !allZero(f[7]) {
			continue
		}
		m, err := strconv.Atoi(f[6])
		if err == nil && (metric < 0 || m < metric) {
			best, metric = f[0], m
		}
	}
	return best
}

func allZero(hexText string) bool {
	b, err := hex.DecodeString(hexText)
	return err == nil && len(b) == 4 && b[0]|b[1]|b[2]|b[3] == 0
}

// addresses of a link, without link-local ones.
func addresses(link *net.Interface) []netip.Addr {
	list, err := link.Addrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range list {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if ip = ip.Unmap(); ok && !ip.IsLinkLocalUnicast() {
			out = append(out, ip)
		}
	}
	return out
}

func sortAddresses(addrs []netip.Addr, preferIPv6 bool) {
	slices.SortStableFunc(addrs, func(a, b netip.Addr) int {
		if a.Is4() == b.Is4() {
			return 0
		}
		if a.Is4() != preferIPv6 {
			return -1
		}
		return 1
	})
}

func linkSpeed(name string) int {
	data, err := os.ReadFile(filepath.Join("/sys/class/net", filepath.Base(name), "speed"))
	if err != nil {
		return defaultSpeed
	}
	speed, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || speed <= 0 {
		return defaultSpeed
	}
	return speed
}

// hostNetworks describes the named networks of the configuration.
func hostNetworks(cfg Config, node *structs.Node) error {
	for _, hn := range cfg.HostNetworks {
		if _, err := structs.ParsePortRanges(hn.ReservedPorts); err != nil {
			return fmt.Errorf("read reserved ports of host network %q: %w", hn.Name, err)
		}
		if hn.CIDR != "" {
			if _, err := netip.ParsePrefix(hn.CIDR); err != nil {
				return fmt.Errorf("read cidr of host network %q: %w", hn.Name, err)
			}
		}
		if hn.Interface != "" {
			if _, err := net.InterfaceByName(hn.Interface); err != nil {
				return fmt.Errorf("find interface %q of host network %q: %w", hn.Interface, hn.Name, err)
			}
		}
		if node.HostNetworks == nil {
			node.HostNetworks = map[string]*structs.HostNetworkInfo{}
		}
		node.HostNetworks[hn.Name] = &structs.HostNetworkInfo{
			Name: hn.Name, CIDR: hn.CIDR, Interface: hn.Interface, ReservedPorts: hn.ReservedPorts,
		}
	}
	return nil
}
