package structs

import "testing"

func TestUnsupportedIsSilentAboutWhatRuns(t *testing.T) {
	j := &Job{ID: Ptr("x"), TaskGroups: []*TaskGroup{{
		Name: Ptr("g"), Networks: []*NetworkResource{{Mode: "host", DynamicPorts: []Port{{Label: "http"}}}},
		Services: []*Service{{Name: "web", PortLabel: "http", Provider: ServiceProviderNomad}},
		Scaling:  &ScalingPolicy{Max: Ptr(int64(3))},
		Tasks: []*Task{{Name: "t", Driver: "raw_exec", Env: map[string]string{"A": "b"},
			Lifecycle: &TaskLifecycle{Hook: "prestart"}, Resources: &Resources{CPU: Ptr(100)}}},
	}}}
	j.Canonicalize()
	if w := j.Unsupported(); len(w) > 0 {
		t.Errorf("got %q", w)
	}
}
