package fsm

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

var update = flag.Bool("update", false, "write golden files of commands that have none")

// firstIndex is the index of the first sample, such that the job's is the one that the plan names.
const firstIndex = 2

func encodeAll(t testing.TB) [][]byte {
	t.Helper()
	var out [][]byte
	for _, s := range samples() {
		data, err := Encode(s.kind, s.req)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, data)
	}
	return out
}

func apply(t testing.TB, f *FSM, from uint64, entries [][]byte) {
	t.Helper()
	for i, data := range entries {
		index := from + uint64(i)
		resp := f.Apply(&raft.Log{Index: index, Data: data})
		if err, ok := resp.(error); ok {
			t.Fatalf("entry %d, %s: %v", index, Kind(data[0]), err)
		}
		if result, ok := resp.(PlanApplyResult); ok {
			if err := errors.Join(result.Errors...); err != nil {
				t.Fatalf("entry %d: %v", index, err)
			}
		}
	}
}

func newFSM() (*state.Store, *FSM) {
	s := state.New(state.Config{})
	return s, New(s, nil)
}

func TestEachCommandHasASample(t *testing.T) {
	have := map[Kind]bool{}
	for _, s := range samples() {
		have[s.kind] = true
	}
	for _, c := range commands() {
		if !have[c.kind] {
			t.Errorf("command %s has no sample, so nothing proves that old logs with it decode", c.name)
		}
	}
}

// TestOldEntriesDecode reads the bytes of each command as the first version wrote them. A command that needs new golden
// bytes is one that old logs break: add fields, never change or remove one. -update only writes files that are missing.
func TestOldEntriesDecode(t *testing.T) {
	seen := map[Kind]bool{}
	for i, s := range samples() {
		if seen[s.kind] {
			continue
		}
		seen[s.kind] = true
		path := filepath.Join("testdata", "commands", fmt.Sprintf("%03d-%s.cbor", s.kind, s.kind))
		golden, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) && *update {
			golden = encodeAll(t)[i]
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, golden, 0o644)); err != nil {
				t.Fatal(err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if Kind(golden[0]) != s.kind {
			t.Errorf("%s: the number of the command changed to %d", path, s.kind)
			continue
		}
		got, err := registered()[s.kind].decode(golden[1:])
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if !reflect.DeepEqual(reflect.ValueOf(got).Elem().Interface(), s.req) {
			t.Errorf("%s decodes to\n%+v\nwant\n%+v", path, got, s.req)
		}
	}
}

func TestCommandsAreRegisteredOnce(t *testing.T) {
	if _, err := byKind(append(commands(), newCommand(KindReap, "other", applyReap))); err == nil {
		t.Error("a number was registered twice")
	}
	if _, err := byKind(append(commands(), newCommand(Kind(200), "reap", applyReap))); err == nil {
		t.Error("a name was registered twice")
	}
	if _, err := Encode(KindReap, EvalDelete{}); err == nil {
		t.Error("a request of another type was encoded")
	}
	if _, err := Encode(Kind(201), Reap{}); err == nil {
		t.Error("a command that does not exist was encoded")
	}
}

// TestReplayGivesTheSameState: a log replayed from nothing, and one replayed from a snapshot taken at any place in it,
// give what the first server has.
func TestReplayGivesTheSameState(t *testing.T) {
	entries := encodeAll(t)
	store, f := newFSM()
	apply(t, f, firstIndex, entries)
	want := dump(store)
	again, f2 := newFSM()
	apply(t, f2, firstIndex, entries)
	if got := dump(again); !reflect.DeepEqual(got, want) {
		t.Errorf("a replayed log gives\n%s\nwant\n%s", show(got), show(want))
	}
	for at := range entries {
		_, before := newFSM()
		apply(t, before, firstIndex, entries[:at])
		restored, after := newFSM()
		if err := after.Restore(io.NopCloser(persist(t, before))); err != nil {
			t.Fatal(err)
		}
		apply(t, after, firstIndex+uint64(at), entries[at:])
		if got := dump(restored); !reflect.DeepEqual(got, want) {
			t.Errorf("a snapshot before entry %d and the rest of the log give\n%s\nwant\n%s", at, show(got), show(want))
		}
	}
}

