package structs

import (
	"strings"
	"testing"
)

// TestNamesThatCannotBeKept would end as directories outside a task's own, or in headers and environments too large.
func TestNamesThatCannotBeKept(t *testing.T) {
	long := strings.Repeat("n", maxName+1)
	for want, change := range map[string]func(*Job){
		"job ID has more than 1024 bytes":               func(j *Job) { j.ID = &long },
		"job name has more than 1024 bytes":             func(j *Job) { j.Name = &long },
		`": name has more than 1024 bytes`:              func(j *Job) { j.TaskGroups[0].Name = &long },
		`name ".." cannot be that of a directory`:       func(j *Job) { j.TaskGroups[0].Tasks[0].Name = ".." },
		`name "." cannot be that of a directory`:        func(j *Job) { j.TaskGroups[0].Tasks[0].Name = "." },
		`name "alloc" cannot be that of a directory`:    func(j *Job) { j.TaskGroups[0].Tasks[0].Name = "alloc" },
		"name has more than 200 bytes":                  func(j *Job) { j.TaskGroups[0].Tasks[0].Name = long[:201] },
		"name must not hold slashes or null characters": func(j *Job) { j.TaskGroups[0].Tasks[0].Name = "a/../b" },
	} {
		j := &Job{ID: Ptr("j"), Name: Ptr("j"), TaskGroups: []*TaskGroup{{Name: Ptr("g"), Tasks: []*Task{{Name: "t", Driver: "mock"}}}}}
		change(j)
		j.Canonicalize()
		if err := j.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAddressOfANode(t *testing.T) {
	for addr, want := range map[string]string{"192.0.2.1:4646": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::1",
		"host:1": "host", "host": "host", "2001:db8::1": "2001:db8::1", "": ""} {
		if got := hostOf(addr); got != want {
			t.Errorf("%q gives %q, want %q", addr, got, want)
		}
	}
}
