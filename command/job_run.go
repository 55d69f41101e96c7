package command

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobRun() *spec {
	return &spec{name: "job run", args: "<path>", synopsis: "Run a new job or update an existing one", client: true,
		help: `Reads a jobspec and submits it. Follows the evaluation, and the deployment if there is one, until it is
decided, unless -detach is given. The path "-" is standard input.

Exit code 2: not everything could be placed.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &jobRunFlags{}
			f.jobspecFlags.declare(fs)
			fs.StringVar(&f.checkIndex, "check-index", "", "Only submit when the job's modify index is `INDEX` (0: it must not exist).")
			fs.StringVar(&f.consulNS, "consul-namespace", "", "Consul `NAMESPACE` of the job.")
			fs.BoolVar(&f.detach, "detach", false, "Print the evaluation's id and return at once.")
			fs.IntVar(&f.priority, "eval-priority", 0, "`PRIORITY` of the evaluation, instead of the job's.")
			fs.BoolVar(&f.output, "output", false, "Print the job as the API's JSON and submit nothing.")
			fs.BoolVar(&f.override, "policy-override", false, "Override soft policies.")
			fs.BoolVar(&f.preserveCounts, "preserve-counts", false, "Keep the counts of groups as they are.")
			fs.BoolVar(&f.preserveResources, "preserve-resources", false, "Keep the resources of tasks as they are.")
			fs.BoolVar(&f.verbose, "verbose", false, "Show ids whole.")
			fs.BoolVar(new(bool), "ui", false, "Accepted; there is no page to open yet.")
			return f.run
		}}
}

type jobRunFlags struct {
	jobspecFlags
	checkIndex, consulNS              string
	detach, output, override, verbose bool
	preserveCounts, preserveResources bool
	priority                          int
}

func (f *jobRunFlags) run(ctx context.Context, c *call) error {
	job, submission, err := f.parse(ctx, c, c.args[0])
	if err != nil {
		return err
	}
	if f.consulNS != "" {
		job.ConsulNamespace = &f.consulNS
	}
	if f.output {
		text, err := parseViewJSON(job)
		if err != nil {
			return err
		}
		c.printf("%s\n", text)
		return nil
	}
	opts := &api.RegisterOptions{PolicyOverride: f.override, PreserveCounts: f.preserveCounts,
		PreserveResources: f.preserveResources, EvalPriority: f.priority, Submission: submission}
	if f.checkIndex != "" {
		index, err := strconv.ParseUint(f.checkIndex, 10, 64)
		if err != nil {
			return fmt.Errorf("-check-index needs a whole number, got %q", f.checkIndex)
		}
		opts.EnforceIndex, opts.ModifyIndex = true, index
	}
	answer, _, err := c.client.Jobs().Register(ctx, job, opts, c.jobWrite(job))
	if err != nil {
		return fmt.Errorf("error submitting job: %s", api.Text(err))
	}
	if answer.Warnings != "" {
		c.warnf("Job Warnings:\n%s\n\n", answer.Warnings)
	}
	if answer.EvalID == "" { // periodic and parameterized jobs are launched later
		c.printf("Job registration successful\n")
		c.sayNextLaunch(job)
		return nil
	}
	if f.detach {
		c.printf("Job registration successful\nEvaluation ID: %s\n", answer.EvalID)
		return nil
	}
	m := &monitor{c: c, verbose: f.verbose}
	return m.eval(ctx, answer.EvalID)
}

// sayNextLaunch tells when a periodic job is launched next.
func (c *call) sayNextLaunch(job *structs.Job) {
	canonical := job.Copy()
	canonical.Canonicalize()
	if next := canonical.NextLaunch(time.Now()); !next.IsZero() {
		c.printf("Approximate next launch time: %s (%s from now)\n", next.Format(time.RFC3339), prettyDuration(time.Until(next)))
	}
}

// jobWrite gives the namespace and region of the job itself; flags and the environment stand in for what it lacks.
func (c *call) jobWrite(job *structs.Job) *api.WriteOptions {
	w := &api.WriteOptions{Namespace: structs.Val(job.Namespace), Region: structs.Val(job.Region)}
	if w.Namespace == "" {
		w.Namespace = c.ns
	}
	return w
}
