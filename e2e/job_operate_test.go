package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// ok runs a command which must end with 0 and gives what it printed.
func (a *agent) ok(args ...string) string {
	a.t.Helper()
	out, errs, code := a.cli("", args...)
	if code != 0 {
		a.t.Fatalf("%v: exit %d\n%s\n%s", args, code, out, errs)
	}
	return out
}

// refused runs a command which must end with 1 and say what.
func (a *agent) refused(what string, args ...string) {
	a.t.Helper()
	if out, errs, code := a.cli("", args...); code != 1 || !strings.Contains(out+errs, what) {
		a.t.Errorf("%v: exit %d, no %q in\n%s%s", args, code, what, out, errs)
	}
}

// quick runs f and fails when it took as long as a shutdown delay of these tests, a minute, would.
func (a *agent) quick(what string, f func()) {
	a.t.Helper()
	begin := time.Now()
	f()
	if took := time.Since(begin); took > 20*time.Second {
		a.t.Errorf("%s took %s", what, took)
	}
}

func TestJobScaleByTheCommandLine(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	register(t, a.Client, sleeper("web", structs.JobTypeService, 3, func(g *structs.TaskGroup, _ *structs.Task) {
		g.ShutdownDelay = structs.Ptr(time.Minute)
		g.Scaling = &structs.ScalingPolicy{Min: structs.Ptr[int64](1), Max: structs.Ptr[int64](4)}
	}))
	awaitHealthy(t, a.Client, "web", 3)
	a.refused("minimum: 0 < 1", "job", "scale", "web", "0")
	a.refused("maximum: 5 > 4", "job", "scale", "web", "5")
	a.refused("does not exist in job", "job", "scale", "web", "nope", "2")
	a.refused("No job with id", "job", "scale", "nope", "2")
	a.refused("modify index", "job", "scale", "-check-index=1", "web", "2")

	a.quick("a smaller count without shutdown delay", func() {
		if out := a.ok("job", "scale", "-no-shutdown-delay", "web", "g", "2"); !strings.Contains(out, `finished with status "complete"`) {
			t.Errorf("printed %s", out)
		}
		awaitStatus(t, a.Client, "web", structs.AllocClientStatusComplete)
	})
	list, _, err := a.Client.Jobs().Allocations(limited(t), "web", true, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, stub := range list {
		alloc, _, err := a.Client.Allocations().Info(limited(t), stub.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := structs.Val(alloc.DesiredTransition.NoShutdownDelay); got != alloc.ServerTerminal() {
			t.Errorf("desired %s: no shutdown delay is %v", alloc.DesiredStatus, got)
		}
	}
	// Forgotten at first, the option shortens what stops already.
	a.ok("job", "scale", "-detach", "web", "1")
	awaitAllocs(t, a.Client, "web", "a second stop", func(l []*structs.AllocationListStub) bool {
		return len(slices.DeleteFunc(l, func(s *structs.AllocationListStub) bool { return s.DesiredStatus != "stop" })) == 2
	})
	a.quick("the same count without shutdown delay", func() {
		a.ok("job", "scale", "-no-shutdown-delay", "web", "1")
		awaitAllocs(t, a.Client, "web", "two ended allocations", func(l []*structs.AllocationListStub) bool {
			return len(withStatus(l, structs.AllocClientStatusComplete)) == 2
		})
	})
	a.ok("job", "scale", "-detach", "web", "4")
	awaitRunning(t, a.Client, "web", 4)
	status, _, err := a.Client.Jobs().ScaleStatus(limited(t), "web", nil)
	if err != nil {
		t.Fatal(err)
	}
	if g := status.TaskGroups["g"]; g.Desired != 4 || len(g.Events) != 4 || *g.Events[0].Count != 4 || g.Events[3].PreviousCount != 3 {
		t.Errorf("scaling status %+v", g)
	}
}

// restarts gives how often the task of each running allocation was restarted, in order of the names.
func restarts(t *testing.T, c *api.Client, jobID string, count int) (ids []string, times []uint64) {
	t.Helper()
	list := awaitRunning(t, c, jobID, count)
	slices.SortFunc(list, func(a, b *structs.AllocationListStub) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range list {
		ids, times = append(ids, a.ID), append(times, a.TaskStates["t"].Restarts)
	}
	return ids, times
}

func TestJobRestartByTheCommandLine(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	register(t, a.Client, sleeper("web", structs.JobTypeService, 3, func(_ *structs.TaskGroup, task *structs.Task) {
		task.ShutdownDelay = time.Minute
	}))
	ids, _ := restarts(t, a.Client, "web", 3)
	a.refused("has no group", "job", "restart", "-group", "nope", "web")
	a.refused("has no task", "job", "restart", "-task", "nope", "web")
	a.refused("No job with id", "job", "restart", "nope")

	a.quick("a restart without shutdown delay", func() {
		out := a.ok("job", "restart", "-batch-size=2", "-no-shutdown-delay", "web")
		for _, want := range []string{"Restarting 3 allocations", "batch 1 of 2 with 2 allocations", "batch 2 of 2 with 1 allocation", "restarted successfully"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	})
	same, times := restarts(t, a.Client, "web", 3)
	if !slices.Equal(same, ids) || !slices.Equal(times, []uint64{1, 1, 1}) {
		t.Errorf("allocations %v became %v, restarted %v times", ids, same, times)
	}
	// The option held for that restart alone.
	alloc, _, err := a.Client.Allocations().Info(limited(t), ids[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	if alloc.DesiredTransition != (structs.DesiredTransition{}) {
		t.Errorf("after a restart the allocation has %+v", alloc.DesiredTransition)
	}

	// Asked between two batches, the user says no.
	out, errs, code := a.cli("n\n", "job", "restart", "-batch-wait=ask", "-immediate", "web")
	if code != 1 || !strings.Contains(out, "Go on with the next batch?") || !strings.Contains(errs, "the rest was not restarted") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if _, times := restarts(t, a.Client, "web", 3); !slices.Equal(times, []uint64{2, 1, 1}) {
		t.Errorf("restarted %v times", times)
	}

	a.quick("a replacement of all", func() {
		a.ok("job", "restart", "-reschedule", "-batch-size=100%", "-yes", "-no-shutdown-delay", "-kill-timeout=1s", "we")
	})
	others, _ := restarts(t, a.Client, "web", 3)
	for _, id := range others {
		if slices.Contains(ids, id) {
			t.Errorf("allocation %s was not replaced", id)
		}
	}
	a.ok("job", "stop", "-immediate", "web")
	a.refused("is stopped", "job", "restart", "web")
}

// TestDeploymentsByTheCommandLine promotes a canary, and gives the next roll-out up, whose canary has a shutdown delay of
// a minute.
func TestDeploymentsByTheCommandLine(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	version := func(env string) *structs.Deployment {
		t.Helper()
		register(t, a.Client, sleeper("web", structs.JobTypeService, 1, func(g *structs.TaskGroup, task *structs.Task) {
			g.ShutdownDelay = structs.Ptr(time.Minute)
			g.Update = &structs.UpdateStrategy{Canary: structs.Ptr(1), MaxParallel: structs.Ptr(1), MinHealthyTime: structs.Ptr(100 * time.Millisecond)}
			task.Env = map[string]string{"VERSION": env}
		}))
		var latest *structs.Deployment
		ctx, q := limited(t), &api.QueryOptions{WaitTime: 5 * time.Second}
		for latest == nil || latest.Status == structs.DeploymentStatusRunning && latest.TaskGroups["g"].HealthyAllocs == 0 {
			list, meta, err := a.Client.Deployments().List(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			q.WaitIndex = meta.LastIndex
			for _, d := range list {
				if latest == nil || d.CreateIndex >= latest.CreateIndex {
					latest = d
				}
			}
			if job, _, err := a.Client.Jobs().Info(ctx, "web", nil); err != nil || latest != nil && latest.JobVersion != job.Version {
				latest = nil
			}
		}
		return latest
	}
	version("a")
	awaitDeployment(t, a.Client, "web", 0, structs.DeploymentStatusSuccessful)
	d := version("b")
	if out := a.ok("deployment", "status", d.ID[:8]); !strings.Contains(out, "Canaries") || !strings.Contains(out, "requires manual promotion") {
		t.Errorf("deployment status printed %s", out)
	}
	if out := a.ok("deployment", "list"); strings.Count(out, "web") != 2 || strings.Index(out, d.ID[:8]) > strings.Index(out, "successful") {
		t.Errorf("deployment list printed %s", out)
	}
	a.ok("deployment", "pause", d.ID[:8])
	if got, _, err := a.Client.Deployments().Info(limited(t), d.ID, nil); err != nil || got.Status != structs.DeploymentStatusPaused {
		t.Errorf("deployment %+v, %v", got, err)
	}
	a.ok("deployment", "resume", "-detach", d.ID[:8])
	a.refused("has no canaries", "deployment", "promote", "-group", "nope", d.ID)
	a.refused("No deployment with id", "deployment", "promote", "ffffffff")
	a.refused("scaling blocked", "job", "scale", "web", "2")
	if out := a.ok("deployment", "promote", d.ID[:8]); !strings.Contains(out, "promoted") || !strings.Contains(out, "successful") {
		t.Errorf("deployment promote printed %s", out)
	}

	failed := version("c")
	if out := a.ok("deployment", "fail", failed.ID[:8]); !strings.Contains(out, "failed") {
		t.Errorf("deployment fail printed %s", out)
	}
	a.quick("a second failure without shutdown delay", func() {
		a.ok("deployment", "fail", "-no-shutdown-delay", failed.ID[:8])
		awaitAllocs(t, a.Client, "web", "the end of the canary", func(l []*structs.AllocationListStub) bool {
			return slices.ContainsFunc(l, func(s *structs.AllocationListStub) bool {
				return s.JobVersion == failed.JobVersion && s.ClientStatus == structs.AllocClientStatusComplete
			})
		})
	})
	if out := a.ok("deployment", "fail", failed.ID); !strings.Contains(out, "failed already") {
		t.Errorf("a second deployment fail printed %s", out)
	}
	list, _, err := a.Client.Jobs().Allocations(limited(t), "web", true, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, stub := range list {
		alloc, _, err := a.Client.Allocations().Info(limited(t), stub.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if stub.JobVersion != failed.JobVersion && alloc.DesiredTransition.NoShutdownDelay != nil {
			t.Errorf("version %d, desired %s, has %+v", stub.JobVersion, alloc.DesiredStatus, alloc.DesiredTransition)
		}
	}
}

// TestCanariesArePromotedWithoutAsking updates a job with auto_promote.
func TestCanariesArePromotedWithoutAsking(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	for i, env := range []string{"a", "b"} {
		register(t, a.Client, sleeper("web", structs.JobTypeService, 2, func(g *structs.TaskGroup, task *structs.Task) {
			g.Update = &structs.UpdateStrategy{Canary: structs.Ptr(1), AutoPromote: structs.Ptr(true), MaxParallel: structs.Ptr(1),
				MinHealthyTime: structs.Ptr(100 * time.Millisecond)}
			task.Env = map[string]string{"VERSION": env}
		}))
		awaitDeployment(t, a.Client, "web", uint64(i), structs.DeploymentStatusSuccessful)
	}
	d, _, err := a.Client.Jobs().LatestDeployment(limited(t), "web", nil)
	if err != nil {
		t.Fatal(err)
	}
	if d.JobVersion != 1 || !d.TaskGroups["g"].Promoted || d.TaskGroups["g"].DesiredCanaries != 1 {
		t.Errorf("deployment of version %d, group %+v", d.JobVersion, d.TaskGroups["g"])
	}
	for _, stub := range awaitRunning(t, a.Client, "web", 2) {
		if stub.JobVersion != 1 || stub.DeploymentStatus == nil || stub.DeploymentStatus.Canary {
			t.Errorf("version %d, %+v", stub.JobVersion, stub.DeploymentStatus)
		}
	}
}
