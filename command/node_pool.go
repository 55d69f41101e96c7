package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// pageFlags are those of the commands that list by pages.
type pageFlags struct {
	asJSON, verbose     bool
	tmpl, filter, token string
	perPage             int
}

func (f *pageFlags) declare(fs *flag.FlagSet, what string) {
	fs.BoolVar(&f.asJSON, "json", false, "Print JSON.")
	fs.StringVar(&f.tmpl, "t", "", "Print through a Go `TEMPLATE`.")
	fs.StringVar(&f.filter, "filter", "", "List only "+what+" that an `EXPRESSION` matches.")
	fs.IntVar(&f.perPage, "per-page", 0, "How many `ROWS` on a page.")
	fs.StringVar(&f.token, "page-token", "", "`TOKEN` of the page to list.")
}

func (f *pageFlags) query(namespace string) *api.QueryOptions {
	return &api.QueryOptions{Namespace: namespace, Filter: f.filter, PerPage: f.perPage, NextToken: f.token}
}

// show prints rows in the form which was asked for, and how to get the next page.
func (f *pageFlags) show(c *call, command, none string, list any, n int, meta *api.QueryMeta, rows func() [][]string) error {
	if done, err := data(c.out, list, f.asJSON, f.tmpl); done {
		return err
	}
	if n == 0 {
		c.printf("%s\n", none)
		return nil
	}
	c.printf("%s", table(rows()))
	if meta.NextToken != "" {
		c.printf("\nResults have been paginated. To get the next page run:\n\nnomadlite %s -page-token %s\n", command, meta.NextToken)
	}
	return nil
}

// pool finds a node pool by its name or the beginning of it.
func (c *call) pool(ctx context.Context, name string) (*structs.NodePool, error) {
	list, _, err := c.client.NodePools().List(ctx, &api.QueryOptions{Prefix: name})
	if err != nil {
		return nil, fmt.Errorf("find node pool: %s", api.Text(err))
	}
	return pick("node pool", name, list, func(p *structs.NodePool) string { return p.Name },
		func(p *structs.NodePool) []string { return []string{p.Name, p.Description} }, []string{"Name", "Description"})
}

func nodePoolList() *spec {
	return &spec{name: "node pool list", args: "", synopsis: "List node pools", client: true,
		help: "Lists node pools by name.", maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &pageFlags{}
			f.declare(fs, "node pools")
			return func(ctx context.Context, c *call) error {
				list, meta, err := c.client.NodePools().List(ctx, f.query(""))
				if err != nil {
					return fmt.Errorf("error querying node pools: %s", api.Text(err))
				}
				return f.show(c, "node pool list", "No node pools", list, len(list), meta, func() [][]string {
					rows := [][]string{{"Name", "Description"}}
					for _, p := range list {
						rows = append(rows, []string{p.Name, p.Description})
					}
					return rows
				})
			}
		}}
}

func nodePoolInfo() *spec {
	return &spec{name: "node pool info", args: "<pool>", synopsis: "Show a node pool", client: true,
		help: "Shows a node pool. It may be given by prefix.", minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON bool
			var tmpl string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			return func(ctx context.Context, c *call) error {
				pool, err := c.pool(ctx, c.args[0])
				if err != nil {
					return err
				}
				if done, err := data(c.out, pool, asJSON, tmpl); done {
					return err
				}
				c.printf("%s", poolText(pool))
				return nil
			}
		}}
}

func poolText(pool *structs.NodePool) string {
	head := [][2]string{{"Name", pool.Name}, {"Description", orNone(pool.Description)}}
	if pool.NodeIdentityTTL != 0 {
		head = append(head, [2]string{"Node Identity TTL", pool.NodeIdentityTTL.String()})
	}
	text := pairs(head...) + "\nMetadata\n"
	if len(pool.Meta) == 0 {
		text += "No metadata\n"
	}
	var meta [][2]string
	for _, k := range sortedKeys(pool.Meta) {
		meta = append(meta, [2]string{k, pool.Meta[k]})
	}
	text += pairs(meta...) + "\nScheduler Configuration\n"
	s := pool.SchedulerConfiguration
	if s == nil {
		return text + "No scheduler configuration\n"
	}
	var own [][2]string
	if s.SchedulerAlgorithm != "" {
		own = append(own, [2]string{"Scheduler Algorithm", s.SchedulerAlgorithm})
	}
	if s.MemoryOversubscriptionEnabled != nil {
		own = append(own, [2]string{"Memory Oversubscription Enabled", yesNo(*s.MemoryOversubscriptionEnabled)})
	}
	return text + pairs(own...)
}

