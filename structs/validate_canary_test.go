package structs

import (
	"strings"
	"testing"
)

// In a system job canary is a percentage; elsewhere it is a number of allocations.
func TestCanaryOfASystemJobIsAPercentage(t *testing.T) {
	const fault = `group "g": update: canary is a percentage of the nodes in a system job, it must not be above 100 (it is 101)`
	for _, c := range []struct {
		kind   string
		canary int
		want   string
	}{{JobTypeSystem, 0, ""}, {JobTypeSystem, 100, ""}, {JobTypeSystem, 101, fault}, {JobTypeService, 101, ""}} {
		for _, inGroup := range []bool{true, false} {
			j := &Job{ID: Ptr("a"), Type: Ptr(c.kind), Datacenters: []string{"dc1"}, TaskGroups: []*TaskGroup{{Name: Ptr("g"), Count: Ptr(1),
				Tasks: []*Task{{Name: "t", Driver: "raw_exec", Config: map[string]any{"command": "/bin/true"}}}}}}
			if u := (&UpdateStrategy{Canary: Ptr(c.canary)}); inGroup {
				j.TaskGroups[0].Update = u
			} else {
				j.Update = u
			}
			j.Canonicalize()
			got := ""
			if err := j.Validate(); err != nil {
				got = err.Error()
			}
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s job, canary %d, in the group %t: %q, want %q", c.kind, c.canary, inGroup, got, c.want)
			}
		}
	}
}
