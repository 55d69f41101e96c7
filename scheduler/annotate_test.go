package scheduler_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/scheduler"
	"github.com/nomadlite/nomadlite/structs"
)

func TestAnnotateDiff(t *testing.T) {
	job := func(change func(*structs.Job)) *structs.Job {
		j := &structs.Job{ID: structs.Ptr("web"), Datacenters: []string{"dc1"}, TaskGroups: []*structs.TaskGroup{{
			Name: structs.Ptr("front"), Count: structs.Ptr(2), Tasks: []*structs.Task{{Name: "a", Driver: "mock"}, {Name: "b", Driver: "mock"}}}}}
		j.Canonicalize()
		if change != nil {
			change(j)
		}
		return j
	}
	for _, c := range []struct {
		name  string
		old   *structs.Job
		new   *structs.Job
		tasks map[string][]string
		count []string
	}{
		{"new job", nil, job(nil), map[string][]string{"a": {"forces create"}, "b": {"forces create"}}, []string{"forces create"}},
		{"no job", job(nil), nil, map[string][]string{"a": {"forces destroy"}, "b": {"forces destroy"}}, []string{"forces destroy"}},
		{"nothing", job(nil), job(nil), map[string][]string{"a": nil, "b": nil}, nil},
		{"more", job(nil), job(func(j *structs.Job) { j.TaskGroups[0].Count = structs.Ptr(10) }),
			map[string][]string{"a": nil, "b": nil}, []string{"forces create"}},
		{"less", job(nil), job(func(j *structs.Job) { j.TaskGroups[0].Count = structs.Ptr(1) }),
			map[string][]string{"a": nil, "b": nil}, []string{"forces destroy"}},
		{"what runs", job(nil), job(func(j *structs.Job) { j.TaskGroups[0].Tasks[0].Env = map[string]string{"A": "1"} }),
			map[string][]string{"a": {"forces create/destroy update"}, "b": nil}, nil},
		{"what the node is told", job(nil), job(func(j *structs.Job) { j.TaskGroups[0].Tasks[0].KillTimeout = structs.Ptr(time.Minute) }),
			map[string][]string{"a": {"forces in-place update"}, "b": nil}, nil},
		{"one task less", job(nil), job(func(j *structs.Job) { j.TaskGroups[0].Tasks = j.TaskGroups[0].Tasks[:1] }),
			map[string][]string{"a": nil, "b": {"forces create/destroy update"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			diff, err := structs.DiffJobs(c.old, c.new, true)
			if err != nil {
				t.Fatal(err)
			}
			scheduler.AnnotateDiff(diff, map[string]*structs.DesiredUpdates{"front": {Place: 1, Stop: 2, Ignore: 3}}, c.old, c.new)
			g := diff.TaskGroups[0]
			if want := map[string]uint64{"create": 1, "destroy": 2, "ignore": 3}; !maps.Equal(g.Updates, want) {
				t.Errorf("updates %v, want %v", g.Updates, want)
			}
			for _, task := range g.Tasks {
				if !slices.Equal(task.Annotations, c.tasks[task.Name]) {
					t.Errorf("task %s: %q, want %q", task.Name, task.Annotations, c.tasks[task.Name])
				}
			}
			i := slices.IndexFunc(g.Fields, func(f *structs.FieldDiff) bool { return f.Name == "Count" })
			switch {
			case i < 0 && c.count != nil:
				t.Error("no difference of the count")
			case i >= 0 && !slices.Equal(g.Fields[i].Annotations, c.count):
				t.Errorf("count: %q, want %q", g.Fields[i].Annotations, c.count)
			}
		})
	}
}
