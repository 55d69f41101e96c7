package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadlite/nomadlite/client/hook"
	"github.com/nomadlite/nomadlite/client/service/check"
	"github.com/nomadlite/nomadlite/client/taskenv"
	"github.com/nomadlite/nomadlite/structs"
)

// fakeServers keep what they are told as the real ones do.
type fakeServers struct {
	mu    sync.Mutex
	have  map[string]string // tags by id
	calls []string
	fail  error
	hang  chan struct{} // not nil: calls wait for it
}

func (f *fakeServers) UpdateServices(ctx context.Context, req structs.NodeServicesRequest) error {
	f.mu.Lock()
	f.calls = append(f.calls, fmt.Sprintf("%v +%d -%d", req.Complete, len(req.Upsert), len(req.Delete)))
	fail, hang := f.fail, f.hang
	f.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if fail != nil {
		return fail
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if req.Complete || f.have == nil {
		f.have = map[string]string{}
	}
	for _, s := range req.Upsert {
		f.have[s.ID] = strings.Join(s.Tags, ",")
	}
	for _, key := range req.Delete {
		delete(f.have, key.ID)
	}
	return nil
}

func (f *fakeServers) set(fail error, hang chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail, f.hang = fail, hang
}

func (f *fakeServers) ids() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(f.have)), " ")
}

type fakeStore map[string][]*structs.ServiceRegistration

func (s fakeStore) SaveServices(owner string, list []*structs.ServiceRegistration) {
	if len(list) == 0 {
		delete(s, owner)
		return
	}
	s[owner] = list
}

type noChecks struct{}

func (noChecks) SaveChecks(string, []structs.AllocCheckStatus) {}

func reg(id string, tags ...string) *structs.ServiceRegistration {
	return &structs.ServiceRegistration{ID: id, ServiceName: id, Namespace: "default", Tags: tags}
}

type regs = []*structs.ServiceRegistration

// running runs a registry in a bubble with virtual time.
func running(t *testing.T, test func(t *testing.T, r *Registry, f *fakeServers, store fakeStore)) {
	synctest.Test(t, func(t *testing.T) {
		f, store := &fakeServers{}, fakeStore{}
		r := New(Config{Servers: f, Store: store})
		ctx, cancel := context.WithCancel(t.Context())
		ready := make(chan struct{})
		close(ready)
		go r.Run(ctx, ready)
		test(t, r, f, store)
		cancel()
		<-r.over
	})
}

func TestChangesAreSentAndEverythingOnANewSession(t *testing.T) {
	running(t, func(t *testing.T, r *Registry, f *fakeServers, store fakeStore) {
		synctest.Wait()
		r.Set("a", regs{reg("x"), reg("y")})
		synctest.Wait()
		r.Set("b", regs{reg("z")})
		synctest.Wait()
		if f.ids() != "x y z" || len(store) != 2 {
			t.Fatalf("servers have %q, the disk %v", f.ids(), store)
		}
		r.Set("b", regs{reg("z")}) // nothing new
		synctest.Wait()
		r.Set("a", regs{reg("x", "tag"), reg("w")})
		synctest.Wait()
		if f.ids() != "w x z" || f.have["x"] != "tag" {
			t.Fatalf("servers have %v", f.have)
		}
		f.have = map[string]string{"other": ""}
		r.Connected()
		synctest.Wait()
		if f.ids() != "w x z" {
			t.Fatalf("servers have %q", f.ids())
		}
		want := "true +0 -0|false +2 -0|false +1 -0|false +2 -1|true +3 -0"
		if got := strings.Join(f.calls, "|"); got != want {
			t.Errorf("calls %s, want %s", got, want)
		}
	})
}

func TestWhatChangesDuringACallGoesWithTheNext(t *testing.T) {
	running(t, func(t *testing.T, r *Registry, f *fakeServers, _ fakeStore) {
		synctest.Wait()
		hang := make(chan struct{})
		f.set(nil, hang)
		for i := range 100 {
			r.Set(fmt.Sprint(i), regs{reg(fmt.Sprint("s", i))})
			synctest.Wait()
		}
		close(hang)
		synctest.Wait()
		if got := strings.Join(f.calls[1:], "|"); got != "false +1 -0|false +99 -0" {
			t.Errorf("calls %s", got)
		}
	})
}

func TestLeaveWaitsUntilTheServersKnow(t *testing.T) {
	running(t, func(t *testing.T, r *Registry, f *fakeServers, store fakeStore) {
		r.Set("a", regs{reg("x")})
		synctest.Wait()
		hang := make(chan struct{})
		f.set(nil, hang)
		left := make(chan error, 1)
		go func() { left <- r.Leave(t.Context(), "a") }()
		synctest.Wait()
		select {
		case err := <-left:
			t.Fatalf("left before the servers knew: %v", err)
		default:
		}
		close(hang)
		if err := <-left; err != nil || f.ids() != "" || len(store) != 0 {
			t.Errorf("%v; servers have %q", err, f.ids())
		}
		if err := r.Leave(t.Context(), "a"); err != nil { // again, as after a crash
			t.Error(err)
		}
	})
}

