package endpoint

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadlite/nomadlite/internal/route"
	"github.com/nomadlite/nomadlite/internal/uuid"
	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// fakeRaft commits at once to the real FSM, through the real encoding.
type fakeRaft struct {
	fsm      *fsm.FSM
	mu       sync.Mutex
	index    uint64
	entries  []fsm.Kind
	verified int
}

func (f *fakeRaft) Apply(_ context.Context, kind fsm.Kind, req any) (any, uint64, error) {
	data, err := fsm.Encode(kind, req)
	if err != nil {
		return nil, 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.index++
	f.entries = append(f.entries, kind)
	resp := f.fsm.Apply(&raft.Log{Index: f.index, Type: raft.LogCommand, Data: data})
	if err, ok := resp.(error); ok {
		return nil, 0, err
	}
	return resp, f.index, nil
}

func (f *fakeRaft) VerifyLeader(context.Context) error { f.verified++; return nil }
func (f *fakeRaft) IsLeader() bool                     { return true }
func (f *fakeRaft) LastContact() time.Duration         { return 0 }
func (f *fakeRaft) LeaderAddr() string                 { return "127.0.0.1:4747" }
func (f *fakeRaft) Peers() []string                    { return []string{"127.0.0.1:4747"} }

type fakeCluster struct{ collected int }

func (f *fakeCluster) Self() *structs.AgentMember {
	return &structs.AgentMember{Name: "server-1.global", Addr: "127.0.0.1", Port: 4748, Status: "alive",
		Tags: map[string]string{"id": "id-1", "region": "global", "dc": "dc1", "port": "4747"}}
}
func (f *fakeCluster) Members() []*structs.AgentMember     { return []*structs.AgentMember{f.Self()} }
func (f *fakeCluster) Stats() map[string]map[string]string { return nil }
func (f *fakeCluster) ForceGC(context.Context) error       { f.collected++; return nil }

type fakeHeartbeats struct{ forgotten []string }

func (f *fakeHeartbeats) Reconsider(string) {}

func (f *fakeHeartbeats) Forget(id string) { f.forgotten = append(f.forgotten, id) }

type fakeKeyring struct{ raft *fakeRaft }

func (f *fakeKeyring) JWKS() ([]byte, error) { return []byte(`{"keys":[{"kid":"k"}]}`), nil }
func (f *fakeKeyring) Rotate(ctx context.Context, _ bool) (*structs.RootKeyMeta, error) {
	key := &structs.RootKey{RootKeyMeta: structs.RootKeyMeta{KeyID: uuid.New(), Algorithm: "aes256-gcm", State: "active"}}
	_, index, err := f.raft.Apply(ctx, fsm.KindKeyringUpsert, &fsm.KeyringUpsert{Key: key, Now: 1})
	key.CreateIndex = index
	return &key.RootKeyMeta, err
}
func (f *fakeKeyring) Remove(ctx context.Context, id string) error {
	_, _, err := f.raft.Apply(ctx, fsm.KindKeyringDelete, &fsm.KeyringDelete{KeyID: id})
	return err
}

// server is the handlers over a real store, behind the real public mux.
type server struct {
	t       testing.TB
	backend *Backend
	raft    *fakeRaft
	cluster *fakeCluster
	beats   *fakeHeartbeats
	mux     *route.Mux
	url     string
}

func newServer(t testing.TB, change ...func(*Backend)) *server {
	t.Helper()
	store := state.New(state.Config{})
	s := &server{t: t, raft: &fakeRaft{fsm: fsm.New(store, nil)}, cluster: &fakeCluster{}, beats: &fakeHeartbeats{}}
	s.backend = &Backend{
		Region: "global", Datacenter: "dc1", Name: "server-1.global", Store: store, Raft: s.raft, Cluster: s.cluster,
		Heartbeats: s.beats, Keyring: &fakeKeyring{s.raft}, Servers: func() []string { return s.raft.Peers() },
	}
	for _, f := range change {
		f(s.backend)
	}
	mux, err := route.NewPublic(route.Config{Routes: Routes(s.backend)})
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(mux)
	t.Cleanup(ts.Close)
	s.mux, s.url = mux, ts.URL
	return s
}

// answered is one answer of the server.
type answered struct {
	t      testing.TB
	status int
	header http.Header
	body   string
}

// call makes a request; body may be nil, a string, or what becomes JSON.
func (s *server) call(method, path string, body any) answered {
	s.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			s.t.Fatal(err)
		}
		reader = strings.NewReader(string(text))
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, reader)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answered{s.t, resp.StatusCode, resp.Header, string(text)}
}

func (s *server) get(path string) answered { s.t.Helper(); return s.call("GET", path, nil) }

// want checks the status and reads the body into out, unless it is nil.
func (a answered) want(status int, out any) answered {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("answered %d, want %d: %s", a.status, status, a.body)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(a.body), out); err != nil {
			a.t.Fatalf("read answer: %v: %s", err, a.body)
		}
	}
	return a
}

