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

type nodeStatusFlags struct {
	allocs, self, short, stats, verbose, quiet, asJSON, os bool
	tmpl, filter, token                                    string
	perPage                                                int
}

func nodeStatus() *spec {
	return &spec{name: "node status", args: "[node]", synopsis: "Show the status of nodes", client: true,
		help:    "Without an argument lists the nodes, else shows one. A node may be given by prefix.",
		minArgs: 0, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &nodeStatusFlags{}
			fs.BoolVar(&f.allocs, "allocs", false, "With the list: how many allocations run on each.")
			fs.BoolVar(&f.self, "self", false, "Show the node of the agent that is asked.")
			fs.BoolVar(&f.short, "short", false, "Show the head only.")
			fs.BoolVar(&f.stats, "stats", false, "Show what the node uses now.")
			fs.BoolVar(&f.verbose, "verbose", false, "Show ids and attributes whole.")
			fs.BoolVar(&f.quiet, "quiet", false, "With the list: ids only.")
			fs.BoolVar(&f.os, "os", false, "With the list: the operating system.")
			fs.BoolVar(&f.asJSON, "json", false, "Print JSON.")
			fs.StringVar(&f.tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.StringVar(&f.filter, "filter", "", "List only nodes that an `EXPRESSION` matches.")
			fs.IntVar(&f.perPage, "per-page", 0, "How many `NODES` on a page.")
			fs.StringVar(&f.token, "page-token", "", "`TOKEN` of the page to list.")
			fs.BoolVar(new(bool), "ui", false, "Accepted; there is no page to open yet.")
			return f.run
		}}
}

func (f *nodeStatusFlags) run(ctx context.Context, c *call) error {
	id := ""
	switch {
	case len(c.args) == 1:
		id = c.args[0]
	case f.self:
		self, err := c.client.Agent().Self(ctx)
		if err != nil {
			return fmt.Errorf("error querying agent: %s", api.Text(err))
		}
		if id = self.Stats["client"]["node_id"]; id == "" {
			return fmt.Errorf("the agent that was asked is no client: it has no node")
		}
	default:
		return f.list(ctx, c)
	}
	node, err := c.node(ctx, id)
	if err != nil {
		return err
	}
	return f.one(ctx, c, node)
}

func (f *nodeStatusFlags) list(ctx context.Context, c *call) error {
	q := &api.QueryOptions{Filter: f.filter, PerPage: f.perPage, NextToken: f.token}
	if f.os {
		q.Params = map[string]string{"os": "true"}
	}
	nodes, meta, err := c.client.Nodes().List(ctx, q)
	if err != nil {
		return fmt.Errorf("error querying nodes: %s", api.Text(err))
	}
	if done, err := data(c.out, nodes, f.asJSON, f.tmpl); done {
		return err
	}
	if len(nodes) == 0 {
		return nil
	}
	head := []string{"ID", "Node Pool", "DC", "Name", "Class", "Drain", "Eligibility", "Status"}
	if f.os {
		head = append(head, "OS")
	}
	if f.allocs {
		head = append(head, "Running Allocs")
	}
	rows := [][]string{head}
	for _, n := range nodes {
		if f.quiet {
			c.printf("%s\n", shortID(n.ID, f.verbose))
			continue
		}
		row := []string{shortID(n.ID, f.verbose), n.NodePool, n.Datacenter, n.Name, orNone(n.NodeClass), yesNo(n.Drain),
			eligibilityText(n.SchedulingEligibility, n.Maintenance), n.Status}
		if f.os {
			row = append(row, n.Attributes["os.name"])
		}
		if f.allocs {
			running, err := runningAllocs(ctx, c, n.ID)
			if err != nil {
				return err
			}
			row = append(row, fmt.Sprint(running))
		}
		rows = append(rows, row)
	}
	if !f.quiet {
		c.printf("%s", table(rows))
	}
	if meta.NextToken != "" {
		c.printf("\nResults have been paginated. To get the next page run:\n\nnomadlite node status -page-token %s\n", meta.NextToken)
	}
	return nil
}

// eligibilityText is a node's eligibility, and whether a maintenance masks it.
func eligibilityText(eligibility string, m *structs.NodeMaintenance) string {
	if m.Covers(time.Now()) {
		return eligibility + " (maintenance)"
	}
	return eligibility
}

func runningAllocs(ctx context.Context, c *call, nodeID string) (int, error) {
	allocs, _, err := c.client.Nodes().Allocations(ctx, nodeID, nil)
	if err != nil {
		return 0, fmt.Errorf("error querying allocations: %s", api.Text(err))
	}
	n := 0
	for _, a := range allocs {
		if a.ClientStatus == structs.AllocClientStatusRunning {
			n++
		}
	}
	return n, nil
}

