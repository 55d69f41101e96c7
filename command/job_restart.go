package command

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

const (
	onErrorAsk  = "ask"
	onErrorFail = "fail"
	waitAsk     = "ask"
)

type jobRestartFlags struct {
	stopFlags
	allTasks, reschedule, verbose, yes bool
	size, wait, onError                string
	groups, tasks                      listFlag
}

func jobRestart() *spec {
	return &spec{name: "job restart", args: "<job>", synopsis: "Restart or reschedule the allocations of a job", client: true,
		help: `Restarts the tasks of a job's running allocations where they are, batch by batch, and waits until each batch runs
again. With -reschedule the allocations are stopped instead and the scheduler places others, maybe elsewhere. A job may be
given by prefix.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &jobRestartFlags{}
			f.stopFlags.declare(fs)
			fs.BoolVar(&f.allTasks, "all-tasks", false, "Restart all tasks, also those that have ended.")
			fs.StringVar(&f.size, "batch-size", "1",
				"`NUMBER` of allocations that are restarted at once, or a percentage such as 25%; 1 when not given.")
			fs.StringVar(&f.wait, "batch-wait", "0s", "`DURATION` between two batches, or ask; 0s when not given.")
			fs.Var(&f.groups, "group", "Restart only allocations of the group `NAME`; may be repeated.")
			fs.Var(&f.tasks, "task", "Restart only the task `NAME`; may be repeated.")
			fs.StringVar(&f.onError, "on-error", onErrorAsk, "`ACTION` when a batch fails: ask, which is the default, or fail.")
			fs.BoolVar(&f.reschedule, "reschedule", false, "Stop the allocations and let the scheduler place others.")
			fs.BoolVar(&f.verbose, "verbose", false, "Show ids whole.")
			fs.BoolVar(&f.yes, "yes", false, "Ask nothing: go on with the next batch whatever happens.")
			return f.run
		}}
}

// check reads the flags which are more than their type.
func (f *jobRestartFlags) check() (wait time.Duration, opts api.RestartOptions, err error) {
	opts.NoShutdownDelay, opts.KillTimeout = f.values()
	opts.AllTasks = f.allTasks
	switch {
	case f.allTasks && len(f.tasks) > 0:
		return 0, opts, fmt.Errorf("-all-tasks and -task cannot be used together")
	case f.reschedule && (f.allTasks || len(f.tasks) > 0):
		return 0, opts, fmt.Errorf("-reschedule replaces whole allocations: -all-tasks and -task cannot be used with it")
	case f.onError != onErrorAsk && f.onError != onErrorFail:
		return 0, opts, fmt.Errorf("-on-error must be ask or fail, got %q", f.onError)
	}
	if f.wait == waitAsk {
		return 0, opts, nil
	}
	wait, err = time.ParseDuration(f.wait)
	if err != nil || wait < 0 {
		return 0, opts, fmt.Errorf("-batch-wait needs a duration of 0 or more such as 30s, or ask, got %q", f.wait)
	}
	return wait, opts, nil
}

// batchSize is how many of n allocations are restarted at once.
func batchSize(text string, n int) (int, error) {
	number, percent := strings.CutSuffix(text, "%")
	size, err := strconv.Atoi(number)
	switch {
	case err != nil || size <= 0 || percent && size > 100:
		return 0, fmt.Errorf("-batch-size needs a number above 0, or a percentage up to 100%%, got %q", text)
	case percent:
		size = (n*size + 99) / 100
	}
	return max(1, size), nil
}

func (f *jobRestartFlags) run(ctx context.Context, c *call) error {
	wait, opts, err := f.check()
	if err != nil {
		return err
	}
	if _, err := batchSize(f.size, 1); err != nil {
		return err
	}
	c.in = bufio.NewReader(c.in) // several questions may be asked
	job, err := c.job(ctx, c.args[0])
	if err != nil {
		return err
	}
	id := structs.Val(job.ID)
	if err := f.checkJob(job); err != nil {
		return err
	}
	if id != c.args[0] && !f.yes {
		ok, err := c.confirm(fmt.Sprintf("Are you sure you want to restart job %q? [y/N] ", id))
		if err != nil || !ok {
			return err
		}
	}
	allocs, err := f.running(ctx, c, job)
	if err != nil {
		return err
	}
	if len(allocs) == 0 {
		c.printf("No allocations to restart\n")
		return nil
	}
	size, err := batchSize(f.size, len(allocs))
	if err != nil {
		return err
	}
	r := &restarting{c: c, opts: opts, tasks: f.tasks, reschedule: f.reschedule, verbose: f.verbose}
	r.head("Restarting %s", plural(len(allocs), "allocation"))
	return f.batches(ctx, r, slices.Collect(slices.Chunk(allocs, size)), wait)
}

// checkJob refuses what cannot be done with the job.
func (f *jobRestartFlags) checkJob(job *structs.Job) error {
	id := structs.Val(job.ID)
	if job.Stop {
		return fmt.Errorf("job %q is stopped: there is nothing to restart", id)
	}
	if f.reschedule && structs.Val(job.Type) == structs.JobTypeSysBatch {
		return fmt.Errorf("job %q is of type sysbatch: its allocations are never replaced, so -reschedule cannot be used", id)
	}
	var tasks []string
	for _, group := range job.TaskGroups {
		if len(f.groups) > 0 && !slices.Contains(f.groups, structs.Val(group.Name)) {
			continue
		}
		for _, task := range group.Tasks {
			tasks = append(tasks, task.Name)
		}
	}
	for _, name := range f.groups {
		if job.LookupTaskGroup(name) == nil {
			return fmt.Errorf("job %q has no group %q", id, name)
		}
	}
	for _, name := range f.tasks {
		if !slices.Contains(tasks, name) {
			return fmt.Errorf("job %q has no task %q in the groups that are meant", id, name)
		}
	}
	return nil
}

// running gives the allocations that are to be restarted.
func (f *jobRestartFlags) running(ctx context.Context, c *call, job *structs.Job) ([]*structs.AllocationListStub, error) {
	list, _, err := c.client.Jobs().Allocations(ctx, structs.Val(job.ID), false, &api.QueryOptions{Namespace: structs.Val(job.Namespace)})
	if err != nil {
		return nil, fmt.Errorf("error querying allocations: %s", api.Text(err))
	}
	list = slices.DeleteFunc(list, func(a *structs.AllocationListStub) bool {
		if a.ClientStatus != structs.AllocClientStatusRunning || a.DesiredStatus != structs.AllocDesiredStatusRun {
			return true
		}
		if len(f.groups) > 0 && !slices.Contains(f.groups, a.TaskGroup) {
			return true
		}
		has := func(name string) bool { return a.TaskStates[name] != nil }
		return len(f.tasks) > 0 && !slices.ContainsFunc(f.tasks, has)
	})
	slices.SortStableFunc(list, func(a, b *structs.AllocationListStub) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// batches restarts one batch after the other, with a pause between two.
func (f *jobRestartFlags) batches(ctx context.Context, r *restarting, batches [][]*structs.AllocationListStub, wait time.Duration) error {
	failed := 0
	for i, batch := range batches {
		r.head("Restarting batch %d of %d with %s", i+1, len(batches), plural(len(batch), "allocation"))
		errs := r.batch(ctx, batch)
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, err := range errs {
			r.line("%s", sentence(err))
		}
		failed += len(errs)
		last := i == len(batches)-1
		pause := wait
		switch {
		case len(errs) > 0 && f.onError == onErrorFail:
			return &exitError{code: 1, text: "Job restart stopped: a batch failed"}
		case last:
		case len(errs) > 0 && !f.yes:
			var err error
			if pause, err = r.proceed("A batch failed. Go on with the next one? [y/N/<wait duration>] ", false, wait); err != nil {
				return err
			}
		case f.wait == waitAsk && !f.yes:
			var err error
			if pause, err = r.proceed("Go on with the next batch? [Y/n/<wait duration>] ", true, 0); err != nil {
				return err
			}
		}
		if pause > 0 && !last {
			r.head("Waiting %s before the next batch", pause)
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			}
		}
	}
	if failed > 0 {
		return &exitError{code: 1, text: fmt.Sprintf("Job restart finished with %s", plural(failed, "error"))}
	}
	r.head("Job restart finished")
	r.c.printf("\nJob restarted successfully!\n")
	return nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
