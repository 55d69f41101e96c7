package bench

import (
	"fmt"
	"os"
	"testing"
	"time"

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
