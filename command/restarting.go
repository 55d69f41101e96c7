package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// restarting restarts or replaces allocations and awaits that they run again, by blocking queries.
type restarting struct {
	c          *call
	opts       api.RestartOptions
	tasks      []string // empty: all that run
	reschedule bool
	verbose    bool

	mu sync.Mutex // of the output
}

func (r *restarting) head(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	(&monitor{c: r.c}).head(format, args...)
}

func (r *restarting) line(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	(&monitor{c: r.c}).line(format, args...)
}

// batch restarts allocations side by side and gives what went wrong.
func (r *restarting) batch(ctx context.Context, batch []*structs.AllocationListStub) []error {
	errs := make([]error, len(batch))
	var wg sync.WaitGroup
	for i, stub := range batch {
		wg.Go(func() {
			if err := r.one(ctx, stub); err != nil {
				errs[i] = fmt.Errorf("allocation %q: %w", shortID(stub.ID, r.verbose), err)
			}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

func (r *restarting) one(ctx context.Context, stub *structs.AllocationListStub) error {
	alloc, _, err := r.c.client.Allocations().Info(ctx, stub.ID, nil)
	if err != nil {
		return fmt.Errorf("read it: %s", api.Text(err))
	}
	if r.reschedule {
		return r.replace(ctx, alloc)
	}
	before := map[string]uint64{} // restarts of the tasks that are to run again
	for name, s := range alloc.TaskStates {
		if s.State == structs.TaskStateRunning && (len(r.tasks) == 0 || slices.Contains(r.tasks, name)) {
			before[name] = s.Restarts
		}
	}
	names := []string{""}
	if len(r.tasks) > 0 {
		names = slices.DeleteFunc(slices.Clone(r.tasks), func(name string) bool { _, runs := before[name]; return !runs })
	}
	for _, name := range names {
		opts := r.opts
		opts.Task = name
		if err := r.c.client.Allocations().Restart(ctx, alloc.ID, opts, nil); err != nil {
			return errors.New(api.Text(err))
		}
	}
	if err := r.again(ctx, alloc.ID, before); err != nil {
		return err
	}
	r.line("Allocation %q restarted", shortID(alloc.ID, r.verbose))
	return nil
}

// again waits until the tasks run after one restart more.
func (r *restarting) again(ctx context.Context, id string, before map[string]uint64) error {
	q := &api.QueryOptions{}
	for {
		alloc, meta, err := r.c.client.Allocations().Info(ctx, id, q)
		if err != nil {
			return fmt.Errorf("read it: %s", api.Text(err))
		}
		if alloc.TerminalStatus() {
			return fmt.Errorf("it is %s, desired %s, and did not run again", alloc.ClientStatus, alloc.DesiredStatus)
		}
		done := true
		for name, restarts := range before {
			s := alloc.TaskStates[name]
			done = done && s != nil && s.Restarts > restarts && s.State == structs.TaskStateRunning
		}
		if done {
			return nil
		}
		q.WaitIndex = meta.LastIndex
	}
}

// replace stops an allocation and waits until the one that follows it runs.
func (r *restarting) replace(ctx context.Context, alloc *structs.Allocation) error {
	stop := &api.StopOptions{NoShutdownDelay: r.opts.NoShutdownDelay, KillTimeout: r.opts.KillTimeout}
	if _, _, err := r.c.client.Allocations().Stop(ctx, alloc.ID, stop, nil); err != nil {
		return errors.New(api.Text(err))
	}
	q := &api.QueryOptions{}
	id := alloc.ID
	for {
		a, meta, err := r.c.client.Allocations().Info(ctx, id, q)
		if err != nil {
			return fmt.Errorf("read it: %s", api.Text(err))
		}
		switch {
		case a.NextAllocation != "":
			id, q.WaitIndex = a.NextAllocation, 0
			continue
		case id != alloc.ID && a.ClientStatus == structs.AllocClientStatusRunning:
			r.line("Allocation %q replaced by %q", shortID(alloc.ID, r.verbose), shortID(a.ID, r.verbose))
			return nil
		case id != alloc.ID && a.TerminalStatus():
			return fmt.Errorf("its replacement %q is %s, desired %s", shortID(a.ID, r.verbose), a.ClientStatus, a.DesiredStatus)
		}
		q.WaitIndex = meta.LastIndex
	}
}

// proceed asks whether to go on, and after which pause.
func (r *restarting) proceed(question string, otherwise bool, pause time.Duration) (time.Duration, error) {
	for {
		r.c.printf("%s", question)
		answer, err := bufio.NewReader(r.c.in).ReadString('\n')
		answer = strings.ToLower(strings.TrimSpace(answer))
		if err != nil && answer == "" {
			return 0, fmt.Errorf("\nno answer: use -yes, -on-error=fail or a -batch-wait")
		}
		switch {
		case answer == "y" || answer == "yes" || answer == "" && otherwise:
			return pause, nil
		case answer == "n" || answer == "no" || answer == "":
			return 0, &exitError{code: 1, text: "Job restart stopped: the rest was not restarted"}
		}
		if d, err := time.ParseDuration(answer); err == nil && d >= 0 {
			return d, nil
		}
		r.c.printf("%q is neither yes nor no nor a duration such as 30s\n", answer)
	}
}