func (f *nodeStatusFlags) one(ctx context.Context, c *call, n *structs.Node) error {
	if done, err := data(c.out, n, f.asJSON, f.tmpl); done {
		return err
	}
	var healthy []string
	for _, name := range sortedKeys(n.Drivers) {
		if n.Drivers[name].Healthy {
			healthy = append(healthy, name)
		}
	}
	c.printf("%s", pairs([2]string{"ID", n.ID}, [2]string{"Name", n.Name}, [2]string{"Node Pool", n.NodePool},
		[2]string{"Class", orNone(n.NodeClass)}, [2]string{"DC", n.Datacenter}, [2]string{"Drain", yesNo(n.Drain)},
		[2]string{"Eligibility", eligibilityText(n.SchedulingEligibility, n.Maintenance)}, [2]string{"Status", n.Status},
		[2]string{"Drivers", strings.Join(healthy, ",")}))
	f.maintenance(c, n)
	if f.short {
		return nil
	}
	allocs, _, err := c.client.Nodes().Allocations(ctx, n.ID, nil)
	if err != nil {
		return fmt.Errorf("error querying allocations: %s", api.Text(err))
	}
	f.events(c, n)
	f.resources(c, n, allocs)
	if f.stats {
		if err := f.usage(ctx, c, n.ID); err != nil {
			return err
		}
	}
	sort.SliceStable(allocs, func(i, j int) bool { return allocs[i].CreateIndex > allocs[j].CreateIndex })
	f.unheard(c, allocs)
	rows := [][]string{{"ID", "Job ID", "Task Group", "Desired", "Status", "Created", "Modified"}}
	now := time.Now()
	for _, a := range allocs {
		rows = append(rows, []string{shortID(a.ID, f.verbose), a.JobID, a.TaskGroup, a.DesiredStatus, a.ClientStatus,
			age(a.CreateTime, now), age(a.ModifyTime, now)})
	}
	c.printf("\nAllocations\n")
	if len(allocs) == 0 {
		c.printf("No allocations placed\n")
	} else {
		c.printf("%s", table(rows))
	}
	if f.verbose {
		c.printf("\nAttributes\n")
		for _, k := range sortedKeys(n.Attributes) {
			c.printf("%s = %s\n", k, n.Attributes[k])
		}
		c.printf("\nMeta\n")
		for _, k := range sortedKeys(n.Meta) {
			c.printf("%s = %s\n", k, n.Meta[k])
		}
	}
	return nil
}

// maintenance shows the downtime that was announced. It masks eligibility.
func (f *nodeStatusFlags) maintenance(c *call, n *structs.Node) {
	if m := n.Maintenance; m != nil {
		c.printf("\nMaintenance\n%s", pairs([2]string{"Since", formatTime(m.Since)}, [2]string{"Until", formatTime(m.Until)},
			[2]string{"Reason", orNone(m.Reason)}, [2]string{"Placements", "none before it is over"}))
	}
}

func (f *nodeStatusFlags) events(c *call, n *structs.Node) {
	rows := [][]string{{"Time", "Subsystem", "Message"}}
	for i := len(n.Events) - 1; i >= 0; i-- {
		e := n.Events[i]
		rows = append(rows, []string{formatTime(e.Timestamp), e.Subsystem, e.Message})
	}
	c.printf("\nNode Events\n%s", table(rows))
}

// unheard shows what the cluster knows of allocations whose node it cannot hear, orphans among them: those were given up
// and may still run.
func (f *nodeStatusFlags) unheard(c *call, allocs []*structs.Allocation) {
	rows := [][]string{{"ID", "Observed", "Condition", "Since", "Until", "Orphaned", "Reason"}}
	for _, a := range allocs {
		cond := a.Condition
		if a.ObservedTerminal() || cond.Status == "" || cond.Status == structs.ConditionOK {
			continue
		}
		until := "-"
		if !cond.Until.IsZero() {
			until = formatTime(cond.Until)
		}
		rows = append(rows, []string{shortID(a.ID, f.verbose), a.ObservedStatus, cond.Status, formatTime(cond.Since), until,
			yesNo(a.Orphaned()), orNone(cond.Reason)})
	}
	if len(rows) > 1 {
		c.printf("\nUnheard Allocations\n%s", table(rows))
	}
}

func (f *nodeStatusFlags) resources(c *call, n *structs.Node, allocs []*structs.Allocation) {
	if n.NodeResources == nil {
		return
	}
	var cpu, memory, disk int64
	for _, a := range allocs {
		if a.TerminalStatus() || a.AllocatedResources == nil {
			continue
		}
		for _, t := range a.AllocatedResources.Tasks {
			cpu += t.Cpu.CpuShares
			memory += t.Memory.MemoryMB
		}
		disk += a.AllocatedResources.Shared.DiskMB
	}
	r := n.NodeResources
	c.printf("\nAllocated Resources\n%s", table([][]string{{"CPU", "Memory", "Disk"},
		{fmt.Sprintf("%d/%d MHz", cpu, r.Cpu.CpuShares), fmt.Sprintf("%s/%s", byteSize(memory<<20), byteSize(r.Memory.MemoryMB<<20)),
			fmt.Sprintf("%s/%s", byteSize(disk<<20), byteSize(r.Disk.DiskMB<<20))}}))
}

func (f *nodeStatusFlags) usage(ctx context.Context, c *call, id string) error {
	stats, err := c.client.Nodes().Stats(ctx, id, nil)
	if err != nil {
		return fmt.Errorf("error querying usage: %s", api.Text(err))
	}
	memory := ""
	if stats.Memory != nil {
		memory = fmt.Sprintf("%s/%s", byteSize(int64(stats.Memory.Used)), byteSize(int64(stats.Memory.Total)))
	}
	c.printf("\nHost Resource Utilization\n%s", table([][]string{{"CPU", "Memory", "Uptime"},
		{fmt.Sprintf("%.0f MHz", stats.CPUTicksConsumed), memory, prettyDuration(time.Duration(stats.Uptime) * time.Second)}}))
	return nil
}
