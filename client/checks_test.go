package client

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// app is a server of the test, which a check of the job asks.
type app struct {
	well  atomic.Bool
	asked chan struct{} // is sent to before each answer
	over  chan struct{}
	more  chan struct{} // closed and renewed by drain
	port  string
}

func newApp(t *testing.T) *app {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &app{asked: make(chan struct{}), over: make(chan struct{}), more: make(chan struct{}, 1)}
	_, a.port, _ = net.SplitHostPort(l.Addr().String())
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case a.asked <- struct{}{}:
		case <-a.over:
		case <-r.Context().Done():
		}
		if !a.well.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("not yet"))
		}
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() {
		close(a.over)
		_ = s.Close()
	})
	return a
}

// drain lets all answers go.
func (a *app) drain() {
	for {
		select {
		case <-a.asked:
			nudge(a.more)
		case <-a.over:
			return
		}
	}
}

// asks waits until the check was asked from now on.
func (a *app) asks(t *testing.T) {
	t.Helper()
	for range 2 { // one may have been noted earlier
		select {
		case <-a.more:
		case <-time.After(30 * time.Second):
			t.Fatal("nobody asks")
		}
	}
}

func (a *app) job(script string) *structs.Job {
	job := jobOf("j", "service", shell(script))
	job.TaskGroups[0].Services = []*structs.Service{{Name: "web", Provider: "nomad", PortLabel: a.port, Address: "127.0.0.1",
		Checks: []structs.ServiceCheck{{Name: "up", Type: "http", Path: "/", Interval: 50 * time.Millisecond, Timeout: 5 * time.Second}}}}
	job.Canonicalize()
	return job
}

func (a *app) check(job *structs.Job) *structs.ServiceCheck {
	return &job.TaskGroups[0].Services[0].Checks[0]
}

func only(t *testing.T, all structs.AllocCheckStatuses) structs.AllocCheckStatus {
	t.Helper()
	if len(all) != 1 {
		t.Fatalf("statuses %+v", all)
	}
	for _, s := range all {
		return s
	}
	panic("unreachable")
}

func (s *fakeServers) untilHealth(id string, healthy bool) *structs.AllocObservation {
	s.t.Helper()
	var o *structs.AllocObservation
	s.until("health is known", func() bool {
		o = s.seen[id]
		return o != nil && o.DeploymentStatus != nil && o.DeploymentStatus.Healthy != nil
	})
	if *o.DeploymentStatus.Healthy != healthy {
		s.t.Errorf("healthy is %v", *o.DeploymentStatus.Healthy)
	}
	return o
}

func has(o *structs.AllocObservation, kind, text string) bool {
	return slices.ContainsFunc(o.TaskStates["t"].Events, func(e *structs.TaskEvent) bool {
		return e.Type == kind && strings.Contains(e.DisplayMessage, text)
	})
}

func TestHealthWaitsForChecks(t *testing.T) {
	a := newAgent(t).start()
	app := newApp(t)
	job := app.job("exec sleep 1000")
	job.TaskGroups[0].Update = &structs.UpdateStrategy{MinHealthyTime: structs.Ptr(time.Millisecond),
		HealthyDeadline: structs.Ptr(time.Minute), HealthCheck: structs.Ptr("checks")}
	a.servers.assign("a1", job, func(alloc *structs.Allocation) { alloc.DeploymentID = "d1" })
	a.servers.untilStatus("a1", "running")
	<-app.asked
	<-app.asked // the first answer is known
	if s := only(t, a.client.checks.Statuses("a1")); s.Status != "failure" || s.StatusCode != 503 || s.Output != "not yet" {
		t.Errorf("status %+v", s)
	}
	a.servers.mu.Lock()
	if d := a.servers.seen["a1"].DeploymentStatus; d != nil {
		t.Errorf("judged %+v while its check fails", d)
	}
	a.servers.mu.Unlock()
	app.well.Store(true)
	go app.drain()
	a.servers.untilHealth("a1", true)
	if s := only(t, a.client.checks.Statuses("a1")); s.Status != "success" || s.StatusCode != 200 || s.Output != "nomad: http ok" ||
		s.Check != "up" || s.Service != "web" || s.Mode != "healthiness" || s.Timestamp == 0 {
		t.Errorf("status %+v", s)
	}
}

