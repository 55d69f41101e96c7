package client

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/client/lease"
	"github.com/nomadlite/nomadlite/client/state"
	"github.com/nomadlite/nomadlite/structs"
)

// leasedJob restarts what fails, and writes a line to a file at each start.
func leasedJob(dir string, after, kill time.Duration) *structs.Job {
	t := shell(`trap "" TERM INT; echo $$ >>` + filepath.Join(dir, "starts") + `; while :; do sleep 1000; done`)
	t.KillTimeout = &kill
	j := jobOf("j", structs.JobTypeService, t)
	j.TaskGroups[0].Disconnect = &structs.DisconnectStrategy{StopOnClientAfter: &after}
	t.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(5), Mode: structs.Ptr("fail"),
		Interval: structs.Ptr(time.Minute), Delay: structs.Ptr(10 * time.Millisecond)}
	return j
}

func saysLeaseIsOver(o *structs.AllocObservation) bool {
	return slices.ContainsFunc(o.TaskStates["t"].Events, func(e *structs.TaskEvent) bool {
		return strings.HasPrefix(e.DisplayMessage, "Lease has run out")
	})
}

// TestLeaseRunsOutWithoutAnAgent: the supervisor ends the task; the next agent does not start it again, and tells why.
func TestLeaseRunsOutWithoutAnAgent(t *testing.T) {
	dir, a := t.TempDir(), newAgent(t)
	a.start()
	a.servers.assign("a1", leasedJob(dir, time.Second, 100*time.Millisecond), nil)
	pid := waitFile(t, filepath.Join(dir, "starts"))
	a.servers.untilStatus("a1", "running")
	a.end()
	waitGone(t, pid)
	a.start()
	if o := a.servers.untilStatus("a1", "failed"); !saysLeaseIsOver(o) {
		t.Errorf("events %+v", o.TaskStates["t"].Events)
	}
	if starts := waitFile(t, filepath.Join(dir, "starts")); starts != pid {
		t.Errorf("it was started again: %q", starts)
	}
}

// TestLeaseIsKeptAcrossAgents: one that is back in time renews it, with heartbeats close enough together.
func TestLeaseIsKeptAcrossAgents(t *testing.T) {
	dir, a := t.TempDir(), newAgent(t)
	a.start()
	a.servers.assign("a1", leasedJob(dir, 2*time.Second, 100*time.Millisecond), nil)
	pid := waitFile(t, filepath.Join(dir, "starts"))
	a.servers.untilStatus("a1", "running")
	a.end()
	a.start()
	began := time.Now()
	beats := 0
	a.servers.until("the lease to be renewed beyond its first end", func() bool {
		beats = len(a.servers.beats)
		return time.Since(began) > 3*time.Second
	})
	if beats < 5 {
		t.Errorf("%d heartbeats in 3 s of a lease of 2 s", beats)
	}
	if starts := waitFile(t, filepath.Join(dir, "starts")); starts != pid {
		t.Errorf("it was started again: %q", starts)
	}
	if _, err := os.Stat("/proc/" + pid); err != nil {
		t.Errorf("it was ended: %v", err)
	}
}

// TestLeaseOfAnEarlierBootIsOver: its clock says nothing about this one.
func TestLeaseOfAnEarlierBootIsOver(t *testing.T) {
	dir, a := t.TempDir(), newAgent(t)
	a.start()
	a.servers.assign("a1", leasedJob(dir, time.Hour, 100*time.Millisecond), nil)
	waitFile(t, filepath.Join(dir, "starts"))
	a.servers.untilStatus("a1", "running")
	last := a.client.leases.Last()
	a.end()
	db, err := state.Open(filepath.Join(a.cfg.DataDir, "client", "state.db"), state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	db.Put(state.Node, leaseKey, lease.Moment{BootID: "another", Sent: last.Sent}, nil)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	a.start()
	if o := a.servers.untilStatus("a1", "failed"); !saysLeaseIsOver(o) {
		t.Errorf("events %+v", o.TaskStates["t"].Events)
	}
}
