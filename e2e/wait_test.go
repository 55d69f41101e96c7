package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	t.Cleanup(cancel)
	return ctx
}

// awaitAllocs waits, by blocking queries, until the job's allocations satisfy done.
func awaitAllocs(t testing.TB, c *api.Client, jobID, what string, done func([]*structs.AllocationListStub) bool) []*structs.AllocationListStub {
	t.Helper()
	ctx := limited(t)
	q := &api.QueryOptions{WaitTime: 5 * time.Second}
	var last []*structs.AllocationListStub
	for {
		list, meta, err := c.Jobs().Allocations(ctx, jobID, true, q)
		if err != nil {
			t.Fatalf("wait for %s of job %q: %v; last seen: %s", what, jobID, err, describe(last))
		}
		if last = list; done(list) {
			return list
		}
		q.WaitIndex = meta.LastIndex
	}
}

func describe(list []*structs.AllocationListStub) string {
	out := ""
	for _, a := range list {
		out += fmt.Sprintf("\n  %s on %s desired=%s client=%s %s %s", a.ID, a.NodeName, a.DesiredStatus, a.ClientStatus, a.ClientDescription, a.DesiredDescription)
		for name, s := range a.TaskStates {
			out += fmt.Sprintf("\n    task %s: %s failed=%v", name, s.State, s.Failed)
			for _, e := range s.Events {
				out += fmt.Sprintf("\n      %s: %s", e.Type, e.DisplayMessage)
			}
		}
	}
	return out
}

func awaitRunning(t testing.TB, c *api.Client, jobID string, count int) []*structs.AllocationListStub {
	t.Helper()
	list := awaitAllocs(t, c, jobID, fmt.Sprintf("%d running allocations", count), func(l []*structs.AllocationListStub) bool {
		return len(withStatus(l, structs.AllocClientStatusRunning)) == count
	})
	return withStatus(list, structs.AllocClientStatusRunning)
}

func awaitStatus(t testing.TB, c *api.Client, jobID, status string) *structs.AllocationListStub {
	t.Helper()
	list := awaitAllocs(t, c, jobID, "an allocation that is "+status, func(l []*structs.AllocationListStub) bool {
		return len(withStatus(l, status)) > 0
	})
	return withStatus(list, status)[0]
}

// awaitJobStatus waits until a job has a status.
func awaitJobStatus(t testing.TB, c *api.Client, id, status string) {
	t.Helper()
	ctx := limited(t)
	q := &api.QueryOptions{WaitTime: 5 * time.Second}
	last := ""
	for {
		j, meta, err := c.Jobs().Info(ctx, id, q)
		if err != nil {
			t.Fatalf("wait for job %q to be %s: %v; it is %q", id, status, err, last)
		}
		if last = j.Status; last == status {
			return
		}
		q.WaitIndex = meta.LastIndex
	}
}

// awaitDeployment waits until the deployment of a job's version has a status. That its allocations are healthy is not
// enough: another version that comes right then cancels it.
func awaitDeployment(t testing.TB, c *api.Client, id string, version uint64, status string) *structs.Deployment {
	t.Helper()
	ctx, q := limited(t), &api.QueryOptions{WaitTime: 5 * time.Second}
	last := ""
	for {
		d, meta, err := c.Jobs().LatestDeployment(ctx, id, q)
		if err != nil {
			t.Fatalf("wait for a %s deployment of version %d of %q: %v; it is %q", status, version, id, err, last)
		}
		if d != nil && d.JobVersion == version {
			if last = d.Status; last == status {
				return d
			}
		}
		q.WaitIndex = meta.LastIndex
	}
}

func withStatus(list []*structs.AllocationListStub, status string) []*structs.AllocationListStub {
	var out []*structs.AllocationListStub
	for _, a := range list {
		if a.ClientStatus == status {
			out = append(out, a)
		}
	}
	return out
}

// job gives a job of one group with one raw_exec task that runs a shell script.
func job(id, script string, change func(*structs.Job, *structs.TaskGroup, *structs.Task)) *structs.Job {
	task := &structs.Task{Name: "t", Driver: "raw_exec",
		Config:    map[string]any{"command": "/bin/sh", "args": []any{"-c", script}},
		Resources: &structs.Resources{CPU: structs.Ptr(20), MemoryMB: structs.Ptr(20)}}
	group := &structs.TaskGroup{Name: structs.Ptr("g"), Count: structs.Ptr(1), Tasks: []*structs.Task{task},
		EphemeralDisk: &structs.EphemeralDisk{SizeMB: structs.Ptr(120)}}
	j := &structs.Job{ID: &id, Name: &id, Type: structs.Ptr("service"), TaskGroups: []*structs.TaskGroup{group}}
	if change != nil {
		change(j, group, task)
	}
	return j
}

func register(t testing.TB, c *api.Client, j *structs.Job) *structs.JobRegisterResponse {
	t.Helper()
	answer, _, err := c.Jobs().Register(limited(t), j, nil, nil)
	if err != nil {
		t.Fatalf("register job %q: %v", structs.Val(j.ID), err)
	}
	return answer
}

// awaitEval waits until an evaluation is decided.
func awaitEval(t testing.TB, c *api.Client, id string) *structs.Evaluation {
	t.Helper()
	ctx := limited(t)
	q := &api.QueryOptions{WaitTime: 5 * time.Second}
	for {
		e, meta, err := c.Evaluations().Info(ctx, id, q)
		if err != nil {
			t.Fatalf("wait for evaluation: %v", err)
		}
		if e.TerminalStatus() {
			return e
		}
		q.WaitIndex = meta.LastIndex
	}
}

// awaitFile looks whether done agrees each time that something in a directory has changed.
func awaitFile(t testing.TB, dir string, done func() bool) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MODIFY|unix.IN_CLOSE_WRITE); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for until := time.Now().Add(waitLimit); !done(); {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(until).Milliseconds()))
		if err != nil && err != unix.EINTR || n == 0 || time.Now().After(until) {
			t.Fatalf("nothing of what is waited for was written to %s: %v", dir, err)
		}
		_, _ = unix.Read(fd, buf)
	}
}
