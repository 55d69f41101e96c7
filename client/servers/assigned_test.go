package servers

import (
	"slices"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func TestAssignedFollowsTheServers(t *testing.T) {
	digest := func(ids ...string) uint64 { return structs.AssignmentDigest(slices.Values(ids)) }
	allocs := func(ids ...string) (list []*structs.Allocation) {
		for _, id := range ids {
			list = append(list, &structs.Allocation{ID: id, Namespace: "default", JobID: "j", JobModifyIndex: 3})
		}
		return list
	}
	job := &structs.Job{ID: structs.Ptr("j"), Namespace: structs.Ptr("default"), JobModifyIndex: 3}
	var a Assigned
	if req := a.Request(time.Minute); req.Epoch != "" || req.Index != 0 || req.Digest != 0 || req.Wait != time.Minute {
		t.Fatalf("%+v", req)
	}
	for _, step := range []struct {
		name           string
		res            structs.AssignmentsResponse
		ok             bool
		upsert, remove []string
		held           []string
	}{
		{"complete", structs.AssignmentsResponse{Epoch: "e", Complete: true, ResultsIn: 5, Upsert: allocs("a", "b"),
			Jobs: []*structs.Job{job}, Digest: digest("a", "b")}, true, []string{"a", "b"}, nil, []string{"a", "b"}},
		{"delta", structs.AssignmentsResponse{Epoch: "e", AppliesTo: 5, ResultsIn: 8, Upsert: allocs("c"),
			Jobs: []*structs.Job{job}, Remove: []string{"a"}, Digest: digest("b", "c")}, true, []string{"c"}, []string{"a"},
			[]string{"b", "c"}},
		{"nothing", structs.AssignmentsResponse{Epoch: "e", AppliesTo: 8, ResultsIn: 9, Digest: digest("b", "c")}, true, nil,
			nil, []string{"b", "c"}},
		{"old delta", structs.AssignmentsResponse{Epoch: "e", AppliesTo: 5, ResultsIn: 6, Upsert: allocs("a"),
			Digest: digest("a", "b", "c")}, false, nil, nil, []string{"b", "c"}},
		{"complete again", structs.AssignmentsResponse{Epoch: "e2", Complete: true, ResultsIn: 4, Upsert: allocs("c", "d"),
			Jobs: []*structs.Job{job}, Digest: digest("c", "d")}, true, []string{"c", "d"}, []string{"b"}, []string{"c", "d"}},
		{"other history", structs.AssignmentsResponse{Epoch: "e3", AppliesTo: 4, ResultsIn: 5,
			Digest: digest("c", "d")}, false, nil, nil, []string{"c", "d"}},
		{"wrong digest", structs.AssignmentsResponse{Epoch: "e2", Complete: true, ResultsIn: 9, Upsert: allocs("x"),
			Digest: 1}, false, nil, nil, []string{"c", "d"}},
	} {
		upsert, remove, ok := a.Apply(&step.res)
		var got []string
		for _, alloc := range upsert {
			got = append(got, alloc.ID)
			if alloc.Job == nil || alloc.Job.JobModifyIndex != 3 {
				t.Errorf("%s: %s has no job", step.name, alloc.ID)
			}
		}
		req := a.Request(0)
		if ok != step.ok || !slices.Equal(got, step.upsert) || !slices.Equal(remove, step.remove) ||
			req.Digest != digest(step.held...) {
			t.Errorf("%s: ok %v, upsert %v, remove %v", step.name, ok, got, remove)
		}
		if ok && (req.Index != step.res.ResultsIn || req.Epoch != step.res.Epoch) {
			t.Errorf("%s: next %+v", step.name, req)
		}
		if !ok && req.Epoch != "" {
			t.Errorf("%s: does not ask for the complete set", step.name)
		}
		if step.name == "old delta" {
			a.Epoch = "e" // as it was, for the next step
		}
		if step.name == "other history" {
			a.Epoch = "e2"
		}
	}
	a.Restore("e9", 12, []string{"p", "q"})
	if req := a.Request(0); req.Epoch != "e9" || req.Index != 12 || req.Digest != digest("p", "q") {
		t.Errorf("%+v", req)
	}
}
