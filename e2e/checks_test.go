package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	official "github.com/hashicorp/nomad/api"

	"github.com/nomadlite/nomadlite/structs"
)

// web is a real HTTP server as a task: busybox's. It notes in the file asked that /cgi-bin/health was asked, and answers that it
// is well once the file well is there.
func web(t *testing.T, a *agent, id string, check *structs.ServiceCheck) (j *structs.Job, dir string) {
	t.Helper()
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("busybox is not installed")
	}
	dir = filepath.Join(a.Dir, id)
	if err := os.MkdirAll(filepath.Join(dir, "cgi-bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	health := fmt.Sprintf("#!/bin/sh\necho asked >>%s/asked\n[ -e %s/well ] || printf 'Status: 503 no\\r\\n'\n"+
		"printf 'Content-Type: text/plain\\r\\n\\r\\n'\n[ -e %s/well ] && echo well || echo 'no database'\n", dir, dir, dir)
	if err := os.WriteFile(filepath.Join(dir, "cgi-bin", "health"), []byte(health), 0o755); err != nil {
		t.Fatal(err)
	}
	check.Type, check.Path = "http", "/cgi-bin/health"
	check.Interval, check.Timeout = time.Second, 5*time.Second
	j = job(id, fmt.Sprintf("exec busybox httpd -f -p $NOMAD_ADDR_http -h %s", dir), func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
		g.Networks = []*structs.NetworkResource{{DynamicPorts: []structs.Port{{Label: "http"}}}}
		g.Services = []*structs.Service{nomadService(id, "http")}
		g.Services[0].Checks = []structs.ServiceCheck{*check}
		g.Update = &structs.UpdateStrategy{MinHealthyTime: structs.Ptr(500 * time.Millisecond)}
	})
	return j, dir
}

// asks waits until the server was asked more often than n times, and says how often it was.
func asks(t *testing.T, dir string, n int) int {
	t.Helper()
	times := 0
	awaitFile(t, dir, func() bool {
		raw, _ := os.ReadFile(filepath.Join(dir, "asked"))
		times = strings.Count(string(raw), "\n")
		return times > n
	})
	return times
}

