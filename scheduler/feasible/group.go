package feasible

import (
	"maps"
	"slices"

	"github.com/nomadlite/nomadlite/structs"
)

// Group answers for one task group of a job where it may run. It remembers the answer of each class.
type Group struct {
	byClass []Filter // answers are the same for all nodes of a class
	byNode  []Filter // look at what is unique to a node
	known   map[string]*verdict

	// DistinctHosts says that a node may run only one allocation: of the job, or of the group.
	DistinctHostsJob, DistinctHostsGroup bool
	// DistinctProperties limit how many allocations share a value.
	DistinctProperties []DistinctProperty
}

// DistinctProperty is one distinct_property constraint.
type DistinctProperty struct {
	Constraint *structs.Constraint
	Limit      int  // allocations a value, at least 1
	WholeJob   bool // counts over all groups
}

type verdict struct {
	ok     bool
	reason string
}

// NewGroup reads a group's demands. Job and group must be canonical.
func NewGroup(job *structs.Job, tg *structs.TaskGroup) *Group {
	g := &Group{known: map[string]*verdict{}}
	if drivers := driversOf(tg); len(drivers) > 0 {
		g.byClass = append(g.byClass, driverFilter{drivers})
	}
	g.addConstraints(job.Constraints, true)
	g.addConstraints(tg.Constraints, false)
	for _, task := range tg.Tasks {
		g.addConstraints(task.Constraints, false)
	}
	g.addVolumes(tg)
	if names := hostNetworksOf(tg); len(names) > 0 {
		g.byClass = append(g.byClass, networkFilter{names})
	}
	for _, task := range tg.Tasks {
		if task.Resources != nil && len(task.Resources.Devices) > 0 {
			g.byClass = append(g.byClass, refuseFilter{"missing devices"})
			break
		}
	}
	return g
}

func (g *Group) addConstraints(constraints []*structs.Constraint, wholeJob bool) {
	for _, c := range constraints {
		switch c.Operand {
		case OperandDistinctHosts:
			g.addDistinctHosts(c, wholeJob)
		case OperandDistinctProperty:
			g.DistinctProperties = append(g.DistinctProperties, newDistinctProperty(c, wholeJob))
		default:
			f := newConstraintFilter(c)
			if structs.EscapesClass(c.LTarget) || structs.EscapesClass(c.RTarget) {
				g.byNode = append(g.byNode, f)
			} else {
				g.byClass = append(g.byClass, f)
			}
		}
	}
}

func (g *Group) addVolumes(tg *structs.TaskGroup) {
	var host []*structs.VolumeRequest
	for _, name := range slices.Sorted(maps.Keys(tg.Volumes)) {
		switch req := tg.Volumes[name]; req.Type {
		case "", "host":
			host = append(host, req)
		default:
			g.byClass = append(g.byClass, refuseFilter{"missing " + req.Type + " volumes"})
		}
	}
	if len(host) > 0 {
		g.byClass = append(g.byClass, volumeFilter{host})
	}
}

// Check says whether the group may run on the node and, when not, why.
func (g *Group) Check(node *structs.Node) (bool, string) {
	v := g.known[node.ComputedClass]
	if v == nil || node.ComputedClass == "" {
		v = ask(g.byClass, node)
		if node.ComputedClass != "" {
			g.known[node.ComputedClass] = v
		}
	}
	if !v.ok || len(g.byNode) == 0 {
		return v.ok, v.reason
	}
	own := ask(g.byNode, node)
	return own.ok, own.reason
}

// ClassDecides says that all nodes of a class get the same answer.
func (g *Group) ClassDecides() bool { return len(g.byNode) == 0 }

func ask(filters []Filter, node *structs.Node) *verdict {
	for _, f := range filters {
		if !f.Check(node) {
			return &verdict{reason: f.Explain(node)}
		}
	}
	return &verdict{ok: true}
}

// Escaped says that the class of a node does not settle whether the group may run there.
func (g *Group) Escaped() bool {
	if len(g.byNode) > 0 {
		return true
	}
	for _, d := range g.DistinctProperties {
		if structs.EscapesClass(d.Constraint.LTarget) {
			return true
		}
	}
	return false
}

// Classes gives, for each class that was asked, whether a node of it may run the group.
func (g *Group) Classes() map[string]bool {
	out := make(map[string]bool, len(g.known))
	for class, v := range g.known {
		out[class] = v.ok
	}
	return out
}

func driversOf(tg *structs.TaskGroup) []string {
	var names []string
	for _, task := range tg.Tasks {
		if !slices.Contains(names, task.Driver) {
			names = append(names, task.Driver)
		}
	}
	return names
}

func hostNetworksOf(tg *structs.TaskGroup) []string {
	var names []string
	for _, network := range tg.Networks {
		for _, ports := range [2][]structs.Port{network.ReservedPorts, network.DynamicPorts} {
			for _, p := range ports {
				if p.HostNetwork != "" && p.HostNetwork != "default" && !slices.Contains(names, p.HostNetwork) {
					names = append(names, p.HostNetwork)
				}
			}
		}
	}
	return names
}