func TestLeaveDoesNotWaitForEver(t *testing.T) {
	running(t, func(t *testing.T, r *Registry, f *fakeServers, _ fakeStore) {
		r.Set("a", regs{reg("x")})
		synctest.Wait()
		f.set(errors.New("no leader"), nil)
		begin := time.Now()
		if err := r.Leave(t.Context(), "a"); err == nil || time.Since(begin) != leaveLimit {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		// The next one finds that the wait is over.
		if err := r.Leave(t.Context(), "b"); err == nil || time.Since(begin) != leaveLimit {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		f.set(nil, nil)
		r.Connected() // ends the pause
		synctest.Wait()
		if f.ids() != "" || time.Since(begin) != leaveLimit {
			t.Errorf("servers have %q after %s", f.ids(), time.Since(begin))
		}
	})
}

func TestLeaveDoesNotWaitForServersThatAreNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Servers: &fakeServers{}, Store: fakeStore{}, Reachable: func() bool { return false }})
		begin := time.Now()
		if err := r.Leave(t.Context(), "a"); err == nil || time.Since(begin) != 0 {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}

func TestAfterAFailureEverythingIsSaid(t *testing.T) {
	running(t, func(t *testing.T, r *Registry, f *fakeServers, _ fakeStore) {
		synctest.Wait()
		r.Set("a", regs{reg("x")})
		synctest.Wait()
		f.set(errors.New("no leader"), nil)
		r.Set("b", regs{reg("y")})
		synctest.Wait()
		f.set(nil, nil)
		time.Sleep(2 * minBackoff) // virtual
		synctest.Wait()
		if got := f.calls[len(f.calls)-1]; got != "true +2 -0" || f.ids() != "x y" {
			t.Errorf("last call %s, servers have %q", got, f.ids())
		}
	})
}

func TestAnAgentThatEndsDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Servers: &fakeServers{}, Store: fakeStore{}})
		r.Restore("a", regs{reg("x")})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.Run(ctx, make(chan struct{}))
		begin := time.Now()
		if err := r.Leave(t.Context(), "a"); err != nil || time.Since(begin) != 0 {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
	})
}

func TestHooksFollowTheLifeOfATask(t *testing.T) {
	running(t, func(t *testing.T, r *Registry, f *fakeServers, _ fakeStore) {
		alloc := testAlloc()
		alloc.Job = &structs.Job{TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"), Services: []*structs.Service{
			{Name: "group-${NOMAD_ALLOC_ID}", Provider: "nomad", PortLabel: "http"}}}}}
		task := &structs.Task{Name: "t", Services: []*structs.Service{{Name: "task", Provider: "nomad", Tags: []string{"${NOMAD_TASK_NAME}"}}}}
		ctx := Context{Registry: r, Checks: check.New(check.Config{Store: noChecks{}}), Node: testNode, Env: func(a *structs.Allocation, t *structs.Task) *taskenv.Env {
			return taskenv.Build(taskenv.Input{Alloc: a, Task: t, Node: testNode()})
		}}
		group, own := &GroupHook{Context: ctx}, &TaskHook{Context: ctx}
		data := map[string]map[string]string{}
		inGroup := func(do func(context.Context, *hook.AllocRequest, *hook.AllocResponse) error) {
			t.Helper()
			resp := &hook.AllocResponse{}
			if err := do(t.Context(), &hook.AllocRequest{Alloc: alloc, Data: data["group"]}, resp); err != nil {
				t.Fatal(err)
			}
			if resp.Data != nil {
				data["group"] = resp.Data
			}
		}
		inTask := func(do func(context.Context, *hook.TaskRequest, *hook.TaskResponse) error) {
			t.Helper()
			resp := &hook.TaskResponse{}
			if err := do(t.Context(), &hook.TaskRequest{Alloc: alloc, Task: task, Data: data["task"]}, resp); err != nil {
				t.Fatal(err)
			}
			if resp.Data != nil {
				data["task"] = resp.Data
			}
		}
		want := func(ids string) {
			t.Helper()
			synctest.Wait()
			if got := f.ids(); got != ids {
				t.Errorf("offered are %q, want %q", got, ids)
			}
		}
		const ofGroup, ofTask = "_nomad-task-a1-group-g-group-a1-http", "_nomad-task-a1-t-task-"
		inGroup(group.Update)
		want("") // not yet prepared
		inGroup(group.Prerun)
		want(ofGroup)
		inTask(own.Update)
		want(ofGroup) // the task does not run yet
		inTask(own.Poststart)
		want(ofGroup + " " + ofTask)
		if f.have[ofTask] != "t" {
			t.Errorf("tags %q", f.have[ofTask])
		}
		inTask(own.Exited)
		want(ofGroup)
		inTask(own.Poststart)
		inTask(own.PreKill)
		if f.ids() != ofGroup { // without waiting: the servers know when PreKill returns
			t.Errorf("offered are %q", f.ids())
		}
		inTask(own.Update)
		want(ofGroup)
		inTask(own.Exited)
		inTask(own.Poststart)
		task = &structs.Task{Name: "t"}
		inTask(own.Update)
		want(ofGroup)
		inGroup(group.PreKill)
		if f.ids() != "" {
			t.Errorf("offered are %q", f.ids())
		}
		inGroup(group.Update)
		want("")
		inGroup(group.Resume)
		want(ofGroup)
		inGroup(group.PreKill)
		inGroup(group.Postrun)
		inTask(own.Stop)
		want("")
	})
}
