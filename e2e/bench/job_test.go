package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/e2e/proc"
	"github.com/nomadlite/nomadlite/structs"
)

// sleepers is a job whose tasks do nothing, so that what is measured is the system beside them.
func sleepers(id string, count int) *structs.Job {
	task := &structs.Task{Name: "sleep", Driver: "raw_exec",
		Config:    map[string]any{"command": "/bin/sleep", "args": []any{"3600"}},
		Resources: &structs.Resources{CPU: structs.Ptr(1), MemoryMB: structs.Ptr(10)},
		LogConfig: &structs.LogConfig{MaxFiles: structs.Ptr(1), MaxFileSizeMB: structs.Ptr(1)}} // room for 300 on small disks
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Count: &count, Tasks: []*structs.Task{task},
		EphemeralDisk: &structs.EphemeralDisk{SizeMB: structs.Ptr(10)}}
	return &structs.Job{ID: &id, Name: &id, Type: structs.Ptr("service"), TaskGroups: []*structs.TaskGroup{group}}
}

func limited(b testing.TB) context.Context {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), proc.Limit)
	b.Cleanup(cancel)
	return ctx
}

// awaitNode waits until a node is ready and gives its id.
func awaitNode(b testing.TB, c *api.Client) string {
	b.Helper()
	ctx := limited(b)
	q := &api.QueryOptions{WaitTime: 10 * time.Second}
	for {
		nodes, meta, err := c.Nodes().List(ctx, q)
		if err != nil {
			b.Fatalf("wait for a ready node: %v", err)
		}
		for _, n := range nodes {
			if n.Status == structs.NodeStatusReady {
				return n.ID
			}
		}
		q.WaitIndex = meta.LastIndex
	}
}

// register stores the job and waits until all its tasks run. It gives the time that took.
func register(b testing.TB, c *api.Client, job *structs.Job) time.Duration {
	b.Helper()
	began := time.Now()
	if _, _, err := c.Jobs().Register(limited(b), job, nil, nil); err != nil {
		b.Fatalf("register job: %v", err)
	}
	group := job.TaskGroups[0]
	awaitSummary(b, c, *job.ID, fmt.Sprintf("%d running", *group.Count), func(s structs.TaskGroupSummary) bool {
		return s.Running == *group.Count
	})
	return time.Since(began)
}

// stop stops the job and waits until all its tasks have ended. It gives the time that took.
func stop(b testing.TB, c *api.Client, job *structs.Job) time.Duration {
	b.Helper()
	began := time.Now()
	if _, _, err := c.Jobs().Deregister(limited(b), *job.ID, nil, nil); err != nil {
		b.Fatalf("stop job: %v", err)
	}
	group := job.TaskGroups[0]
	awaitSummary(b, c, *job.ID, fmt.Sprintf("%d complete", *group.Count), func(s structs.TaskGroupSummary) bool {
		return s.Complete == *group.Count
	})
	return time.Since(began)
}

func awaitSummary(b testing.TB, c *api.Client, id, what string, done func(structs.TaskGroupSummary) bool) {
	b.Helper()
	ctx := limited(b)
	q := &api.QueryOptions{WaitTime: 10 * time.Second}
	var last structs.TaskGroupSummary
	for {
		summary, meta, err := c.Jobs().Summary(ctx, id, q)
		if err != nil {
			b.Fatalf("wait for %s: %v; last seen: %+v", what, err, last)
		}
		if last = summary.Summary["g"]; done(last) {
			return
		}
		q.WaitIndex = meta.LastIndex
	}
}