func getWell(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "well"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkOf gives the only check of an allocation, as the official client has it.
func checkOf(t *testing.T, a *agent, alloc string) official.AllocCheckStatus {
	t.Helper()
	c, err := official.NewClient(&official.Config{Address: a.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Allocations().Checks(alloc, nil)
	if err != nil || len(all) != 1 {
		t.Fatalf("checks %+v, %v", all, err)
	}
	for id, s := range all {
		if s.ID != id {
			t.Errorf("the check %s calls itself %s", id, s.ID)
		}
		return s
	}
	panic("unreachable")
}

// TestADeploymentWaitsForAnHTTPCheck of a real server that becomes healthy only later.
func TestADeploymentWaitsForAnHTTPCheck(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	j, dir := web(t, a, "gated", &structs.ServiceCheck{Name: "ready"})
	register(t, a.Client, j)
	alloc := awaitRunning(t, a.Client, "gated", 1)[0]
	asks(t, dir, asks(t, dir, 0)) // the first answer has arrived
	if s := checkOf(t, a, alloc.ID); s.Status != "failure" || s.StatusCode != 503 || s.Output != "no database\n" || s.Check != "ready" ||
		s.Service != "gated" || s.Group != "gated.g[0]" || s.Task != "" || s.Mode != "healthiness" {
		t.Errorf("check %+v", s)
	}
	d, _, err := a.Client.Jobs().LatestDeployment(limited(t), "gated", nil)
	if err != nil || d.Status != structs.DeploymentStatusRunning || d.TaskGroups["g"].HealthyAllocs != 0 {
		t.Fatalf("deployment %+v, %v", d, err)
	}
	getWell(t, dir)
	well := time.Now()
	awaitDeployment(t, a.Client, "gated", 0, structs.DeploymentStatusSuccessful)
	if d := time.Since(well); d < 500*time.Millisecond {
		t.Errorf("healthy after %s, before min_healthy_time", d)
	}
	if s := checkOf(t, a, alloc.ID); s.Status != "success" || s.StatusCode != 200 || s.Output != "nomad: http ok" ||
		time.Since(time.Unix(s.Timestamp, 0)) > time.Minute {
		t.Errorf("check %+v", s)
	}
	out, errs, code := a.cli("", "alloc", "checks", alloc.ID[:8])
	for _, want := range []string{"Status of 1 Nomad Service Checks\n", "Name       = ready\n", "Group      = gated.g[0]\n", "Task       = (group)\n",
		"Service    = gated\n", "Status     = success\n", "StatusCode = 200\n", "Mode       = healthiness\n", "Output     = nomad: http ok\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("alloc checks: code %d, %q, %q has no %q", code, errs, out, want)
		}
	}
	if out, _, _ := a.cli("", "alloc", "status", alloc.ID); !strings.Contains(out, "\nNomad Service Checks:\n") ||
		!strings.Contains(out, "gated    (group)  ready  healthiness  success\n") {
		t.Errorf("alloc status: %s", out)
	}
	if out, _, _ := a.cli("", "alloc", "checks", "-t", "{{range .}}{{.Check}} {{.Status}}{{end}}", alloc.ID); strings.TrimSpace(out) != "ready success" {
		t.Errorf("by template: %q", out)
	}
}

// TestADeploymentFailsAndNamesTheCheck that did not pass until the deadline.
func TestADeploymentFailsAndNamesTheCheck(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	j, _ := web(t, a, "late", &structs.ServiceCheck{Name: "ready"})
	j.TaskGroups[0].Update.HealthyDeadline, j.TaskGroups[0].Update.ProgressDeadline = structs.Ptr(2*time.Second), structs.Ptr(3*time.Second)
	j.TaskGroups[0].ReschedulePolicy = &structs.ReschedulePolicy{Attempts: structs.Ptr(0), Unlimited: structs.Ptr(false)}
	register(t, a.Client, j)
	awaitDeployment(t, a.Client, "late", 0, structs.DeploymentStatusFailed)
	awaitAllocs(t, a.Client, "late", "an event that names the check", func(l []*structs.AllocationListStub) bool {
		for _, alloc := range l {
			if s := alloc.TaskStates["t"]; s != nil &&
				eventAt(s, "Alloc Unhealthy", `Check "ready" of service "late" not passing for min_healthy_time of 500ms by healthy_deadline of 2s: it is failure: no database`) != 0 {
				return true
			}
		}
		return false
	})
}

// TestCheckRestartGoesTheWayOfARestart, as often as the restart policy allows.
func TestCheckRestartGoesTheWayOfARestart(t *testing.T) {
	a := courseAgent(t)
	nobody, err := net.Listen("tcp", "127.0.0.1:0") // a port where nobody else listens once it is closed
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(nobody.Addr().String())
	_ = nobody.Close()
	const own, grace, delay = 500 * time.Millisecond, 1500 * time.Millisecond, time.Second
	c := newCourse(t, a, "ill", func(g *structs.TaskGroup, task *structs.Task) {
		task.ShutdownDelay = own
		task.Services = []*structs.Service{nomadService("ill", port)}
		task.Services[0].Address = "127.0.0.1"
		task.Services[0].Checks = []structs.ServiceCheck{{Name: "up", Type: "tcp", Interval: time.Second, Timeout: time.Second,
			CheckRestart: &structs.CheckRestart{Limit: 2, Grace: structs.Ptr(grace)}}}
		task.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(1), Interval: structs.Ptr(time.Hour), Delay: structs.Ptr(delay),
			Mode: structs.Ptr("fail")}
		g.ReschedulePolicy = &structs.ReschedulePolicy{Attempts: structs.Ptr(0), Unlimited: structs.Ptr(false)}
	})
	left := leaving(t, a.Client, "ill")
	c.run("t")
	gone := left()
	alloc := awaitStatus(t, a.Client, "ill", structs.AllocClientStatusFailed)
	ups, terms, ends := c.said("t", "up"), c.said("t", "term"), c.said("t", "end")
	if len(ups) != 2 || len(terms) != 2 || len(ends) != 2 {
		t.Fatalf("up %d times, %d signals, %d ends: %s", len(ups), len(terms), len(ends), describe([]*structs.AllocationListStub{alloc}))
	}
	// The first failure that counts comes at or after grace, the second an interval later; then the service leaves.
	c.took("until the restart", terms[0].Sub(ups[0]), grace+time.Second+own-100*time.Millisecond)
	c.took("between leaving and the signal", terms[0].Sub(gone.at), own-200*time.Millisecond)
	c.took("the delay of the restart policy", ups[1].Sub(ends[0]), delay)
	c.took("until the second restart", terms[1].Sub(ups[1]), grace+time.Second+own-100*time.Millisecond)
	s := alloc.TaskStates["t"]
	if s.Restarts != 1 || eventAt(s, structs.TaskRestartSignal, `healthcheck: check "up" unhealthy`) == 0 ||
		eventAt(s, structs.TaskNotRestarting, "Exceeded allowed attempts 1") == 0 {
		t.Errorf("%s", describe([]*structs.AllocationListStub{alloc}))
	}
}

// TestAHangingCheckHoldsUpNoStop: it is given up.
func TestAHangingCheckHoldsUpNoStop(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	asked := make(chan net.Conn, 8)
	go func() {
		for {
			conn, err := mute.Accept()
			if err != nil {
				return
			}
			asked <- conn
		}
	}()
	_, port, _ := net.SplitHostPort(mute.Addr().String())
	register(t, a.Client, job("hangs", "exec sleep 600", func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
		g.Services = []*structs.Service{nomadService("hangs", port)}
		g.Services[0].Address = "127.0.0.1"
		g.Services[0].Checks = []structs.ServiceCheck{
			{Name: "http", Type: "http", Path: "/", Interval: time.Second, Timeout: time.Minute},
			{Name: "script", Type: "script", TaskName: "t", Command: "/bin/sleep", Args: []string{"601"}, Interval: time.Second, Timeout: time.Minute},
		}
	}))
	awaitRunning(t, a.Client, "hangs", 1)
	conn := <-asked
	begin := time.Now()
	if _, _, code := a.cli("", "job", "stop", "-detach", "hangs"); code != 0 {
		t.Fatal("job stop failed")
	}
	awaitEnded(t, a.Client, "hangs", 1)
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("the stop took %s", d)
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, 1<<10)
	for err = nil; err == nil; { // its request, then the end
		_, err = conn.Read(buf)
	}
	if os.IsTimeout(err) {
		t.Error("the check still waits for its answer")
	}
}

