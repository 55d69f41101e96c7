package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"sort"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

type allocLogsFlags struct {
	follow, tail, stderr, stdout, byJob bool
	lines, bytes                        int64
	task, group                         string
}

// bytesPerLine is a guess from which the last lines are looked for.
const bytesPerLine = 120

func allocLogs() *spec {
	return &spec{name: "alloc logs", args: "<allocation> [task]", synopsis: "Show the output of a task", client: true,
		help: `Prints what a task wrote to standard output, and with -f what it writes from now on. The task may be left out
when the allocation has one only. An allocation may be given by prefix.`,
		minArgs: 1, maxArgs: 2,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &allocLogsFlags{}
			fs.BoolVar(&f.follow, "f", false, "Follow the output.")
			fs.BoolVar(&f.tail, "tail", false, "Show the last lines only.")
			fs.Int64Var(&f.lines, "n", -1, "With -tail: how many `LINES`, 10 when not given.")
			fs.Int64Var(&f.bytes, "c", -1, "With -tail: how many `BYTES`.")
			fs.BoolVar(&f.stderr, "stderr", false, "Show standard error only.")
			fs.BoolVar(&f.stdout, "stdout", false, "Show standard output only; this is the default.")
			fs.StringVar(&f.task, "task", "", "`NAME` of the task.")
			fs.BoolVar(&f.byJob, "job", false, "The argument is a job; its newest running allocation is taken.")
			fs.StringVar(&f.group, "group", "", "With -job: an allocation of this `GROUP`.")
			fs.BoolVar(new(bool), "verbose", false, "Accepted.")
			return f.run
		}}
}

func (f *allocLogsFlags) run(ctx context.Context, c *call) error {
	a, err := f.allocation(ctx, c)
	if err != nil {
		return err
	}
	name := f.task
	if len(c.args) == 2 {
		name = c.args[1]
	}
	task, err := taskOf(a, name)
	if err != nil {
		return err
	}
	opts := api.LogOptions{Task: task, Type: api.LogStdout, Follow: f.follow, Origin: api.OriginStart}
	if f.stderr {
		opts.Type = api.LogStderr
	}
	lines := int64(-1)
	if f.lines < -1 || f.bytes < -1 {
		return errors.New("-n and -c count what is shown: they cannot be negative")
	}
	if f.tail || f.lines >= 0 || f.bytes >= 0 {
		opts.Origin = api.OriginEnd
		lines = f.lines
		switch {
		case f.bytes >= 0:
			opts.Offset, lines = f.bytes, -1
		default:
			if lines < 0 {
				lines = 10
			}
			opts.Offset = lines * bytesPerLine
		}
	}
	frames, err := c.client.AllocFS().Logs(ctx, a.ID, opts, nil)
	if err != nil {
		return fmt.Errorf("error reading logs: %s", api.Text(err))
	}
	defer frames.Close()
	if lines >= 0 && !f.follow {
		return copyLastLines(c.out, frames, int(lines))
	}
	if _, err := io.Copy(c.out, frames); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("error reading logs: %w", err)
	}
	return nil
}

// copyLastLines writes the last n lines of r.
func copyLastLines(w io.Writer, r io.Reader, n int) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("error reading logs: %w", err)
	}
	start, seen := len(text), 0
	for start > 0 {
		if text[start-1] == '\n' && start != len(text) {
			seen++
			if seen == n {
				break
			}
		}
		start--
	}
	if n == 0 {
		start = len(text)
	}
	_, err = w.Write(text[start:])
	return err
}

func (f *allocLogsFlags) allocation(ctx context.Context, c *call) (*structs.Allocation, error) {
	if !f.byJob {
		return c.alloc(ctx, c.args[0])
	}
	return c.allocOfJob(ctx, c.args[0], f.group)
}

// allocOfJob picks the newest allocation of a job, a running one before others.
func (c *call) allocOfJob(ctx context.Context, jobID, group string) (*structs.Allocation, error) {
	job, err := c.job(ctx, jobID)
	if err != nil {
		return nil, err
	}
	allocs, _, err := c.client.Jobs().Allocations(ctx, structs.Val(job.ID), false, &api.QueryOptions{Namespace: structs.Val(job.Namespace)})
	if err != nil {
		return nil, fmt.Errorf("error querying allocations: %s", api.Text(err))
	}
	var fit []*structs.AllocationListStub
	for _, a := range allocs {
		if group == "" || a.TaskGroup == group {
			fit = append(fit, a)
		}
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("job %q has no allocation to look at", structs.Val(job.ID))
	}
	sort.SliceStable(fit, func(i, j int) bool {
		x, y := fit[i].ClientStatus == structs.AllocClientStatusRunning, fit[j].ClientStatus == structs.AllocClientStatusRunning
		if x != y {
			return x
		}
		return fit[i].CreateIndex > fit[j].CreateIndex
	})
	a, _, err := c.client.Allocations().Info(ctx, fit[0].ID, nil)
	return a, err
}
