package feasible

import "github.com/nomadlite/nomadlite/structs"

// Barriers gives all filters that keep the group off a node, not only the first, as they are named in metrics. Nothing
// is remembered: it is for people who ask, not for placements.
func (g *Group) Barriers(node *structs.Node) []string {
	var out []string
	for _, filters := range [2][]Filter{g.byClass, g.byNode} {
		for _, f := range filters {
			if !f.Check(node) {
				out = append(out, f.Explain(node))
			}
		}
	}
	return out
}
