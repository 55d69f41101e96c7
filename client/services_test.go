package client

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/structs"
)

// UpdateServices keeps what the node offers as the servers do.
func (s *fakeServers) UpdateServices(_ context.Context, req structs.NodeServicesRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offering != nil {
		s.offering(req)
	}
	if req.Complete || s.services == nil {
		s.services = map[string]*structs.ServiceRegistration{}
	}
	for _, reg := range req.Upsert {
		s.services[reg.ID] = reg
	}
	for _, key := range req.Delete {
		delete(s.services, key.ID)
	}
	s.offers = append(s.offers, req)
	s.bump()
	return nil
}

// untilOffered waits until exactly these services are offered: "name[tags]", sorted.
func (s *fakeServers) untilOffered(want string) {
	s.t.Helper()
	s.until("offered are "+want, func() bool {
		var list []string
		for reg := range maps.Values(s.services) {
			list = append(list, reg.ServiceName+"["+strings.Join(reg.Tags, ",")+"]")
		}
		slices.Sort(list)
		return strings.Join(list, " ") == want
	})
}

func serviceJob(script, tag string) *structs.Job {
	task := shell(script)
	task.Services = []*structs.Service{{Name: "own-${NOMAD_TASK_NAME}", Provider: "nomad", Tags: []string{tag}}}
	job := jobOf("j", "service", task)
	group := job.TaskGroups[0]
	group.Services = []*structs.Service{{Name: "all", Provider: "nomad", PortLabel: "80", Tags: []string{tag},
		CanaryTags: []string{"canary"}}}
	job.Canonicalize()
	return job
}

func TestServicesStayThroughARestartOfTheAgent(t *testing.T) {
	a := newAgent(t).start()
	a.servers.assign("a1", serviceJob("exec sleep 1000", "v1"), nil)
	a.servers.untilOffered("all[v1] own-t[v1]")
	a.end()
	a.servers.mu.Lock()
	a.servers.offers = nil
	a.servers.mu.Unlock()
	a.start()
	a.servers.until("everything is told", func() bool { return len(a.servers.offers) > 0 })
	a.servers.mu.Lock()
	first := a.servers.offers[0]
	a.servers.mu.Unlock()
	if !first.Complete || len(first.Upsert) != 2 {
		t.Errorf("the first word of the new agent was %+v", first)
	}
	a.servers.untilStatus("a1", "running")
	a.servers.untilOffered("all[v1] own-t[v1]")
	a.end()
	a.servers.stop("a1")
	a.start()
	a.servers.untilStatus("a1", "complete")
	a.servers.untilOffered("")
	a.end()
	a.start()
	a.servers.untilOffered("")
}

func TestServicesFollowAnUpdate(t *testing.T) {
	a := newAgent(t).start()
	a.servers.assign("a1", serviceJob("exec sleep 1000", "v1"), func(alloc *structs.Allocation) {
		alloc.DeploymentStatus = &structs.AllocDeploymentStatus{Canary: true}
	})
	a.servers.untilOffered("all[canary] own-t[v1]")
	a.servers.change("a1", func(alloc *structs.Allocation) {
		alloc.DeploymentStatus = &structs.AllocDeploymentStatus{}
	})
	a.servers.untilOffered("all[v1] own-t[v1]")
	a.servers.mu.Lock()
	job := serviceJob("exec sleep 1000", "v2")
	job.JobModifyIndex = a.servers.index + 1
	a.servers.jobs["j"] = job
	a.servers.changeLocked("a1", func(alloc *structs.Allocation) { alloc.JobModifyIndex = job.JobModifyIndex })
	a.servers.bump()
	a.servers.mu.Unlock()
	a.servers.untilOffered("all[v2] own-t[v2]")
}

// TestServicesLeaveBeforeTheTaskIsSignalled: the task notes when it gets its signal, the servers when they hear.
func TestServicesLeaveBeforeTheTaskIsSignalled(t *testing.T) {
	a := newAgent(t).start()
	noted := filepath.Join(t.TempDir(), "signalled")
	job := serviceJob(`trap 'echo x >"`+noted+`"; exit 0' TERM; while :; do sleep 0.02; done`, "v1")
	job.TaskGroups[0].ShutdownDelay = structs.Ptr(300 * time.Millisecond)
	job.TaskGroups[0].Tasks[0].ShutdownDelay = 300 * time.Millisecond
	job.TaskGroups[0].Tasks[0].KillSignal = "SIGTERM"
	a.servers.assign("a1", job, nil)
	a.servers.untilOffered("all[v1] own-t[v1]")
	a.servers.mu.Lock()
	a.servers.offering = func(structs.NodeServicesRequest) {
		if _, err := os.Stat(noted); err == nil {
			t.Error("the task was signalled before its services had left")
		}
	}
	a.servers.mu.Unlock()
	a.servers.stop("a1")
	a.servers.untilOffered("own-t[v1]")
	a.servers.untilOffered("")
	a.servers.untilStatus("a1", "complete")
	waitFile(t, noted)
}

func TestATaskThatEndsTakesItsServicesAlong(t *testing.T) {
	a := newAgent(t).start()
	stop := filepath.Join(t.TempDir(), "stop")
	job := serviceJob(`while [ ! -e "`+stop+`" ]; do sleep 0.02; done`, "v1")
	*job.Type = "batch"
	a.servers.assign("a1", job, nil)
	a.servers.untilOffered("all[v1] own-t[v1]")
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a.servers.untilStatus("a1", "complete")
	a.servers.untilOffered("")
}

func TestAServiceThatCannotBeOfferedFailsItsGroup(t *testing.T) {
	a := newAgent(t).start()
	job := serviceJob("exec sleep 1000", "v1")
	job.TaskGroups[0].Services[0].AddressMode = "alloc"
	a.servers.assign("a1", job, nil)
	o := a.servers.untilStatus("a1", "failed")
	if !slices.ContainsFunc(o.TaskStates["t"].Events, func(e *structs.TaskEvent) bool {
		return strings.Contains(e.DisplayMessage, "network of its own")
	}) {
		t.Errorf("events %+v", o.TaskStates["t"].Events)
	}
	a.servers.untilOffered("")
}

// TestServicesLeaveBeforePoststopTasks: the group's service is gone while a poststop task still runs.
func TestServicesLeaveBeforePoststopTasks(t *testing.T) {
	a := newAgent(t).start()
	dir := t.TempDir()
	after := shell(`echo x >"` + dir + `/after"; while [ ! -e "` + dir + `/go" ]; do sleep 0.02; done`)
	after.Name, after.Lifecycle = "after", &structs.TaskLifecycle{Hook: structs.TaskLifecyclePoststop}
	job := jobOf("j", "batch", shell(`while [ ! -e "`+dir+`/end" ]; do sleep 0.02; done`), after)
	job.TaskGroups[0].Services = []*structs.Service{{Name: "all", Provider: "nomad"}}
	job.Canonicalize()
	a.servers.mu.Lock()
	a.servers.offering = func(req structs.NodeServicesRequest) {
		if _, err := os.Stat(filepath.Join(dir, "after")); err == nil {
			t.Errorf("a poststop task ran before the services had left: %+v", req)
		}
	}
	a.servers.mu.Unlock()
	a.servers.assign("a1", job, nil)
	a.servers.untilOffered("all[]")
	if err := os.WriteFile(filepath.Join(dir, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waitFile(t, filepath.Join(dir, "after"))
	a.servers.untilOffered("")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a.servers.untilStatus("a1", "complete")
}
