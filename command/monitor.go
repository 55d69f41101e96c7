package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// monitor follows an evaluation until it is decided and tells what happens, with the deployment it made. It awaits
// changes by blocking queries.
type monitor struct {
	c       *call
	verbose bool
	only    bool              // the evaluation, not its deployment
	seen    map[string]string // allocation id -> last status told
}

func (m *monitor) head(format string, args ...any) {
	m.c.printf("==> %s: %s\n", time.Now().Format("2006-01-02T15:04:05Z07:00"), fmt.Sprintf(format, args...))
}

func (m *monitor) line(format string, args ...any) {
	m.c.printf("    %s: %s\n", time.Now().Format("2006-01-02T15:04:05Z07:00"), fmt.Sprintf(format, args...))
}

// eval follows one evaluation. The error has exit code 2 when something could not be placed, 1 when it failed.
func (m *monitor) eval(ctx context.Context, id string) error {
	m.seen = map[string]string{}
	m.head("Monitoring evaluation %q", shortID(id, m.verbose))
	var last *structs.Evaluation
	q := &api.QueryOptions{Namespace: structs.AllNamespaces}
	for {
		eval, meta, err := m.c.client.Evaluations().Info(ctx, id, q)
		if err != nil {
			return fmt.Errorf("read evaluation: %w", err)
		}
		if last == nil {
			m.line("Evaluation triggered by job %q", eval.JobID)
		} else if last.Status != eval.Status {
			m.line("Evaluation status changed: %q -> %q", last.Status, eval.Status)
		}
		if last == nil && eval.DeploymentID != "" || last != nil && last.DeploymentID != eval.DeploymentID {
			m.line("Evaluation within deployment: %q", shortID(eval.DeploymentID, m.verbose))
		}
		if err := m.allocs(ctx, eval); err != nil {
			return err
		}
		last = eval
		if eval.TerminalStatus() {
			break
		}
		q.WaitIndex = meta.LastIndex
	}
	m.head("Evaluation %q finished with status %q", shortID(id, m.verbose), last.Status)
	return m.outcome(ctx, last)
}

func (m *monitor) outcome(ctx context.Context, eval *structs.Evaluation) error {
	code := 0
	if len(eval.FailedTGAllocs) > 0 {
		code = 2
		m.c.printf("\nPlacement failures:\n")
		for _, group := range sortedKeys(eval.FailedTGAllocs) {
			metric := eval.FailedTGAllocs[group]
			m.c.printf("Task Group %q (failed to place %d allocation(s)):\n%s", group, metric.CoalescedFailures+1,
				metrics(metric, "  ")+words(metric, "  "))
		}
	}
	if eval.BlockedEval != "" {
		m.c.printf("Evaluation %q waits for additional capacity to place the remainder\n", shortID(eval.BlockedEval, m.verbose))
	}
	if eval.Status == structs.EvalStatusFailed {
		return &exitError{code: 1, text: "Evaluation failed: " + eval.StatusDescription}
	}
	if eval.NextEval != "" && eval.Status == structs.EvalStatusComplete && eval.BlockedEval == "" {
		if next, _, err := m.c.client.Evaluations().Info(ctx, eval.NextEval, nil); err == nil && next.WaitUntil.After(time.Now()) {
			m.c.printf("Monitoring next evaluation %q is due at %s\n", shortID(eval.NextEval, m.verbose), formatTime(next.WaitUntil))
		}
	}
	if code != 0 {
		return &exitError{code: code}
	}
	if eval.DeploymentID != "" && !m.only {
		return m.deployment(ctx, eval.DeploymentID)
	}
	return nil
}

// allocs tells the allocations that an evaluation made or changed in place, and changes of their status.
func (m *monitor) allocs(ctx context.Context, eval *structs.Evaluation) error {
	list, _, err := m.c.client.Evaluations().Allocations(ctx, eval.ID, nil)
	if err != nil {
		return fmt.Errorf("read allocations: %w", err)
	}
	for _, a := range list {
		before, known := m.seen[a.ID]
		m.seen[a.ID] = a.ClientStatus
		switch {
		case !known && a.DesiredStatus == structs.AllocDesiredStatusRun:
			done := "created"
			if a.CreateIndex < eval.CreateIndex { // it was there before
				done = "modified"
			}
			m.line("Allocation %q %s: node %q, group %q", shortID(a.ID, m.verbose), done, shortID(a.NodeID, m.verbose), a.TaskGroup)
		case known && before != a.ClientStatus:
			m.line("Allocation %q status changed: %q -> %q", shortID(a.ID, m.verbose), before, a.ClientStatus)
		}
	}
	return nil
}

