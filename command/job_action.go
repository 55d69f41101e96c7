package command

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobAction() *spec {
	return &spec{name: "job action", args: "<action>", synopsis: "Run an action of a job in a running task", client: true,
		help: `Runs a command that the job defines as an action, in its newest running allocation or in the one that -alloc names. The
task may be left out when only one has the action. The exit code is the command's, or 1 when it could not be run.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &execFlags{}
			f.add(fs)
			var jobID, allocID string
			fs.StringVar(&jobID, "job", "", "`ID` of the job, or the beginning of it.")
			fs.StringVar(&allocID, "alloc", "", "`ID` of the allocation, or the beginning of it.")
			return func(ctx context.Context, c *call) error { return f.runAction(ctx, c, c.args[0], jobID, allocID) }
		}}
}

func (f *execFlags) runAction(ctx context.Context, c *call, action, jobID, allocID string) error {
	if jobID == "" {
		return fmt.Errorf("-job is needed: the job whose action %q is", action)
	}
	job, err := c.job(ctx, jobID)
	if err != nil {
		return err
	}
	id, ns := structs.Val(job.ID), structs.Val(job.Namespace)
	list, _, err := c.client.Jobs().Actions(ctx, id, &api.QueryOptions{Namespace: ns})
	if err != nil {
		return fmt.Errorf("error listing actions: %s", api.Text(err))
	}
	var known, fit []string
	var chosen *structs.JobAction
	for _, a := range list {
		place := a.TaskGroupName + "/" + a.TaskName
		known = append(known, fmt.Sprintf("%s (%s)", a.Name, place))
		if a.Name == action && (f.task == "" || f.task == a.TaskName) && (f.group == "" || f.group == a.TaskGroupName) {
			chosen, fit = a, append(fit, place)
		}
	}
	switch {
	case len(fit) == 0 && len(known) == 0:
		return fmt.Errorf("job %q has no actions", id)
	case len(fit) == 0:
		return fmt.Errorf("job %q has no such action %q there. Its actions are: %s", id, action, strings.Join(known, ", "))
	case len(fit) > 1:
		return fmt.Errorf("several tasks have an action %q: %s. Name one by -group and -task", action, strings.Join(fit, ", "))
	}
	var a *structs.Allocation
	if allocID != "" {
		a, err = c.alloc(ctx, allocID)
	} else {
		a, err = c.allocOfJob(ctx, id, chosen.TaskGroupName)
	}
	if err != nil {
		return err
	}
	if a.JobID != id || a.TaskGroup != chosen.TaskGroupName {
		return fmt.Errorf("allocation %q is of group %q of job %q, the action of group %q of %q", shortID(a.ID, false), a.TaskGroup, a.JobID,
			chosen.TaskGroupName, id)
	}
	return f.session(ctx, c, &api.ExecRequest{AllocID: a.ID, Task: chosen.TaskName, Job: id, Action: action}, ns)
}
