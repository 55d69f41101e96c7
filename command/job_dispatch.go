package command

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobDispatch() *spec {
	return &spec{name: "job dispatch", args: "<parameterized job> [input source]", client: true,
		synopsis: "Run an instance of a parameterized job",
		help: `Makes a new job of a parameterized one, prints its id and follows its evaluation unless -detach is given. The input
source is a file whose content becomes the payload, or "-" for standard input; a payload has at most 16 KiB. The job may
be given by prefix.

Exit code 2: not everything could be placed.`,
		minArgs: 1, maxArgs: 2,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &jobDispatchFlags{meta: metaFlag{}}
			fs.Var(f.meta, "meta", "A metadata `KEY=VALUE` for the new job; may be given more than once. The job must allow the key.")
			fs.BoolVar(&f.detach, "detach", false, "Print the evaluation's id and return at once.")
			fs.StringVar(&f.token, "idempotency-token", "", "With the same `TOKEN` a job is dispatched only once.")
			fs.StringVar(&f.prefix, "id-prefix-template", "", "A `PREFIX` for the id of the new job.")
			fs.IntVar(&f.priority, "priority", 0, "`PRIORITY` of the new job, instead of the parameterized job's.")
			fs.BoolVar(&f.wait, "wait", false, "Wait until the new job has ended.")
			fs.BoolVar(&f.verbose, "verbose", false, "Show ids whole.")
			fs.BoolVar(new(bool), "ui", false, "Accepted; there is no page to open yet.")
			return f.run
		}}
}

type jobDispatchFlags struct {
	meta                  metaFlag
	detach, wait, verbose bool
	token, prefix         string
	priority              int
}

// metaFlag collects KEY=VALUE.
type metaFlag map[string]string

func (m metaFlag) String() string { return "" }

// Set takes one pair in.
func (m metaFlag) Set(text string) error {
	key, value, found := strings.Cut(text, "=")
	if !found || key == "" {
		return fmt.Errorf("metadata needs the form KEY=VALUE, got %q", text)
	}
	m[key] = value
	return nil
}

func (f *jobDispatchFlags) run(ctx context.Context, c *call) error {
	payload, err := f.payload(c)
	if err != nil {
		return err
	}
	parent, err := c.jobOf(ctx, c.args[0], func(j *structs.JobListStub) bool { return j.ParameterizedJob })
	if err != nil {
		return err
	}
	answer, meta, err := c.client.Jobs().Dispatch(ctx, structs.Val(parent.ID), &api.DispatchOptions{Payload: payload, Meta: f.meta,
		IDPrefixTemplate: f.prefix, Priority: f.priority, IdempotencyToken: f.token},
		&api.WriteOptions{Namespace: structs.Val(parent.Namespace)})
	if err != nil {
		return fmt.Errorf("failed to dispatch job: %s", api.Text(err))
	}
	if f.token != "" && answer.JobCreateIndex < meta.LastIndex {
		c.printf("Job %q already dispatched with idempotency token %q.\n", answer.DispatchedJobID, f.token)
		return f.await(ctx, c, parent, answer.DispatchedJobID)
	}
	lines := [][2]string{{"Dispatched Job ID", answer.DispatchedJobID}}
	if answer.EvalID != "" { // an instance that is periodic is launched later
		lines = append(lines, [2]string{"Evaluation ID", shortID(answer.EvalID, f.verbose)})
	}
	c.printf("%s", pairs(lines...))
	if answer.EvalID != "" && !f.detach {
		c.printf("\n")
		if err := (&monitor{c: c, verbose: f.verbose}).eval(ctx, answer.EvalID); err != nil {
			return err
		}
	}
	return f.await(ctx, c, parent, answer.DispatchedJobID)
}

// payload reads the input source, if there is one.
func (f *jobDispatchFlags) payload(c *call) ([]byte, error) {
	if len(c.args) < 2 {
		return nil, nil
	}
	in := c.in
	if path := c.args[1]; path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("error reading input data: %w", err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, structs.DispatchPayloadLimit+1))
	if err != nil {
		return nil, fmt.Errorf("error reading input data: %w", err)
	}
	if len(data) > structs.DispatchPayloadLimit {
		return nil, fmt.Errorf("error reading input data: it has more than %d bytes", structs.DispatchPayloadLimit)
	}
	return data, nil
}

// await waits, where that was asked for, until the new job has ended. It fails when one of its allocations failed.
func (f *jobDispatchFlags) await(ctx context.Context, c *call, parent *structs.Job, id string) error {
	if !f.wait {
		return nil
	}
	q := &api.QueryOptions{Namespace: structs.Val(parent.Namespace)}
	for {
		job, meta, err := c.client.Jobs().Info(ctx, id, q)
		if err != nil {
			return fmt.Errorf("error querying job: %s", api.Text(err))
		}
		if job.Status == structs.JobStatusDead {
			break
		}
		q.WaitIndex = meta.LastIndex
	}
	allocs, _, err := c.client.Jobs().Allocations(ctx, id, false, &api.QueryOptions{Namespace: structs.Val(parent.Namespace)})
	if err != nil {
		return fmt.Errorf("error querying allocations: %s", api.Text(err))
	}
	failed := 0
	for _, a := range allocs {
		if a.ClientStatus != structs.AllocClientStatusComplete && a.NextAllocation == "" {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("job %q has ended, %d of its allocations did not complete", id, failed)
	}
	c.printf("Job %q has ended\n", id)
	return nil
}