// deployment follows a deployment until it is decided. On a terminal the table is drawn anew with each change, else
// each change is told in a line.
func (m *monitor) deployment(ctx context.Context, id string) error {
	m.head("Monitoring deployment %q", shortID(id, m.verbose))
	q := &api.QueryOptions{}
	drawn := 0
	last := ""
	for {
		d, meta, err := m.c.client.Deployments().Info(ctx, id, q)
		if err != nil {
			return fmt.Errorf("read deployment: %w", err)
		}
		text := deploymentTable(d)
		switch {
		case m.c.terminal:
			if drawn > 0 {
				m.c.printf("\033[%dA\033[J", drawn)
			}
			m.c.printf("%s", text)
			drawn = lines(text)
		case text != last:
			for _, group := range sortedKeys(d.TaskGroups) {
				s := d.TaskGroups[group]
				m.line("Deployment %s: group %q desired %d, placed %d, healthy %d, unhealthy %d", d.Status, group,
					s.DesiredTotal, s.PlacedAllocs, s.HealthyAllocs, s.UnhealthyAllocs)
			}
		}
		last = text
		if told, err := m.unhealthy(ctx, d); err != nil {
			return err
		} else if told {
			drawn = 0 // the table stays above what was told
		}
		switch d.Status {
		case structs.DeploymentStatusSuccessful:
			m.head("Deployment %q successful", shortID(id, m.verbose))
			return nil
		case structs.DeploymentStatusFailed, structs.DeploymentStatusCancelled:
			m.head("Deployment %q %s: %s", shortID(id, m.verbose), d.Status, d.StatusDescription)
			if err := m.rollback(ctx, d); err != nil {
				return err
			}
			return &exitError{code: 1}
		case structs.DeploymentStatusPaused:
			m.head("Deployment %q is paused", shortID(id, m.verbose))
			return nil
		}
		q.WaitIndex = meta.LastIndex
	}
}

// unhealthy tells which allocations of a deployment have become unhealthy and why: the deployment itself only counts them, and
// may go on for its progress_deadline.
func (m *monitor) unhealthy(ctx context.Context, d *structs.Deployment) (told bool, err error) {
	count := 0
	for _, s := range d.TaskGroups {
		count += s.UnhealthyAllocs
	}
	if count == 0 {
		return false, nil
	}
	list, _, err := m.c.client.Deployments().Allocations(ctx, d.ID, &api.QueryOptions{Namespace: d.Namespace})
	if err != nil {
		return false, fmt.Errorf("read allocations: %w", err)
	}
	for _, a := range list {
		const mark = "unhealthy"
		if a.DeploymentStatus == nil || a.DeploymentStatus.Healthy == nil || *a.DeploymentStatus.Healthy || m.seen[a.ID] == mark {
			continue
		}
		m.seen[a.ID], told = mark, true
		m.line("Allocation %q is unhealthy%s; more: nomadlite alloc status %s", shortID(a.ID, m.verbose), whyUnhealthy(a.TaskStates),
			shortID(a.ID, false))
	}
	return told, nil
}

// whyUnhealthy is what the first failed task's last event says, but for the one that it is not started again.
func whyUnhealthy(states map[string]*structs.TaskState) string {
	for _, task := range sortedKeys(states) {
		if !states[task].Failed {
			continue
		}
		for _, e := range slices.Backward(states[task].Events) {
			if e.Type != structs.TaskNotRestarting && e.DisplayMessage != "" {
				return fmt.Sprintf(": task %q: %s", task, strings.Join(strings.Fields(e.DisplayMessage), " "))
			}
		}
	}
	return ""
}

// rollback follows the return of a job to an earlier version, if the failed deployment made one: it came in one entry with
// the evaluation that acts on it. The deployment failed all the same.
func (m *monitor) rollback(ctx context.Context, d *structs.Deployment) error {
	if !d.AutoReverts() {
		return nil
	}
	q := &api.QueryOptions{Namespace: d.Namespace}
	job, _, err := m.c.client.Jobs().Info(ctx, d.JobID, q)
	if err != nil || job.Version <= d.JobVersion {
		return nil // it was purged since, or nothing was proven
	}
	evals, _, err := m.c.client.Jobs().Evaluations(ctx, d.JobID, q)
	if err != nil {
		return fmt.Errorf("read evaluations: %w", err)
	}
	for _, e := range evals {
		if e.TriggeredBy == structs.EvalTriggerDeploymentWatcher && e.CreateIndex == job.JobModifyIndex {
			m.head("Monitoring the return to what was proven, version %d", job.Version)
			return m.eval(ctx, e.ID)
		}
	}
	return nil
}

func lines(s string) int {
	n := 0
	for _, r := range s {
		if r == '\n' {
			n++
		}
	}
	return n
}

func deploymentTable(d *structs.Deployment) string {
	rows := [][]string{{"Task Group", "Desired", "Placed", "Healthy", "Unhealthy", "Progress Deadline"}}
	for _, group := range sortedKeys(d.TaskGroups) {
		s := d.TaskGroups[group]
		rows = append(rows, []string{group, fmt.Sprint(s.DesiredTotal), fmt.Sprint(s.PlacedAllocs), fmt.Sprint(s.HealthyAllocs),
			fmt.Sprint(s.UnhealthyAllocs), formatTime(s.RequireProgressBy)})
	}
	return fmt.Sprintf("Status      = %s\nDescription = %s\n\nDeployed\n%s", d.Status, d.StatusDescription, table(rows))
}
