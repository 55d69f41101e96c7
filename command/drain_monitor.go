package command

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// drainMonitor follows a drain until it is over and tells what becomes of the node's allocations. It awaits changes by
// blocking queries.
type drainMonitor struct {
	c    *call
	node *structs.Node

	mu   sync.Mutex
	seen map[string]*structs.Allocation
}

func (m *drainMonitor) line(format string, args ...any) {
	m.c.printf("%s: %s\n", time.Now().Format("2006-01-02T15:04:05Z07:00"), fmt.Sprintf(format, args...))
}

// begin reads what is there before the drain does anything.
func (m *drainMonitor) begin(ctx context.Context) error { return m.allocs(ctx, &api.QueryOptions{}) }

// tellWhatIsLeft says on what terms the node is drained and what has not ended there: whoever comes later sees at once what it
// waits for.
func (m *drainMonitor) tellWhatIsLeft() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.line("Node %q is draining: %s", m.node.ID, drainTerms(m.node.DrainStrategy))
	for _, id := range sortedKeys(m.seen) {
		a := m.seen[id]
		switch {
		case a.ClientTerminal():
		case a.ServerTerminal():
			m.line("Alloc %q of job %q is %s, and told to stop", a.ID, a.JobID, a.ClientStatus)
		case a.DesiredTransition.ShouldMigrate():
			m.line("Alloc %q of job %q is %s, and marked for migration", a.ID, a.JobID, a.ClientStatus)
		default:
			m.line("Alloc %q of job %q is %s", a.ID, a.JobID, a.ClientStatus)
		}
	}
}

// follow returns when the drain is over, cancelled or complete.
func (m *drainMonitor) follow(ctx context.Context) error {
	watching, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { stop(m.watch(watching)) })
	node, err := m.over(watching)
	if cause := context.Cause(watching); cause != nil {
		err = cause // the other one failed, or the user has enough
	}
	stop(nil)
	wg.Wait()
	if err != nil {
		return err
	}
	if err := m.allocs(ctx, &api.QueryOptions{}); err != nil {
		return err
	}
	if node.LastDrain != nil && node.LastDrain.Status == "canceled" {
		m.line("Drain of node %q was cancelled", node.ID)
		return nil
	}
	orphans := ""
	if n := m.orphans(); n > 0 {
		orphans = "; " + structs.OrphansText(n)
	}
	m.line("Drain complete for node %s%s", node.ID, orphans)
	return nil
}

// orphans counts what was lost there without having been seen to end.
func (m *drainMonitor) orphans() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, a := range m.seen {
		if a.Orphaned() {
			n++
		}
	}
	return n
}

// over waits for the end of the drain.
func (m *drainMonitor) over(ctx context.Context) (*structs.Node, error) {
	q := &api.QueryOptions{}
	var last *structs.DrainStrategy
	status := m.node.Status
	for {
		node, meta, err := m.c.client.Nodes().Info(ctx, m.node.ID, q)
		if err != nil {
			return nil, fmt.Errorf("error monitoring node: %w", err)
		}
		if node.DrainStrategy == nil {
			return node, nil
		}
		if node.Status != status {
			m.locked(func() { m.line("Node %q is %s", node.ID, node.Status) })
			status = node.Status
		}
		if last != nil && !sameDrain(last, node.DrainStrategy) {
			m.locked(func() { m.line("Node %q drain updated: %s", node.ID, drainTerms(node.DrainStrategy)) })
		}
		last, q.WaitIndex = node.DrainStrategy, meta.LastIndex
	}
}

func (m *drainMonitor) locked(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func sameDrain(a, b *structs.DrainStrategy) bool { return drainTerms(a) == drainTerms(b) }

// drainTerms tells the terms of a drain in words.
func drainTerms(d *structs.DrainStrategy) string {
	text := "no deadline"
	switch {
	case d.Deadline < 0:
		text = "forced"
	case !d.ForceDeadline.IsZero():
		text = "deadline at " + formatTime(d.ForceDeadline)
	}
	if d.IgnoreSystemJobs {
		text += ", ignoring system jobs"
	}
	if d.NoShutdownDelay {
		text += ", no shutdown delay"
	}
	if d.KillTimeout != nil {
		text += ", kill timeout " + d.KillTimeout.String()
	}
	return text
}

// watch tells changes of allocations until ctx ends.
func (m *drainMonitor) watch(ctx context.Context) error {
	q := &api.QueryOptions{}
	for {
		if err := m.allocs(ctx, q); err != nil {
			return err
		}
	}
}

// allocs reads the node's allocations, after the index in q, and tells what is new of those seen before.
func (m *drainMonitor) allocs(ctx context.Context, q *api.QueryOptions) error {
	list, meta, err := m.c.client.Nodes().Allocations(ctx, m.node.ID, q)
	if err != nil {
		return fmt.Errorf("error monitoring allocations: %w", err)
	}
	q.WaitIndex = meta.LastIndex
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.seen == nil
	if first {
		m.seen = map[string]*structs.Allocation{}
	}
	for _, a := range list {
		old := m.seen[a.ID]
		if old != nil && old.ModifyIndex > a.ModifyIndex {
			continue // two reads overtook each other
		}
		m.seen[a.ID] = a
		if first || old == nil {
			continue
		}
		if a.DesiredTransition.ShouldMigrate() && !old.DesiredTransition.ShouldMigrate() {
			m.line("Alloc %q marked for migration", a.ID)
		}
		if a.ServerTerminal() && !old.ServerTerminal() {
			m.line("Alloc %q draining", a.ID)
		}
		if a.ClientStatus != old.ClientStatus {
			m.line("Alloc %q status %s -> %s", a.ID, old.ClientStatus, a.ClientStatus)
		}
	}
	return nil
}
