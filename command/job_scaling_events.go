package command

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobScalingEvents() *spec {
	return &spec{name: "job scaling-events", args: "<job>", synopsis: "List the recent changes of a job's counts", client: true,
		help: `Lists what was asked of the counts of a job's groups, and what scalers have told, the newest first. A job may be given by
prefix.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var verbose bool
			fs.BoolVar(&verbose, "verbose", false, "Also show errors, messages and evaluations.")
			return func(ctx context.Context, c *call) error {
				job, err := c.job(ctx, c.args[0])
				if err != nil {
					return err
				}
				status, _, err := c.client.Jobs().ScaleStatus(ctx, structs.Val(job.ID), &api.QueryOptions{Namespace: structs.Val(job.Namespace)})
				if err != nil {
					return fmt.Errorf("error querying the scaling status: %s", api.Text(err))
				}
				events := scalingEvents(status)
				if len(events) == 0 {
					c.printf("No events found\n")
					return nil
				}
				c.printf("%s", scalingTable(events, verbose))
				return nil
			}
		}}
}

// groupEvent is an event with the group whose it is.
type groupEvent struct {
	group string
	structs.ScalingEvent
}

// scalingEvents gives the events of all groups, the newest first.
func scalingEvents(status *structs.JobScaleStatusResponse) []groupEvent {
	var out []groupEvent
	for _, name := range sortedKeys(status.TaskGroups) {
		for _, e := range status.TaskGroups[name].Events {
			out = append(out, groupEvent{name, e})
		}
	}
	slices.SortStableFunc(out, func(a, b groupEvent) int {
		switch {
		case a.Time != b.Time && a.Time > b.Time:
			return -1
		case a.Time != b.Time:
			return 1
		}
		return strings.Compare(a.group, b.group)
	})
	return out
}

func scalingTable(events []groupEvent, verbose bool) string {
	rows := [][]string{{"Task Group", "Count", "PrevCount", "Date"}}
	if verbose {
		rows = [][]string{{"Task Group", "Count", "PrevCount", "Error", "Message", "Eval ID", "Date"}}
	}
	for _, e := range events {
		count := "-" // a report leaves it as it is
		if e.Count != nil {
			count = fmt.Sprint(*e.Count)
		}
		row := []string{e.group, count, fmt.Sprint(e.PreviousCount)}
		if verbose {
			row = append(row, yesNo(e.Error), e.Message, structs.Val(e.EvalID))
		}
		rows = append(rows, append(row, formatNano(int64(e.Time))))
	}
	return table(rows)
}
