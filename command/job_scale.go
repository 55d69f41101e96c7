package command

import (
	"context"
	"flag"
	"fmt"
	"strconv"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobScale() *spec {
	return &spec{name: "job scale", args: "<job> [group] <count>", synopsis: "Change the count of a job's group", client: true,
		help: `Gives a group another count, as a new version of the job, and follows the evaluation unless -detach is given. The
group may be left out when the job has one. A job may be given by prefix. The count must be within the group's scaling
policy, and no deployment of the job may be under way.`,
		minArgs: 2, maxArgs: 3,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &jobScaleFlags{}
			f.stopFlags.declare(fs)
			fs.Uint64Var(&f.check, "check-index", 0, "Scale only if the job's modify index is `INDEX`; 0 does not check.")
			fs.BoolVar(&f.detach, "detach", false, "Print the evaluation's id and return at once.")
			fs.BoolVar(&f.verbose, "verbose", false, "Show ids whole.")
			return f.run
		}}
}

type jobScaleFlags struct {
	stopFlags
	check           uint64
	detach, verbose bool
}

func (f *jobScaleFlags) run(ctx context.Context, c *call) error {
	noDelay, killTimeout := f.values()
	text := c.args[len(c.args)-1]
	count, err := strconv.ParseInt(text, 10, 32)
	if err != nil || count < 0 {
		return fmt.Errorf("the count must be a number, 0 or more, got %q", text)
	}
	job, err := c.job(ctx, c.args[0])
	if err != nil {
		return err
	}
	id := structs.Val(job.ID)
	group := ""
	switch {
	case len(c.args) == 3:
		group = c.args[1]
	case len(job.TaskGroups) == 1:
		group = structs.Val(job.TaskGroups[0].Name)
	default:
		return fmt.Errorf("job %q has %d groups: name the one to scale", id, len(job.TaskGroups))
	}
	req := structs.ScalingRequest{Count: &count, Target: map[string]string{"Job": id, "Group": group},
		Message: "submitted using the nomadlite command line", JobModifyIndex: f.check}
	answer, _, err := c.client.Jobs().Scale(ctx, id, req, &api.ScaleOptions{NoShutdownDelay: noDelay, KillTimeout: killTimeout},
		&api.WriteOptions{Namespace: structs.Val(job.Namespace)})
	if err != nil {
		return fmt.Errorf("error scaling job: %s", api.Text(err))
	}
	if answer.Warnings != "" {
		c.printf("Job Warnings:\n%s\n\n", answer.Warnings)
	}
	switch {
	case answer.EvalID == "":
		c.printf("Job %q scaled\n", id)
		return nil
	case f.detach:
		c.printf("Evaluation ID: %s\n", answer.EvalID)
		return nil
	}
	return (&monitor{c: c, verbose: f.verbose}).eval(ctx, answer.EvalID)
}