// TestSnapshotIsOfItsMoment: what is applied while a snapshot is streamed is not in it.
func TestSnapshotIsOfItsMoment(t *testing.T) {
	entries := encodeAll(t)
	_, f := newFSM()
	apply(t, f, firstIndex, entries[:8])
	snap, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	apply(t, f, firstIndex+8, entries[8:])
	sink := &memorySink{}
	if err := snap.Persist(sink); err != nil || !sink.closed {
		t.Fatalf("got %v, closed %t", err, sink.closed)
	}
	restored, f2 := newFSM()
	if err := f2.Restore(io.NopCloser(&sink.Buffer)); err != nil {
		t.Fatal(err)
	}
	if restored.Index() != firstIndex+7 || restored.Alloc(nil, "a1") != nil || restored.Job(nil, "default", "web") == nil {
		t.Errorf("the snapshot is of index %d", restored.Index())
	}
}

func TestAnEntryOfANewerVersionStopsTheFSM(t *testing.T) {
	for name, data := range map[string][]byte{
		"unknown command": {222, 0xa0},
		"empty":           {},
		"damaged":         {byte(KindReap), 0xff, 0x00},
	} {
		t.Run(name, func(t *testing.T) {
			store, f := newFSM()
			err, _ := f.Apply(&raft.Log{Index: 5, Data: data}).(error)
			if err == nil || name == "unknown command" && !strings.Contains(err.Error(), "newer version") {
				t.Fatalf("got %v", err)
			}
			select {
			case <-f.Failed():
			default:
				t.Error("the server is not told")
			}
			next, _ := Encode(KindNamespaceUpsert, NamespaceUpsert{Namespaces: []*structs.Namespace{{Name: "x"}}})
			if _, ok := f.Apply(&raft.Log{Index: 6, Data: next}).(error); !ok || store.Namespace(nil, "x") != nil || store.Index() != 0 {
				t.Error("a later entry was applied")
			}
			if _, err := f.Snapshot(); err == nil {
				t.Error("a snapshot was made, after which the entry could be dropped from the log")
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	_, f := newFSM()
	do := func(index uint64, kind Kind, req any) any {
		t.Helper()
		data, err := Encode(kind, req)
		if err != nil {
			t.Fatal(err)
		}
		return f.Apply(&raft.Log{Index: index, Data: data})
	}
	job := samples()[7].req.(JobRegister)
	if got := do(2, KindJobRegister, &job).(JobRegisterResult); got.JobModifyIndex != 2 || got.EvalID != "e1" || got.EvalCreateIndex != 2 || got.Job.Version != 0 {
		t.Errorf("got %+v", got)
	}
	job.EnforceIndex, job.JobModifyIndex = true, 77
	if err, _ := do(3, KindJobRegister, job).(error); structs.ErrorCode(err) != structs.CodeConflict {
		t.Errorf("got %v", err)
	}
	if got := do(4, KindSchedulerConfig, SchedulerConfig{Config: &structs.SchedulerConfiguration{ModifyIndex: 99}, CAS: true}).(SchedulerConfigResult); got.Updated {
		t.Error("a compare-and-set with a wrong index took")
	}
	plan := &structs.Plan{Namespace: "default", JobID: "web", JobModifyIndex: 55,
		Places: map[string][]*structs.Allocation{"n": {{ID: "a", TaskGroup: "g", NodeID: "n"}}}}
	if got := do(5, KindPlanApply, PlanApply{Plans: []*structs.Plan{{}, plan}}).(PlanApplyResult); got.Errors[0] != nil || structs.ErrorCode(got.Errors[1]) != structs.CodeNotFound {
		t.Errorf("got %+v", got)
	}
	node := &structs.Node{ID: "n", SecretID: "s"}
	node.Canonicalize()
	do(5, KindNodeRegister, NodeRegister{Node: node}) // initialising: it takes nothing new
	plan.JobModifyIndex, plan.SnapshotIndex = 2, 5
	if got := do(5, KindPlanApply, PlanApply{Fit: true, Plans: []*structs.Plan{{}, plan}}).(PlanApplyResult); got.Errors[1] != nil ||
		len(got.Fitted) != 2 || got.Fitted[0] != nil || got.Fitted[1].Rejected["n"] == "" || f.store.Alloc(nil, "a") != nil {
		t.Errorf("got %+v", got)
	}
	if got := do(6, KindJobDeregister, JobDeregister{Namespace: "default", JobID: "web"}).(JobDeregisterResult); !got.Found || got.JobModifyIndex != 6 {
		t.Errorf("got %+v", got)
	}
	if got := do(7, KindJobDeregister, JobDeregister{Namespace: "default", JobID: "nope"}).(JobDeregisterResult); got.Found {
		t.Errorf("got %+v", got)
	}
	for kind, req := range map[Kind]any{
		KindNodeStatus:       NodeStatus{Updates: []NodeStatusUpdate{{NodeID: "x", Status: "ready"}}},
		KindNodeDeregister:   NodeDeregister{NodeIDs: []string{"x"}},
		KindAllocTransition:  AllocTransition{Transitions: map[string]*structs.DesiredTransition{"x": {}}},
		KindDeploymentStatus: DeploymentStatus{Update: &structs.DeploymentStatusUpdate{DeploymentID: "x"}},
		KindNamespaceDelete:  NamespaceDelete{Names: []string{"x"}},
	} {
		if err, _ := do(8, kind, req).(error); structs.ErrorCode(err) != structs.CodeNotFound {
			t.Errorf("%s of what is not there: %v", kind, err)
		}
	}
	for kind, req := range map[Kind]any{
		KindNamespaceDelete: NamespaceDelete{Names: []string{"default"}},
		KindNodePoolDelete:  NodePoolDelete{Names: []string{"all"}},
		KindNodePoolUpsert:  NodePoolUpsert{Pools: []*structs.NodePool{{Name: "default"}}},
	} {
		if err, _ := do(9, kind, req).(error); structs.ErrorCode(err) != structs.CodeValidation {
			t.Errorf("%s of what every cluster has: %v", kind, err)
		}
	}
	if got := f.Applied(); got["job-register"] != 2 || got["plan-apply"] != 2 || got["keyring-upsert"] != 0 {
		t.Errorf("applied %v", got)
	}
}

// memorySink is a raft.SnapshotSink in memory.
type memorySink struct {
	bytes.Buffer
	closed bool
}

func (s *memorySink) Close() error  { s.closed = true; return nil }
func (s *memorySink) ID() string    { return "memory" }
func (s *memorySink) Cancel() error { return nil }

func persist(t testing.TB, f *FSM) *bytes.Buffer {
	t.Helper()
	snap, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	sink := &memorySink{}
	if err := snap.Persist(sink); err != nil {
		t.Fatal(err)
	}
	return &sink.Buffer
}

// dump is everything that can be read of a store.
func dump(s *state.Store) map[string]any {
	out := map[string]any{
		"index":       s.Index(),
		"jobs":        slices.Collect(s.Jobs(nil, "*")),
		"versions":    s.JobVersions(nil, "default", "web"),
		"submission":  s.JobSubmission(nil, "default", "web", 0),
		"summary":     s.JobSummary(nil, "default", "web"),
		"nodes":       slices.Collect(s.Nodes(nil)),
		"usage":       s.NodeUsage("n1"),
		"allocs":      slices.Collect(s.Allocs(nil, "*")),
		"evals":       slices.Collect(s.Evals(nil, "*")),
		"deployments": slices.Collect(s.Deployments(nil, "*")),
		"pools":       slices.Collect(s.NodePools(nil)),
		"namespaces":  slices.Collect(s.Namespaces(nil)),
		"config":      s.SchedulerConfig(nil),
		"cluster":     s.ClusterID(nil),
		"keys":        s.RootKeys(nil),
		"services":    slices.Collect(s.Services(nil, "*")),
		"scaling":     scaling(s),
	}
	for _, table := range []string{state.TableJobs, state.TableJobVersions, state.TableJobSpecs, state.TableSummaries, state.TableNodes,
		state.TableAllocs, state.TableEvals, state.TableDeployments, state.TableNodePools, state.TableNamespaces, state.TableConfig, state.TableKeys,
		state.TableServices} {
		out["last change of "+table] = s.TableIndex(table)
	}
	return out
}

func scaling(s *state.Store) map[string][]*structs.ScalingEvent {
	events, _ := s.ScalingEvents(nil, "default", "web")
	return events
}

func show(d map[string]any) string { return fmt.Sprintf("%+v", d) }
