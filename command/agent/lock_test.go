package agent

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A killed agent's lock may be held for a moment by a process that it was just making; an agent that lives keeps it.
func TestDataDirLock(t *testing.T) {
	dir := t.TempDir()
	other, err := os.OpenFile(filepath.Join(dir, "agent.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := lockDataDir(dir); err == nil || !strings.Contains(err.Error(), "in use by another agent") {
		t.Fatalf("error %v", err)
	}
	release := time.AfterFunc(lockWait/5, func() { _ = other.Close() })
	defer release.Stop()
	unlock, err := lockDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
