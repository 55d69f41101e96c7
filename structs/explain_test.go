package structs

import "testing"

func TestExplain(t *testing.T) {
	for want, m := range map[string]*AllocationMetric{
		"9 of 12 nodes filtered by ${attr.kernel.name} = windows; needs at least 120 MiB more memory on 3 of 12 nodes": {
			NodesEvaluated: 12, ConstraintFiltered: map[string]int{"${attr.kernel.name} = windows": 9},
			DimensionExhausted: map[string]int{"memory": 3}, Missing: map[string]int64{"memory": 120}},
		"needs 500 MHz more cpu on 1 of 1 node": {NodesEvaluated: 1, DimensionExhausted: map[string]int{"cpu": 1},
			Missing: map[string]int64{"cpu": 500}},
		"needs 2 more free cores on 1 of 4 nodes": {NodesEvaluated: 4, DimensionExhausted: map[string]int{"cores": 1},
			Missing: map[string]int64{"cores": 2}},
		"needs more memory on 2 of 2 nodes": {NodesEvaluated: 2, DimensionExhausted: map[string]int{"memory": 2}}, // of an earlier release
		"port http=8080 is taken on 2 of 2 nodes": {NodesEvaluated: 2,
			DimensionExhausted: map[string]int{"network: reserved port collision http=8080": 2}},
		"no dynamic ports are left on 1 of 2 nodes": {NodesEvaluated: 2,
			DimensionExhausted: map[string]int{"network: dynamic port selection failed": 1}},
		"2 of 2 nodes run as many allocations as they may": {NodesEvaluated: 2, DimensionExhausted: map[string]int{"max allocations": 2}},
		"2 of 3 nodes do not have the task's driver in good health; 1 of 3 nodes does not have the host volumes as asked for": {
			NodesEvaluated: 3, ConstraintFiltered: map[string]int{"missing drivers": 2, "missing compatible host volumes": 1}},
		`1 of 1 node does not have host network "public"`: {NodesEvaluated: 1,
			ConstraintFiltered: map[string]int{`missing host network "public" for port`: 1}},
		"3 of 3 nodes run an allocation already that distinct_hosts keeps apart from this one": {NodesEvaluated: 3,
			ConstraintFiltered: map[string]int{"distinct_hosts": 3}},
		`no node in node pool "gpu" is ready for new allocations`:                   {NodePool: "gpu"},
		`none of the 4 nodes in node pool "gpu" is in one of the job's datacenters`: {NodePool: "gpu", NodesInPool: 4},
		"the quota is used up: memory":                                              {NodesEvaluated: 1, QuotaExhausted: []string{"memory"}},
		"":                                                                          {NodesEvaluated: 3},
	} {
		if got := m.ExplainText(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for _, r := range m.Explain() {
			if r.Remedy == "" {
				t.Errorf("%s: nothing is said of what would change that", r.Text)
			}
		}
	}
	if (*AllocationMetric)(nil).ExplainText() != "" {
		t.Error("nothing is explained by something")
	}
}
