package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

var errNoTagName = errors.New("a tag needs a name: -name is required")

func jobTagApply() *spec {
	return &spec{name: "job tag apply", args: "<job>", synopsis: "Give a version of a job a name", client: true,
		help: `Names a version of a job, the newest one unless -version is given. A version with a name is kept until the name is
taken away. The name must be another one for each version of the job.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var name, description, version string
			fs.StringVar(&name, "name", "", "`NAME` of the tag.")
			fs.StringVar(&description, "description", "", "What the tag is about, as `TEXT`.")
			fs.StringVar(&version, "version", "", "`VERSION` to name, instead of the newest.")
			return func(ctx context.Context, c *call) error {
				if name == "" {
					return errNoTagName
				}
				job, err := c.job(ctx, c.args[0])
				if err != nil {
					return err
				}
				req := structs.TagVersionRequest{Version: job.Version, Description: description}
				if version != "" {
					if req.Version, err = strconv.ParseUint(version, 10, 64); err != nil {
						return fmt.Errorf("-version needs a whole number, got %q", version)
					}
				}
				_, err = c.client.Jobs().TagVersion(ctx, structs.Val(job.ID), name, req, &api.WriteOptions{Namespace: structs.Val(job.Namespace)})
				if err != nil {
					return fmt.Errorf("error tagging job version: %s", api.Text(err))
				}
				c.printf("Job version %d tagged with name %q\n", req.Version, name)
				return nil
			}
		}}
}

func jobTagUnset() *spec {
	return &spec{name: "job tag unset", args: "<job>", synopsis: "Take the name of a version of a job away", client: true,
		help:    "Takes a name away from the version of a job that has it, which may then be forgotten like others.",
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var name string
			fs.StringVar(&name, "name", "", "`NAME` of the tag.")
			return func(ctx context.Context, c *call) error {
				if name == "" {
					return errNoTagName
				}
				job, err := c.job(ctx, c.args[0])
				if err != nil {
					return err
				}
				_, err = c.client.Jobs().UntagVersion(ctx, structs.Val(job.ID), name, &api.WriteOptions{Namespace: structs.Val(job.Namespace)})
				if err != nil {
					return fmt.Errorf("error removing tag: %s", api.Text(err))
				}
				c.printf("Tag %q removed from job %q\n", name, structs.Val(job.ID))
				return nil
			}
		}}
}
