package structs

import (
	"testing"
	"time"
)

func oneTask(jobType string) *Job {
	return &Job{ID: Ptr("j"), Type: Ptr(jobType), TaskGroups: []*TaskGroup{{
		Name: Ptr("g"), Tasks: []*Task{{Name: "t", Driver: "mock"}}}}}
}

// TestPoliciesOfOtherTypes sends what clients of the API send for jobs whose type has no such policy.
func TestPoliciesOfOtherTypes(t *testing.T) {
	zero := &ReschedulePolicy{Attempts: Ptr(0), Interval: Ptr(time.Duration(0)), Delay: Ptr(time.Duration(0)),
		DelayFunction: Ptr(""), MaxDelay: Ptr(time.Duration(0)), Unlimited: Ptr(false)}
	for _, jobType := range []string{JobTypeSystem, JobTypeSysBatch} {
		j := oneTask(jobType)
		j.TaskGroups[0].ReschedulePolicy = zero.Copy()
		j.Canonicalize()
		if err := j.Validate(); err != nil || j.TaskGroups[0].ReschedulePolicy != nil {
			t.Errorf("%s: %v", jobType, err)
		}
		j = oneTask(jobType)
		j.Reschedule = &ReschedulePolicy{Attempts: Ptr(3)}
		j.Canonicalize()
		if j.Validate() == nil {
			t.Errorf("%s: a reschedule policy of the job is dropped in silence", jobType)
		}
	}
}

// TestGroupsAddedToACanonicalJob takes a job as servers answer it, adds a group and sends it again: what the answer
// holds of the job's update strategy must not turn the new group's checks off.
func TestGroupsAddedToACanonicalJob(t *testing.T) {
	j := oneTask(JobTypeService)
	j.Update = &UpdateStrategy{MaxParallel: Ptr(4)}
	j.Canonicalize()
	j.TaskGroups = append(j.TaskGroups, &TaskGroup{Name: Ptr("new"), Tasks: []*Task{{Name: "t", Driver: "mock"}}})
	j.Canonicalize()
	if err := j.Validate(); err != nil {
		t.Fatal(err)
	}
	u := j.TaskGroups[1].Update
	if *u.MaxParallel != 4 || *u.HealthCheck != HealthCheckChecks || *u.MinHealthyTime != 10*time.Second {
		t.Errorf("got %+v", u)
	}
}

func TestServiceNames(t *testing.T) {
	j := oneTask(JobTypeService)
	j.Name = Ptr("name")
	tg := j.TaskGroups[0]
	tg.Services = []*Service{{}, {Name: "x-${TASKGROUP}-${TASK}"}}
	tg.Tasks[0].Services = []*Service{{}, {Name: "${BASE}-${JOB}"}, {Name: "${TASKGROUP}-${TASK}-${NOMAD_DC}"}}
	j.Canonicalize()
	var got []string
	for _, s := range append(tg.Services, tg.Tasks[0].Services...) {
		got = append(got, s.Name)
	}
	want := []string{"name-g", "x-g-${TASK}", "name-g-t", "name-g-t-name", "g-t-${NOMAD_DC}"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("want %s, got %s", want[i], got[i])
		}
	}
}

// TestSidecarTaskIsOverridden checks what a job says about the proxy's task.
func TestSidecarTaskIsOverridden(t *testing.T) {
	j := oneTask(JobTypeService)
	tg := j.TaskGroups[0]
	tg.Networks = []*NetworkResource{{Mode: NetworkModeBridge}}
	tg.Services = []*Service{{Name: "api", PortLabel: "9000", Connect: &ConsulConnect{
		SidecarService: &ConsulSidecarService{},
		SidecarTask: &SidecarTask{
			Name: "proxy", Driver: "exec", User: "u", Config: map[string]any{"command": "x"}, Env: map[string]string{"A": "b"},
			Meta: map[string]string{"m": "n"}, Resources: &Resources{CPU: Ptr(77)}, LogConfig: &LogConfig{MaxFiles: Ptr(5)},
			KillTimeout: Ptr(9 * time.Second), ShutdownDelay: Ptr(time.Second), KillSignal: "SIGINT",
			Identities: []*WorkloadIdentity{{Name: "other", Audience: []string{"a"}}},
		},
	}}}
	j.Canonicalize()
	if err := j.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(tg.Tasks) != 2 || len(tg.Networks[0].DynamicPorts) != 1 {
		t.Fatalf("%d tasks, ports %v", len(tg.Tasks), tg.Networks[0].DynamicPorts)
	}
	p := tg.Tasks[1]
	if p.Name != "proxy" || p.Driver != "exec" || p.User != "u" || p.Config["command"] != "x" || p.Config["image"] != nil ||
		p.Env["A"] != "b" || p.Meta["m"] != "n" || *p.Resources.CPU != 77 || *p.Resources.MemoryMB != 128 ||
		*p.LogConfig.MaxFiles != 5 || *p.LogConfig.MaxFileSizeMB != 2 || *p.KillTimeout != 9*time.Second ||
		p.ShutdownDelay != time.Second || p.KillSignal != "SIGINT" || len(p.Identities) != 1 {
		t.Errorf("got %+v", p)
	}
	j.Canonicalize()
	if len(tg.Tasks) != 2 || len(tg.Networks[0].DynamicPorts) != 1 {
		t.Error("the proxy is added again")
	}
}

// TestSetDefaultsAddsNothing is what a parsed job with defaults is: not yet what servers make of it.
func TestSetDefaultsAddsNothing(t *testing.T) {
	j := oneTask(JobTypeService)
	j.TaskGroups[0].Services = []*Service{{Provider: ServiceProviderNomad}}
	j.Update = &UpdateStrategy{MaxParallel: Ptr(2)}
	j.SetDefaults()
	if len(j.TaskGroups[0].Constraints) != 0 || *j.Update.MaxParallel != 2 || j.Update.HealthCheck != nil {
		t.Errorf("got %+v", j)
	}
}

func TestWarnings(t *testing.T) {
	j := oneTask(JobTypeService)
	j.Canonicalize()
	if w := j.Warnings(); len(w) != 0 {
		t.Errorf("got %q", w)
	}
	j = oneTask(JobTypeService)
	tg := j.TaskGroups[0]
	tg.Update = &UpdateStrategy{MaxParallel: Ptr(3), Canary: Ptr(1), AutoPromote: Ptr(true)}
	tg.Tasks[0].KillTimeout = Ptr(time.Minute)
	tg.Tasks[0].Resources = &Resources{Networks: []*NetworkResource{{MBits: Ptr(10)}}}
	other := tg.Copy()
	other.Name, other.Update.AutoPromote = Ptr("h"), Ptr(false)
	j.TaskGroups = append(j.TaskGroups, other)
	j.Canonicalize()
	if w := j.Warnings(); len(w) != 7 {
		t.Errorf("got %d: %q", len(w), w)
	}
}
