package endpoint

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/structs"
)

// stopAndStart stops a job with all options of a stop, checks that they are on its allocation, and lets start bring the
// job back. It gives the entries which that made, and the allocation then.
func stopAndStart(t *testing.T, s *server, alloc *structs.Allocation, start func()) ([]fsm.Kind, *structs.Allocation) {
	t.Helper()
	s.call("DELETE", "/v1/job/"+alloc.JobID+"?no_shutdown_delay=true&kill_timeout=0s", nil).want(200, nil)
	marked := s.backend.Store.Alloc(nil, alloc.ID)
	if !structs.Val(marked.DesiredTransition.NoShutdownDelay) || marked.DesiredTransition.KillTimeout == nil || marked.ServerTerminal() {
		t.Fatalf("after the stop the allocation is to %s with %+v", marked.DesiredStatus, marked.DesiredTransition)
	}
	before := len(s.raft.entries)
	start()
	got := s.backend.Store.Alloc(nil, alloc.ID)
	if got.DesiredTransition != (structs.DesiredTransition{}) || got.AllocModifyIndex != s.raft.index {
		t.Errorf("after the start the allocation has %+v, its node hears of it at %d of %d", got.DesiredTransition, got.AllocModifyIndex, s.raft.index)
	}
	return s.raft.entries[before:], got
}

// What brings a job back takes the options of its stop from what the scheduler has not stopped yet, in the same entry.
func TestStartsClearTheOptionsOfAStopInTheirOwnEntry(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	client, _ := ownClient(t, s)
	for name, start := range map[string]func(){
		"register": func() { s.register(job("register")) },
		"start": func() {
			stopped, _, err := client.Jobs().Info(t.Context(), "start", nil)
			if err != nil {
				t.Fatal(err)
			}
			stopped.Stop = false
			opts := &api.RegisterOptions{EnforceIndex: true, ModifyIndex: stopped.JobModifyIndex}
			if _, _, err := client.Jobs().Register(t.Context(), stopped, opts, nil); err != nil {
				t.Fatal(err)
			}
		},
		"revert": func() {
			s.call("PUT", "/v1/job/revert/revert", structs.JobRevertRequest{JobID: "revert", JobVersion: 0}).want(200, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			alloc := s.place(name, s.register(job(name)).EvalID, node)
			s.observe(alloc, structs.AllocClientStatusRunning)
			entries, _ := stopAndStart(t, s, alloc, start)
			if !slices.Equal(entries, []fsm.Kind{fsm.KindJobRegister}) {
				t.Errorf("the start made the entries %v", entries)
			}
			got := s.backend.Store.Job(nil, structs.DefaultNamespace, name)
			if got.Stop || got.Version != 2 {
				t.Errorf("the job is %+v", got)
			}
		})
	}
}

// An allocation that stops already keeps the options: the start brings back the job, not what is on its way down.
func TestAStartLeavesTheStopUnderWayAlone(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	alloc := s.place("web", s.register(job("web")).EvalID, node)
	s.observe(alloc, structs.AllocClientStatusRunning)
	s.call("DELETE", "/v1/job/web?no_shutdown_delay=true", nil).want(200, nil)
	s.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: time.Now().UnixNano(), Plans: []*structs.Plan{{
		Namespace: structs.DefaultNamespace, JobID: "web",
		Stops: map[string][]*structs.AllocStop{node.ID: {{ID: alloc.ID, DesiredStatus: structs.AllocDesiredStatusStop}}},
	}}})
	second := s.register(job("web"))
	if got := s.backend.Store.Alloc(nil, alloc.ID); !got.ServerTerminal() || !structs.Val(got.DesiredTransition.NoShutdownDelay) {
		t.Errorf("after the start it is to %s with %+v", got.DesiredStatus, got.DesiredTransition)
	}
	if got := s.place("web", second.EvalID, node); got.DesiredTransition != (structs.DesiredTransition{}) {
		t.Errorf("the new allocation has %+v", got.DesiredTransition)
	}
	if eval := s.backend.Store.Eval(nil, second.EvalID); eval.NoShutdownDelay || eval.KillTimeout != nil {
		t.Errorf("the evaluation of the start has %+v", eval)
	}
}

