package command

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

func deploymentStatus() *spec {
	return &spec{name: "deployment status", args: "[deployment]", synopsis: "Show the status of a deployment", client: true,
		help:    "Without an argument lists the deployments, else shows one. A deployment may be given by prefix.",
		minArgs: 0, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &deploymentStatusFlags{}
			fs.BoolVar(&f.asJSON, "json", false, "Print JSON.")
			fs.StringVar(&f.tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.BoolVar(&f.monitor, "monitor", false, "Follow the deployment until it is decided.")
			fs.DurationVar(&f.wait, "wait", 2*time.Second, "`DURATION` between two looks; accepted, changes are awaited.")
			fs.BoolVar(&f.verbose, "verbose", false, "Show ids whole.")
			fs.BoolVar(new(bool), "ui", false, "Accepted; there is no page to open yet.")
			return f.run
		}}
}

type deploymentStatusFlags struct {
	asJSON, monitor, verbose bool
	tmpl                     string
	wait                     time.Duration
}

func (f *deploymentStatusFlags) run(ctx context.Context, c *call) error {
	if len(c.args) == 0 {
		list, _, err := c.client.Deployments().List(ctx, c.query())
		if err != nil {
			return fmt.Errorf("error listing deployments: %w", err)
		}
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
	d, err := c.deployment(ctx, c.args[0])
	if err != nil {
		return err
	}
	if f.monitor && (f.asJSON || f.tmpl != "") {
		return fmt.Errorf("-monitor cannot be used with -json or -t")
	}
	if done, err := data(c.out, d, f.asJSON, f.tmpl); done {
		return err
	}
	if f.monitor {
		c.printf("%s", deploymentHead(d, f.verbose))
		return (&monitor{c: c, verbose: f.verbose}).deployment(ctx, d.ID)
	}
	c.printf("%s", deploymentText(d, f.verbose))
	return nil
}

func deploymentHead(d *structs.Deployment, verbose bool) string {
	return pairs([2]string{"ID", shortID(d.ID, verbose)}, [2]string{"Job ID", d.JobID},
		[2]string{"Job Version", strconv.FormatUint(d.JobVersion, 10)})
}

// deploymentText shows one deployment in full.
func deploymentText(d *structs.Deployment, verbose bool) string {
	text := deploymentHead(d, verbose) + deploymentTable(d)
	if canaries := canaryTable(d); canaries != "" {
		text += "\nCanaries\n" + canaries
	}
	return text
}

// canaryTable shows the groups that have canaries.
func canaryTable(d *structs.Deployment) string {
	rows := [][]string{{"Task Group", "Promoted", "Desired Canaries", "Placed Canaries", "Auto Revert"}}
	for _, name := range sortedKeys(d.TaskGroups) {
		if s := d.TaskGroups[name]; s.DesiredCanaries > 0 {
			rows = append(rows, []string{name, yesNo(s.Promoted), fmt.Sprint(s.DesiredCanaries), fmt.Sprint(len(s.PlacedCanaries)),
				yesNo(s.AutoRevert)})
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return table(rows)
}
