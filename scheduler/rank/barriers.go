package rank

import (
	"fmt"

	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/structs"
)

// Barriers gives all that keeps one more allocation of the group off a node of the scope, as metrics name it:
// constraints, and resources with what is missing of them.
func (p *Placer) Barriers(node *structs.Node) []string {
	i, ok := p.r.find(node.ID)
	if !ok {
		return nil
	}
	out := p.group.Barriers(node)
	if p.hosts != nil && p.hosts[i] > 0 {
		out = append(out, feasible.OperandDistinctHosts)
	}
	for _, d := range p.distinct {
		if d.full(i, 0) {
			out = append(out, feasible.ConstraintText(d.rule.Constraint))
		}
	}
	return append(out, p.r.places[i].barriers(p.ask)...)
}

// barriers names each dimension in which the ask does not fit.
func (p *place) barriers(a *ask) []string {
	var out []string
	if limit := p.node.NodeMaxAllocs; limit > 0 && p.allocs+1 > limit {
		out = append(out, dimensionAllocs)
	}
	if a.cores > 0 && p.freeCores(nil) < a.cores {
		out = append(out, dimensionCores)
	}
	for _, dimension := range [3]string{dimensionCPU, dimensionMemory, dimensionDisk} {
		if p.missing(a, nil, dimension) > 0 {
			out = append(out, dimension)
		}
	}
	for i := range a.static {
		if s := &a.static[i]; !p.portFree(s.port.Value, nil) {
			out = append(out, fmt.Sprintf("port %s=%d", s.port.Label, s.port.Value))
		}
	}
	if len(a.dynamic) > 0 && p.countDynamic(a, nil) < len(a.dynamic) {
		out = append(out, "dynamic ports")
	}
	return out
}
