package feasible

import (
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// Filter is one condition that a node must meet. Check says whether it does, Explain why it does not (asked only then);
// the text of Explain is the key under which the rejection is counted in an allocation's metrics.
type Filter interface {
	Check(node *structs.Node) bool
	Explain(node *structs.Node) string
}

// constraintFilter is one constraint block over what a single node has.
type constraintFilter struct {
	constraint *structs.Constraint
	holds      predicate
}

func newConstraintFilter(c *structs.Constraint) *constraintFilter {
	return &constraintFilter{constraint: c, holds: predicateOf(c.Operand)}
}

func (f *constraintFilter) Check(node *structs.Node) bool {
	l, lok := Resolve(node, f.constraint.LTarget)
	r, rok := Resolve(node, f.constraint.RTarget)
	return f.holds(l, r, lok, rok)
}

func (f *constraintFilter) Explain(*structs.Node) string { return ConstraintText(f.constraint) }

// ConstraintText is how a constraint is written in metrics: left, operator, right.
func ConstraintText(c *structs.Constraint) string {
	op := c.Operand
	if op == "" {
		op = "="
	}
	return strings.TrimSpace(c.LTarget + " " + op + " " + c.RTarget)
}

// driverFilter asks for healthy drivers.
type driverFilter struct{ drivers []string }

func (f driverFilter) Check(node *structs.Node) bool {
	for _, name := range f.drivers {
		if info, ok := node.Drivers[name]; ok {
			if !info.Detected || !info.Healthy {
				return false
			}
			continue
		}
		// An agent that reports no driver records says so by the attribute alone.
		if on, err := strconv.ParseBool(node.Attributes["driver."+name]); err != nil || !on {
			return false
		}
	}
	return true
}

func (f driverFilter) Explain(*structs.Node) string { return "missing drivers" }

// volumeFilter asks for host volumes, writable ones where the group writes.
type volumeFilter struct{ requests []*structs.VolumeRequest }

func (f volumeFilter) Check(node *structs.Node) bool {
	for _, req := range f.requests {
		vol, ok := node.HostVolumes[req.Source]
		if !ok || (vol.ReadOnly && !req.ReadOnly) {
			return false
		}
	}
	return true
}

func (f volumeFilter) Explain(*structs.Node) string { return "missing compatible host volumes" }

// networkFilter asks for the host networks that ports name.
type networkFilter struct{ names []string }

func (f networkFilter) Check(node *structs.Node) bool { return f.missing(node) == "" }

func (f networkFilter) Explain(node *structs.Node) string {
	return "missing host network " + strconv.Quote(f.missing(node)) + " for port"
}

func (f networkFilter) missing(node *structs.Node) string {
	for _, name := range f.names {
		if _, ok := node.HostNetworks[name]; !ok {
			return name
		}
	}
	return ""
}

// refuseFilter refuses every node, for what a group asks that no node can give yet.
type refuseFilter struct{ reason string }

func (f refuseFilter) Check(*structs.Node) bool     { return false }
func (f refuseFilter) Explain(*structs.Node) string { return f.reason }
