package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobValidate() *spec {
	return &spec{name: "job validate", args: "<path>", synopsis: "Check a jobspec for faults", client: true,
		help: `Parses a jobspec and checks it, telling all faults at once. When an agent answers it is asked too, since it
knows namespaces and node pools; without one the check is made here.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &jobspecFlags{}
			f.declare(fs)
			return func(ctx context.Context, c *call) error {
				job, _, err := f.parse(ctx, c, c.args[0])
				if err != nil {
					return err
				}
				return validateJob(ctx, c, job)
			}
		}}
}

func validateJob(ctx context.Context, c *call, job *structs.Job) error {
	answer, _, err := c.client.Jobs().Validate(ctx, job, c.jobWrite(job))
	switch {
	case err == nil:
		if len(answer.ValidationErrors) > 0 || answer.Error != "" {
			faults := answer.ValidationErrors
			if len(faults) == 0 {
				faults = []string{answer.Error}
			}
			return fmt.Errorf("job validation errors:\n* %s", strings.Join(faults, "\n* "))
		}
		if answer.Warnings != "" {
			c.warnf("Job Warnings:\n%s\n\n", answer.Warnings)
		}
	case api.StatusCode(err) != 0:
		return fmt.Errorf("error validating job: %s", api.Text(err))
	default: // no agent
		job.Canonicalize()
		if err := job.Validate(); err != nil {
			var faults structs.Errors
			if !errors.As(err, &faults) {
				return err
			}
			text := "Job validation errors:"
			for _, f := range faults {
				text += "\n* " + f.Error()
			}
			return errors.New(text)
		}
		if warnings := append(job.Warnings(), job.Unsupported()...); len(warnings) > 0 {
			c.warnf("Job Warnings:\n* %s\n\n", strings.Join(warnings, "\n* "))
		}
	}
	c.printf("Job validation successful\n")
	return nil
}