func nodePoolDelete() *spec {
	return &spec{name: "node pool delete", args: "<pool>", synopsis: "Delete a node pool", client: true,
		help:    "Deletes a node pool, which is given by its whole name. No node and no job may be in it.",
		minArgs: 1, maxArgs: 1,
		prepare: func(*flag.FlagSet) func(context.Context, *call) error {
			return func(ctx context.Context, c *call) error {
				name := c.args[0]
				if _, err := c.client.NodePools().Delete(ctx, name, nil); err != nil {
					return fmt.Errorf("error deleting node pool %q: %s", name, api.Text(err))
				}
				c.printf("Successfully deleted node pool %q!\n", name)
				return nil
			}
		}}
}

func nodePoolJobs() *spec {
	return &spec{name: "node pool jobs", args: "<pool>", synopsis: "List the jobs of a node pool", client: true,
		help: "Lists the jobs of a node pool. It may be given by prefix.", minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &pageFlags{}
			f.declare(fs, "jobs")
			return func(ctx context.Context, c *call) error {
				pool, err := c.pool(ctx, c.args[0])
				if err != nil {
					return err
				}
				list, meta, err := c.client.NodePools().Jobs(ctx, pool.Name, f.query(c.ns))
				if err != nil {
					return fmt.Errorf("error querying jobs: %s", api.Text(err))
				}
				return f.show(c, "node pool jobs", "No jobs", list, len(list), meta, func() [][]string {
					rows := [][]string{{"ID", "Namespace", "Type", "Priority", "Status", "Submit Date"}}
					for _, j := range list {
						rows = append(rows, []string{j.ID, j.Namespace, j.Type, fmt.Sprint(j.Priority), jobStatusText(j.Status, j.Stop),
							formatNano(j.SubmitTime)})
					}
					return rows
				})
			}
		}}
}

func nodePoolNodes() *spec {
	return &spec{name: "node pool nodes", args: "<pool>", synopsis: "List the nodes of a node pool", client: true,
		help: "Lists the nodes of a node pool. It may be given by prefix.", minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &pageFlags{}
			f.declare(fs, "nodes")
			fs.BoolVar(&f.verbose, "verbose", false, "Show ids whole, and addresses and versions.")
			return func(ctx context.Context, c *call) error {
				pool, err := c.pool(ctx, c.args[0])
				if err != nil {
					return err
				}
				list, meta, err := c.client.NodePools().Nodes(ctx, pool.Name, f.query(""))
				if err != nil {
					return fmt.Errorf("error querying nodes: %s", api.Text(err))
				}
				return f.show(c, "node pool nodes", "No nodes", list, len(list), meta, func() [][]string {
					return poolNodeRows(list, f.verbose)
				})
			}
		}}
}

func poolNodeRows(list []*structs.NodeListStub, verbose bool) [][]string {
	head := []string{"ID", "Node Pool", "DC", "Name", "Class", "Drain", "Eligibility", "Status"}
	if verbose {
		head = append(head, "Address", "Version")
	}
	rows := [][]string{head}
	for _, n := range list {
		row := []string{shortID(n.ID, verbose), n.NodePool, n.Datacenter, n.Name, orNone(n.NodeClass), yesNo(n.Drain),
			eligibilityText(n.SchedulingEligibility, n.Maintenance), n.Status}
		if verbose {
			row = append(row, n.Address, n.Version)
		}
		rows = append(rows, row)
	}
	return rows
}
