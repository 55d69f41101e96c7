package command

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func evalStatus() *spec {
	return &spec{name: "eval status", args: "<evaluation>", synopsis: "Show the status of an evaluation", client: true,
		help:    `Shows an evaluation, what it placed, and why it could not place the rest. An evaluation may be given by prefix.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON, follow, verbose bool
			var tmpl string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.BoolVar(&follow, "monitor", false, "Follow the evaluation until it is decided.")
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			fs.BoolVar(new(bool), "ui", false, "Accepted; there is no page to open yet.")
			return func(ctx context.Context, c *call) error {
				e, err := c.eval(ctx, c.args[0])
				if err != nil {
					return err
				}
				if done, err := data(c.out, e, asJSON, tmpl); done {
					return err
				}
				if follow {
					return (&monitor{c: c, verbose: verbose}).eval(ctx, e.ID)
				}
				return printEval(ctx, c, e, verbose)
			}
		}}
}

func printEval(ctx context.Context, c *call, e *structs.Evaluation, verbose bool) error {
	now := time.Now()
	failures := yesNo(len(e.FailedTGAllocs) > 0)
	if e.Status == structs.EvalStatusBlocked {
		failures = "N/A - In Progress"
	}
	rows := [][2]string{{"ID", shortID(e.ID, verbose)}, {"Create Time", age(e.CreateTime, now)}, {"Modify Time", age(e.ModifyTime, now)},
		{"Status", e.Status}, {"Status Description", orNone(e.StatusDescription)}, {"Type", e.Type}, {"TriggeredBy", e.TriggeredBy},
		{"Job ID", e.JobID}, {"Namespace", e.Namespace}}
	if e.NodeID != "" {
		rows = append(rows, [2]string{"Node ID", shortID(e.NodeID, verbose)})
	}
	rows = append(rows, [2]string{"Priority", fmt.Sprint(e.Priority)}, [2]string{"Placement Failures", failures})
	for _, link := range [][2]string{{"Previous Eval", e.PreviousEval}, {"Next Eval", e.NextEval}, {"Blocked Eval", e.BlockedEval}} {
		if link[1] != "" {
			rows = append(rows, [2]string{link[0], shortID(link[1], verbose)})
		}
	}
	if !e.WaitUntil.IsZero() {
		rows = append(rows, [2]string{"Wait Until", formatTime(e.WaitUntil)})
	}
	c.printf("%s", pairs(rows...))
	if len(e.FailedTGAllocs) > 0 {
		c.printf("\nFailed Placements\n")
		for _, group := range sortedKeys(e.FailedTGAllocs) {
			m := e.FailedTGAllocs[group]
			c.printf("Task Group %q (failed to place %d allocation(s)):\n%s", group, m.CoalescedFailures+1, metrics(m, "  ")+words(m, "  "))
		}
		if e.BlockedEval != "" {
			c.printf("\nEvaluation %q waiting for additional capacity to place remainder\n", shortID(e.BlockedEval, verbose))
		}
	}
	allocs, _, err := c.client.Evaluations().Allocations(ctx, e.ID, nil)
	if err != nil {
		return fmt.Errorf("error querying allocations: %s", api.Text(err))
	}
	if len(allocs) > 0 {
		c.printf("\nAllocations\n%s", allocTable(allocs, verbose, now))
	}
	return nil
}
