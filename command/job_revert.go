package command

import (
	"context"
	"flag"
	"fmt"
	"strconv"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobRevert() *spec {
	return &spec{name: "job revert", args: "<job> <version|tag>", synopsis: "Make an older version of a job the newest", client: true,
		help: `Registers a version of a job anew, which a number or a tag names; "job history" lists them. Follows the evaluation
unless -detach is given. A job may be given by prefix.`,
		minArgs: 2, maxArgs: 2,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var detach, verbose bool
			fs.BoolVar(&detach, "detach", false, "Print the evaluation's id and return at once.")
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
			return func(ctx context.Context, c *call) error {
				job, err := c.job(ctx, c.args[0])
				if err != nil {
					return err
				}
				version, err := c.namedVersion(ctx, job, c.args[1])
				if err != nil {
					return err
				}
				answer, _, err := c.client.Jobs().Revert(ctx, structs.Val(job.ID), version, nil,
					&api.WriteOptions{Namespace: structs.Val(job.Namespace)})
				if err != nil {
					return fmt.Errorf("error reverting job: %s", api.Text(err))
				}
				switch {
				case answer.EvalID == "": // periodic and parameterized jobs are launched later
					c.printf("Job %q reverted to version %d\n", structs.Val(job.ID), version)
					return nil
				case detach:
					c.printf("Evaluation ID: %s\n", answer.EvalID)
					return nil
				}
				return (&monitor{c: c, verbose: verbose}).eval(ctx, answer.EvalID)
			}
		}}
}

// namedVersion gives the number of the version which a number or a tag names.
func (c *call) namedVersion(ctx context.Context, job *structs.Job, name string) (uint64, error) {
	if version, err := strconv.ParseUint(name, 10, 64); err == nil {
		return version, nil
	}
	answer, _, err := c.client.Jobs().Versions(ctx, structs.Val(job.ID), &api.QueryOptions{Namespace: structs.Val(job.Namespace)})
	if err != nil {
		return 0, fmt.Errorf("read versions: %w", err)
	}
	for _, v := range answer.Versions {
		if v.VersionTag != nil && v.VersionTag.Name == name {
			return v.Version, nil
		}
	}
	return 0, fmt.Errorf("job %q has no version with the tag %q", structs.Val(job.ID), name)
}
