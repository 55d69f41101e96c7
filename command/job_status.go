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

type jobStatusFlags struct {
	allAllocs, evals, short, verbose, asJSON bool
	tmpl                                     string
}

func jobStatus() *spec {
	return &spec{name: "job status", args: "[job]", synopsis: "Show the status of jobs", client: true,
		help:    "Without an argument lists the jobs, else shows one. A job may be given by prefix.",
		minArgs: 0, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			f := &jobStatusFlags{}
			fs.BoolVar(&f.allAllocs, "all-allocs", false, "Also show allocations of an earlier job with the same id.")
			fs.BoolVar(&f.evals, "evals", false, "Show the job's evaluations.")
			fs.BoolVar(&f.short, "short", false, "Show the head only.")
			fs.BoolVar(&f.verbose, "verbose", false, "Show ids whole.")
			fs.BoolVar(&f.asJSON, "json", false, "Print JSON.")
			fs.StringVar(&f.tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.BoolVar(new(bool), "ui", false, "Accepted; there is no page to open yet.")
			return func(ctx context.Context, c *call) error {
				if len(c.args) == 0 {
					return f.list(ctx, c)
				}
				return f.one(ctx, c, c.args[0])
			}
		}}
}

func (f *jobStatusFlags) list(ctx context.Context, c *call) error {
	jobs, _, err := c.client.Jobs().List(ctx, c.query())
	if err != nil {
		return fmt.Errorf("error querying jobs: %s", api.Text(err))
	}
	if done, err := data(c.out, jobs, f.asJSON, f.tmpl); done {
		return err
	}
	if len(jobs) == 0 {
		c.printf("No running jobs\n")
		return nil
	}
	head := []string{"ID", "Type", "Priority", "Status", "Submit Date"}
	if c.ns == structs.AllNamespaces {
		head = append([]string{head[0], "Namespace"}, head[1:]...)
	}
	rows := [][]string{head}
	for _, j := range jobs {
		row := []string{j.ID, j.Type, fmt.Sprint(j.Priority), jobStatusText(j.Status, j.Stop), formatNano(j.SubmitTime)}
		if c.ns == structs.AllNamespaces {
			row = append([]string{row[0], j.Namespace}, row[1:]...)
		}
		rows = append(rows, row)
	}
	c.printf("%s", table(rows))
	return nil
}

func jobStatusText(status string, stopped bool) string {
	if stopped {
		return status + " (stopped)"
	}
	return status
}

func (f *jobStatusFlags) one(ctx context.Context, c *call, id string) error {
	job, err := c.job(ctx, id)
	if err != nil {
		return err
	}
	q := &api.QueryOptions{Namespace: structs.Val(job.Namespace)}
	jobID := structs.Val(job.ID)
	allocs, _, err := c.client.Jobs().Allocations(ctx, jobID, f.allAllocs, q)
	if err != nil {
		return fmt.Errorf("error querying allocations: %s", api.Text(err))
	}
	evals, _, err := c.client.Jobs().Evaluations(ctx, jobID, q)
	if err != nil {
		return fmt.Errorf("error querying evaluations: %s", api.Text(err))
	}
	summary, _, err := c.client.Jobs().Summary(ctx, jobID, q)
	if err != nil {
		return fmt.Errorf("error querying summary: %s", api.Text(err))
	}
	if done, err := data(c.out, map[string]any{"Job": job, "Allocations": allocs, "Evaluations": evals, "Summary": summary},
		f.asJSON, f.tmpl); done {
		return err
	}
	head := [][2]string{
		{"ID", jobID}, {"Name", structs.Val(job.Name)}, {"Submit Date", formatNano(job.SubmitTime)},
		{"Type", structs.Val(job.Type)}, {"Priority", fmt.Sprint(structs.Val(job.Priority))},
		{"Datacenters", strings.Join(job.Datacenters, ",")}, {"Namespace", structs.Val(job.Namespace)},
		{"Node Pool", structs.Val(job.NodePool)}, {"Status", jobStatusText(job.Status, job.Stop)},
		{"Periodic", yesNo(job.Periodic != nil)}, {"Parameterized", yesNo(job.IsParameterized())},
	}
	if job.IsPeriodic() {
		head = append(head, [2]string{"Next Periodic Launch", nextLaunchText(job, time.Now())})
	}
	if job.ParentID != "" {
		head = append(head, [2]string{"Parent Job", job.ParentID})
	}
	c.printf("%s", pairs(head...))
	switch {
	case f.short:
		return nil
	case !job.HasOwnAllocations():
		return f.children(ctx, c, job, summary)
	}
	f.summary(c, summary)
	if f.evals {
		f.evaluations(c, evals)
	}
	f.failures(c, evals)
	if err := f.deployment(ctx, c, jobID, q); err != nil {
		return err
	}
	c.printf("\nAllocations\n")
	if len(allocs) == 0 {
		c.printf("No allocations placed\n")
		return nil
	}
	c.printf("%s", allocTable(allocs, f.verbose, time.Now()))
	return nil
}

