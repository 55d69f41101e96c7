package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// stopFlags are the options of every command that stops work.
type stopFlags struct {
	noShutdownDelay bool
	immediate       bool
	killTimeout     *time.Duration
}

func (f *stopFlags) declare(fs *flag.FlagSet) {
	fs.BoolVar(&f.noShutdownDelay, "no-shutdown-delay", false,
		"Skip the shutdown delays of group and tasks for this stop alone, also those under way.")
	fs.Func("kill-timeout",
		"At most `DURATION` between kill_signal and SIGKILL, for this stop alone; it never lengthens kill_timeout.", f.setKillTimeout)
	fs.BoolVar(&f.immediate, "immediate", false, "Same as -no-shutdown-delay -kill-timeout=0s.")
}

// setKillTimeout refuses an empty value too: it comes from a variable of a script that is not set, and the stop
// would wait for as long as the job says.
func (f *stopFlags) setKillTimeout(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("it needs a duration of 0 or more such as 5s")
	}
	f.killTimeout = &d
	return nil
}

func (f *stopFlags) values() (noDelay bool, killTimeout *time.Duration) {
	if f.immediate {
		return true, structs.Ptr(time.Duration(0))
	}
	return f.noShutdownDelay, f.killTimeout
}

func jobStop() *spec {
	return &spec{name: "job stop", args: "<job> ...", synopsis: "Stop a running job", client: true,
		help: `Stops jobs and follows the evaluations unless -detach is given. A job may be given by prefix.
To shorten a stop that is under way, call it again with -no-shutdown-delay.`,
		minArgs: 1, maxArgs: -1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &jobStopFlags{}
			f.stopFlags.declare(fs)
			fs.BoolVar(&f.detach, "detach", false, "Print the evaluation's id and return at once.")
			fs.IntVar(&f.priority, "eval-priority", 0, "`PRIORITY` of the evaluation, instead of the job's.")
			fs.BoolVar(&f.global, "global", false, "Stop a multiregion job in all its regions.")
			fs.BoolVar(&f.purge, "purge", false, "Remove the job, its versions and its evaluations as well.")
			fs.BoolVar(&f.verbose, "verbose", false, "Show ids whole.")
			fs.BoolVar(&f.yes, "yes", false, "Do not ask when a prefix names the job.")
			return f.run
		}}
}

type jobStopFlags struct {
	stopFlags
	detach, global, purge, verbose, yes bool
	priority                            int
}

// stopTarget is one job that is to be stopped.
type stopTarget struct {
	namespace, id string
	stopped       bool
	purged        bool          // only its allocations are left
	delay         time.Duration // the longest that its shutdown delays come to; 0 when it is not known
}

func targetOf(job *structs.Job) stopTarget {
	t := stopTarget{namespace: structs.Val(job.Namespace), id: structs.Val(job.ID), stopped: job.Stopped()}
	for _, g := range job.TaskGroups {
		for _, task := range g.Tasks {
			t.delay = max(t.delay, structs.Val(g.ShutdownDelay)+task.ShutdownDelay)
		}
	}
	return t
}

// run finds all jobs before it stops the first of them: a wrong id changes nothing.
func (f *jobStopFlags) run(ctx context.Context, c *call) error {
	var targets []stopTarget
	for _, id := range c.args {
		t, err := c.stopTarget(ctx, id)
		if err != nil {
			return err
		}
		if t.id != id && !f.yes {
			ok, err := c.confirm(fmt.Sprintf("Are you sure you want to stop job %q? [y/N] ", t.id))
			if err != nil {
				return err
			}
			if !ok {
				c.printf("Cancelling job stop\n")
				continue
			}
		}
		targets = append(targets, t)
	}
	for _, t := range targets {
		if err := f.stop(ctx, c, t); err != nil {
			return err
		}
	}
	return nil
}

func (f *jobStopFlags) stop(ctx context.Context, c *call, t stopTarget) error {
	noDelay, killTimeout := f.values()
	// It is asked all the same when nothing is left to stop: these options may shorten the stop of what still runs.
	said := c.out
	if f.detach {
		said = c.err // scripts read the evaluation's id
	}
	switch {
	case t.purged:
		fmt.Fprintf(said, "Job %q is purged already\n", t.id)
	case t.stopped && !f.purge:
		fmt.Fprintf(said, "Job %q is stopped already\n", t.id)
	}
	answer, _, err := c.client.Jobs().Deregister(ctx, t.id, &api.DeregisterOptions{Purge: f.purge, Global: f.global,
		EvalPriority: f.priority, NoShutdownDelay: noDelay, KillTimeout: killTimeout}, &api.WriteOptions{Namespace: t.namespace})
	if err != nil {
		return fmt.Errorf("error stopping job %q: %s", t.id, api.Text(err))
	}
	switch {
	case answer.EvalID == "":
		c.printf("Job %q stopped\n", t.id)
	case f.detach:
		c.printf("%s\n", answer.EvalID)
	default:
		if err := (&monitor{c: c, verbose: f.verbose}).eval(ctx, answer.EvalID); err != nil || noDelay {
			return err
		}
		return c.tellDelay(ctx, t)
	}
	return nil
}

// tellDelay says that allocations of a job run on for their shutdown delays, and how not to wait: the evaluation of the stop has
// ended long before they do.
func (c *call) tellDelay(ctx context.Context, t stopTarget) error {
	if t.delay == 0 {
		return nil
	}
	list, _, err := c.client.Jobs().Allocations(ctx, t.id, true, &api.QueryOptions{Namespace: t.namespace})
	if err != nil {
		return fmt.Errorf("find allocations of job %q: %w", t.id, err)
	}
	waiting := 0
	for _, a := range list {
		if a.DesiredStatus != structs.AllocDesiredStatusRun && a.ClientStatus == structs.AllocClientStatusRunning {
			waiting++
		}
	}
	if waiting > 0 {
		c.printf("%d allocation(s) stop, and may wait up to %s (shutdown_delay) before they are signalled. Not to wait:\n"+
			"  nomadlite job stop -no-shutdown-delay%s %s\n", waiting, t.delay, namespaceFlag(t.namespace), t.id)
	}
	return nil
}

// namespaceFlag is what a command that is shown needs to find something of a namespace.
func namespaceFlag(namespace string) string {
	if namespace == "" || namespace == structs.DefaultNamespace {
		return ""
	}
	return " -namespace=" + namespace
}

// stopTarget finds the job that id names. One that was purged while its allocations still stop is such a job too, before
// another one whose id begins the same way.
func (c *call) stopTarget(ctx context.Context, id string) (stopTarget, error) {
	job, err := c.job(ctx, id)
	if err == nil && structs.Val(job.ID) == id {
		return targetOf(job), nil
	}
	if id != "" && c.ns != structs.AllNamespaces {
		list, _, errList := c.client.Jobs().Allocations(ctx, id, true, c.query())
		if errList != nil {
			return stopTarget{}, cmp.Or(err, fmt.Errorf("find allocations of job %q: %w", id, errList))
		}
		for _, a := range list {
			if a.ClientStatus != structs.AllocClientStatusComplete && a.ClientStatus != structs.AllocClientStatusFailed {
				return stopTarget{namespace: a.Namespace, id: id, purged: true}, nil
			}
		}
	}
	if err != nil {
		return stopTarget{}, err
	}
	return targetOf(job), nil
}

// confirm asks on the terminal; without one the answer is no, with a word on how to go on.
func (c *call) confirm(question string) (bool, error) {
	c.printf("%s", question)
	answer, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil && answer == "" {
		return false, fmt.Errorf("\nno answer: give the id whole, or -yes")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}
