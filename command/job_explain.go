package command

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func jobExplain() *spec {
	return &spec{name: "job explain", args: "<job>", synopsis: "Say why a job is not placed, and what would change that", client: true,
		help: `Shows the job's evaluations as a tree, each with what it could not place and why, and of each group where another allocation
would fit now, what keeps it off the other nodes, and which single change would open how many of them. A job may be given
by prefix.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON, verbose bool
			var tmpl string
			fs.BoolVar(&asJSON, "json", false, "Print JSON.")
			fs.BoolVar(&verbose, "verbose", false, "Show ids whole, and groups that want nothing.")
			fs.StringVar(&tmpl, "t", "", "Print through a Go `TEMPLATE`.")
			return func(ctx context.Context, c *call) error {
				job, err := c.job(ctx, c.args[0])
				if err != nil {
					return err
				}
				e, _, err := c.client.Jobs().Explain(ctx, structs.Val(job.ID), &api.QueryOptions{Namespace: structs.Val(job.Namespace)})
				if err != nil {
					return fmt.Errorf("error explaining job: %s", api.Text(err))
				}
				if done, err := data(c.out, e, asJSON, tmpl); done {
					return err
				}
				printExplanation(c, e, verbose)
				return nil
			}
		}}
}

func printExplanation(c *call, e *structs.JobExplanation, verbose bool) {
	c.printf("%s", pairs([2]string{"Job", e.JobID}, [2]string{"Namespace", e.Namespace}, [2]string{"Version", fmt.Sprint(e.Version)},
		[2]string{"Status", e.Status}))
	if d := e.Deployment; d != nil {
		c.printf("\nDeployment %s: %s (%s)\n", shortID(d.ID, verbose), d.Status, d.StatusDescription)
		for _, w := range d.Waiting {
			c.printf("  * %s\n", w)
		}
	}
	if len(e.Evaluations) > 0 {
		c.printf("\nEvaluations\n")
		for _, eval := range e.Evaluations {
			printEvalTree(c, eval, "  ", verbose)
		}
	}
	for _, g := range e.Groups {
		if verbose || g.Running < g.Desired || g.Queued > 0 {
			printGroupExplanation(c, g)
		}
	}
}

func printEvalTree(c *call, e *structs.EvalExplanation, indent string, verbose bool) {
	text := fmt.Sprintf("%s (%s): %s", shortID(e.ID, verbose), e.TriggeredBy, e.Status)
	if e.StatusDescription != "" {
		text += ", " + e.StatusDescription
	}
	if e.NodeID != "" {
		text += ", for node " + shortID(e.NodeID, verbose)
	}
	if e.WaitUntil > 0 {
		text += ", due " + formatTime(time.Unix(0, e.WaitUntil))
	}
	c.printf("%s%s\n", indent, text)
	for _, group := range sortedKeys(e.Failed) {
		for _, r := range e.Failed[group] {
			c.printf("%s  * group %q: %s\n", indent, group, r.Text)
		}
	}
	if e.Status == structs.EvalStatusBlocked {
		woken := "any change of a node"
		if len(e.WokenBy) > 0 {
			woken = "changes of " + strings.Join(e.WokenBy, ", ")
		}
		c.printf("%s  * is woken by %s\n", indent, woken)
	}
	for _, next := range e.Next {
		printEvalTree(c, next, indent+"    ", verbose)
	}
}

func printGroupExplanation(c *call, g *structs.GroupExplanation) {
	c.printf("\nGroup %q: %d of %d running, %d queued; another allocation fits on %d of %d nodes\n", g.Name, g.Running, g.Desired,
		g.Queued, g.Open, g.Nodes)
	for _, b := range g.Barriers {
		names := strings.Join(b.Examples, ", ")
		if b.Nodes > len(b.Examples) {
			names += ", ..."
		}
		c.printf("  * %s keeps it off %d (%s)\n", b.What, b.Nodes, names)
	}
	for _, r := range g.Relax {
		c.printf("  > without %q alone it would fit on %d more\n", r.What, r.Opens)
	}
	if g.Open == 0 && len(g.Barriers) > 0 && len(g.Relax) == 0 {
		c.printf("  > no single change opens a node\n")
	}
}

// words says in one line why a group could not be placed, and below what would change that.
func words(m *structs.AllocationMetric, prefix string) string {
	reasons := m.Explain()
	if len(reasons) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%sIn words: %s\n", prefix, m.ExplainText())
	said := map[string]bool{}
	for _, r := range reasons {
		if r.Remedy != "" && !said[r.Remedy] {
			said[r.Remedy] = true
			fmt.Fprintf(&b, "%s  > %s\n", prefix, r.Remedy)
		}
	}
	return b.String()
}
