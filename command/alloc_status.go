package command

import (
	"context"
	"flag"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

type allocStatusFlags struct {
	short, stats, verbose, asJSON bool
	tmpl                          string
}

func allocStatus() *spec {
	return &spec{name: "alloc status", args: "[allocation]", synopsis: "Show the status of allocations", client: true,
		help: `Without an argument lists the allocations, else shows one: what the servers want (desired), what its node
reported (observed), what the cluster infers when it cannot hear the node (condition), and each task's events.
An allocation may be given by prefix.`,
		minArgs: 0, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &allocStatusFlags{}
			fs.BoolVar(&f.short, "short", false, "Show tasks in one line each.")
			fs.BoolVar(&f.stats, "stats", false, "Show what the tasks use now.")
			fs.BoolVar(&f.verbose, "verbose", false, "Show ids whole, and the scores of nodes.")
			fs.BoolVar(&f.asJSON, "json", false, "Print JSON.")
			fs.StringVar(&f.tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.BoolVar(new(bool), "ui", false, "Accepted; there is no page to open yet.")
			return func(ctx context.Context, c *call) error {
				if len(c.args) == 0 {
					return f.list(ctx, c)
				}
				return f.one(ctx, c, c.args[0])
			}
		}}
}

func (f *allocStatusFlags) list(ctx context.Context, c *call) error {
	allocs, _, err := c.client.Allocations().List(ctx, c.query())
	if err != nil {
		return fmt.Errorf("error querying allocations: %s", api.Text(err))
	}
	if done, err := data(c.out, allocs, f.asJSON, f.tmpl); done {
		return err
	}
	if len(allocs) == 0 {
		c.printf("No allocations\n")
		return nil
	}
	c.printf("%s", allocTable(allocs, f.verbose, time.Now()))
	return nil
}

func (f *allocStatusFlags) one(ctx context.Context, c *call, id string) error {
	a, err := c.alloc(ctx, id)
	if err != nil {
		return err
	}
	if done, err := data(c.out, a, f.asJSON, f.tmpl); done {
		return err
	}
	now := time.Now()
	rows := [][2]string{
		{"ID", a.ID}, {"Eval ID", shortID(a.EvalID, f.verbose)}, {"Name", a.Name}, {"Node ID", shortID(a.NodeID, f.verbose)},
		{"Node Name", a.NodeName}, {"Job ID", a.JobID}, {"Client Status", a.ClientStatus},
		{"Client Description", orNone(a.ClientDescription)}, {"Desired Status", a.DesiredStatus},
		{"Desired Description", orNone(a.DesiredDescription)}, {"Observed Status", orNone(a.ObservedStatus)},
		{"Condition", conditionText(a.Condition)}, {"Created", age(a.CreateTime, now)}, {"Modified", age(a.ModifyTime, now)},
	}
	if a.Job != nil {
		rows = append(rows[:6:6], append([][2]string{{"Job Version", fmt.Sprint(a.Job.Version)}}, rows[6:]...)...)
	}
	for _, related := range [][2]string{
		{"Deployment ID", a.DeploymentID}, {"Previous Alloc ID", a.PreviousAllocation},
		{"Replacement Alloc ID", a.NextAllocation}, {"Followup Eval ID", a.FollowupEvalID},
	} {
		if related[1] != "" {
			rows = append(rows, [2]string{related[0], shortID(related[1], f.verbose)})
		}
	}
	for _, w := range a.Awaits {
		rows = append(rows, [2]string{"Waits For", fmt.Sprintf("the end of %s on node %s", shortID(w.ID, f.verbose), w.NodeName)})
	}
	if a.Fenced {
		rows = append(rows, [2]string{"Fenced", "yes: its node ended it, since it could not reach the servers"})
	}
	if a.Orphaned() {
		rows = append(rows, [2]string{"Orphaned", "yes: it was given up, and nobody knows whether it still runs"})
	}
	if a.DeploymentStatus != nil && a.DeploymentStatus.Healthy != nil {
		health := "unhealthy"
		if *a.DeploymentStatus.Healthy {
			health = "healthy"
		}
		rows = append(rows, [2]string{"Deployment Health", health})
	}
	c.printf("%s", pairs(rows...))
	f.ports(c, a)
	if f.stats {
		if err := f.usage(ctx, c, a); err != nil {
			return err
		}
	}
	f.checks(ctx, c, a)
	f.tasks(c, a)
	if a.Metrics != nil && f.verbose {
		f.placement(c, a.Metrics)
	}
	return nil
}

func conditionText(cond structs.Condition) string {
	text := cond.Status
	if text == "" {
		text = structs.ConditionOK
	}
	if !cond.Since.IsZero() && text != structs.ConditionOK {
		text += " since " + formatTime(cond.Since)
	}
	switch {
	case cond.Until.IsZero():
	case cond.Status == structs.ConditionAway:
		text += ", expected back by " + formatTime(cond.Until)
	default:
		text += ", given up at " + formatTime(cond.Until)
	}
	if cond.Reason != "" {
		text += " (" + cond.Reason + ")"
	}
	return text
}

func (f *allocStatusFlags) ports(c *call, a *structs.Allocation) {
	if a.AllocatedResources == nil || len(a.AllocatedResources.Shared.Ports) == 0 {
		return
	}
	rows := [][]string{{"Label", "Dynamic", "Address"}}
	dynamic := map[string]bool{}
	for _, n := range a.AllocatedResources.Shared.Networks {
		for _, p := range n.DynamicPorts {
			dynamic[p.Label] = true
		}
	}
	for _, p := range a.AllocatedResources.Shared.Ports {
		how := "no"
		if dynamic[p.Label] {
			how = "yes"
		}
		address := fmt.Sprintf("%s:%d", p.HostIP, p.Value)
		if p.To > 0 && p.To != p.Value {
			address += fmt.Sprintf(" -> %d", p.To)
		}
		rows = append(rows, []string{"*" + p.Label, how, address})
	}
	c.printf("\nAllocation Addresses:\n%s", table(rows))
}

func (f *allocStatusFlags) usage(ctx context.Context, c *call, a *structs.Allocation) error {
	stats, err := c.client.Allocations().Stats(ctx, a.ID, nil)
	if err != nil {
		return fmt.Errorf("error querying usage: %s", api.Text(err))
	}
	rows := [][]string{{"Task", "CPU", "Memory"}}
	for _, name := range sortedKeys(stats.Tasks) {
		u := stats.Tasks[name].ResourceUsage
		if u == nil || u.CpuStats == nil || u.MemoryStats == nil {
			continue
		}
		rows = append(rows, []string{name, fmt.Sprintf("%.0f MHz", u.CpuStats.TotalTicks),
			fmt.Sprintf("%.1f MiB", float64(u.MemoryStats.RSS)/(1<<20))})
	}
	c.printf("\nResource Usage\n%s", table(rows))
	return nil
}

func (f *allocStatusFlags) tasks(c *call, a *structs.Allocation) {
	if f.short {
		rows := [][]string{{"Name", "State", "Last Event", "Time"}}
		for _, name := range sortedKeys(a.TaskStates) {
			s := a.TaskStates[name]
			row := []string{name, s.State, "", ""}
			if n := len(s.Events); n > 0 {
				row[2], row[3] = s.Events[n-1].Type, formatNano(s.Events[n-1].Time)
			}
			rows = append(rows, row)
		}
		c.printf("\nTasks\n%s", table(rows))
		return
	}
	for _, name := range sortedKeys(a.TaskStates) {
		s := a.TaskStates[name]
		state := s.State
		if s.Failed {
			state += " (failed)"
		}
		c.printf("\nTask %q is %q\n", name, state)
		c.printf("%s", taskResources(a, name))
		c.printf("Task Events:\n%s", pairs([2]string{"Started At", formatTime(s.StartedAt)}, [2]string{"Finished At", formatTime(s.FinishedAt)},
			[2]string{"Total Restarts", fmt.Sprint(s.Restarts)}, [2]string{"Last Restart", formatTime(s.LastRestart)}))
		events := append([]*structs.TaskEvent(nil), s.Events...)
		sort.SliceStable(events, func(i, j int) bool { return events[i].Time > events[j].Time })
		rows := [][]string{{"Time", "Type", "Description"}}
		for _, e := range events {
			rows = append(rows, []string{formatNano(e.Time), e.Type, strings.ReplaceAll(e.DisplayMessage, "\n", " ")})
		}
		c.printf("\nRecent Events:\n%s", table(rows))
	}
}

func taskResources(a *structs.Allocation, task string) string {
	if a.AllocatedResources == nil || a.AllocatedResources.Tasks[task] == nil {
		return ""
	}
	r := a.AllocatedResources.Tasks[task]
	return "Task Resources:\n" + table([][]string{{"CPU", "Memory", "Disk"}, {fmt.Sprintf("%d MHz", r.Cpu.CpuShares),
		fmt.Sprintf("%d MiB", r.Memory.MemoryMB), fmt.Sprintf("%d MiB", a.AllocatedResources.Shared.DiskMB)}}) + "\n"
}

func (f *allocStatusFlags) placement(c *call, m *structs.AllocationMetric) {
	c.printf("\nPlacement Metrics\n%s", metrics(m, "  "))
	if left := m.ExplainText(); left != "" {
		c.printf("  Other nodes: %s\n", left)
	}
	rows := [][]string{{"Node", "Score", "Parts"}}
	for _, s := range m.ScoreMetaData {
		var parts []string
		for _, k := range sortedKeys(s.Scores) {
			parts = append(parts, fmt.Sprintf("%s=%.3g", k, s.Scores[k]))
		}
		rows = append(rows, []string{shortID(s.NodeID, f.verbose), fmt.Sprintf("%.3g", s.NormScore), strings.Join(parts, " ")})
	}
	c.printf("%s", table(rows))
}
