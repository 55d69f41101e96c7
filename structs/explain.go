package structs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reason is one reason, in words, why something could not be placed, and what would change that.
type Reason struct {
	Text   string // without a subject: "needs 120 MiB more memory on 3 of 12 nodes"
	Remedy string // "" when there is nothing to be said
	Nodes  int    // nodes that it kept away
}

// Explain says in words why nothing could be placed, the reason that concerns most nodes first: a scheduler's word on
// the nodes it looked at, at the time of the evaluation.
func (m *AllocationMetric) Explain() []Reason {
	if m == nil {
		return nil
	}
	if m.NodesEvaluated == 0 {
		return []Reason{m.explainNoNodes()}
	}
	var out []Reason
	for _, d := range slices.Sorted(maps.Keys(m.DimensionExhausted)) {
		out = append(out, m.explainDimension(d, m.DimensionExhausted[d]))
	}
	for _, c := range slices.Sorted(maps.Keys(m.ConstraintFiltered)) {
		out = append(out, m.explainFilter(c, m.ConstraintFiltered[c]))
	}
	for _, q := range m.QuotaExhausted {
		out = append(out, Reason{Text: "the quota is used up: " + q,
			Remedy: "raise the quota's limit, or stop something that counts toward it"})
	}
	slices.SortStableFunc(out, func(a, b Reason) int { return b.Nodes - a.Nodes })
	return out
}

func (m *AllocationMetric) explainNoNodes() Reason {
	where := "in the cluster"
	if m.NodePool != "" && m.NodePool != NodePoolAll {
		where = fmt.Sprintf("in node pool %q", m.NodePool)
	}
	if m.NodesInPool > 0 {
		return Reason{Text: fmt.Sprintf("none of the %s %s is in one of the job's datacenters", nodes(m.NodesInPool), where),
			Remedy: "name other datacenters in the job, or add nodes to those it names"}
	}
	return Reason{Text: "no node " + where + " is ready for new allocations",
		Remedy: "add a node, or look at `node status` for nodes that are down, draining or ineligible"}
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// some says of how many nodes a verb holds.
func (m *AllocationMetric) some(n int, one, many string) string {
	if n == 1 {
		return m.of(n) + " " + one
	}
	return m.of(n) + " " + many
}

func (m *AllocationMetric) of(n int) string {
	return fmt.Sprintf("%d of %s", n, nodes(m.NodesEvaluated))
}

// explainDimension explains that n nodes were suitable but had no room.
func (m *AllocationMetric) explainDimension(dimension string, n int) Reason {
	r := Reason{Nodes: n}
	name, unit := dimension, ""
	switch dimension {
	case "cpu":
		unit = "MHz"
	case "memory", "disk":
		unit = "MiB"
	case "cores":
		name = "free cores"
	}
	more := "more " + name
	if least := m.Missing[dimension]; least > 0 {
		amount := fmt.Sprintf("%d %s", least, unit)
		if unit == "" {
			amount = fmt.Sprint(least)
		}
		more = strings.TrimSpace(amount) + " more " + name
		if n > 1 {
			more = "at least " + more
		}
		r.Remedy = fmt.Sprintf("free %s of %s on one of them, ask for less, or add a node", amount, name)
	}
	port, taken := strings.CutPrefix(dimension, "network: reserved port collision ")
	switch {
	case taken:
		r.Text = fmt.Sprintf("port %s is taken on %s", port, m.of(n))
		r.Remedy = "stop what holds the port, ask for a dynamic one, or add a node"
	case dimension == "network: dynamic port selection failed":
		r.Text = fmt.Sprintf("no dynamic ports are left on %s", m.of(n))
		r.Remedy = "widen the nodes' range of dynamic ports, or add a node"
	case dimension == "max allocations":
		r.Text = m.some(n, "runs as many allocations as it may", "run as many allocations as they may")
		r.Remedy = "raise max_allocs on the nodes, or add a node"
	case dimension == "preemption under way":
		r.Text = fmt.Sprintf("evicted allocations have not ended yet on %s", m.of(n))
		r.Remedy = "wait: it is tried again when they have ended"
	default:
		r.Text = fmt.Sprintf("needs %s on %s", more, m.of(n))
		if r.Remedy == "" {
			r.Remedy = fmt.Sprintf("free some %s on one of them, ask for less, or add a node", name)
		}
	}
	return r
}

// explainFilter explains that n nodes were not suitable.
func (m *AllocationMetric) explainFilter(filter string, n int) Reason {
	r := Reason{Nodes: n, Text: fmt.Sprintf("%s filtered by %s", m.of(n), filter)}
	switch {
	case filter == "missing drivers":
		r.Text = m.some(n, "does", "do") + " not have the task's driver in good health"
		r.Remedy = "enable or repair the driver there, or use another one"
	case strings.HasPrefix(filter, "missing host network "):
		name := strings.TrimSuffix(strings.TrimPrefix(filter, "missing host network "), " for port")
		r.Text = m.some(n, "does", "do") + " not have host network " + name
		r.Remedy = "configure the host network there, or name another one in the port"
	case strings.HasPrefix(filter, "missing "):
		what := strings.TrimPrefix(filter, "missing ")
		r.Text = m.some(n, "does", "do") + " not have " + strings.Replace(what, "compatible host volumes", "the host volumes as asked for", 1)
		r.Remedy = "add a node that has them, or leave them out"
	case filter == "distinct_hosts":
		r.Text = m.some(n, "runs", "run") + " an allocation already that distinct_hosts keeps apart from this one"
		r.Remedy = "add nodes, lower the count, or drop distinct_hosts"
	case strings.Contains(filter, " distinct_property"):
		r.Remedy = "add nodes with another value, allow more a value, or drop the constraint"
	default:
		r.Remedy = "relax this constraint, or add nodes that meet it"
	}
	return r
}

// ExplainText joins the reasons to one line: "needs 120 MiB more memory on 3 of 12 nodes; 9 of 12 nodes filtered by
// ${attr.kernel.name} = windows". It is empty when there is no reason.
func (m *AllocationMetric) ExplainText() string {
	var texts []string
	for _, r := range m.Explain() {
		texts = append(texts, r.Text)
	}
	return strings.Join(texts, "; ")
}
