package nomadlite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testServer is a running server and what its Run answered.
type testServer struct {
	*Server
	done chan error
}

func start(t *testing.T, cfg Config) *testServer {
	t.Helper()
	if cfg.Listener == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Listener = l
	}
	level := hclog.Off
	if testing.Verbose() {
		level = hclog.Debug
	}
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Name: cfg.Name, Level: level})
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ts := &testServer{Server: s, done: make(chan error, 1)}
	go func() { ts.done <- s.Run(context.Background()) }()
	t.Cleanup(func() { ts.Close() }) // may be closed already
	return ts
}

func await(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s took too long", what)
	}
}

// until waits for changes of the state until cond holds.
func until(t *testing.T, store *state.Store, what string, cond func() bool) {
	t.Helper()
	sub := store.Subscribe(1)
	defer sub.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for !cond() {
		if _, err := sub.Next(ctx); err != nil && !errors.Is(err, structs.ErrLagged) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// leaderOf waits until one of the servers leads.
func leaderOf(t *testing.T, servers ...*testServer) *testServer {
	t.Helper()
	led := make(chan *testServer, len(servers))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, s := range servers {
		go func() {
			for {
				changed := s.lead.LeaderChanged()
				if s.IsLeader() {
					led <- s
					return
				}
				select {
				case <-changed:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	select {
	case s := <-led:
		return s
	case <-ctx.Done():
		t.Fatal("nobody leads")
		return nil
	}
}

func job(id string) *structs.Job {
	j := &structs.Job{ID: &id, Datacenters: []string{"dc1"}, TaskGroups: []*structs.TaskGroup{{Name: structs.Ptr("g"),
		Tasks: []*structs.Task{{Name: "t", Driver: "raw_exec", Config: map[string]any{"command": "true"}}}}}}
	j.Canonicalize()
	return j
}

// register stores a job with its evaluation through s, which must lead.
func register(s *testServer, id string) error {
	j := job(id)
	eval := &structs.Evaluation{ID: "eval-" + id, Namespace: structs.DefaultNamespace, JobID: id, Type: structs.JobTypeService,
		Priority: 50, TriggeredBy: structs.EvalTriggerJobRegister, Status: structs.EvalStatusPending}
	_, _, err := s.lead.Apply(context.Background(), fsm.KindJobRegister, &fsm.JobRegister{Job: j, Eval: eval, Now: time.Now().UnixNano()})
	return err
}

func TestDevServerLeadsAtOnce(t *testing.T) {
	began := time.Now()
	s := start(t, Config{Name: "dev", DevMode: true})
	await(t, "start", s.Ready())
	took := time.Since(began)
	t.Logf("a dev server leads after %v", took)
	if took > 500*time.Millisecond {
		t.Errorf("a dev server leads after %v only", took)
	}
	until(t, s.store, "root key", func() bool { return len(s.store.RootKeys(nil)) == 1 })
	if set, err := s.keys.JWKS(); err != nil || !strings.Contains(string(set), "RS256") {
		t.Errorf("key set %s: %v", set, err)
	}
	if ok, reason := s.Health(); !ok {
		t.Error(reason)
	}
	if err := register(s, "web"); err != nil {
		t.Fatal(err)
	}
	// There is no node: the scheduler blocks it.
	until(t, s.store, "evaluation", func() bool { return s.store.Eval(nil, "eval-web").Status == structs.EvalStatusComplete })
	if blocked := s.store.Eval(nil, s.store.Eval(nil, "eval-web").BlockedEval); blocked == nil || !blocked.ShouldBlock() {
		t.Errorf("what waits for room is %+v", blocked)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-s.done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestRestartLosesNothing(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Name: "one", DataDir: dir, BootstrapExpect: 1, NumSchedulers: structs.Ptr(0)}
	s := start(t, cfg)
	await(t, "start", s.Ready())
	for i := range 20 {
		if err := register(s, fmt.Sprint("job", i)); err != nil {
			t.Fatal(err)
		}
		if i == 10 { // some come back from a snapshot, the others from the log
			if err := s.lead.log().Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
	}
	until(t, s.store, "root key", func() bool { return len(s.store.RootKeys(nil)) == 1 })
	token, kid, err := s.keys.SignClaims(map[string]string{"sub": "a"})
	if err != nil {
		t.Fatal(err)
	}
	until(t, s.store, "cluster id", func() bool { return s.store.ClusterID(nil) != "" })
	id := s.store.ClusterID(nil)
	// What is on disk now is what a kill -9 would leave behind.
	crashed := t.TempDir()
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "keyring", "kek.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("key file: %v, %v", info, err)
	}

	for name, at := range map[string]string{"stopped": dir, "killed": crashed} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			cfg.DataDir = at
			again := start(t, cfg)
			await(t, "second start", again.Ready())
			t.Logf("a restarted server leads after %v", time.Since(began))
			for i := range 20 {
				if again.store.Job(nil, structs.DefaultNamespace, fmt.Sprint("job", i)) == nil {
					t.Errorf("job%d is lost", i)
				}
			}
			if got := again.store.ClusterID(nil); got != id {
				t.Errorf("the cluster is %q now, was %q", got, id)
			}
			token2, kid2, err := again.keys.SignClaims(map[string]string{"sub": "a"})
			if err != nil || kid2 != kid || token2 != token {
				t.Errorf("signs with %s: %v", kid2, err)
			}
		})
	}
}

func TestBadDataDir(t *testing.T) {
	newer := t.TempDir()
	if err := os.WriteFile(filepath.Join(newer, "VERSION"), []byte("99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, dir, want string }{
		{"newer version", newer, "newer version"},
		{"not a directory", file, "not a directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Name: "bad", DataDir: tc.dir, BootstrapExpect: 1})
			err := <-s.done
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Run: %v", err)
			}
			entries, _ := os.ReadDir(newer)
			if len(entries) != 1 {
				t.Errorf("the directory was touched: %v", entries)
			}
		})
	}
}

func TestConfigFaults(t *testing.T) {
	_, err := New(Config{EnabledSchedulers: []string{"nope"}, EncryptKey: "?", Join: []string{"provider=aws"}})
	for _, want := range []string{"data_dir", "nope", "encrypt", "provider"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word about %s in %v", want, err)
		}
	}
}

func TestJoinAddr(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1": "10.0.0.1:4647", "10.0.0.1:4648": "10.0.0.1:4647", "host:5000": "host:5000", "::1": "", "[::1]": "[::1]:4647",
	} {
		got, err := joinAddr(in)
		if got != want {
			t.Errorf("%s: got %q, %v, want %q", in, got, err, want)
		}
	}
}
