package command

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// planFailure is the exit code of a plan that could not be made; 1 says that there are changes.
const planFailure = 255

func jobPlan() *spec {
	return &spec{name: "job plan", args: "<path>", synopsis: "Show what running a job would change", client: true,
		help: `Reads a jobspec and lets the scheduler decide what running it would do, without doing it. Shows how the job
differs from the one that is registered, what is created, updated and destroyed, and the index with which
"job run -check-index" makes sure that nothing else changes it meanwhile. The path "-" is standard input.

Exit codes: 0 nothing is created or destroyed, 1 something is, 255 no plan could be made.`,
		minArgs: 1, maxArgs: 1, failure: planFailure,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &jobPlanFlags{}
			f.jobspecFlags.declare(fs)
			fs.BoolVar(&f.diff, "diff", true, "Show how the job differs from the registered one.")
			fs.BoolVar(&f.asJSON, "json-output", false, "Print the plan as JSON.")
			fs.BoolVar(&f.override, "policy-override", false, "Override soft policies.")
			fs.StringVar(&f.tmpl, "t", "", "Print the plan through a Go `TEMPLATE`.")
			fs.BoolVar(&f.verbose, "verbose", false, "Show all of what is added and deleted.")
			return f.run
		}}
}

type jobPlanFlags struct {
	jobspecFlags
	diff, asJSON, override, verbose bool
	tmpl                            string
}

func (f *jobPlanFlags) run(ctx context.Context, c *call) error {
	job, _, err := f.parse(ctx, c, c.args[0])
	if err != nil {
		return err
	}
	plan, _, err := c.client.Jobs().Plan(ctx, job, &api.PlanOptions{Diff: f.diff, PolicyOverride: f.override}, c.jobWrite(job))
	if err != nil {
		return fmt.Errorf("error during plan: %s", api.Text(err))
	}
	changed := planExit(plan)
	if done, err := data(c.out, plan, f.asJSON, f.tmpl); done {
		if err != nil {
			return err
		}
		return changed
	}
	if plan.Diff != nil {
		c.printf("%s\n", formatDiff(plan.Diff, f.verbose, c.color))
	}
	c.printf("Scheduler dry-run:\n%s\n", dryRunText(job, plan, time.Now()))
	if text := reasonsText(plan.Annotations, f.verbose); text != "" {
		c.printf("Updates:\n%s\n", text)
	}
	if a := plan.Annotations; a != nil && len(a.PreemptedAllocs) > 0 {
		rows := [][]string{{"Alloc ID", "Job ID", "Task Group"}}
		for _, p := range a.PreemptedAllocs {
			rows = append(rows, []string{shortID(p.ID, f.verbose), p.JobID, p.TaskGroup})
		}
		c.printf("Preemptions:\n\n%s\n", table(rows))
	}
	if plan.Warnings != "" {
		c.warnf("Job Warnings:\n%s\n\n", plan.Warnings)
	}
	c.printf(`Job Modify Index: %d
To submit the job with version verification run:

%s

When running the job with the check-index flag, the job will only be run if the
job modify index given matches the server-side version. If the index has
changed, another user has modified the job and the plan's results are
potentially invalid.
`, plan.JobModifyIndex, f.runLine(plan.JobModifyIndex, c.args[0]))
	return changed
}

// runLine is the command which runs what was planned.
func (f *jobPlanFlags) runLine(index uint64, path string) string {
	line := fmt.Sprintf("nomadlite job run -check-index %d", index)
	if f.json {
		line += " -json"
	}
	if !f.strict {
		line += " -hcl2-strict=false"
	}
	for _, v := range f.vars {
		line += " -var=" + shellQuote(v)
	}
	for _, v := range f.varFiles {
		line += " -var-file=" + shellQuote(v)
	}
	return line + " " + shellQuote(path)
}

// shellQuote quotes a word for a shell when it needs it.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./=,:@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// planExit has the exit code 1 when allocations are created or destroyed.
func planExit(plan *structs.JobPlanResponse) error {
	if plan.Annotations == nil {
		return nil
	}
	for _, d := range plan.Annotations.DesiredTGUpdates {
		if d.Stop+d.Place+d.Migrate+d.DestructiveUpdate+d.Canary > 0 {
			return &exitError{code: 1}
		}
	}
	return nil
}

// reasonsText tells why groups are updated as they are. Groups of which nothing but what stays can be told are left out
// unless all is to be shown.
func reasonsText(a *structs.PlanAnnotations, verbose bool) string {
	if a == nil {
		return ""
	}
	var b strings.Builder
	for _, group := range sortedKeys(a.Reasons) {
		told := slices.ContainsFunc(a.Reasons[group], func(u *structs.PlannedUpdate) bool {
			return u.Update != structs.UpdateIgnore || len(u.Differs) > 0
		})
		if !told && !verbose {
			continue
		}
		fmt.Fprintf(&b, "- Task Group %q:\n", group)
		for _, u := range a.Reasons[group] {
			fmt.Fprintf(&b, "    * %s\n", u.Text())
		}
	}
	return b.String()
}

// dryRunText tells what the scheduler found out.
func dryRunText(job *structs.Job, plan *structs.JobPlanResponse, now time.Time) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	kind := structs.Val(job.Type)
	switch {
	case len(plan.FailedTGAllocs) == 0:
		line("- All tasks successfully allocated.")
	case kind == structs.JobTypeSystem || kind == structs.JobTypeSysBatch:
		line("- WARNING: Failed to place allocations on all nodes.")
	default:
		line("- WARNING: Failed to place all allocations.")
	}
	for _, group := range sortedKeys(plan.FailedTGAllocs) {
		m := plan.FailedTGAllocs[group]
		noun := "allocation"
		if m.CoalescedFailures > 0 {
			noun = "allocations"
		}
		line("  Task Group %q (failed to place %d %s):", group, m.CoalescedFailures+1, noun)
		b.WriteString(metrics(m, "    ") + words(m, "    "))
	}
	for _, e := range plan.CreatedEvals {
		if e.TriggeredBy == structs.EvalTriggerRollingUpdate {
			line("- Rolling update, next evaluation will be in %s.", e.Wait)
		}
	}
	if next := plan.NextPeriodicLaunch; !next.IsZero() {
		line("- If submitted now, next periodic launch would be at %s (%s from now).", next.Local().Format(time.RFC3339),
			prettyDuration(next.Sub(now)))
	}
	return b.String()
}
