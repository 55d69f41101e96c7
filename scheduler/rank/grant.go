package rank

import (
	"net/netip"

	"github.com/nomadlite/nomadlite/structs"
)

// grant hands out what is unique on the node and gives the allocation's resources. lacks must have said "" before.
func (p *place) grant(a *ask, relief *structs.Comparable, seed uint64) *structs.AllocatedResources {
	res := &structs.AllocatedResources{
		Tasks:  make(map[string]*structs.AllocatedTaskResources, len(a.tg.Tasks)),
		Shared: structs.AllocatedSharedResources{DiskMB: a.disk},
	}
	var taken []uint16
	for _, task := range a.tg.Tasks {
		res.Tasks[task.Name] = p.grantTask(a, task, relief, &taken)
	}
	p.grantNetworks(a, res, relief, seed)
	return res
}

func (p *place) grantTask(
	a *ask, task *structs.Task, relief *structs.Comparable, taken *[]uint16,
) *structs.AllocatedTaskResources {
	t := &structs.AllocatedTaskResources{}
	r := task.Resources
	if r == nil {
		return t
	}
	t.Cpu.CpuShares = int64(structs.Val(r.CPU))
	if cores := structs.Val(r.Cores); cores > 0 {
		for _, core := range p.node.NodeResources.Cpu.ReservableCpuCores {
			if len(t.Cpu.ReservedCores) == cores {
				break
			}
			if p.coreFree(core, relief) && !contains(*taken, int(core)) {
				t.Cpu.ReservedCores = append(t.Cpu.ReservedCores, core)
				*taken = insert(*taken, []uint16{core})
			}
		}
		t.Cpu.CpuShares = int64(cores) * p.site.CoreMHz
	}
	t.Memory.MemoryMB = int64(structs.Val(r.MemoryMB))
	if a.oversold {
		t.Memory.MemoryMaxMB = int64(structs.Val(r.MemoryMaxMB))
	}
	return t
}

// grantNetworks hands out the ports: group networks in the shared resources, networks of tasks (the older form) in
// the tasks' resources.
func (p *place) grantNetworks(a *ask, res *structs.AllocatedResources, relief *structs.Comparable, seed uint64) {
	var shared []*structs.NetworkResource
	for _, n := range a.tg.Networks {
		shared = append(shared, p.network(n))
	}
	res.Shared.Networks = shared
	for _, task := range a.tg.Tasks {
		if task.Resources == nil {
			continue
		}
		for _, n := range task.Resources.Networks {
			t := res.Tasks[task.Name]
			t.Networks = append(t.Networks, p.network(n))
		}
	}
	var chosen []uint16
	assign := func(ask *portAsk, value int, static bool) {
		port := ask.port
		port.Value = value
		if port.To == -1 {
			port.To = value
		}
		var n *structs.NetworkResource
		if ask.task == "" {
			n = shared[ask.network]
			res.Shared.Ports = append(res.Shared.Ports, structs.PortMapping{
				Label: port.Label, Value: value, To: port.To, HostIP: p.address(port.HostNetwork),
			})
		} else {
			n = res.Tasks[ask.task].Networks[ask.network]
		}
		if static {
			n.ReservedPorts = append(n.ReservedPorts, port)
		} else {
			n.DynamicPorts = append(n.DynamicPorts, port)
		}
		chosen = insert(chosen, []uint16{uint16(value)})
	}
	for i := range a.static {
		assign(&a.static[i], a.static[i].port.Value, true)
	}
	span := uint64(max(1, p.site.MaxPort-p.site.MinPort+1))
	for i := range a.dynamic {
		// The start is spread by the evaluation, so that parallel evaluations rarely want the same port.
		at := mix(seed+uint64(i)*0x9E3779B97F4A7C15) % span
		for range span {
			port := p.site.MinPort + int(at)
			if p.portFree(port, relief) && !contains(chosen, port) {
				assign(&a.dynamic[i], port, false)
				break
			}
			at = (at + 1) % span
		}
	}
}

// network is a granted network without its ports yet.
func (p *place) network(asked *structs.NetworkResource) *structs.NetworkResource {
	n := &structs.NetworkResource{
		Mode: asked.Mode, DNS: asked.DNS, Hostname: asked.Hostname, MBits: asked.MBits, CNI: asked.CNI,
	}
	if host := p.hostNetwork(); host != nil {
		n.Device, n.IP = host.Device, host.IP
	}
	return n
}

// hostNetwork is the node's default network.
func (p *place) hostNetwork() *structs.NetworkResource {
	if p.node.NodeResources == nil {
		return nil
	}
	for _, n := range p.node.NodeResources.Networks {
		if n.IP != "" && (n.Mode == "" || n.Mode == "host") {
			return n
		}
	}
	return nil
}

// address is the host address on which ports of a host network listen.
func (p *place) address(hostNetwork string) string {
	if hn := p.node.HostNetworks[hostNetwork]; hn != nil && hostNetwork != "default" {
		return p.addressOf(hn)
	}
	if host := p.hostNetwork(); host != nil {
		return host.IP
	}
	return ""
}

// addressOf finds a host network's address: the address of one of the node's networks that lies in its range or on its
// interface, else the address which the range itself names.
func (p *place) addressOf(hn *structs.HostNetworkInfo) string {
	prefix, err := netip.ParsePrefix(hn.CIDR)
	if p.node.NodeResources != nil {
		for _, n := range p.node.NodeResources.Networks {
			ip, ipErr := netip.ParseAddr(n.IP)
			switch {
			case ipErr != nil:
			case err == nil && prefix.Contains(ip):
				return n.IP
			case err != nil && hn.Interface != "" && hn.Interface == n.Device:
				return n.IP
			}
		}
	}
	if err == nil && (prefix.IsSingleIP() || prefix.Addr() != prefix.Masked().Addr()) {
		return prefix.Addr().String()
	}
	if host := p.hostNetwork(); host != nil {
		return host.IP
	}
	return ""
}

// mix spreads the bits of v (the finalizer of splitmix64).
func mix(v uint64) uint64 {
	v ^= v >> 30
	v *= 0xBF58476D1CE4E5B9
	v ^= v >> 27
	v *= 0x94D049BB133111EB
	return v ^ v>>31
}
