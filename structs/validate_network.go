package structs

import "strings"

const maxPort = 65535

func validateNetworks(s scope, networks []*NetworkResource) {
	type static struct {
		network string
		port    int
	}
	labels, statics := map[string]bool{}, map[static]string{}
	for _, n := range networks {
		s := s.in("network")
		switch n.Mode {
		case "", NetworkModeNone, NetworkModeBridge, NetworkModeHost:
		default:
			if name, ok := strings.CutPrefix(n.Mode, "cni/"); !ok || name == "" {
				s.addf("mode %q is not one of %q, %q, %q, %q", n.Mode, NetworkModeNone, NetworkModeBridge, NetworkModeHost, "cni/NAME")
			}
		}
		for i, p := range append(append([]Port{}, n.ReservedPorts...), n.DynamicPorts...) {
			s := s.in("port %q", p.Label)
			if p.Label == "" {
				s.addf("label is missing")
			}
			if labels[p.Label] {
				s.addf("label is there more than once")
			}
			labels[p.Label] = true
			if p.To < -1 || p.To > maxPort {
				s.addf("to must be from -1 to %d (it is %d)", maxPort, p.To)
			}
			if i >= len(n.ReservedPorts) {
				continue // what a dynamic port is, the scheduler says
			}
			if p.Value <= 0 || p.Value > maxPort {
				s.addf("static must be from 1 to %d (it is %d)", maxPort, p.Value)
				continue
			}
			key := static{p.HostNetwork, p.Value}
			if other, taken := statics[key]; taken && !p.IgnoreCollision {
				s.addf("static port %d is reserved by port %q too", p.Value, other)
			}
			statics[key] = p.Label
		}
	}
}