// says checks the status and that the body holds text.
func (a answered) says(status int, text string) {
	a.t.Helper()
	if a.status != status || !strings.Contains(a.body, text) {
		a.t.Fatalf("answered %d %q, want %d and %q", a.status, a.body, status, text)
	}
}

// job is a small job as a user posts it.
func job(id string, change ...func(*structs.Job)) *structs.Job {
	j := &structs.Job{
		ID:          &id,
		Type:        structs.Ptr(structs.JobTypeService),
		Datacenters: []string{"dc1"},
		TaskGroups: []*structs.TaskGroup{{
			Name: structs.Ptr("group"),
			Tasks: []*structs.Task{{
				Name: "task", Driver: "raw_exec", Config: map[string]any{"command": "/bin/sleep"},
			}},
		}},
	}
	for _, f := range change {
		f(j)
	}
	return j
}

func (s *server) register(j *structs.Job) structs.JobRegisterResponse {
	s.t.Helper()
	var out structs.JobRegisterResponse
	s.call("PUT", "/v1/jobs", structs.JobRegisterRequest{Job: j}).want(200, &out)
	return out
}

// addNode registers a ready node.
func (s *server) addNode() *structs.Node {
	s.t.Helper()
	node := &structs.Node{
		ID: uuid.New(), SecretID: uuid.New(), Name: "node-1", Datacenter: "dc1", Status: structs.NodeStatusReady,
		Attributes:    map[string]string{"os.name": "debian", "nomad.version": structs.CompatVersion, "kernel.name": "linux"},
		NodeResources: &structs.NodeResources{Cpu: structs.NodeCpuResources{CpuShares: 4000}, Memory: structs.NodeMemoryResources{MemoryMB: 8000}},
	}
	node.Canonicalize()
	node.ComputeClass()
	s.apply(fsm.KindNodeRegister, &fsm.NodeRegister{Node: node, Now: time.Now().UnixNano()})
	return node
}

// place puts an allocation of the job's first group on a node, as a plan does.
func (s *server) place(jobID, evalID string, node *structs.Node) *structs.Allocation {
	s.t.Helper()
	j := s.backend.Store.Job(nil, structs.DefaultNamespace, jobID)
	if j == nil {
		s.t.Fatalf("no job %q", jobID)
	}
	group := structs.Val(j.TaskGroups[0].Name)
	alloc := &structs.Allocation{
		ID: uuid.New(), Namespace: structs.DefaultNamespace, EvalID: evalID, Name: structs.AllocName(jobID, group, 0),
		NodeID: node.ID, NodeName: node.Name, JobID: jobID, TaskGroup: group, DesiredStatus: structs.AllocDesiredStatusRun,
		JobVersion: j.Version, JobModifyIndex: j.JobModifyIndex, ObservedStatus: structs.AllocClientStatusPending,
		AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{
			"task": {Cpu: structs.AllocatedCpuResources{CpuShares: 100}, Memory: structs.AllocatedMemoryResources{MemoryMB: 128}},
		}},
	}
	s.apply(fsm.KindPlanApply, &fsm.PlanApply{Now: time.Now().UnixNano(), Plans: []*structs.Plan{{
		EvalID: evalID, Namespace: structs.DefaultNamespace, JobID: jobID, JobModifyIndex: j.JobModifyIndex,
		Places: map[string][]*structs.Allocation{node.ID: {alloc}},
	}}})
	stored := s.backend.Store.Alloc(nil, alloc.ID)
	if stored == nil {
		s.t.Fatal("the allocation was not stored")
	}
	return stored
}

// observe reports an allocation's status, as its node does.
func (s *server) observe(alloc *structs.Allocation, status string) {
	s.t.Helper()
	s.apply(fsm.KindAllocObserve, &fsm.AllocObserve{Now: time.Now().UnixNano(), Observations: []*structs.AllocObservation{{
		AllocID: alloc.ID, ObservedStatus: status, TaskStates: map[string]*structs.TaskState{"task": {
			State: structs.TaskStateRunning, Events: []*structs.TaskEvent{{Type: structs.TaskStarted, Time: 7}}}},
	}}})
}

func (s *server) apply(kind fsm.Kind, req any) {
	s.t.Helper()
	if resp, _, err := s.raft.Apply(s.t.Context(), kind, req); err != nil {
		s.t.Fatal(err)
	} else if result, ok := resp.(fsm.PlanApplyResult); ok {
		for _, err := range result.Errors {
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// serve asks the mux without a network.
func (s *server) serve(t testing.TB, method, path, body string) answered {
	t.Helper()
	rec := httptest.NewRecorder()
	s.mux.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return answered{t, rec.Code, rec.Header(), rec.Body.String()}
}
