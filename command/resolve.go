package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// pick finds the one object that id names: exactly, or by a unique beginning. An empty id, out of a variable that is not
// set, begins the only object of a small cluster as well, and is refused.
func pick[T any](noun, id string, list []T, key func(T) string, describe func(T) []string, head []string) (T, error) {
	var zero T
	if id == "" {
		return zero, fmt.Errorf("the id of the %s is empty", noun)
	}
	for _, e := range list {
		if key(e) == id {
			return e, nil
		}
	}
	switch len(list) {
	case 0:
		return zero, unknown(noun, id)
	case 1:
		return list[0], nil
	}
	rows := [][]string{head}
	for _, e := range list {
		rows = append(rows, describe(e))
	}
	return zero, fmt.Errorf("prefix %q matches %d %ss. Give a longer one of:\n\n%s", id, len(list), noun, table(rows))
}

// trimPrefix makes an id as the API has it.
func trimPrefix(id string) string { return strings.ToLower(strings.TrimSpace(id)) }

// mayBeID says whether text can begin the id of anything but a job: the API refuses to look for what cannot.
func mayBeID(text string) bool {
	return strings.Trim(strings.ToLower(text), "0123456789abcdef-") == ""
}

func unknown(noun, id string) error { return fmt.Errorf("no %s with id or prefix %q found", noun, id) }

func (c *call) query() *api.QueryOptions { return &api.QueryOptions{Namespace: c.ns} }

func (c *call) job(ctx context.Context, id string) (*structs.Job, error) {
	return c.jobOf(ctx, id, func(*structs.JobListStub) bool { return true })
}

// jobOf finds the job with that id, or the one of a kind that the id begins.
func (c *call) jobOf(ctx context.Context, id string, kind func(*structs.JobListStub) bool) (*structs.Job, error) {
	q := c.query()
	if c.ns == structs.AllNamespaces {
		q.Namespace = structs.AllNamespaces
	}
	q.Prefix = id
	list, _, err := c.client.Jobs().List(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("find job: %w", err)
	}
	list = slices.DeleteFunc(list, func(j *structs.JobListStub) bool { return j.ID != id && !kind(j) })
	stub, err := pick("job", id, list, func(j *structs.JobListStub) string { return j.ID },
		func(j *structs.JobListStub) []string { return []string{j.ID, j.Namespace, j.Type, j.Status} },
		[]string{"ID", "Namespace", "Type", "Status"})
	if err != nil {
		return nil, err
	}
	job, _, err := c.client.Jobs().Info(ctx, stub.ID, &api.QueryOptions{Namespace: stub.Namespace})
	if err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	return job, nil
}

func (c *call) alloc(ctx context.Context, id string) (*structs.Allocation, error) {
	id = trimPrefix(id)
	if !mayBeID(id) {
		return nil, unknown("allocation", id)
	}
	q := c.query()
	q.Prefix = id
	if q.Namespace == "" {
		q.Namespace = structs.AllNamespaces
	}
	list, _, err := c.client.Allocations().List(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("find allocation: %w", err)
	}
	stub, err := pick("allocation", id, list, func(a *structs.AllocationListStub) string { return a.ID },
		func(a *structs.AllocationListStub) []string {
			return []string{a.ID, shortID(a.NodeID, false), a.JobID, a.TaskGroup, a.DesiredStatus, a.ClientStatus}
		}, []string{"ID", "Node ID", "Job", "Task Group", "Desired", "Status"})
	if err != nil {
		return nil, err
	}
	alloc, _, err := c.client.Allocations().Info(ctx, stub.ID, nil)
	if err != nil {
		return nil, fmt.Errorf("read allocation: %w", err)
	}
	return alloc, nil
}

func (c *call) node(ctx context.Context, id string) (*structs.Node, error) {
	id = trimPrefix(id)
	if !mayBeID(id) {
		return nil, unknown("node", id)
	}
	list, _, err := c.client.Nodes().List(ctx, &api.QueryOptions{Prefix: id})
	if err != nil {
		return nil, fmt.Errorf("find node: %w", err)
	}
	stub, err := pick("node", id, list, func(n *structs.NodeListStub) string { return n.ID },
		func(n *structs.NodeListStub) []string { return []string{n.ID, n.Datacenter, n.Name, n.Status} },
		[]string{"ID", "DC", "Name", "Status"})
	if err != nil {
		return nil, err
	}
	node, _, err := c.client.Nodes().Info(ctx, stub.ID, nil)
	if err != nil {
		return nil, fmt.Errorf("read node: %w", err)
	}
	return node, nil
}

func (c *call) eval(ctx context.Context, id string) (*structs.Evaluation, error) {
	id = trimPrefix(id)
	if !mayBeID(id) {
		return nil, unknown("evaluation", id)
	}
	q := c.query()
	q.Prefix = id
	if q.Namespace == "" {
		q.Namespace = structs.AllNamespaces
	}
	list, _, err := c.client.Evaluations().List(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("find evaluation: %w", err)
	}
	found, err := pick("evaluation", id, list, func(e *structs.Evaluation) string { return e.ID },
		func(e *structs.Evaluation) []string { return []string{e.ID, e.JobID, e.TriggeredBy, e.Status} },
		[]string{"ID", "Job", "Triggered By", "Status"})
	if err != nil {
		return nil, err
	}
	eval, _, err := c.client.Evaluations().Info(ctx, found.ID, &api.QueryOptions{Params: map[string]string{"related": "true"}})
	if err != nil {
		return nil, fmt.Errorf("read evaluation: %w", err)
	}
	return eval, nil
}
