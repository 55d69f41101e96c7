package command

import (
	"bufio"
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

func (f *jobStopFlags) run(ctx context.Context, c *call) error {
	noDelay, killTimeout := f.values()
	opts := &api.DeregisterOptions{Purge: f.purge, Global: f.global, EvalPriority: f.priority,
		NoShutdownDelay: noDelay, KillTimeout: killTimeout}
	for _, id := range c.args {
		job, err := c.job(ctx, id)
		if err != nil {
			return err
		}
		jobID := structs.Val(job.ID)
		if jobID != id && !f.yes {
			ok, err := c.confirm(fmt.Sprintf("Are you sure you want to stop job %q? [y/N] ", jobID))
			if err != nil {
				return err
			}
			if !ok {
				c.printf("Cancelling job stop\n")
				continue
			}
		}
		if job.Stopped() && !f.purge && !f.detach {
			// It is asked all the same: these options may shorten the stop of what still runs.
			c.printf("Job %q is stopped already\n", jobID)
		}
		answer, _, err := c.client.Jobs().Deregister(ctx, jobID, opts, &api.WriteOptions{Namespace: structs.Val(job.Namespace)})
		if err != nil {
			return fmt.Errorf("error stopping job %q: %s", jobID, api.Text(err))
		}
		if answer.EvalID == "" {
			c.printf("Job %q stopped\n", jobID)
			continue
		}
		if f.detach {
			c.printf("%s\n", answer.EvalID)
			continue
		}
		if err := (&monitor{c: c, verbose: f.verbose}).eval(ctx, answer.EvalID); err != nil {
			return err
		}
	}
	return nil
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
