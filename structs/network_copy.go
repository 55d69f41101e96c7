package structs

import (
	"maps"
	"slices"
)

// Copy gives a deep copy, nil for nil.
func (n *NetworkResource) Copy() *NetworkResource {
	if n == nil {
		return nil
	}
	out := *n
	out.DNS = n.DNS.Copy()
	out.ReservedPorts = slices.Clone(n.ReservedPorts)
	out.DynamicPorts = slices.Clone(n.DynamicPorts)
	out.MBits = copyPtr(n.MBits)
	out.CNI = n.CNI.Copy()
	return &out
}

// Copy gives a deep copy, nil for nil.
func (d *DNSConfig) Copy() *DNSConfig {
	if d == nil {
		return nil
	}
	out := *d
	out.Servers = slices.Clone(d.Servers)
	out.Searches = slices.Clone(d.Searches)
	out.Options = slices.Clone(d.Options)
	return &out
}

// Copy gives a deep copy, nil for nil.
func (c *CNIConfig) Copy() *CNIConfig {
	if c == nil {
		return nil
	}
	out := *c
	out.Args = maps.Clone(c.Args)
	return &out
}
