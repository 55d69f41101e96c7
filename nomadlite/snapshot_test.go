package nomadlite

import (
	"bytes"
	"context"
	"io"
	"reflect"
	"testing"

	"github.com/nomadlite/nomadlite/nomadlite/fsm"
	"github.com/nomadlite/nomadlite/nomadlite/state"
	"github.com/nomadlite/nomadlite/structs"
)

// records are what a state holds, by table, without what a restore makes anew.
func records(t *testing.T, s *state.Store) map[string][]any {
	t.Helper()
	out := map[string][]any{}
	err := s.Snapshot().Records(func(table string, record any) error {
		if table != state.TableKeys && table != "indexes" {
			out[table] = append(out[table], record)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func saved(t *testing.T, s *testServer) []byte {
	t.Helper()
	archive, err := s.SaveSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	raw, err := io.ReadAll(archive)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func putPool(t *testing.T, s *testServer, name string) {
	t.Helper()
	_, _, err := s.lead.Apply(t.Context(), fsm.KindNodePoolUpsert, &fsm.NodePoolUpsert{Pools: []*structs.NodePool{{Name: name}}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestASnapshotIsRestoredOnAFreshServer(t *testing.T) {
	first := start(t, Config{Name: "a", BootstrapExpect: 1, DataDir: t.TempDir()})
	await(t, "start", first.Ready())
	putPool(t, first, "kept")
	archive := saved(t, first)
	want := records(t, first.Store())
	first.Close()

	dir := t.TempDir()
	second := start(t, Config{Name: "b", BootstrapExpect: 1, DataDir: dir})
	await(t, "start", second.Ready())
	putPool(t, second, "forgotten")
	before, epoch := second.Store().Index(), second.Store().Epoch()
	for _, cut := range [][]byte{archive[:len(archive)/2], archive[:len(archive)-1], []byte("nothing"), nil} {
		if _, err := second.RestoreSnapshot(t.Context(), bytes.NewReader(cut)); structs.ErrorCode(err) != structs.CodeInvalid {
			t.Fatalf("an archive of %d bytes was taken: %v", len(cut), err)
		}
	}
	if second.Store().Index() != before || second.Store().Epoch() != epoch {
		t.Fatal("a damaged archive changed something")
	}
	if _, err := second.RestoreSnapshot(t.Context(), bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	if got := records(t, second.Store()); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if !second.IsLeader() || second.Store().Epoch() == epoch {
		t.Errorf("leads: %v, epoch %s was %s", second.IsLeader(), second.Store().Epoch(), epoch)
	}
	until(t, second.Store(), "a key that this server opens", func() bool {
		_, _, err := second.keys.SignClaims(map[string]string{})
		return err == nil
	})
	putPool(t, second, "later")
	after := second.Store().Epoch()
	second.Close()

	again := start(t, Config{Name: "b", BootstrapExpect: 1, DataDir: dir})
	await(t, "start", again.Ready())
	pools := map[string]bool{}
	for pool := range again.Store().NodePools(nil) {
		pools[pool.Name] = true
	}
	if !pools["kept"] || !pools["later"] || pools["forgotten"] || again.Store().Epoch() == epoch {
		t.Errorf("after a restart: %v, epoch %s, before %s and %s", pools, again.Store().Epoch(), epoch, after)
	}
}

func TestARestoreReachesAllServers(t *testing.T) {
	servers := startTrio(t).servers
	leader := leaderOf(t, servers...)
	putPool(t, leader, "kept")
	archive := saved(t, leader)
	putPool(t, leader, "forgotten")
	if _, err := leader.RestoreSnapshot(t.Context(), bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	putPool(t, leader, "later")
	for _, s := range servers {
		until(t, s.Store(), "the restored state on "+s.cfg.Name, func() bool {
			return s.Store().NodePool(nil, "later") != nil && s.Store().NodePool(nil, "forgotten") == nil && s.Store().NodePool(nil, "kept") != nil
		})
	}
	for _, s := range servers {
		if s != leader {
			if _, err := s.RestoreSnapshot(context.Background(), bytes.NewReader(archive)); structs.ErrorCode(err) != structs.CodeNoLeader {
				t.Errorf("a follower restored: %v", err)
			}
		}
	}
}
