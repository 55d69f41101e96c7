package structs

import "testing"

func scaledJob() *Job {
	j := &Job{ID: Ptr("web"), CreateIndex: 5, TaskGroups: []*TaskGroup{
		{Name: Ptr("a"), Count: Ptr(2), Scaling: &ScalingPolicy{Max: Ptr[int64](9), Policy: map[string]any{"cooldown": "1m"}},
			Tasks: []*Task{{Name: "t", Driver: "exec", ScalingPolicies: []*ScalingPolicy{{Type: "vertical_cpu", Max: Ptr[int64](500)}}}}},
		{Name: Ptr("b"), Tasks: []*Task{{Name: "t", Driver: "exec"}}},
	}}
	j.Canonicalize()
	return j
}

func TestScalingPoliciesOfVersions(t *testing.T) {
	first := scaledJob()
	asWritten := first.Copy()
	stored := *first
	stored.NumberScalingPolicies(nil, 5)
	if first.TaskGroups[0].Scaling.ID != "" || !first.SpecEqual(asWritten) {
		t.Error("the job that was handed in has changed")
	}
	// The job as it is stored tells the namespace where it always did: in the target.
	if p := stored.TaskGroups[0].Scaling; p.Namespace != "" || p.Target["Namespace"] != "default" {
		t.Errorf("stored as %+v", p)
	}
	policies := stored.ScalingPolicies()
	if len(policies) != 2 || policies[0].ID == policies[1].ID || len(policies[0].ID) != 36 || policies[0].Namespace != "default" ||
		policies[0].Target["Group"] != "a" || policies[1].Target["Task"] != "t" || policies[0].CreateIndex != 5 || policies[1].ModifyIndex != 5 {
		t.Fatalf("policies %+v %+v", policies[0], policies[1])
	}

	// Another count is another version, and the same policies; one that changes keeps its id and when it was made.
	next := stored.Copy()
	next.TaskGroups[0].Count = Ptr(3)
	next.TaskGroups[0].Scaling.Max = Ptr[int64](20)
	next.NumberScalingPolicies(&stored, 8)
	changed := next.ScalingPolicies()
	if changed[0].ID != policies[0].ID || changed[0].CreateIndex != 5 || changed[0].ModifyIndex != 8 || changed[1].ModifyIndex != 5 {
		t.Errorf("policies %+v %+v", changed[0], changed[1])
	}

	// A stopped job has none; run again they are new.
	stopped := next.Copy()
	stopped.Stop = true
	stopped.NumberScalingPolicies(next, 9)
	if got := stopped.ScalingPolicies(); len(got) != 0 {
		t.Errorf("a stopped job has policies: %+v", got[0])
	}
	again := stopped.Copy()
	again.Stop = false
	again.NumberScalingPolicies(stopped, 12)
	if p := again.ScalingPolicies()[0]; p.ID != policies[0].ID || p.CreateIndex != 12 || p.ModifyIndex != 12 {
		t.Errorf("policy %+v", p)
	}

	// A purged job that comes again is another one.
	other := scaledJob()
	other.CreateIndex = 30
	other.NumberScalingPolicies(nil, 30)
	if other.ScalingPolicies()[0].ID == policies[0].ID {
		t.Error("the policy of a job that was purged came back")
	}
}

func TestScalingPoliciesOfAnOlderStore(t *testing.T) {
	j := scaledJob()
	j.JobModifyIndex = 7
	numbered := *j
	numbered.NumberScalingPolicies(nil, 5)
	p := j.ScalingPolicies()[0]
	if p.ID != numbered.ScalingPolicies()[0].ID || p.CreateIndex != 5 || p.ModifyIndex != 7 || j.TaskGroups[0].Scaling.ID != "" {
		t.Errorf("policy %+v", p)
	}
	if (&Job{}).HasScalingPolicies() || !j.HasScalingPolicies() || (*Job)(nil).ScalingPolicies() != nil {
		t.Error("jobs without policies are told from those with")
	}
}