func TestACheckThatNeverPassesMakesUnhealthyAndSaysWhich(t *testing.T) {
	a := newAgent(t).start()
	app := newApp(t)
	go app.drain()
	job := app.job("exec sleep 1000")
	job.TaskGroups[0].Update = &structs.UpdateStrategy{MinHealthyTime: structs.Ptr(time.Millisecond),
		HealthyDeadline: structs.Ptr(300 * time.Millisecond), HealthCheck: structs.Ptr("checks")}
	a.servers.assign("a1", job, func(alloc *structs.Allocation) { alloc.DeploymentID = "d1" })
	o := a.servers.untilHealth("a1", false)
	if !has(o, structs.TaskAllocUnhealthy, `Check "up" of service "web" not passing`) {
		t.Errorf("events %+v", o.TaskStates["t"].Events)
	}
}

func TestChecksRestartByTheRestartPolicy(t *testing.T) {
	for name, task := range map[string]string{"a task": "t", "all tasks": ""} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t).start()
			app := newApp(t)
			go app.drain()
			job := app.job("trap 'exit 0' TERM; while :; do sleep 0.01; done")
			group := job.TaskGroups[0]
			group.Tasks[0].KillSignal = "SIGTERM"
			group.Tasks[0].RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(1), Interval: structs.Ptr(time.Hour),
				Delay: structs.Ptr(100 * time.Millisecond), Mode: structs.Ptr("fail")}
			app.check(job).TaskName = task
			app.check(job).CheckRestart = &structs.CheckRestart{Limit: 2, Grace: structs.Ptr(100 * time.Millisecond)}
			a.servers.assign("a1", job, nil)
			o := a.servers.untilStatus("a1", "failed")
			if n := o.TaskStates["t"].Restarts; n != 1 {
				t.Errorf("%d restarts", n)
			}
			if !has(o, structs.TaskRestartSignal, `healthcheck: check "up" unhealthy`) || !has(o, structs.TaskNotRestarting, "Exceeded allowed attempts 1") {
				for _, e := range o.TaskStates["t"].Events {
					t.Error(e.Type, e.DisplayMessage)
				}
			}
			var down time.Time
			for _, e := range o.TaskStates["t"].Events {
				switch at := time.Unix(0, e.Time); {
				case e.Type == structs.TaskTerminated && down.IsZero():
					down = at
				case e.Type == structs.TaskStarted && !down.IsZero():
					if d := at.Sub(down); d < 100*time.Millisecond {
						t.Errorf("started again after %s", d)
					}
				}
			}
		})
	}
}

func TestChecksGoOnAfterARestartOfTheAgent(t *testing.T) {
	a := newAgent(t).start()
	app := newApp(t)
	app.well.Store(true)
	job := app.job("exec sleep 1000")
	job.TaskGroups[0].Update = &structs.UpdateStrategy{MinHealthyTime: structs.Ptr(time.Millisecond)}
	app.check(job).Interval = time.Second
	app.check(job).CheckRestart = &structs.CheckRestart{Limit: 1, Grace: structs.Ptr(time.Duration(0))}
	a.servers.assign("a1", job, func(alloc *structs.Allocation) { alloc.DeploymentID = "d1" })
	go app.drain()
	a.servers.untilHealth("a1", true)
	a.end()
	a.start()
	if s := only(t, a.client.checks.Statuses("a1")); s.Status != "success" || s.Output != "nomad: http ok" {
		t.Errorf("status right after the restart is %+v", s)
	}
	a.servers.until("the task was taken over", func() bool { return has(a.servers.seen["a1"], structs.TaskReattached, "") })
	app.asks(t)
	a.servers.mu.Lock()
	o := a.servers.seen["a1"]
	a.servers.mu.Unlock()
	if o.TaskStates["t"].Restarts != 0 || has(o, structs.TaskRestartSignal, "") {
		t.Errorf("events %+v", o.TaskStates["t"].Events)
	}
	a.servers.stop("a1")
	a.servers.untilStatus("a1", "complete")
	if s := only(t, a.client.checks.Statuses("a1")); s.Status != "success" {
		t.Errorf("status after the end is %+v", s)
	}
	r, err := a.client.runner("a1")
	if err != nil {
		t.Fatal(err)
	}
	<-r.Over()
	if err := (backend{a.client}).CollectAlloc(t.Context(), "a1"); err != nil {
		t.Fatal(err)
	}
	if s := a.client.checks.Statuses("a1"); len(s) != 0 {
		t.Errorf("status after the collection is %+v", s)
	}
}
