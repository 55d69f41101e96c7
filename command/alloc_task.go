package command

import (
	"fmt"
	"strings"

	"github.com/nomadlite/nomadlite/structs"
)

// taskOf finds which task of an allocation is meant: the one named, or the only one there is.
func taskOf(a *structs.Allocation, name string) (string, error) {
	var group *structs.TaskGroup
	if a.Job != nil {
		group = a.Job.LookupTaskGroup(a.TaskGroup)
	}
	if group == nil {
		return "", fmt.Errorf("allocation %q has no group %q in its job", shortID(a.ID, false), a.TaskGroup)
	}
	names := make([]string, 0, len(group.Tasks))
	for _, t := range group.Tasks {
		if t.Name == name {
			return name, nil
		}
		names = append(names, t.Name)
	}
	if name != "" {
		return "", fmt.Errorf("allocation %q has no task %q. Its tasks are: %s", shortID(a.ID, false), name, strings.Join(names, ", "))
	}
	if len(names) == 1 {
		return names[0], nil
	}
	return "", fmt.Errorf("allocation %q has several tasks, name one of: %s", shortID(a.ID, false), strings.Join(names, ", "))
}
