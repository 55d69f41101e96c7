package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// nextLaunchText says when a periodic job is launched next, or why it is not.
func nextLaunchText(job *structs.Job, now time.Time) string {
	switch next := job.NextLaunch(now); {
	case !next.IsZero():
		return fmt.Sprintf("%s (%s from now)", formatTime(next), prettyDuration(next.Sub(now)))
	case job.Stop:
		return "none (job is stopped)"
	case job.IsParameterized():
		return "none (job is parameterized: its instances have schedules)"
	case !structs.Val(job.Periodic.Enabled):
		return "none (job is disabled)"
	}
	return "none (its schedule has come to its end)"
}

// children shows the jobs which a periodic or parameterized one has launched.
func (f *jobStatusFlags) children(ctx context.Context, c *call, job *structs.Job, summary *structs.JobSummary) error {
	title, list, none := "Children Job Summary", "Previously Launched Jobs", "No instances of periodic job found"
	if job.IsParameterized() {
		title, list, none = "Parameterized Job Summary", "Dispatched Jobs", "No dispatched instances of parameterized job found"
		p := job.ParameterizedJob
		c.printf("\nParameterized Job\n%s", pairs([][2]string{
			{"Payload", p.Payload}, {"Required Metadata", strings.Join(p.MetaRequired, ", ")},
			{"Optional Metadata", strings.Join(p.MetaOptional, ", ")}}...))
	}
	counts := structs.JobChildrenSummary{}
	if summary != nil && summary.Children != nil {
		counts = *summary.Children
	}
	c.printf("\n%s\n%s", title, table([][]string{{"Pending", "Running", "Dead"},
		{fmt.Sprint(counts.Pending), fmt.Sprint(counts.Running), fmt.Sprint(counts.Dead)}}))
	id := structs.Val(job.ID)
	stubs, _, err := c.client.Jobs().List(ctx, &api.QueryOptions{Namespace: structs.Val(job.Namespace), Prefix: id + "/"})
	if err != nil {
		return fmt.Errorf("error querying children: %s", api.Text(err))
	}
	rows := [][]string{{"ID", "Status"}}
	for _, stub := range stubs {
		if stub.ParentID == id {
			rows = append(rows, []string{stub.ID, jobStatusText(stub.Status, stub.Stop)})
		}
	}
	if len(rows) == 1 {
		c.printf("\n%s\n", none)
		return nil
	}
	c.printf("\n%s\n%s", list, table(rows))
	return nil
}
