package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/e2e/proc"
	"github.com/nomadlite/nomadlite/structs"
)

// slowToStop is a job whose tasks wait for a minute before they get their kill signal, and then write into dir when
// that was.
func slowToStop(id string, count int, dir string) *structs.Job {
	job := sleepers(id, count)
	task := job.TaskGroups[0].Tasks[0]
	task.Config = map[string]any{"command": "/bin/bash", "args": []any{"-c",
		`trap 'echo $EPOCHREALTIME >"` + dir + `/$NOMAD_ALLOC_ID"; exit 0' TERM; sleep 3600 & wait`}}
	task.KillSignal, task.ShutdownDelay = "SIGTERM", time.Minute
	return job
}

// BenchmarkCutWait stops a job whose tasks have a shutdown delay of a minute, and, once all wait, stops it again with the
// flag that leaves the delays out: the time from this second call until the last task got its signal.
func BenchmarkCutWait(b *testing.B) {
	perKind(b, func(b *testing.B, kind string, a *proc.Agent) {
		a.Config["enable_debug"] = true // for profile
		a.Start()
		awaitNode(b, a.Client)
		dir := b.TempDir()
		job := slowToStop("slow", tasks, dir)
		register(b, a.Client, job)
		if _, _, err := a.Client.Jobs().Deregister(limited(b), *job.ID, nil, nil); err != nil {
			b.Fatalf("stop job: %v", err)
		}
		awaitAllocs(b, a.Client, *job.ID, "all wait for their delay", func(alloc *structs.AllocationListStub) bool {
			st := alloc.TaskStates["sleep"]
			return st != nil && len(st.Events) > 0 && st.Events[len(st.Events)-1].Type == structs.TaskWaitingShutdownDelay
		})
		profiled, cpu := profile(b, a, "cut-"+kind, time.Second), a.CPUTime()
		began := time.Now()
		if _, _, err := a.Client.Jobs().Deregister(limited(b), *job.ID, &api.DeregisterOptions{NoShutdownDelay: true}, nil); err != nil {
			b.Fatalf("stop job again: %v", err)
		}
		awaitSummary(b, a.Client, *job.ID, "all complete", func(s structs.TaskGroupSummary) bool { return s.Complete == tasks })
		b.Logf("processor time of the agent: %v", a.CPUTime()-cpu)
		profiled()
		logSteps(b, a.Client, *job.ID, began)
		note(b, "cut/"+kind, milliseconds(lastSignal(b, dir).Sub(began)), "cut-ms")
	})
}

// logSteps says when the tasks took each step after began, for who wants to know where the time goes.
func logSteps(b *testing.B, c *api.Client, id string, began time.Time) {
	b.Helper()
	first, last := map[string]time.Duration{}, map[string]time.Duration{}
	for _, a := range awaitAllocs(b, c, id, "all have ended", func(*structs.AllocationListStub) bool { return true }) {
		for _, e := range a.TaskStates["sleep"].Events {
			at := time.Unix(0, e.Time).Sub(began)
			if was, seen := first[e.Type]; !seen || at < was {
				first[e.Type] = at
			}
			last[e.Type] = max(last[e.Type], at)
		}
	}
	for step, at := range first {
		if at > 0 {
			b.Logf("%s: %v to %v", step, at.Round(time.Millisecond), last[step].Round(time.Millisecond))
		}
	}
}

// lastSignal is the latest time that a task wrote into dir.
func lastSignal(b *testing.B, dir string) (last time.Time) {
	b.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	if len(entries) != tasks {
		b.Fatalf("%d tasks noted their signal, want %d", len(entries), tasks)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			b.Fatal(err)
		}
		us, err := strconv.ParseInt(strings.Replace(strings.TrimSpace(string(raw)), ".", "", 1), 10, 64)
		if err != nil {
			b.Fatalf("read the time of a signal: %v", err)
		}
		if at := time.UnixMicro(us); at.After(last) {
			last = at
		}
	}
	return last
}

