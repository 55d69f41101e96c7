package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/scheduler/sim"
	"github.com/nomadlite/nomadlite/structs"
)

// empty says that nothing was placed and nothing lacks a place: there was nothing to run.
func (r *simReport) empty() bool {
	allocs := 0
	for _, u := range slices.Concat(r.Before, r.After) {
		allocs += u.Allocs
	}
	worked := slices.ContainsFunc(r.Steps, func(s *sim.Step) bool { return s.Evaluations > 0 })
	return allocs == 0 && !worked && len(r.Unplaced) == 0
}

// text writes a report for people.
func (r *simReport) text() string {
	var b strings.Builder
	var left []sim.Unplaced
	for i, step := range r.Steps {
		fmt.Fprintf(&b, "%d. %s\n   %s\n", i+1, step.Name, simDone(step))
		simEvictions(&b, step.Evicted)
		for _, note := range step.Notes {
			fmt.Fprintf(&b, "   note: %s\n", note)
		}
		left = step.Unplaced
	}
	b.WriteString("\nUtilisation")
	if r.Before != nil {
		b.WriteString(", before -> after")
	}
	b.WriteString("\n" + r.usageTable() + "\n")
	if r.empty() {
		b.WriteString("There is nothing to run: no job was given.\n")
		return b.String()
	}
	if len(left) == 0 {
		b.WriteString("Everything has its place.\n")
		return b.String()
	}
	b.WriteString("No place for\n")
	for _, u := range left {
		fmt.Fprintf(&b, "  %d of group %q of job %q\n", u.Missing, u.Group, simJob(u.Namespace, u.Job))
		for _, reason := range u.Reasons {
			fmt.Fprintf(&b, "    * %s\n", reason.Text)
			if reason.Remedy != "" {
				fmt.Fprintf(&b, "      > %s\n", reason.Remedy)
			}
		}
	}
	return b.String()
}

func simJob(namespace, id string) string {
	if namespace == "" || namespace == structs.DefaultNamespace {
		return id
	}
	return namespace + "/" + id
}

// simDone tells in one line what came of an event.
func simDone(s *sim.Step) string {
	missing := 0
	for _, u := range s.Unplaced {
		missing += u.Missing
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{s.Added, "new nodes"}, {s.Nodes, "nodes affected"}, {s.Placed, "placed"}, {s.Updated, "updated in place"}, {s.Stopped, "stopped"},
		{s.Lost, "lost"}, {len(s.Evicted), "evicted"}, {missing, "without a place"}} {
		if p.n > 0 {
			parts = append(parts, number(p.n, p.what))
		}
	}
	if len(parts) == 0 {
		parts = []string{"nothing changes"}
	}
	text := strings.Join(parts, ", ") + " (" + number(s.Evaluations, "evaluations")
	if s.Waited > 0 {
		text += fmt.Sprintf(", after %s", s.Waited)
	}
	return text + ")"
}

// number writes how many nodes or evaluations there are, or how many of what has no plural.
func number(n int, what string) string {
	if n == 1 {
		what = strings.NewReplacer("nodes", "node", "evaluations", "evaluation").Replace(what)
	}
	return fmt.Sprintf("%d %s", n, what)
}

// simEvictions tells the evictions by job.
func simEvictions(b *strings.Builder, evicted []sim.Eviction) {
	count := map[string]int{}
	for _, e := range evicted {
		count[simJob(e.Namespace, e.Job)]++
	}
	for _, e := range evicted {
		job := simJob(e.Namespace, e.Job)
		if n := count[job]; n > 0 {
			fmt.Fprintf(b, "   evicted: %d of job %q (priority %d)\n", n, job, e.Priority)
			count[job] = 0
		}
	}
}

func (r *simReport) usageTable() string {
	before := map[string]sim.Usage{}
	for _, u := range r.Before {
		before[u.Class] = u
	}
	cores := false
	for _, u := range append(append([]sim.Usage(nil), r.Before...), r.After...) {
		cores = cores || u.Cores.Used > 0
	}
	head := []string{"Class", "Nodes ready", "Allocations", "CPU", "Memory", "Disk"}
	if cores {
		head = append(head, "Cores")
	}
	rows := [][]string{head}
	for _, u := range r.After {
		was, compared := before[u.Class], r.Before != nil
		change := func(from, to string) string {
			if !compared || from == to {
				return to
			}
			return from + " -> " + to
		}
		ready := func(u sim.Usage) string { return fmt.Sprintf("%d/%d", u.Ready, u.Nodes) }
		percent := func(a sim.Amount) string { return fmt.Sprintf("%.1f%%", a.Percent()) }
		name := u.Class
		if name == "" {
			name = "all"
		}
		row := []string{name, change(ready(was), ready(u)), change(fmt.Sprint(was.Allocs), fmt.Sprint(u.Allocs)),
			change(percent(was.CPU), percent(u.CPU)), change(percent(was.MemoryMB), percent(u.MemoryMB)),
			change(percent(was.DiskMB), percent(u.DiskMB))}
		if cores {
			row = append(row, change(percent(was.Cores), percent(u.Cores)))
		}
		rows = append(rows, row)
	}
	return table(rows)
}
