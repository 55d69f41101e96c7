package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// status shows whatever an id names: it asks the kinds in turn, as each resolves prefixes by itself.
func status() *spec {
	return &spec{name: "status", args: "[id]", synopsis: "Show the status of whatever an id names", client: true,
		help: `Without an argument lists the jobs. Else shows the job, allocation, node, evaluation or deployment whose id
begins so.`,
		minArgs: 0, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var verbose bool
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
			fs.BoolVar(new(bool), "ui", false, "Accepted; there is no page to open yet.")
			return func(ctx context.Context, c *call) error {
				jobs := &jobStatusFlags{verbose: verbose}
				if len(c.args) == 0 {
					return jobs.list(ctx, c)
				}
				return showAny(ctx, c, c.args[0], jobs)
			}
		}}
}

func showAny(ctx context.Context, c *call, id string, jobs *jobStatusFlags) error {
	q := &api.QueryOptions{Namespace: c.ns, Prefix: id}
	if q.Namespace == "" {
		q.Namespace = structs.AllNamespaces
	}
	type kind struct {
		name  string
		count func() (int, error)
		show  func() error
	}
	exact := false // a job's id was given whole: it is meant, whatever else begins so
	kinds := []kind{
		{"job", func() (int, error) {
			l, _, err := c.client.Jobs().List(ctx, q)
			for _, j := range l {
				exact = exact || j.ID == id
			}
			return len(l), err
		},
			func() error { return jobs.one(ctx, c, id) }},
		{"allocation", func() (int, error) { l, _, err := c.client.Allocations().List(ctx, q); return len(l), err },
			func() error { return (&allocStatusFlags{verbose: jobs.verbose}).one(ctx, c, id) }},
		{"node", func() (int, error) { l, _, err := c.client.Nodes().List(ctx, q); return len(l), err },
			func() error {
				n, err := c.node(ctx, id)
				if err != nil {
					return err
				}
				return (&nodeStatusFlags{verbose: jobs.verbose}).one(ctx, c, n)
			}},
		{"evaluation", func() (int, error) { l, _, err := c.client.Evaluations().List(ctx, q); return len(l), err },
			func() error {
				e, err := c.eval(ctx, id)
				if err != nil {
					return err
				}
				return printEval(ctx, c, e, jobs.verbose)
			}},
		{"deployment", func() (int, error) { l, _, err := c.client.Deployments().List(ctx, q); return len(l), err },
			func() error {
				l, _, err := c.client.Deployments().List(ctx, q)
				if err != nil || len(l) != 1 {
					return fmt.Errorf("several deployments begin with %q", id)
				}
				c.printf("ID          = %s\nJob ID      = %s\n%s", l[0].ID, l[0].JobID, deploymentTable(l[0]))
				return nil
			}},
	}
	var found []kind
	for _, k := range kinds {
		if k.name != "job" && !mayBeID(id) {
			break
		}
		n, err := k.count()
		if err != nil {
			return fmt.Errorf("error querying %ss: %s", k.name, api.Text(err))
		}
		if n > 0 {
			found = append(found, k)
		}
		if exact {
			break
		}
	}
	switch len(found) {
	case 0:
		return fmt.Errorf("nothing with id or prefix %q found", id)
	case 1:
		return found[0].show()
	}
	names := ""
	for _, k := range found {
		names += "\n  " + k.name
	}
	return fmt.Errorf("%q begins the ids of several kinds of objects, use the command of one:%s", id, names)
}
