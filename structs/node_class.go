package structs

import (
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// uniquePrefix marks attributes and meta keys that tell one node from another; they are no part of its class.
const uniquePrefix = "unique."

// ComputeClass sets ComputedClass: nodes of one class are alike in all that feasibility may look at, except what is
// unique to a node (see EscapesClass).
func (n *Node) ComputeClass() {
	h := fnv.New64a()
	part := func(parts ...string) {
		for _, p := range parts {
			io.WriteString(h, p) // a hash never fails
			h.Write([]byte{0})
		}
	}
	pairs := func(kind string, m map[string]string) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !strings.HasPrefix(k, uniquePrefix) {
				part(kind, k, m[k])
			}
		}
	}
	part("dc", n.Datacenter, "class", n.NodeClass, "pool", n.NodePool)
	pairs("attr", n.Attributes)
	pairs("meta", n.Meta)
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		d := n.Drivers[name]
		part("driver", name, strconv.FormatBool(d.Detected), strconv.FormatBool(d.Healthy))
	}
	for _, name := range slices.Sorted(maps.Keys(n.HostVolumes)) {
		part("volume", name, strconv.FormatBool(n.HostVolumes[name].ReadOnly))
	}
	for _, name := range slices.Sorted(maps.Keys(n.HostNetworks)) {
		part("network", name)
	}
	if n.NodeResources != nil {
		for _, d := range n.NodeResources.Devices {
			part("device", d.Vendor, d.Type, d.Name)
			for _, k := range slices.Sorted(maps.Keys(d.Attributes)) {
				part(k, d.Attributes[k].text())
			}
		}
	}
	n.ComputedClass = "v1:" + strconv.FormatUint(h.Sum64(), 10)
}

// EscapesClass says whether a constraint's target looks at something that is unique to a node, so that the answer
// of one node says nothing about its class.
func EscapesClass(target string) bool {
	return strings.HasPrefix(target, "${node.unique.") ||
		strings.HasPrefix(target, "${attr.unique.") ||
		strings.HasPrefix(target, "${meta.unique.")
}

// text gives the attribute's value and unit in one string that differs when they do.
func (a *Attribute) text() string {
	switch {
	case a == nil:
		return ""
	case a.String != nil:
		return "s:" + *a.String
	case a.Int != nil:
		return "i:" + strconv.FormatInt(*a.Int, 10) + a.Unit
	case a.Float != nil:
		return "f:" + strconv.FormatFloat(*a.Float, 'g', -1, 64) + a.Unit
	case a.Bool != nil:
		return "b:" + strconv.FormatBool(*a.Bool)
	}
	return ""
}
