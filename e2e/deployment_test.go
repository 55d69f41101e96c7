package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/structs"
)

// rollSpec is a service of three allocations that are updated one by one.
const rollSpec = `
variable "script" {}
variable "healthy" {}
variable "progress" {}

job "roll" {
  update {
    max_parallel      = 1
    min_healthy_time  = "100ms"
    healthy_deadline  = var.healthy
    progress_deadline = var.progress
  }
  group "g" {
    count = 3
    restart {
      attempts = 0
      mode     = "fail"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", var.script]
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
`

// roll runs a version of the job by the command line, which waits for the end of the deployment, and gives the deployment.
func (a *agent) roll(version uint64, script, healthy, progress string, exit int) *structs.Deployment {
	a.t.Helper()
	file := filepath.Join(a.Dir, "roll.nomad.hcl")
	if err := os.WriteFile(file, []byte(rollSpec), 0o600); err != nil {
		a.t.Fatal(err)
	}
	out, errs, code := a.cli("", "job", "run", "-var", "script="+script, "-var", "healthy="+healthy,
		"-var", "progress="+progress, file)
	if code != exit {
		a.t.Fatalf("job run: exit %d, want %d\n%s\n%s", code, exit, out, errs)
	}
	deployments, _, err := a.Client.Deployments().List(limited(a.t), nil)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, d := range deployments {
		if d.JobID == "roll" && d.JobVersion == version {
			return d
		}
	}
	a.t.Fatalf("version %d has no deployment\n%s", version, out)
	return nil
}

// TestDeployments rolls a job out, updates it one by one, and gives up a version that does not run.
func TestDeployments(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()

	first := a.roll(0, "exec sleep 1000", "1m", "2m", 0)
	if first.Status != structs.DeploymentStatusSuccessful || first.TaskGroups["g"].HealthyAllocs != 3 {
		t.Errorf("first version: %s (%s), %+v", first.Status, first.StatusDescription, first.TaskGroups["g"])
	}
	evals, _, err := a.Client.Jobs().Evaluations(limited(t), "roll", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range evals {
		awaitEval(t, a.Client, e.ID)
		if e.DeploymentID != first.ID {
			t.Errorf("evaluation (%s) of deployment %q", e.TriggeredBy, e.DeploymentID)
		}
	}

	second := a.roll(1, "exec sleep 1001", "1m", "2m", 0)
	if second.Status != structs.DeploymentStatusSuccessful {
		t.Errorf("second version: %s (%s)", second.Status, second.StatusDescription)
	}
	allocs, _, err := a.Client.Deployments().Allocations(limited(t), second.ID, nil)
	if err != nil || len(allocs) != 3 {
		t.Fatalf("allocations of the update: %v, %s", err, describe(allocs))
	}
	slices.SortFunc(allocs, func(a, b *structs.AllocationListStub) int { return int(a.CreateIndex) - int(b.CreateIndex) })
	for i, next := range allocs[1:] {
		if healthy := allocs[i].DeploymentStatus; healthy == nil || next.CreateIndex <= healthy.ModifyIndex {
			t.Errorf("allocation %d was placed at %d, before the one before it was healthy: %+v", i+2, next.CreateIndex, healthy)
		}
	}

	third := a.roll(2, "exit 1", "500ms", "1s", 1)
	if third.Status != structs.DeploymentStatusFailed || third.StatusDescription != "Failed due to progress deadline" {
		t.Errorf("third version: %s (%s)", third.Status, third.StatusDescription)
	}
	list := awaitRunning(t, a.Client, "roll", 2) // the others of the second version were left alone
	for _, alloc := range list {
		if alloc.JobVersion != 1 {
			t.Errorf("allocation %s of version %d runs", alloc.ID, alloc.JobVersion)
		}
	}
	out, _, code := a.cli("", "job", "status", "roll")
	if code != 0 || !strings.Contains(out, "Failed due to progress deadline") {
		t.Errorf("job status: exit %d\n%s", code, out)
	}
}
