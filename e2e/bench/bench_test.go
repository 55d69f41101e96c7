package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/e2e/nodesim/sim"
	"github.com/nomadlite/nomadlite/e2e/proc"
)

const tasks = 300

// kinds are the agents that are measured: a dev agent holds all in memory, the other one syncs raft and the node's
// state to disk.
var kinds = []struct {
	name string
	make func(b *testing.B) *proc.Agent
}{
	{"dev", func(b *testing.B) *proc.Agent { return proc.NewDev(b) }},
	{"disk", func(b *testing.B) *proc.Agent { return proc.New(b, nil) }},
}

func perKind(b *testing.B, f func(b *testing.B, kind string, a *proc.Agent)) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			proc.Binary(b)
			for b.Loop() {
				f(b, kind.name, kind.make(b))
			}
			b.ReportMetric(0, "ns/op") // starting and clearing up are not what is measured
		})
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// BenchmarkStart is the start of an agent until its node is ready, and what it then holds in memory.
func BenchmarkStart(b *testing.B) {
	perKind(b, func(b *testing.B, kind string, a *proc.Agent) {
		a.OwnBinary()
		began := time.Now()
		a.Start()
		awaitNode(b, a.Client)
		note(b, "start/"+kind, milliseconds(time.Since(began)), "start-ms")
		note(b, "idle/"+kind, mebibytes(a.Memory()), "idle-MiB")
	})
}

// BenchmarkFirstTask is the time from a job's registration until its task runs: the first one of a fresh agent, and
// one after that.
func BenchmarkFirstTask(b *testing.B) {
	perKind(b, func(b *testing.B, kind string, a *proc.Agent) {
		a.Start()
		awaitNode(b, a.Client)
		first := sleepers("first", 1)
		note(b, "first/"+kind, milliseconds(register(b, a.Client, first)), "first-ms")
		second := sleepers("second", 1)
		note(b, "next/"+kind, milliseconds(register(b, a.Client, second)), "next-ms")
		stop(b, a.Client, first)
		stop(b, a.Client, second)
	})
}

// BenchmarkTasks runs and stops 300 tasks on one node: the time for each, and the memory that agent and supervisor
// need beside each task.
func BenchmarkTasks(b *testing.B) {
	perKind(b, func(b *testing.B, kind string, a *proc.Agent) {
		a.OwnBinary()
		a.Start()
		awaitNode(b, a.Client)
		idle, before := a.Memory(), a.CPUTime()
		job := sleepers("many", tasks)
		note(b, "run/"+kind, milliseconds(register(b, a.Client, job)), "run-ms")
		running := a.CPUTime()
		note(b, "runcpu/"+kind, milliseconds(running-before), "run-cpu-ms")
		note(b, "task/"+kind, mebibytes(a.Memory()-idle)/tasks, "MiB/task")
		if n := a.TasksNamed("sleep"); n != tasks {
			b.Fatalf("%d tasks run, the servers say %d", n, tasks)
		}
		running = a.CPUTime()
		note(b, "stop/"+kind, milliseconds(stop(b, a.Client, job)), "stop-ms")
		note(b, "stopcpu/"+kind, milliseconds(a.CPUTime()-running), "stop-cpu-ms")
		if n := a.TasksNamed("sleep"); n != 0 {
			b.Fatalf("%d tasks still run, the servers say none", n)
		}
	})
}

// TestMeasuring runs what the benchmarks do with a few tasks, so that they work when they are wanted.
func TestMeasuring(t *testing.T) {
	a := proc.New(t, nil)
	a.OwnBinary()
	a.Start()
	awaitNode(t, a.Client)
	if n := a.TasksNamed("sleep"); n != 0 {
		t.Errorf("%d tasks before there is a job", n)
	}
	job := sleepers("few", 3)
	register(t, a.Client, job)
	if n := a.TasksNamed("sleep"); n != 3 {
		t.Errorf("%d tasks, want 3", n)
	}
	supervisors, err := a.Supervisors()
	if err != nil || len(supervisors) != 1 {
		t.Errorf("supervisors: %v %v", supervisors, err)
	}
	if pss := mebibytes(a.Memory()); pss < 5 || pss > 500 {
		t.Errorf("agent and supervisor need %.1f MiB", pss)
	}
	stop(t, a.Client, job)
	if n := a.TasksNamed("sleep"); n != 0 {
		t.Errorf("%d tasks after the job was stopped", n)
	}
}

// BenchmarkNodes puts simulated nodes on one server with data on disk: the time until all have registered, and until
// allocations, five on each node, run and are stopped.
func BenchmarkNodes(b *testing.B) {
	const nodes, allocs = 1000, 5000
	for b.Loop() {
		server := proc.New(b, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })
		server.Start()
		fleet, err := sim.New(sim.Config{Nodes: nodes, Servers: []string{fmt.Sprintf("127.0.0.1:%d", server.RPC)}})
		if err != nil {
			b.Fatal(err)
		}
		ran := make(chan error, 1)
		go func() { ran <- fleet.Run(context.Background()) }()
		b.Cleanup(func() {
			if err := errors.Join(fleet.Close(), <-ran); err != nil {
				b.Error(err)
			}
		})
		stats, err := fleet.Await(limited(b), func(st sim.Stats) bool { return st.Ready == nodes })
		if err != nil {
			b.Fatalf("%v; last seen: %+v", err, stats)
		}
		note(b, "nodes", float64(stats.RegDoneMS), "nodes-ms")
		note(b, "server", mebibytes(server.Memory())*1024/nodes, "KiB/node")
		job := sleepers("many", allocs)
		job.Datacenters = []string{"*"}
		note(b, "allocs", milliseconds(register(b, server.Client, job)), "allocs-ms")
		note(b, "allocsstop", milliseconds(stop(b, server.Client, job)), "allocs-stop-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkBinary is the size of the stripped binary.
func BenchmarkBinary(b *testing.B) {
	for b.Loop() {
		info, err := os.Stat(proc.Binary(b))
		if err != nil {
			b.Fatal(err)
		}
		note(b, "binary", mebibytes(info.Size()), "MiB")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkOutput is a whole call of the command line that reads a jobspec and prints it as JSON.
func BenchmarkOutput(b *testing.B) {
	binary := proc.Binary(b)
	for b.Loop() {
		began := time.Now()
		out, err := exec.Command(binary, "job", "run", "-output", "../../jobspec/testdata/hundred-lines.nomad.hcl").Output()
		took := time.Since(began)
		if err != nil || !bytes.Contains(out, []byte(`"shop"`)) {
			b.Fatalf("%v: %s", err, out)
		}
		note(b, "output", milliseconds(took), "ms")
	}
	b.ReportMetric(0, "ns/op")
}

func note(b *testing.B, figure string, value float64, unit string) {
	b.ReportMetric(value, unit)
	measured[figure] = append(measured[figure], value)
}

func TestMain(m *testing.M) {
	code := m.Run()
	if table := table(measured); table != "" {
		fmt.Print(table)
	}
	os.Exit(code)
}
