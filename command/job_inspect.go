package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobInspect() *spec {
	return &spec{name: "job inspect", args: "<job>", synopsis: "Show a job as it is stored", client: true,
		help:    "Prints the job as the API's JSON. A job may be given by prefix.",
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asHCL, asJSON, withVars bool
			var tmpl, version string
			fs.BoolVar(&asHCL, "hcl", false, "Print the jobspec which was submitted.")
			fs.BoolVar(&asJSON, "json", false, "Print JSON; this is the default.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.StringVar(&version, "version", "", "Show `VERSION` of the job instead of the current one.")
			fs.BoolVar(&withVars, "with-vars", false, "With -hcl, print the values of variables which were submitted too.")
			return func(ctx context.Context, c *call) error {
				switch {
				case asHCL && asJSON:
					return errors.New("-hcl and -json cannot be used together")
				case withVars && !asHCL:
					return errors.New("-with-vars can only be used with -hcl")
				}
				job, err := c.job(ctx, c.args[0])
				if err != nil {
					return err
				}
				if version != "" {
					if job, err = c.jobVersion(ctx, job, version); err != nil {
						return err
					}
				}
				if asHCL {
					return inspectSource(ctx, c, job, withVars)
				}
				if tmpl != "" {
					_, err := data(c.out, job, false, tmpl)
					return err
				}
				_, err = data(c.out, map[string]any{"Job": job}, true, "")
				return err
			}
		}}
}

// inspectSource prints the text which a job was made of. Values of variables follow as they would stand in a file of
// variables.
func inspectSource(ctx context.Context, c *call, job *structs.Job, withVars bool) error {
	s, _, err := c.client.Jobs().Submission(ctx, structs.Val(job.ID), job.Version, &api.QueryOptions{Namespace: structs.Val(job.Namespace)})
	if err != nil {
		return fmt.Errorf("read the submitted source: %w", err)
	}
	c.printf("%s\n", strings.TrimSuffix(s.Source, "\n"))
	if !withVars || len(s.VariableFlags) == 0 && s.Variables == "" {
		return nil
	}
	c.printf("\n# Variables\n%s", s.Variables)
	for _, name := range sortedKeys(s.VariableFlags) {
		c.printf("%s = %s\n", name, variableText(s.VariableFlags[name]))
	}
	return nil
}

// variableText writes the value of a -var as it stands in a file of variables: collections as they are, all else as a
// string, which becomes what its variable needs.
func variableText(value string) string {
	if trimmed := strings.TrimSpace(value); strings.HasPrefix(trimmed, "[") || strings.HasPrefix(trimmed, "{") {
		return value
	}
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(value))
}

func (c *call) jobVersion(ctx context.Context, job *structs.Job, version string) (*structs.Job, error) {
	want, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("-version needs a whole number, got %q", version)
	}
	answer, _, err := c.client.Jobs().Versions(ctx, structs.Val(job.ID), &api.QueryOptions{Namespace: structs.Val(job.Namespace)})
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	for _, v := range answer.Versions {
		if v.Version == want {
			return v, nil
		}
	}
	return nil, fmt.Errorf("job %q has no version %d", structs.Val(job.ID), want)
}
