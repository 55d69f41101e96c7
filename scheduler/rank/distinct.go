package rank

import (
	"github.com/nomadlite/nomadlite/scheduler/feasible"
	"github.com/nomadlite/nomadlite/structs"
)

// distinct counts the allocations that share a value of a distinct_property.
type distinct struct {
	rule  feasible.DistinctProperty
	value []int // by node; -1 when the node does not have the property
	used  []int // by value
}

func newDistinct(rule feasible.DistinctProperty, nodes []*structs.Node) *distinct {
	d := &distinct{rule: rule, value: make([]int, len(nodes))}
	index := map[string]int{}
	for i, n := range nodes {
		v, ok := feasible.Resolve(n, rule.Constraint.LTarget)
		if !ok {
			d.value[i] = -1
			continue
		}
		j, known := index[v]
		if !known {
			j = len(d.used)
			index[v] = j
			d.used = append(d.used, 0)
		}
		d.value[i] = j
	}
	return d
}

func (d *distinct) add(node int) {
	if v := d.value[node]; v >= 0 {
		d.used[v]++
	}
}

// full says that the node's value is used up, or that it has none; relief allocations do not count.
func (d *distinct) full(node, relief int) bool {
	v := d.value[node]
	return v < 0 || d.used[v]-relief >= d.rule.Limit
}

func (d *distinct) same(a, b int) bool { return d.value[a] == d.value[b] }
