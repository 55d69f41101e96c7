package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// openLog opens the log in dir as a server does.
func openLog(t *testing.T, dir string) (raft.LogStore, *Raft) {
	t.Helper()
	r := &Raft{}
	logs, _, _, err := r.openStores(RaftConfig{Logger: hclog.NewNullLogger(), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.closeStores() })
	return logs, r
}

func appendLogs(t *testing.T, logs raft.LogStore, term, from, to uint64) {
	t.Helper()
	var list []*raft.Log
	for i := from; i <= to; i++ {
		list = append(list, &raft.Log{Index: i, Term: term, Type: raft.LogCommand, Data: fmt.Appendf(nil, "%d of term %d", i, term)})
	}
	if err := logs.StoreLogs(list); err != nil {
		t.Fatal(err)
	}
}

func expectLogs(t *testing.T, logs raft.LogStore, term, from, to uint64) {
	t.Helper()
	for i := from; i <= to; i++ {
		var got raft.Log
		if err := logs.GetLog(i, &got); err != nil {
			t.Errorf("entry %d: %v", i, err)
		} else if want := fmt.Sprintf("%d of term %d", i, term); string(got.Data) != want {
			t.Errorf("entry %d is %q, want %q", i, got.Data, want)
		}
	}
}

// crash gives the log's directory as a server leaves it that is killed now.
func crash(t *testing.T, dir string) string {
	t.Helper()
	left := t.TempDir()
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return left
}

// TestLogSurvivesACutSuffix: a follower that wrote what its next leader does not have cuts it off. It must start again
// after that, killed or not, and also when it cut more than once.
func TestLogSurvivesACutSuffix(t *testing.T) {
	dir := t.TempDir()
	logs, _ := openLog(t, dir)
	appendLogs(t, logs, 1, 1, 10)
	if err := logs.DeleteRange(8, 10); err != nil {
		t.Fatal(err)
	}
	again, _ := openLog(t, crash(t, dir))
	expectLogs(t, again, 1, 1, 7)
	appendLogs(t, logs, 2, 8, 20)
	if err := logs.DeleteRange(15, 20); err != nil {
		t.Fatal(err)
	}
	appendLogs(t, logs, 3, 15, 16)
	if err := logs.DeleteRange(1, 4); err != nil { // what a snapshot holds
		t.Fatal(err)
	}
	left := crash(t, dir)
	again, r := openLog(t, left)
	for range 2 {
		expectLogs(t, again, 1, 5, 7)
		expectLogs(t, again, 2, 8, 14)
		expectLogs(t, again, 3, 15, 16)
		if first, err := again.FirstIndex(); err != nil || first != 5 {
			t.Errorf("the first entry is %d, %v", first, err)
		}
		if last, err := again.LastIndex(); err != nil || last != 16 {
			t.Errorf("the last entry is %d, %v", last, err)
		}
		if err := r.closeStores(); err != nil {
			t.Fatal(err)
		}
		again, r = openLog(t, left)
	}
}

// TestLogSurvivesATornWrite: what was being written when the machine went away is not there, all before it is.
func TestLogSurvivesATornWrite(t *testing.T) {
	dir := t.TempDir()
	logs, _ := openLog(t, dir)
	appendLogs(t, logs, 1, 1, 5)
	before := tailSize(t, dir)
	appendLogs(t, logs, 1, 6, 9)
	left := crash(t, dir)
	files, err := filepath.Glob(filepath.Join(left, "wal", "*.wal"))
	if err != nil || len(files) != 1 {
		t.Fatalf("segments %v, %v", files, err)
	}
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The second write reached the disk in part only.
	if _, err := f.WriteAt(make([]byte, 4096), before+16); err != nil {
		t.Fatal(err)
	}
	again, _ := openLog(t, left)
	expectLogs(t, again, 1, 1, 5)
	if last, err := again.LastIndex(); err != nil || last != 5 {
		t.Errorf("the last entry is %d, %v", last, err)
	}
	appendLogs(t, again, 2, 6, 7)
	expectLogs(t, again, 2, 6, 7)
}

// TestDamageIsToldInWords, not by a panic.
func TestDamageIsToldInWords(t *testing.T) {
	dir := t.TempDir()
	logs, r := openLog(t, dir)
	appendLogs(t, logs, 1, 1, 5)
	if err := r.closeStores(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "wal", "wal-meta.db"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRaft(RaftConfig{Logger: hclog.NewNullLogger(), Dir: dir, ID: "a"}); err == nil ||
		!strings.Contains(err.Error(), "it is damaged") {
		t.Errorf("got %v", err)
	}
}

// tailSize is where the last byte that is not zero lies in the only segment.
func tailSize(t *testing.T, dir string) int64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	if err != nil || len(files) != 1 {
		t.Fatalf("segments %v, %v", files, err)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head := make([]byte, 1<<16)
	if _, err := f.ReadAt(head, 0); err != nil {
		t.Fatal(err)
	}
	for i := len(head) - 1; i >= 0; i-- {
		if head[i] != 0 {
			return int64(i + 1)
		}
	}
	return 0
}
