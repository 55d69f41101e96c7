package sim

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadlite/nomadlite/structs"
)

// Whatever happens, each group has its count in the end: what runs and what is said to have no place.
func TestCountsAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := &structs.SchedulerConfiguration{PreemptionConfig: structs.PreemptionConfig{ServiceSchedulerEnabled: rapid.Bool().Draw(rt, "preempt")}}
		s := New(Config{Seed: rapid.Uint64().Draw(rt, "seed"), Now: start(), Scheduler: cfg})
		made := 0
		for range rapid.IntRange(1, 12).Draw(rt, "events") {
			var e Event
			rack := fmt.Sprint("rack=r", rapid.IntRange(0, 3).Draw(rt, "rack"))
			switch rapid.SampledFrom([]string{"add", "add", "lose", "return", "drain", "run", "run", "run", "scale", "stop"}).Draw(rt, "event") {
			case "add":
				n := rapid.IntRange(1, 4).Draw(rt, "nodes")
				e.AddNodes, made = nodes(made, made+n), made+n
			case "lose":
				e.Lose = []string{rack}
			case "return":
				e.Return = []string{rack}
			case "drain":
				e.Drain = []string{rack}
			case "run":
				j := job(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "job"), "service", rapid.IntRange(0, 9).Draw(rt, "count"),
					rapid.SampledFrom([]int{20, 50, 80}).Draw(rt, "priority"))
				j.TaskGroups[0].Tasks[0].Env = map[string]string{"v": fmt.Sprint(rapid.IntRange(0, 2).Draw(rt, "version"))}
				if rapid.Bool().Draw(rt, "update") {
					j.TaskGroups[0].Update = &structs.UpdateStrategy{MaxParallel: structs.Ptr(2)}
				}
				e.Run = []*structs.Job{j}
			case "scale":
				e.Scale = []Scale{{Job: "a", Count: rapid.IntRange(0, 9).Draw(rt, "count")}}
			case "stop":
				e.Stop = []string{"b"}
			}
			step, err := s.Do(context.Background(), e)
			if structs.ErrorCode(err) == structs.CodeInvalid && err != nil {
				continue // it named what is not there, and changed nothing
			}
			if err != nil {
				rt.Fatal(err)
			}
			s.addUp(rt, step)
		}
	})
}

func (s *Sim) addUp(rt *rapid.T, step *Step) {
	missing := map[string]int{}
	for _, u := range step.Unplaced {
		missing[u.Job] = u.Missing
	}
	for _, j := range s.cluster.sortedJobs() {
		id, want, runs := structs.Val(j.ID), *j.TaskGroups[0].Count, 0
		if j.Stop {
			want = 0
		}
		for _, a := range s.cluster.AllocsByJob("default", id) {
			if !a.TerminalStatus() {
				runs++
				if a.ClientStatus != "running" || !up(s.Node(a.NodeID)) {
					rt.Fatalf("%s is %s on %s", a.Name, a.ClientStatus, a.NodeID)
				}
			}
		}
		if runs+missing[id] != want {
			rt.Fatalf("job %s: %d run, %d have no place, %d are wanted", id, runs, missing[id], want)
		}
	}
	for n := range s.Nodes() {
		if used := s.cluster.usage[n.ID]; used != nil && up(n) && used.CPU > n.NodeResources.Cpu.CpuShares {
			rt.Fatalf("node %s holds %d MHz", n.ID, used.CPU)
		}
	}
}
