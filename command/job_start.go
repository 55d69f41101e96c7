package command

import (
	"context"
	"flag"
	"fmt"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobStart() *spec {
	return &spec{name: "job start", args: "<job>", synopsis: "Start a stopped job", client: true,
		help: `Registers the newest version of a job that was stopped anew, as it was written: the options of the stop are no part of it.
Follows the evaluation, and the deployment if there is one, unless -detach is given. A job may be given by prefix; one that is not
stopped is refused. Periodic and parameterized jobs may be launched again from then on.

Exit code 2: not everything could be placed.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &jobStartFlags{}
			fs.BoolVar(&f.detach, "detach", false, "Print the evaluation's id and return at once.")
			fs.BoolVar(&f.verbose, "verbose", false, "Show ids whole.")
			return f.run
		}}
}

type jobStartFlags struct{ detach, verbose bool }

func (f *jobStartFlags) run(ctx context.Context, c *call) error {
	job, err := c.job(ctx, c.args[0])
	if err != nil {
		return err
	}
	id := structs.Val(job.ID)
	if !job.Stopped() {
		return notStopped(job)
	}
	submission, err := c.sourceOfStopped(ctx, job)
	if err != nil {
		return err
	}
	job.Stop = false
	// The index makes sure that what was read is what is started: whoever was quicker is not overwritten.
	answer, _, err := c.client.Jobs().Register(ctx, job,
		&api.RegisterOptions{EnforceIndex: true, ModifyIndex: job.JobModifyIndex, Submission: submission}, c.jobWrite(job))
	if err != nil {
		return fmt.Errorf("error starting job %q: %s", id, api.Text(err))
	}
	if answer.Warnings != "" {
		c.warnf("Job Warnings:\n%s\n\n", answer.Warnings)
	}
	switch {
	case answer.EvalID == "": // periodic and parameterized jobs are launched later
		c.printf("Job %q started\n", id)
		c.sayNextLaunch(job)
		return nil
	case f.detach:
		c.printf("Evaluation ID: %s\n", answer.EvalID)
		return nil
	}
	return (&monitor{c: c, verbose: f.verbose}).eval(ctx, answer.EvalID)
}

// notStopped says why there is nothing to start.
func notStopped(job *structs.Job) error {
	id := structs.Val(job.ID)
	if job.Status == structs.JobStatusDead {
		return fmt.Errorf("job %q is not stopped: it has ended by itself. Run its jobspec to begin anew", id)
	}
	return fmt.Errorf("job %q is not stopped: its status is %q", id, job.Status)
}

// sourceOfStopped gives the source of the version that was stopped, nil when none is kept: a stop makes a version without one.
func (c *call) sourceOfStopped(ctx context.Context, job *structs.Job) (*structs.JobSubmission, error) {
	id, q := structs.Val(job.ID), &api.QueryOptions{Namespace: structs.Val(job.Namespace)}
	answer, _, err := c.client.Jobs().Versions(ctx, id, q)
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	for _, v := range answer.Versions { // newest first
		source, _, err := c.client.Jobs().Submission(ctx, id, v.Version, q)
		switch {
		case err == nil:
			return source, nil
		case !api.IsNotFound(err):
			return nil, fmt.Errorf("read source: %w", err)
		case !v.Stop: // it never had one: an older one is not its source
			return nil, nil
		}
	}
	return nil, nil
}