// TestChecksOutliveTheAgent: what was known holds, and a check that could not be asked is no failure of its task.
func TestChecksOutliveTheAgent(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	j, dir := web(t, a, "stays", &structs.ServiceCheck{Name: "ready", CheckRestart: &structs.CheckRestart{Limit: 1, Grace: structs.Ptr(time.Duration(0))}})
	getWell(t, dir)
	register(t, a.Client, j)
	alloc := awaitRunning(t, a.Client, "stays", 1)[0]
	awaitDeployment(t, a.Client, "stays", 0, structs.DeploymentStatusSuccessful)
	a.Kill()
	a.Start()
	s := checkOf(t, a, alloc.ID)
	if s.Status != "success" || s.Output != "nomad: http ok" {
		t.Errorf("check %+v", s)
	}
	n := asks(t, dir, 0)
	asks(t, dir, asks(t, dir, n)) // it is asked again
	now, _, err := a.Client.Allocations().Info(limited(t), alloc.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := now.TaskStates["t"]; s.Restarts != 0 || eventAt(s, structs.TaskRestartSignal, "") != 0 || s.State != structs.TaskStateRunning {
		t.Errorf("task %+v", s)
	}
}

// TestAScriptCheckRunsInItsTask, and one of gRPC finds nobody there.
func TestAScriptCheckRunsInItsTask(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	register(t, a.Client, job("script", "exec sleep 600", func(_ *structs.Job, g *structs.TaskGroup, task *structs.Task) {
		task.Env = map[string]string{"COLOUR": "blue"}
		task.Services = []*structs.Service{nomadService("script", "")}
		task.Services[0].Checks = []structs.ServiceCheck{{Name: "look", Type: "script", Command: "/bin/sh",
			Args: []string{"-c", "echo $COLOUR; [ $COLOUR = blue ]; ls -d local; exit 1"}, Interval: time.Second, Timeout: 5 * time.Second,
			OnUpdate: "ignore_warnings"}}
		g.Update = &structs.UpdateStrategy{MinHealthyTime: structs.Ptr(time.Millisecond)}
	}))
	alloc := awaitRunning(t, a.Client, "script", 1)[0]
	awaitDeployment(t, a.Client, "script", 0, structs.DeploymentStatusSuccessful)
	if s := checkOf(t, a, alloc.ID); s.Status != "warning" || s.Output != "blue\nlocal\n" || s.Task != "t" {
		t.Errorf("check %+v", s)
	}
}