func (f *jobStatusFlags) summary(c *call, s *structs.JobSummary) {
	rows := [][]string{{"Task Group", "Queued", "Starting", "Running", "Failed", "Complete", "Lost", "Unknown"}}
	for _, g := range sortedKeys(s.Summary) {
		t := s.Summary[g]
		row := []string{g}
		for _, n := range []int{t.Queued, t.Starting, t.Running, t.Failed, t.Complete, t.Lost, t.Unknown} {
			row = append(row, fmt.Sprint(n))
		}
		rows = append(rows, row)
	}
	c.printf("\nSummary\n%s", table(rows))
}

func (f *jobStatusFlags) evaluations(c *call, evals []*structs.Evaluation) {
	rows := [][]string{{"ID", "Priority", "Triggered By", "Status", "Placement Failures"}}
	for _, e := range evals {
		failed := yesNo(len(e.FailedTGAllocs) > 0)
		if e.Status == structs.EvalStatusBlocked {
			failed = "N/A - In Progress"
		}
		rows = append(rows, []string{shortID(e.ID, f.verbose), fmt.Sprint(e.Priority), e.TriggeredBy, e.Status, failed})
	}
	c.printf("\nEvaluations\n%s", table(rows))
}

// failures explains what the newest evaluation could not place.
func (f *jobStatusFlags) failures(c *call, evals []*structs.Evaluation) {
	var newest *structs.Evaluation
	blocked := false
	for _, e := range evals {
		blocked = blocked || e.Status == structs.EvalStatusBlocked
		if len(e.FailedTGAllocs) > 0 && (newest == nil || e.CreateIndex > newest.CreateIndex) {
			newest = e
		}
	}
	if newest == nil || !blocked {
		return
	}
	c.printf("\nPlacement Failure\n")
	for _, group := range sortedKeys(newest.FailedTGAllocs) {
		m := newest.FailedTGAllocs[group]
		c.printf("Task Group %q:\n%s", group, metrics(m, "  ")+words(m, "  "))
	}
}

func (f *jobStatusFlags) deployment(ctx context.Context, c *call, jobID string, q *api.QueryOptions) error {
	d, _, err := c.client.Jobs().LatestDeployment(ctx, jobID, q)
	if err != nil {
		return fmt.Errorf("error querying deployment: %s", api.Text(err))
	}
	if d != nil {
		c.printf("\nLatest Deployment\nID          = %s\n%s", shortID(d.ID, f.verbose), deploymentTable(d))
	}
	return nil
}

// allocTable shows allocations. What the cluster infers of some beyond what their nodes said, as that one is away, has a
// column of its own, in the words of `alloc status`.
func allocTable(allocs []*structs.AllocationListStub, verbose bool, now time.Time) string {
	rows := [][]string{{"ID", "Node ID", "Task Group", "Version", "Desired", "Status", "Created", "Modified"}}
	if verbose {
		rows[0] = append(rows[0][:2:2], append([]string{"Eval ID", "Node Name"}, rows[0][2:]...)...)
	}
	inferred := slices.ContainsFunc(allocs, func(a *structs.AllocationListStub) bool { return a.Condition != nil })
	if inferred {
		rows[0] = append(rows[0], "Condition")
	}
	for _, a := range allocs {
		row := []string{shortID(a.ID, verbose), shortID(a.NodeID, verbose), a.TaskGroup, fmt.Sprint(a.JobVersion),
			a.DesiredStatus, a.ClientStatus, age(a.CreateTime, now), age(a.ModifyTime, now)}
		if verbose {
			row = append(row[:2:2], append([]string{a.EvalID, a.NodeName}, row[2:]...)...)
		}
		if inferred {
			row = append(row, conditionText(structs.Val(a.Condition)))
		}
		rows = append(rows, row)
	}
	return table(rows)
}