// awaitAllocs waits until done is true of every allocation of the job, and gives them.
func awaitAllocs(b *testing.B, c *api.Client, id, what string, done func(*structs.AllocationListStub) bool) []*structs.AllocationListStub {
	b.Helper()
	ctx := limited(b)
	q := &api.QueryOptions{WaitTime: 10 * time.Second}
	for {
		allocs, meta, err := c.Jobs().Allocations(ctx, id, true, q)
		if err != nil {
			b.Fatalf("wait until %s: %v", what, err)
		}
		left := 0
		for _, a := range allocs {
			if !done(a) {
				left++
			}
		}
		if left == 0 && len(allocs) > 0 {
			return allocs
		}
		q.WaitIndex = meta.LastIndex
	}
}

// quick makes a server notice within seconds that a node is silent.
func quick(server map[string]any) {
	server["min_heartbeat_ttl"], server["heartbeat_grace"], server["max_heartbeats_per_second"] = "2s", "1s", 5000
}

// BenchmarkReturn kills the agent of a node with 300 running allocations (-9) and starts it again when the servers have
// lost contact: the time from its start until all are as they were, in the servers' eyes too, and none was replaced.
func BenchmarkReturn(b *testing.B) {
	proc.Binary(b)
	for b.Loop() {
		server := proc.New(b, func(c map[string]any) {
			c["client"] = map[string]any{"enabled": false}
			quick(c["server"].(map[string]any))
		})
		server.Start()
		node := proc.New(b, func(c map[string]any) {
			c["server"] = map[string]any{"enabled": false}
			c["client"] = map[string]any{"enabled": true, "servers": []string{fmt.Sprintf("127.0.0.1:%d", server.RPC)}}
		})
		node.Start()
		id := awaitNode(b, server.Client)
		job := sleepers("many", tasks)
		job.TaskGroups[0].Disconnect = &structs.DisconnectStrategy{LostAfter: structs.Ptr(time.Hour)}
		register(b, server.Client, job)
		node.Kill()
		awaitStatus(b, server.Client, id, structs.NodeStatusDisconnected)
		awaitSummary(b, server.Client, *job.ID, "all unknown", func(s structs.TaskGroupSummary) bool { return s.Unknown == tasks })
		began := time.Now()
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			node.Start()
		}()
		awaitSummary(b, server.Client, *job.ID, "all running again", func(s structs.TaskGroupSummary) bool { return s.Running == tasks })
		awaitStatus(b, server.Client, id, structs.NodeStatusReady) // it has reported, and is given work again
		note(b, "return", milliseconds(time.Since(began)), "return-ms")
		<-returned
		allocs := awaitAllocs(b, server.Client, *job.ID, "all as before", func(a *structs.AllocationListStub) bool {
			return a.ClientStatus == structs.AllocClientStatusRunning && a.DesiredStatus == structs.AllocDesiredStatusRun
		})
		if len(allocs) != tasks || node.TasksNamed("sleep") != 0 && node.TasksNamed("sleep") != tasks {
			b.Fatalf("%d allocations after the return, %d tasks", len(allocs), node.TasksNamed("sleep"))
		}
		stop(b, server.Client, job)
	}
	b.ReportMetric(0, "ns/op")
}

func awaitStatus(b *testing.B, c *api.Client, nodeID, status string) {
	b.Helper()
	ctx := limited(b)
	q := &api.QueryOptions{WaitTime: 10 * time.Second}
	for {
		n, meta, err := c.Nodes().Info(ctx, nodeID, q)
		if err != nil {
			b.Fatalf("wait for node status %s: %v", status, err)
		}
		if n.Status == status {
			return
		}
		q.WaitIndex = meta.LastIndex
	}
}

// metrics reads the gauges of an agent.
func metrics(b *testing.B, a *proc.Agent) map[string]float64 {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), proc.Limit)
	defer cancel()
	var out struct {
		Gauges []struct {
			Name  string
			Value float64
		}
	}
	getJSON(b, ctx, a.Addr()+"/v1/metrics", &out)
	values := map[string]float64{}
	for _, g := range out.Gauges {
		values[g.Name] = g.Value
	}
	return values
}
