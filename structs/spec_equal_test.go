package structs

import "testing"

func TestSpecEqual(t *testing.T) {
	base := func() *Job {
		j := &Job{ID: Ptr("j"), TaskGroups: []*TaskGroup{{
			Name: Ptr("g"), Scaling: &ScalingPolicy{Max: Ptr(int64(3))},
			Tasks: []*Task{{Name: "t", Driver: "mock", Config: map[string]any{"n": 1.0, "s": []any{"x"}, "l": []any{"a", true}}}},
		}}}
		j.Canonicalize()
		return j
	}
	for name, change := range map[string]func(*Job){
		"nothing": func(*Job) {},
		"indexes": func(j *Job) {
			j.Version, j.CreateIndex, j.ModifyIndex, j.JobModifyIndex, j.SubmitTime = 1, 2, 3, 4, 5
			j.Status, j.StatusDescription, j.Stable, j.VersionTag = "dead", "x", true, &JobVersionTag{}
			j.TaskGroups[0].Scaling.ID, j.TaskGroups[0].Scaling.ModifyIndex = "x", 7
		},
		"empty for nil": func(j *Job) {
			j.Meta, j.Constraints, j.TaskGroups[0].Tasks[0].Env = map[string]string{}, []*Constraint{}, map[string]string{}
		},
		"typed list":   func(j *Job) { j.TaskGroups[0].Tasks[0].Config["s"] = []string{"x"} },
		"whole number": func(j *Job) { j.TaskGroups[0].Tasks[0].Config["n"] = int64(1) },
	} {
		j := base()
		change(j)
		if !base().SpecEqual(j) || !j.SpecEqual(base()) {
			t.Errorf("%s makes another specification", name)
		}
	}
	for name, change := range map[string]func(*Job){
		"stop":   func(j *Job) { j.Stop = true },
		"count":  func(j *Job) { j.TaskGroups[0].Count = Ptr(2) },
		"config": func(j *Job) { j.TaskGroups[0].Tasks[0].Config["l"].([]any)[0] = "b" },
		"number": func(j *Job) { j.TaskGroups[0].Tasks[0].Config["n"] = 1.5 },
		"type":   func(j *Job) { j.TaskGroups[0].Tasks[0].Config["n"] = "1" },
		"null":   func(j *Job) { j.TaskGroups[0].Tasks[0].Config["n"] = nil },
		"meta":   func(j *Job) { j.Meta = map[string]string{"a": ""} },
		"key": func(j *Job) {
			j.TaskGroups[0].Tasks[0].Config = map[string]any{"n": 1.0, "s": []any{"x"}, "m": []any{"a", true}}
		},
		"network":  func(j *Job) { j.TaskGroups[0].Networks = []*NetworkResource{{}} },
		"update":   func(j *Job) { j.TaskGroups[0].Update = nil },
		"priority": func(j *Job) { j.Priority = Ptr(51) },
	} {
		j := base()
		change(j)
		if base().SpecEqual(j) || j.SpecEqual(base()) {
			t.Errorf("%s makes no other specification", name)
		}
	}
	if !(*Job)(nil).SpecEqual(nil) || base().SpecEqual(nil) {
		t.Error("no job is equal to one")
	}
}

func TestLookups(t *testing.T) {
	j := &Job{ID: Ptr("j"), TaskGroups: []*TaskGroup{{Name: Ptr("a")}, {Name: Ptr("b"), Tasks: []*Task{{Name: "t"}}}}}
	a := &Allocation{Job: j, TaskGroup: "b"}
	if a.Group().LookupTask("t") == nil || a.Group().LookupTask("u") != nil || (&Allocation{}).Group().LookupTask("t") != nil {
		t.Error("a task is not found, or one that is not there is")
	}
	if !(*Job)(nil).Stopped() || j.Stopped() {
		t.Error("no job runs, or one that is there is stopped")
	}
}
