package command

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobHistory() *spec {
	return &spec{name: "job history", args: "<job>", synopsis: "Show the versions of a job", client: true,
		help:    "Lists the versions of a job that are kept, newest first. A job may be given by prefix.",
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON, full bool
			var tmpl, version string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.BoolVar(&full, "full", false, "Print each version whole, as JSON.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.StringVar(&version, "version", "", "Show `VERSION` only.")
			return func(ctx context.Context, c *call) error {
				job, err := c.job(ctx, c.args[0])
				if err != nil {
					return err
				}
				answer, _, err := c.client.Jobs().Versions(ctx, structs.Val(job.ID), &api.QueryOptions{Namespace: structs.Val(job.Namespace)})
				if err != nil {
					return fmt.Errorf("read versions: %w", err)
				}
				versions := answer.Versions
				if version != "" {
					one, err := c.jobVersion(ctx, job, version)
					if err != nil {
						return err
					}
					versions = []*structs.Job{one}
				}
				if done, err := data(c.out, versions, asJSON || full, tmpl); done {
					return err
				}
				for i, v := range versions {
					if i > 0 {
						c.printf("\n")
					}
					rows := [][2]string{{"Version", fmt.Sprint(v.Version)}, {"Stable", yesNo(v.Stable)},
						{"Submit Date", formatTime(time.Unix(0, v.SubmitTime))}}
					if v.VersionTag != nil {
						rows = append(rows, [2]string{"Tag Name", v.VersionTag.Name})
					}
					c.printf("%s", pairs(rows...))
				}
				return nil
			}
		}}
}
