package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// TestKillOfTheAgentLosesNoTask kills an agent (-9) with two tasks: one goes on and must be taken over with the same
// pid, the other ends while the agent is away and must be reported with its exit code.
func TestKillOfTheAgentLosesNoTask(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	pidFile := filepath.Join(a.Dir, "pid")
	gate := filepath.Join(a.Dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	register(t, a.Client, job("stays", fmt.Sprintf("echo $$ > %s; echo up; exec sleep 600", pidFile), nil))
	register(t, a.Client, job("ends", fmt.Sprintf("echo up; read line < %s; exit 42", gate), func(j *structs.Job, g *structs.TaskGroup, _ *structs.Task) {
		j.Type = structs.Ptr("batch")
		g.RestartPolicy = &structs.RestartPolicy{Attempts: structs.Ptr(0), Mode: structs.Ptr("fail")}
		g.ReschedulePolicy = &structs.ReschedulePolicy{Attempts: structs.Ptr(0), Unlimited: structs.Ptr(false)}
	}))
	stays := awaitRunning(t, a.Client, "stays", 1)[0]
	ends := awaitRunning(t, a.Client, "ends", 1)[0]
	a.followLog(stays.ID, "up")
	a.followLog(ends.ID, "up")
	pid := readPid(t, pidFile)
	a.Kill()
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the task died with its agent: %v", err)
	}
	if err := os.WriteFile(gate, []byte("go\n"), 0o600); err != nil { // the second task ends now
		t.Fatal(err)
	}
	a.Start()
	alloc := awaitStatus(t, a.Client, "ends", structs.AllocClientStatusFailed)
	if got := exitCode(alloc.TaskStates["t"]); got != "42" {
		t.Errorf("exit code of the task that ended meanwhile: %s, want 42: %s", got, describe([]*structs.AllocationListStub{alloc}))
	}
	again := awaitRunning(t, a.Client, "stays", 1)[0]
	if again.ID != stays.ID || again.TaskStates["t"].Restarts != 0 {
		t.Errorf("the running task was not taken over: %s", describe([]*structs.AllocationListStub{again}))
	}
	if now := readPid(t, pidFile); now != pid {
		t.Errorf("pid %d became %d", pid, now)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the task did not survive the new agent: %v", err)
	}
	if _, _, err := a.Client.Jobs().Deregister(limited(t), "stays", nil, nil); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, a.Client, "stays", structs.AllocClientStatusComplete)
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("the task still runs after its job was stopped")
	}
}

func readPid(t *testing.T, file string) int {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestKillOfTheServerLosesNothingAcknowledged kills a server (-9) under write load, several times, and counts what it
// acknowledged.
func TestKillOfTheServerLosesNothingAcknowledged(t *testing.T) {
	a := newAgent(t, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })
	a.Start()
	acknowledged := map[string]uint64{}
	var mu sync.Mutex
	for round := range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		var writers sync.WaitGroup
		enough := make(chan struct{})
		var once sync.Once
		count := 0
		for w := range 4 {
			writers.Go(func() {
				for i := 0; ctx.Err() == nil && i < 5000; i++ {
					id := fmt.Sprintf("job-%d-%d-%d", round, w, i)
					j := job(id, "true", func(_ *structs.Job, g *structs.TaskGroup, _ *structs.Task) { g.Count = structs.Ptr(0) })
					answer, _, err := a.Client.Jobs().Register(ctx, j, nil, nil)
					if err != nil {
						return
					}
					mu.Lock()
					acknowledged[id] = answer.JobModifyIndex
					if count++; count == 150 {
						once.Do(func() { close(enough) })
					}
					mu.Unlock()
				}
			})
		}
		<-enough
		a.Kill()
		cancel()
		writers.Wait()
		a.Start()
	}
	jobs, _, err := a.Client.Jobs().List(limited(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]uint64{}
	for _, j := range jobs {
		found[j.ID] = j.JobModifyIndex
	}
	for id, index := range acknowledged {
		if found[id] != index {
			t.Errorf("job %s was acknowledged at index %d, found at %d", id, index, found[id])
		}
	}
	if len(acknowledged) < 450 {
		t.Errorf("only %d writes were acknowledged", len(acknowledged))
	}
}

// TestServerAloneIsKilledUnderItsNode kills a server while its node runs on: the node comes back to the new process
// and its allocation was never touched.
func TestServerAloneIsKilledUnderItsNode(t *testing.T) {
	server := newAgent(t, func(c map[string]any) { c["client"] = map[string]any{"enabled": false} })
	server.Start()
	node := newAgent(t, func(c map[string]any) {
		c["server"] = map[string]any{"enabled": false}
		c["client"] = map[string]any{"enabled": true, "servers": []string{fmt.Sprintf("127.0.0.1:%d", server.RPC)}}
	})
	node.Start()
	pidFile := filepath.Join(server.Dir, "pid")
	register(t, server.Client, job("runs", fmt.Sprintf("echo $$ > %s; echo up; exec sleep 600", pidFile), nil))
	alloc := awaitRunning(t, server.Client, "runs", 1)[0]
	server.followLog(alloc.ID, "up")
	pid := readPid(t, pidFile)
	server.Kill()
	server.Start()
	register(t, server.Client, job("after", "exec sleep 600", nil))
	awaitRunning(t, server.Client, "after", 1)
	same := awaitRunning(t, server.Client, "runs", 1)[0]
	if same.ID != alloc.ID || readPid(t, pidFile) != pid || syscall.Kill(pid, 0) != nil {
		t.Errorf("allocation %s became %s, pid %d became %d", alloc.ID, same.ID, pid, readPid(t, pidFile))
	}
	// The public API is the same on a client-only agent: it asks its servers.
	list, _, err := node.Client.Jobs().List(limited(t), &api.QueryOptions{Prefix: "runs"})
	if err != nil || len(list) != 1 {
		t.Errorf("list through the client agent: %v %v", list, err)
	}
}
