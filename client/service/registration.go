package service

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nomadlite/nomadlite/structs"
)

// Input is what the registrations of a group or task are made of.
type Input struct {
	Alloc *structs.Allocation
	// Task names the task whose services they are; empty for those of the group.
	Task     string
	Services []*structs.Service // already interpolated
	Node     *structs.Node
}

// Registrations makes what is to be offered. It tells all faults at once, and then nothing is to be offered.
func Registrations(in Input) ([]*structs.ServiceRegistration, error) {
	var errs structs.Errors
	var out []*structs.ServiceRegistration
	seen := map[string]bool{}
	for _, s := range in.Services {
		if s.Provider != structs.ServiceProviderNomad {
			errs.Addf("service %q: provider %q is not supported by this node", s.Name, s.Provider)
			continue
		}
		if !structs.ValidServiceName(s.Name) {
			errs.Addf("service %q: the name must have 1 to 63 letters, digits and dashes", s.Name)
			continue
		}
		address, port, err := in.locate(s)
		if err != nil {
			errs.Addf("service %q: %w", s.Name, err)
			continue
		}
		reg := &structs.ServiceRegistration{
			ID: structs.ServiceID(in.Alloc.ID, in.Alloc.TaskGroup, in.Task, s), ServiceName: s.Name,
			Namespace: in.Alloc.Namespace, NodeID: in.Alloc.NodeID, JobID: in.Alloc.JobID, AllocID: in.Alloc.ID,
			Tags: in.tags(s), Address: address, Port: port,
		}
		if seen[reg.ID] {
			errs.Addf("service %q is there more than once", s.Name)
			continue
		}
		seen[reg.ID] = true
		out = append(out, reg)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

// tags are those of a canary while the allocation is one.
func (in Input) tags(s *structs.Service) []string {
	if d := in.Alloc.DeploymentStatus; d != nil && d.Canary && len(s.CanaryTags) > 0 {
		return s.CanaryTags
	}
	return s.Tags
}

// locate finds where a service is reached.
func (in Input) locate(s *structs.Service) (address string, port int, err error) {
	switch s.AddressMode {
	case structs.AddressModeAlloc, structs.AddressModeAllocIPv6:
		return in.locateInside(s)
	case structs.AddressModeDriver:
		return "", 0, structs.Errorf(structs.CodeInvalid,
			"address_mode %q needs a driver that gives the task an address of its own", s.AddressMode)
	}
	p, err := in.port(s.PortLabel)
	if err != nil {
		return "", 0, err
	}
	return cmp.Or(s.Address, p.HostIP, in.hostIP()), p.Value, nil
}

// locateInside is for groups with a network of their own.
func (in Input) locateInside(s *structs.Service) (string, int, error) {
	address := ""
	if n := in.Alloc.NetworkStatus; n != nil {
		address = n.Address
		if s.AddressMode == structs.AddressModeAllocIPv6 {
			address = n.AddressIPv6
		}
	}
	if address == "" {
		return "", 0, structs.Errorf(structs.CodeInvalid,
			"address_mode %q needs a group with a network of its own, this one is in the host's", s.AddressMode)
	}
	p, err := in.port(s.PortLabel)
	if err != nil {
		return "", 0, err
	}
	if p.To > 0 {
		return address, p.To, nil
	}
	return address, p.Value, nil
}

// port finds a port by its label: among the group's, then among the task's own. A number that is no label is a port by
// itself, and no label is no port.
func (in Input) port(label string) (structs.PortMapping, error) {
	if label == "" {
		return structs.PortMapping{}, nil
	}
	if res := in.Alloc.AllocatedResources; res != nil {
		for _, p := range res.Shared.Ports {
			if p.Label == label {
				return p, nil
			}
		}
		networks := slices.Clone(res.Shared.Networks)
		if t := res.Tasks[in.Task]; t != nil {
			networks = append(networks, t.Networks...)
		}
		for _, n := range networks {
			for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
				if p.Label == label {
					return structs.PortMapping{Label: label, Value: p.Value, To: p.To, HostIP: n.IP}, nil
				}
			}
		}
	}
	if n, err := strconv.Atoi(label); err == nil && n >= 0 && n <= 65535 {
		return structs.PortMapping{Value: n}, nil
	}
	return structs.PortMapping{}, structs.Errorf(structs.CodeInvalid, "port %q is neither a port of the group nor a number", label)
}

// hostIP is the address of the host's network in which the group is, or the node's.
func (in Input) hostIP() string {
	if res := in.Alloc.AllocatedResources; res != nil {
		for _, n := range res.Shared.Networks {
			if n.IP != "" {
				return n.IP
			}
		}
	}
	if in.Node == nil {
		return ""
	}
	if ip := in.Node.Attributes["unique.network.ip-address"]; ip != "" {
		return ip
	}
	if res := in.Node.NodeResources; res != nil {
		for _, n := range res.Networks {
			if n.IP != "" {
				return n.IP
			}
		}
	}
	return ""
}
