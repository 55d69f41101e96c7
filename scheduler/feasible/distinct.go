package feasible

import (
	"strconv"

	"github.com/nomadlite/nomadlite/structs"
)

// addDistinctHosts reads a distinct_hosts constraint; its value may switch it off.
func (g *Group) addDistinctHosts(c *structs.Constraint, wholeJob bool) {
	if c.RTarget != "" {
		if on, err := strconv.ParseBool(c.RTarget); err == nil && !on {
			return
		}
	}
	if wholeJob {
		g.DistinctHostsJob = true
	} else {
		g.DistinctHostsGroup = true
	}
}

// newDistinctProperty reads a distinct_property constraint; its value is the number of allocations that may share one
// value of the property, 1 when it is left out.
func newDistinctProperty(c *structs.Constraint, wholeJob bool) DistinctProperty {
	limit := 1
	if n, err := strconv.Atoi(c.RTarget); err == nil && n > 0 {
		limit = n
	}
	return DistinctProperty{Constraint: c, Limit: limit, WholeJob: wholeJob}
}
