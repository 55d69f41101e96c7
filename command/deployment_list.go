package command

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func deploymentList() *spec {
	return &spec{name: "deployment list", args: "", synopsis: "List deployments", client: true,
		help: "Lists deployments, the newest first.", minArgs: 0, maxArgs: 0,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON, verbose bool
			var tmpl, filter string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.StringVar(&filter, "filter", "", "List only deployments that an `EXPRESSION` matches.")
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
			return func(ctx context.Context, c *call) error {
				q := c.query()
				q.Filter = filter
				list, _, err := c.client.Deployments().List(ctx, q)
				if err != nil {
					return fmt.Errorf("error listing deployments: %s", api.Text(err))
				}
				newestFirst(list)
				if done, err := data(c.out, list, asJSON, tmpl); done {
					return err
				}
				if len(list) == 0 {
					c.printf("No deployments found\n")
					return nil
				}
				c.printf("%s", deploymentRows(list, verbose))
				return nil
			}
		}}
}

// newestFirst sorts deployments.
func newestFirst(list []*structs.Deployment) {
	slices.SortStableFunc(list, func(a, b *structs.Deployment) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
}

func deploymentRows(list []*structs.Deployment, verbose bool) string {
	rows := [][]string{{"ID", "Job ID", "Job Version", "Status", "Description"}}
	for _, d := range list {
		rows = append(rows, []string{shortID(d.ID, verbose), d.JobID, strconv.FormatUint(d.JobVersion, 10), d.Status, d.StatusDescription})
	}
	return table(rows)
}

// deployment finds a deployment by its id or the beginning of it.
func (c *call) deployment(ctx context.Context, id string) (*structs.Deployment, error) {
	id = trimPrefix(id)
	if !mayBeID(id) {
		return nil, unknown("deployment", id)
	}
	q := c.query()
	q.Prefix = id
	if q.Namespace == "" {
		q.Namespace = structs.AllNamespaces
	}
	list, _, err := c.client.Deployments().List(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("find deployment: %w", err)
	}
	return pick("deployment", id, list, func(d *structs.Deployment) string { return d.ID },
		func(d *structs.Deployment) []string {
			return []string{d.ID, d.JobID, strconv.FormatUint(d.JobVersion, 10), d.Status}
		}, []string{"ID", "Job ID", "Job Version", "Status"})
}