func TestTheEndOfADrainClearsItsOptionsInItsOwnEntry(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	alloc := s.place("web", s.register(job("web")).EvalID, node)
	s.observe(alloc, structs.AllocClientStatusRunning)
	path := "/v1/node/" + node.ID + "/drain"
	s.call("PUT", path+"?no_shutdown_delay=true&kill_timeout=3s", structs.NodeUpdateDrainRequest{DrainSpec: &structs.DrainSpec{Deadline: -1}}).want(200, nil)
	// The drain asks the allocation to move; no plan has stopped it yet.
	s.apply(fsm.KindAllocTransition, &fsm.AllocTransition{Now: time.Now().UnixNano(), Transitions: map[string]*structs.DesiredTransition{
		alloc.ID: {Migrate: structs.Ptr(true), NoShutdownDelay: structs.Ptr(true), KillTimeout: structs.Ptr(3 * time.Second)}}})
	before := len(s.raft.entries)
	s.call("PUT", path, structs.NodeUpdateDrainRequest{MarkEligible: true}).want(200, nil)
	if entries := s.raft.entries[before:]; !slices.Equal(entries, []fsm.Kind{fsm.KindNodeDrain}) {
		t.Errorf("the end of the drain made the entries %v", entries)
	}
	got := s.backend.Store.Alloc(nil, alloc.ID)
	if got.DesiredTransition.NoShutdownDelay != nil || got.DesiredTransition.KillTimeout != nil || got.AllocModifyIndex != s.raft.index {
		t.Errorf("after the drain it has %+v", got.DesiredTransition)
	}
}

// The end of a drain takes nothing from a job that was stopped meanwhile, with options of its own.
func TestTheEndOfADrainLeavesAStoppedJobItsOptions(t *testing.T) {
	s := newServer(t)
	node := s.addNode()
	alloc := s.place("web", s.register(job("web")).EvalID, node)
	s.observe(alloc, structs.AllocClientStatusRunning)
	path := "/v1/node/" + node.ID + "/drain"
	for _, how := range []string{"", "&purge=true"} {
		s.call("PUT", path, structs.NodeUpdateDrainRequest{DrainSpec: &structs.DrainSpec{Deadline: -1}}).want(200, nil)
		s.call("DELETE", "/v1/job/web?no_shutdown_delay=true&kill_timeout=0s"+how, nil).want(200, nil)
		s.call("PUT", path, structs.NodeUpdateDrainRequest{MarkEligible: true}).want(200, nil)
		got := s.backend.Store.Alloc(nil, alloc.ID).DesiredTransition
		if !structs.Val(got.NoShutdownDelay) || got.KillTimeout == nil {
			t.Errorf("after the drain the allocation of the stopped job has %+v", got)
		}
	}
}

// Each kind of job comes back as it was, by what the public API shows of it.
func TestJobsOfEveryKindStartAgain(t *testing.T) {
	s := newServer(t)
	client, _ := ownClient(t, s)
	kinds := map[string]*structs.Job{"cron": cron("cron"), "form": template("form")}
	for _, kind := range []string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch} {
		kinds[kind] = job(kind, func(j *structs.Job) { j.Type = &kind })
	}
	for id, j := range kinds {
		j.TaskGroups[0].Tasks[0].Config["exact"] = uint64(9007199254740993) // a number that a float64 cannot hold
		s.register(j)
		kinds[id] = s.backend.Store.Job(nil, structs.DefaultNamespace, id)
	}
	var out structs.JobDispatchResponse
	s.call("PUT", "/v1/job/form/dispatch", map[string]any{"Payload": "aW5wdXQ=", "Meta": map[string]string{"what": "it"}}).want(200, &out)
	kinds[out.DispatchedJobID] = s.backend.Store.Job(nil, structs.DefaultNamespace, out.DispatchedJobID)
	for id, was := range kinds {
		s.call("DELETE", "/v1/job/"+url.PathEscape(id), nil).want(200, nil)
		stopped, _, err := client.Jobs().Info(t.Context(), id, nil)
		if err != nil || !stopped.Stop {
			t.Fatalf("%s: %+v, %v", id, stopped, err)
		}
		stopped.Stop = false
		opts := &api.RegisterOptions{EnforceIndex: true, ModifyIndex: stopped.JobModifyIndex}
		answer, _, err := client.Jobs().Register(t.Context(), stopped, opts, nil)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		got := s.backend.Store.Job(nil, structs.DefaultNamespace, id)
		if got.Stop || got.Version != was.Version+2 || !got.SpecEqual(was) || got.ParentID != was.ParentID || string(got.Payload) != string(was.Payload) {
			t.Errorf("%s came back as %+v", id, got)
		}
		if (answer.EvalID != "") != got.HasOwnAllocations() {
			t.Errorf("%s: evaluation %q", id, answer.EvalID)
		}
		if got.IsPeriodic() && s.backend.Store.Launch(nil, structs.DefaultNamespace, id) == nil {
			t.Errorf("%s has no schedule", id)
		}
		// Who read it before it was started may not start it once more over what came since.
		if _, _, err := client.Jobs().Register(t.Context(), stopped, opts, nil); err == nil {
			t.Errorf("%s was started from what it was", id)
		}
	}
}
