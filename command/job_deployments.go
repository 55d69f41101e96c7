package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobDeployments() *spec {
	return &spec{name: "job deployments", args: "<job>", synopsis: "List the deployments of a job", client: true,
		help:    "Lists the deployments of a job, the newest first. A job may be given by prefix.",
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &jobDeploymentsFlags{}
			fs.BoolVar(&f.all, "all", false, "Also show deployments of an earlier job with the same id.")
			fs.BoolVar(&f.latest, "latest", false, "Show the newest one only, in full.")
			fs.BoolVar(&f.asJSON, "json", false, "Print JSON.")
			fs.StringVar(&f.tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.BoolVar(&f.verbose, "verbose", false, "Show ids whole.")
			return f.run
		}}
}

type jobDeploymentsFlags struct {
	all, latest, asJSON, verbose bool
	tmpl                         string
}

func (f *jobDeploymentsFlags) run(ctx context.Context, c *call) error {
	job, err := c.job(ctx, c.args[0])
	if err != nil {
		return err
	}
	q := &api.QueryOptions{Namespace: structs.Val(job.Namespace)}
	if f.latest {
		return f.newest(ctx, c, structs.Val(job.ID), q)
	}
	list, _, err := c.client.Jobs().Deployments(ctx, structs.Val(job.ID), f.all, q)
	if err != nil {
		return fmt.Errorf("error querying deployments: %s", api.Text(err))
	}
	newestFirst(list)
	if done, err := data(c.out, list, f.asJSON, f.tmpl); done {
		return err
	}
	if len(list) == 0 {
		c.printf("No deployments found\n")
		return nil
	}
	c.printf("%s", deploymentRows(list, f.verbose))
	return nil
}

func (f *jobDeploymentsFlags) newest(ctx context.Context, c *call, jobID string, q *api.QueryOptions) error {
	d, _, err := c.client.Jobs().LatestDeployment(ctx, jobID, q)
	if err != nil {
		return fmt.Errorf("error querying the deployment: %s", api.Text(err))
	}
	if done, err := data(c.out, d, f.asJSON, f.tmpl); done {
		return err
	}
	if d == nil {
		c.printf("No deployments found\n")
		return nil
	}
	c.printf("%s", deploymentText(d, f.verbose))
	return nil
}
