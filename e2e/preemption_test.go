package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// TestPreemption lets an important job take the room of another one on a node that is full: it begins once the other has
// ended, and that one comes back when there is room again.
func TestPreemption(t *testing.T) {
	a := newAgent(t, func(config map[string]any) {
		config["client"].(map[string]any)["memory_total_mb"] = 1000
	})
	a.Start()
	cfg, _, err := a.Client.Operator().SchedulerConfiguration(limited(t), nil)
	if err != nil || !cfg.PreemptionConfig.SystemSchedulerEnabled || cfg.PreemptionConfig.ServiceSchedulerEnabled {
		t.Fatalf("preemption by default: %+v, %v", cfg, err)
	}
	times := filepath.Join(a.Dir, "times")
	of := func(id string, priority, memory int, script string) *structs.Job {
		say := fmt.Sprintf("say() { echo %s $1 >> %s; }; ", id, times)
		return job(id, say+script, func(j *structs.Job, _ *structs.TaskGroup, task *structs.Task) {
			j.Priority, task.Resources.MemoryMB, task.KillTimeout = &priority, &memory, structs.Ptr(10*time.Second)
		})
	}
	low := of("low", 20, 700, `trap 'sleep 1; say end; exit 0' TERM INT; say up; sleep 600 & wait`)
	high := of("high", 70, 600, `say up; exec sleep 600`)
	register(t, a.Client, low)
	victim := awaitRunning(t, a.Client, "low", 1)[0]

	// Service jobs may not evict unless they are let.
	answer := register(t, a.Client, high)
	eval := awaitEval(t, a.Client, answer.EvalID)
	if eval.BlockedEval == "" || eval.FailedTGAllocs["g"].DimensionExhausted["memory"] != 1 {
		t.Fatalf("without preemption: %+v", eval)
	}
	// It says in words why it waits: 300 of 1000 MiB are free.
	for _, command := range [][]string{{"eval", "status", eval.ID}, {"job", "status", "high"}, {"job", "explain", "high"}} {
		if out, _, code := a.cli("", command...); code != 0 || !strings.Contains(out, "needs 300 MiB more memory on 1 of 1 node") {
			t.Errorf("%s: exit %d\n%s", strings.Join(command, " "), code, out)
		}
	}
	if out, _, _ := a.cli("", "job", "explain", "high"); !strings.Contains(out, `without "memory" alone it would fit on 1 more`) {
		t.Errorf("job explain:\n%s", out)
	}
	if _, _, err := a.Client.Jobs().Deregister(limited(t), "high", nil, nil); err != nil {
		t.Fatal(err)
	}
	cfg.PreemptionConfig.ServiceSchedulerEnabled = true
	if _, _, err := a.Client.Operator().SetSchedulerConfiguration(limited(t), cfg, false, nil); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(a.Dir, "other.nomad.hcl")
	spec := `job "other" {
  priority = 90
  group "g" {
    task "t" {
      driver = "raw_exec"
      config { command = "/bin/true" }
      resources { memory = 601 }
    }
  }
}`
	if err := os.WriteFile(file, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, _ := a.cli("", "job", "plan", file); !strings.Contains(out, "Preemptions:") || !strings.Contains(out, "low") {
		t.Errorf("job plan tells nothing of who would be evicted:\n%s", out)
	}
	register(t, a.Client, high)
	winner := awaitRunning(t, a.Client, "high", 1)[0]
	text, err := os.ReadFile(times)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(strings.ReplaceAll(string(text), " ", "-"))
	if !slices.Equal(lines[:2], []string{"low-up", "low-end"}) {
		t.Errorf("the important one began before the other had ended: %v", lines)
	}
	gone, _, err := a.Client.Allocations().Info(limited(t), victim.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if gone.DesiredStatus != structs.AllocDesiredStatusEvict || gone.DesiredDescription != "Preempted by alloc ID "+winner.ID ||
		gone.PreemptedByAllocation != winner.ID || gone.ClientStatus != structs.AllocClientStatusComplete {
		t.Errorf("evicted: desired=%s (%s), by %s, client=%s", gone.DesiredStatus, gone.DesiredDescription, gone.PreemptedByAllocation, gone.ClientStatus)
	}
	if !slices.Equal(winner.PreemptedAllocations, []string{victim.ID}) {
		t.Errorf("the important one names %v", winner.PreemptedAllocations)
	}
	evals, _, err := a.Client.Jobs().Evaluations(limited(t), "low", nil)
	if err != nil || !slices.ContainsFunc(evals, func(e *structs.Evaluation) bool { return e.TriggeredBy == structs.EvalTriggerPreemption }) {
		t.Errorf("no evaluation for the job that lost an allocation: %v", err)
	}
	if _, _, err := a.Client.Jobs().Deregister(limited(t), "high", nil, nil); err != nil {
		t.Fatal(err)
	}
	if again := awaitRunning(t, a.Client, "low", 1)[0]; again.ID == victim.ID {
		t.Errorf("the evicted one runs again")
	}
}

// TestAutoRevert gives a version up that does not run: the job goes back to what was proven, and that is all.
func TestAutoRevert(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	of := func(script string) *structs.Job {
		return job("web", script, func(j *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
			g.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(0), Mode: structs.Ptr("fail")}
			g.Update = &structs.UpdateStrategy{MaxParallel: structs.Ptr(1), MinHealthyTime: structs.Ptr(2 * time.Second),
				HealthyDeadline: structs.Ptr(30 * time.Second), ProgressDeadline: structs.Ptr(time.Duration(0)),
				AutoRevert: structs.Ptr(true), HealthCheck: structs.Ptr("task_states")}
		})
	}
	ends := func(version uint64) *structs.Deployment {
		ctx, q := limited(t), &api.QueryOptions{WaitTime: 5 * time.Second}
		for {
			list, meta, err := a.Client.Jobs().Deployments(ctx, "web", false, q)
			if err != nil {
				t.Fatalf("wait for the end of the deployment of version %d: %v", version, err)
			}
			for _, d := range list {
				if d.JobVersion == version && !d.Active() {
					return d
				}
			}
			q.WaitIndex = meta.LastIndex
		}
	}
	register(t, a.Client, of("exec sleep 1000"))
	if d := ends(0); d.Status != structs.DeploymentStatusSuccessful {
		t.Fatalf("first version: %s (%s)", d.Status, d.StatusDescription)
	}
	spec, err := json.Marshal(map[string]any{"Job": of("exit 1")})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(a.Dir, "web.json")
	if err := os.WriteFile(file, spec, 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, code := a.cli("", "job", "run", "-json", file)
	if code != 1 || !strings.Contains(out, "return to what was proven, version 2") || !strings.Contains(out, "successful") {
		t.Errorf("job run: exit %d\n%s", code, out)
	}
	if d := ends(1); d.StatusDescription != "Failed due to unhealthy allocations - rolling back to job version 0" {
		t.Errorf("second version: %s (%s)", d.Status, d.StatusDescription)
	}
	if d := ends(2); d.Status != structs.DeploymentStatusSuccessful {
		t.Errorf("what was proven: %s (%s)", d.Status, d.StatusDescription)
	}
	if running := awaitRunning(t, a.Client, "web", 1)[0]; running.JobVersion != 2 {
		t.Errorf("version %d runs", running.JobVersion)
	}
}
