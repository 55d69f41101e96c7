package scheduler

import (
	"strconv"

	"github.com/nomadlite/nomadlite/scheduler/reconcile"
	"github.com/nomadlite/nomadlite/structs"
)

// What a change forces, as the public tools say it.
const (
	forcesCreate      = "forces create"
	forcesDestroy     = "forces destroy"
	forcesInPlace     = "forces in-place update"
	forcesDestructive = "forces create/destroy update"
)

// AnnotateDiff adds to the difference between two versions of a job what each change leads to, and to its groups what
// the scheduler wants to do there. Desired may be nil.
func AnnotateDiff(diff *structs.JobDiff, desired map[string]*structs.DesiredUpdates, old, new *structs.Job) {
	for _, g := range diff.TaskGroups {
		g.Updates = updates(desired[g.Name])
		for _, f := range g.Fields {
			if f.Name == "Count" {
				annotateCount(f)
			}
		}
		for _, t := range g.Tasks {
			if forced := taskForces(g, t, old, new); forced != "" {
				t.Annotations = append(t.Annotations, forced)
			}
		}
	}
}

// updates counts what is wanted in a group by the names which the public tools give it.
func updates(d *structs.DesiredUpdates) map[string]uint64 {
	if d == nil {
		return nil
	}
	out := map[string]uint64{}
	for _, u := range []struct {
		name string
		n    uint64
	}{
		{structs.UpdateIgnore, d.Ignore}, {structs.UpdateCreate, d.Place}, {structs.UpdateMigrate, d.Migrate},
		{structs.UpdateDestroy, d.Stop}, {structs.UpdateCanary, d.Canary}, {structs.UpdateInPlace, d.InPlaceUpdate},
		{structs.UpdateDestructive, d.DestructiveUpdate}, {structs.UpdatePreemptions, d.Preemptions},
	} {
		if u.n > 0 {
			out[u.name] = u.n
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func annotateCount(f *structs.FieldDiff) {
	before, _ := strconv.Atoi(f.Old)
	after, _ := strconv.Atoi(f.New)
	switch {
	case after > before:
		f.Annotations = append(f.Annotations, forcesCreate)
	case after < before:
		f.Annotations = append(f.Annotations, forcesDestroy)
	}
}

func taskForces(g *structs.TaskGroupDiff, t *structs.TaskDiff, old, new *structs.Job) string {
	switch {
	case t.Type == structs.DiffTypeNone:
		return ""
	case g.Type == structs.DiffTypeAdded:
		return forcesCreate
	case g.Type == structs.DiffTypeDeleted:
		return forcesDestroy
	case t.Type != structs.DiffTypeEdited:
		return forcesDestructive
	}
	before, after := old.LookupTaskGroup(g.Name).LookupTask(t.Name), new.LookupTaskGroup(g.Name).LookupTask(t.Name)
	if reconcile.TaskDestructive(before, after) {
		return forcesDestructive
	}
	return forcesInPlace
}
